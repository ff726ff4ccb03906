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


def test_unknown() -> None:
    done = run("formats", "qwne3")
    assert done.returncode == 2
    assert b"qwen3" in done.stderr


def test_by_marker() -> None:
    """The formats that have it; where none does, those in which it is a part of one."""
    rows = run("formats", "[think]").stdout.decode().splitlines()[1:]
    assert [row.split()[0] for row in rows] == ["auto", "mistral"]
    assert [row["name"] for row in json.loads(run("formats", "<|start|>", "--json").stdout)] == [
        name for name in asides.formats() if name in ("auto", "beam", "harmony", "muse")
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
