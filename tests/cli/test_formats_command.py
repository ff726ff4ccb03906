"""`asides formats`: the registry, to read and to process."""

from __future__ import annotations

import json

import pytest

import asides
from asides._cli.formats import detail
from tests.cli.running import OnScreen, run


def test_every_format_is_listed_with_its_aliases() -> None:
    heading, *rows = run("formats").stdout.decode().splitlines()
    assert heading.split() == ["name", "opens", "closes", "start", "aliases"]
    assert [row.split()[0] for row in rows] == asides.formats()
    for row in rows:
        for alias in asides.get_format(row.split()[0]).aliases:
            assert alias in row


def test_as_json() -> None:
    rows = json.loads(run("formats", "--json").stdout)
    assert [row["name"] for row in rows] == asides.formats()
    fields = {"name", "aliases", "start", "calls", "source", "thinking_opens", "thinking_closes", "calls_in_thinking"}
    assert all(set(row) >= fields for row in rows)


@pytest.mark.parametrize("name", asides.formats())
def test_each_in_detail(name: str) -> None:
    details = detail(asides.get_format(name))
    assert details["name"] == name
    json.dumps(details)


def test_one_in_detail() -> None:
    shown = run("formats", "Qwen-3").stdout.decode()
    assert "<think>" in shown
    assert "</think>" in shown
    assert json.loads(run("formats", "qwen3", "--json").stdout)["thinking_opens"] == ["<think>"]


def test_a_family() -> None:
    """Its formats, and which of its models write them. A format's name or alias comes first: `-f` takes those."""
    shown = run("formats", "DeepSeek").stdout.decode()
    card = next(family for family in asides.families.families() if family.name == "DeepSeek")
    assert {format.name for format in card.formats} <= {line.split(" ")[0] for line in shown.splitlines()}
    assert "deepseek_v41  yes    DeepSeek 4.1\n" in shown
    found = json.loads(run("formats", "deepseek", "--json").stdout)
    assert [row["name"] for row in found["formats"]] == [format.name for format in card.formats]
    assert {"models": "DeepSeek 3", "format": "deepseek_v3", "thinks": False} in found["models"]
    assert len({row["models"] for row in found["models"]}) == len(found["models"])
    assert json.loads(run("formats", "qwen", "--json").stdout)["name"] == "qwen3"
    assert "Qwen, with qwen3.5 qwen3_thinking" in run("formats", "qwen").stdout.decode()


@pytest.mark.parametrize("columns", [40, 80])
def test_a_family_fits_the_terminal(columns: int) -> None:
    with OnScreen("formats", "deepseek", columns=columns, rows=70) as screen:
        assert screen.end() == 0
        lines = screen.emulator.lines
    assert max(map(len, lines)) <= columns
    assert {"deepseek_v41", "deepseek3"} <= set(" ".join(lines).split())


def test_unknown() -> None:
    done = run("formats", "qwne3")
    assert done.returncode == 2
    assert b"qwen3" in done.stderr


def test_by_marker() -> None:
    """The formats that have it; where none does, those in which it is a part of one."""
    rows = run("formats", "[think]").stdout.decode().splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["auto", "mistral"]
    assert [row["name"] for row in json.loads(run("formats", "<|start|>", "--json").stdout)] == [
        name for name in asides.formats() if name in ("auto", "beam", "harmony", "muse", "muse_spark")
    ]
    assert b"seed_oss" in run("formats", "seed:thi").stdout
    done = run("formats", "<nobody>")
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_nothing_is_lost_at_any_width(columns: int) -> None:
    """Lines fit the terminal, and every alias is there, beside the format or below it."""
    with OnScreen("formats", "[THINK]", columns=columns) as screen:
        assert screen.end() == 0
        lines = screen.emulator.lines
    assert max(map(len, lines)) <= columns
    text = " ".join(lines).split()
    assert {"mistral", "[THINK]", "[/THINK]", *asides.get_format("mistral").aliases} <= set(text)
    assert ("opens" in text) == (columns > 40)
