"""`asides formats`: the registry, to read and to process."""

from __future__ import annotations

import json

import pytest

import asides
from asides._cli.formats import detail
from tests.cli.running import run


def test_every_format_is_listed_with_its_aliases() -> None:
    heading, *rows = run("formats").stdout.decode().splitlines()
    assert heading.split() == ["name", "start", "calls", "aliases", "source"]
    assert [row.split()[0] for row in rows] == asides.formats()
    for row in rows:
        for alias in asides.get_format(row.split()[0]).aliases:
            assert alias in row


def test_as_json() -> None:
    rows = json.loads(run("formats", "--json").stdout)
    assert [row["name"] for row in rows] == asides.formats()
    assert all(set(row) == {"name", "aliases", "start", "calls", "source"} for row in rows)


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
