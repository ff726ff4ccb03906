"""Runs `tests/cases/*.toml`: text or chunks in, parts out. `tests/cases/README.md` says how a case is written.

Every case is read whole, cut at every place and character by character, and held to the laws.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import asides
from asides import Message, Text, Thinking, ToolCall
from asides.parts import Part
from tests.support import (
    as_parse,
    characters,
    check_chunking,
    check_each,
    check_kept,
    check_one_path,
    every_place,
    run,
    show_parts,
)

CASES = Path(__file__).parent / "cases"
MANY = 600
"""Beyond this many characters a case is cut only at some places."""

FILE_KEYS = {"format", "formats", "options", "case"}
CASE_KEYS = {
    "name",
    "format",
    "input",
    "chunks",
    "options",
    "finish_reason",
    "stream",
    "parts",
    "notices",
    "termination",
    "text",
    "thinking",
    "beyond",
}
PART_KEYS = {"thinking", "text", "call", "complete", "arguments", "json", "error", "raw", "id"}


class Case(NamedTuple):
    """One case for one format."""

    file: str
    format: str
    said: Mapping[str, Any]

    @property
    def chunks(self) -> tuple[str, ...]:
        """The input as the case cuts it."""
        return tuple(self.said["chunks"]) if "chunks" in self.said else (self.said["input"],)

    @property
    def options(self) -> dict[str, Any]:
        """The policies and the reported end, with the start that `parse` would choose."""
        return self.chosen if self.said.get("stream") else as_parse(self.format, self.chosen)

    @property
    def chosen(self) -> dict[str, Any]:
        """The policies and the reported end as the case has them, and a seed."""
        reported = {"finish_reason": self.said["finish_reason"]} if "finish_reason" in self.said else {}
        return {"seed": 0, **self.said.get("options", {}), **reported}


def load(path: Path) -> Iterator[Case]:
    """Every case of a file, once for each of its formats, or with the format that the case itself names."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    assert data.keys() <= FILE_KEYS, f"{path.name}: unknown keys {sorted(data.keys() - FILE_KEYS)}"
    names = data.get("formats", [data["format"]] if "format" in data else [])
    seen = set()
    for case in data.get("case", []):
        said = {**case, "options": {**data.get("options", {}), **case.get("options", {})}}
        where = f"{path.name}: case {said.get('name')!r}"
        assert said.keys() <= CASE_KEYS, f"{where} has unknown keys {sorted(said.keys() - CASE_KEYS)}"
        assert ("input" in said) != ("chunks" in said), f"{where} needs either `input` or `chunks`"
        assert "parts" in said, f"{where} does not say which parts are expected"
        assert said["name"] not in seen, f"{where} stands there twice"
        seen.add(said["name"])
        for part in said["parts"]:
            assert part.keys() <= PART_KEYS, f"{where}: a part has unknown keys {sorted(part.keys() - PART_KEYS)}"
            assert len(part.keys() & {"thinking", "text", "call"}) == 1, f"{where}: a part is thinking, text or call"
        assert names or "format" in said, f"{where} names no format, nor does its file"
        for name in [said["format"]] if "format" in said else names:
            yield Case(path.stem, name, said)


ALL = [case for path in sorted(CASES.glob("*.toml")) for case in load(path)]


@pytest.mark.parametrize(("file", "format"), dict.fromkeys((case.file, case.format) for case in ALL))
def test_cases(file: str, format: str) -> None:
    """Of every case of a file, for each of its formats, the parts are as written, however the input is cut."""
    check_each(check_case, [case for case in ALL if (case.file, case.format) == (file, format)], case_name)


def case_name(case: Case) -> str:
    """How a case is called where it fails."""
    return f"{case.file}-{case.format}-{case.said['name']}"


def check_case(case: Case) -> None:
    """The parts are as written, however the input is cut, and the laws hold."""
    text = "".join(case.chunks)
    outcome = run(case.format, case.chunks, **case.options)
    assert outcome.message is not None, _report(case, [f"strictness ended it: {outcome.error}"], outcome.message)
    differences = list(_differences(case.said, outcome.message))
    assert not differences, _report(case, differences, outcome.message)
    step = 1 + len(text) // MANY
    ways = [characters(text), case.chunks, *list(every_place(text))[::step]]
    check_kept(case.format, text, check_chunking(case.format, text, ways, case.options), case.options)
    if not case.said.get("stream"):
        check_one_path(case.format, text, case.chosen)


def _report(case: Case, differences: list[str], message: Message | None) -> str:
    lines = [f"\ncase {case.said['name']!r} of {case.file}.toml, format {case.format!r}, options {case.options!r}"]
    lines.append(f"input {''.join(case.chunks)!r}")
    lines += [f"- {difference}" for difference in differences]
    lines.append("expected:")
    lines += [f"  {part}" for part in case.said["parts"]]
    lines.append(f"  notices {case.said.get('notices', [])}")
    lines += ["found:", show_parts(message)]
    return "\n".join(lines)


def _differences(said: Mapping[str, Any], message: Message) -> Iterator[str]:
    expected = said["parts"]
    if len(expected) != len(message.parts):
        yield f"{len(expected)} parts expected, {len(message.parts)} found"
    for index, (part, wanted) in enumerate(zip(message.parts, expected, strict=False)):
        for key, value, found in _part_differences(part, wanted):
            yield f"part {index}: {key} should be {value!r}, is {found!r}"
    codes = [notice.code for notice in message.notices]
    if codes != said.get("notices", []):
        yield f"notices should be {said.get('notices', [])}, are {codes}"
    for key in ("termination", "text", "thinking"):
        if key in said and said[key] != getattr(message, key):
            yield f"{key} should be {said[key]!r}, is {getattr(message, key)!r}"
    beyond = message.raw[slice(*message.beyond)] if message.beyond is not None else ""
    if "beyond" in said and said["beyond"] != beyond:
        yield f"what stands beyond the turn should be {said['beyond']!r}, is {beyond!r}"


def _part_differences(part: Part, wanted: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    kind = next(key for key in ("thinking", "text", "call") if key in wanted)
    found = {Thinking: "thinking", Text: "text", ToolCall: "call"}[type(part)]
    if kind != found:
        yield "kind", kind, found
        return
    said: dict[str, Any] = {}
    if isinstance(part, ToolCall):
        said = {"call": part.name, "arguments": part.arguments, "raw": part.raw, "id": part.id}
        said |= {"complete": part.complete, "error": part.error}
        # A call that was cut off is always an error, so a case need not say so.
        wanted = {"complete": True, "error": None if wanted.get("complete", True) else "incomplete", **wanted}
    elif isinstance(part, Thinking):
        said = {"thinking": part.text, "complete": part.complete}
        wanted = {"complete": True, **wanted}
    else:
        said = {"text": part.text}
    for key, value in wanted.items():
        if key == "json":
            try:
                said["json"] = json.loads(said["arguments"])
            except ValueError:
                said["json"] = said["arguments"]
        if said.get(key) != value:
            yield key, value, said.get(key)


def test_every_format_has_cases() -> None:
    """A format without cases is a format that nobody has looked at."""
    covered = {asides.get_format(case.format).name for case in ALL}
    missing = sorted(set(asides.formats()) - covered)
    assert not missing, f"these formats have no cases in tests/cases: {', '.join(missing)}"
