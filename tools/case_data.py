"""The data of `asides.audit`: `tests/cases` and the cards of the families, as JSON for parsers in any language.

`python -m tools.case_data` names the files that are out of date; with `--write` they are written (`make families` does
it). Run it from the top of the repository. A test fails while a file is not what this writes.

    data/cases.jsonl     every case, with what `asides` makes of it; cases that differ in the format alone are one line
    data/formats.json    every format and the names of models, from the cards
    data/LICENSE         the licence of both, as it stands at the top of the repository

What a case expects is written by hand in `tests/cases`, in part; `tests/test_cases.py` compares. Here it is whole: the
answer of `asides` to that case. The schemas and the README beside these files are written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import splintr

import asides
from asides._cli.formats import syntax_name, whole_detail
from asides._engine.calls.syntax import CallSyntax
from asides._engine.format import Format
from asides.audit import DATA_VERSION
from asides.audit._answers import COMPARED, SentCase, answer_case, part_of
from asides.families import Switch, families, switch_of
from asides.families._model_names import MODELS
from tests.test_cases import ALL, Case

FOLDER = Path("src", "asides", "audit", "data")
LICENSE = "Apache-2.0"
VOCABULARIES = {
    "DeepSeek-R1": "deepseek_v3",
    "Kimi-K2": "kimi_k2",
    "Llama-3.2": "llama3",
    "Mistral-Nemo": "mistral_v3",
    "Qwen3": "qwen3",
    "gpt-oss": "gpt_oss",
}
"""What splintr calls the tokenizers of the cards. Reading ids with them shows which cases mean the same in ids."""


def sent(case: Case) -> dict[str, Any]:
    """A case as a runner has it, but for its format."""
    format = asides.get_format(case.format)
    options = {name: value for name, value in case.options.items() if name not in ("seed", "finish_reason")}
    found: dict[str, Any] = {"id": f"{case.file}/{case.said['name']}", "raw": "".join(case.chunks)}
    start, prompt, tools = (options.pop(name, None) for name in ("start", "prompt", "tools"))
    if start is None and prompt is None:
        start = "stream" if format.start == "text" else format.start
    optional = {"start": start, "prompt": prompt, "tools": tools, "policies": options or None}
    optional["ended"] = case.said.get("finish_reason")
    return found | {name: value for name, value in optional.items() if value is not None}


def _as_sent(given: Mapping[str, Any], format: str) -> SentCase:
    """A case as a runner sends it in one piece."""
    asked = {name: value for name, value in given.items() if name != "raw"}
    return msgspec.convert({**asked, "format": format, "chunks": [given["raw"]]}, SentCase)


@cache
def _tokenizer(name: str) -> Any:
    return splintr.Tokenizer.from_pretrained(name)


def pieces(format: str, given: Mapping[str, Any], answer: Mapping[str, Any]) -> dict[str, list[str | int]]:
    """The raw text as words and ids of markers, by the name of the tokenizer.

    Only where all markers of the text are ids or words in both readings: a marker that is mentioned has an id too, but
    then the ids say something else than the text.
    """
    found: dict[str, list[str | int]] = {}
    known = next((family.marker_ids for family in families() if format in {each.name for each in family.formats}), {})
    for name, marker_ids in known.items():
        if format not in marker_ids.formats or name not in VOCABULARIES or "prompt" in given:
            continue
        markers = sorted(marker_ids.ids, key=len, reverse=True)
        cut = re.split(f"({'|'.join(map(re.escape, markers))})", given["raw"])
        if len(cut) == 1:
            continue
        parts = [marker_ids.ids.get(piece, piece) for piece in cut if piece]
        tokenizer = _tokenizer(VOCABULARIES[name])
        ids = [id for part in parts for id in ([part] if isinstance(part, int) else tokenizer.encode(part))]
        parser = _as_sent(given, format).reading().token_parser(tokenizer)
        parser.feed(ids)
        parser.finish(given.get("ended"))
        if [part_of(part, given["raw"]) for part in parser.message.parts] == answer["parts"]:
            found[name] = parts
    return found


def cases() -> str:
    """`cases.jsonl`."""
    lines: dict[bytes, list[str]] = {}
    for case in ALL:
        format = asides.get_format(case.format).name
        given = sent(case)
        answer = answer_case(msgspec.to_builtins(_as_sent(given, format)))
        expected = {name: value for name, value in answer.items() if value or name in ("parts", "events")}
        if tokens := pieces(format, given, answer):
            expected["pieces"] = tokens
        formats = lines.setdefault(msgspec.json.encode({**given, **expected}), [])
        if format not in formats:
            formats.append(format)
    written = {}
    for line, formats in lines.items():
        given = msgspec.json.decode(line)
        id = given.pop("id")
        if id in written:  # the same text means something else in these formats
            id += f" ({formats[0]})"
        written[id] = msgspec.json.encode({"id": id, "formats": formats, **given}).decode() + "\n"
    return "".join(written.values())


def formats() -> str:
    """`formats.json`."""
    table = {
        "version": DATA_VERSION,
        "license": LICENSE,
        "compared": sorted(COMPARED),
        "formats": [_format(asides.get_format(name)) for name in asides.formats()],
        "models": [_given(row) for row in MODELS],
        "tokenizers": {
            name: {"formats": known.formats, "ids": dict(known.ids)}
            for family in families()
            for name, known in family.marker_ids.items()
        },
    }
    return msgspec.json.format(msgspec.json.encode(table), indent=1).decode() + "\n"


def _format(format: Format) -> dict[str, Any]:
    details = {name: value for name, value in whole_detail(format.name).items() if name not in ("switch", "calls")}
    switch = switch_of(format)
    more: dict[str, Any] = {
        "markers": {state: dict(markers) for state, markers in format.states.items()},
        "call_syntaxes": [_syntax(syntax) for syntax in format.calls],
        "assistant": format.assistant,
        "other_turns": format.other_turns,
        "ignored": format.ignored,
        "header": None if format.header is None else _header(format),
        "switch": _plain(switch),
    }
    return details | {name: value for name, value in more.items() if value}


def _header(format: Format) -> dict[str, Any]:
    assert format.header is not None
    header = _given(format.header, leave=("calls", "tools", "bare"))
    calls = [_syntax(syntax) for syntax in format.header.calls]
    return header | ({"call_syntaxes": calls} if calls else {})


def _syntax(syntax: CallSyntax) -> dict[str, Any]:
    """A call syntax: its kind and every field that is not as usual."""
    return {"kind": syntax_name(syntax), **_given(syntax)}


def _given(record: msgspec.Struct, leave: tuple[str, ...] = ()) -> dict[str, Any]:
    """The fields of a record that are not as they are by default, as JSON has them."""
    return {name: value for name, value in _fields(record) if name not in leave}


def _fields(record: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(type(record)):
        value = getattr(record, field.name)
        default = field.default if field.default is not msgspec.NODEFAULT else None
        if field.required or value != default:
            plain = _plain(value)
            if plain not in ([], {}, ""):
                yield field.name, plain


def _plain(value: Any) -> Any:
    if isinstance(value, Switch):
        return msgspec.to_builtins(value)  # whole: its usual values are facts too
    if isinstance(value, msgspec.Struct):
        return _given(value)
    if isinstance(value, frozenset | set):
        return sorted(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def licence() -> str:
    """`LICENSE`."""
    return Path("LICENSE").read_text(encoding="utf-8")


MADE = {"cases.jsonl": cases, "formats.json": formats, "LICENSE": licence}


def _main(arguments: list[str]) -> None:
    write = arguments == ["--write"]
    for name, make in MADE.items():
        path, text = FOLDER / name, make()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.stdout.write(f"{path} {'written' if write else 'is out of date'}\n")
            if write:
                path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
