"""Cases as scripts: which of them a tokenizer can say, in which ids, how they end, and where each begins.

A case is said as it is written, but for a marker at its end that ends the turn: that is the last token, which servers
take away. A case is left out, with the reason, if the tokenizer's ids do not give its text back, if a token inside
it would end the turn, or if it is read with policies or a prompt of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from .._engine.format import Format
from ..errors import Error, UsageError
from ..families import get_format
from ..message import Message
from ..parts import Text, Thinking
from ..policies import Mentions, Policies
from ..reading import Reading
from ._manifest import ParrotScript, UnsaidCase
from ._stand_in import turn_ends
from ._tokenizer import ParrotTokenizer

FIRST_POSITION = 1024
"""Where the first script begins, unless the caller says otherwise: a template with tools writes some hundreds."""
GAP = 2
"""Positions between two scripts."""
MOST_POSITIONS = 32768
MOST_IDS = 2048
"""Tokens of a script."""
FILLERS = (" a", " x", " the", " o", "a", "x")


class ScriptCase(msgspec.Struct, frozen=True, kw_only=True):
    """A case as the file of cases has it; fields that are not named here are for others."""

    id: str
    formats: list[str]
    raw: str
    start: str | None = None
    prompt: str | None = None
    tools: list[dict[str, Any]] | None = None
    policies: dict[str, Any] | None = None
    ended: Literal["stop", "length"] | None = None


def load_cases(path: Path) -> list[ScriptCase]:
    """The cases of a file of JSON Lines."""
    found = []
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                found.append(msgspec.json.decode(line, type=ScriptCase))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}, line {number}: not a case: {error}") from error
    return found


def shipped_cases() -> list[ScriptCase]:
    """The cases that come with asides."""
    return load_cases(Path(__file__).with_name("data") / "cases.jsonl")


def cases_of(cases: Iterable[ScriptCase], format: Format) -> list[ScriptCase]:
    """Those that are written in a format, each text once."""
    chosen: dict[tuple[str, str | None], ScriptCase] = {}
    for case in cases:
        if format.name in _names(case.formats):
            chosen.setdefault((case.raw, case.ended), case)
    return list(chosen.values())


def _names(formats: Iterable[str]) -> set[str]:
    try:
        return {get_format(name).name for name in formats}
    except Error as error:
        raise UsageError(f"a case of the file: {error}") from error


def make_scripts(
    cases: Sequence[ScriptCase], format: Format, tokenizer: ParrotTokenizer, first: int = FIRST_POSITION
) -> tuple[list[ParrotScript], list[UnsaidCase]]:
    """Scripts by rising position, and the cases that cannot be said."""
    ends = end_ids(format, tokenizer)
    scripts: list[ParrotScript] = []
    left_out: list[UnsaidCase] = []
    position = first
    for case in cases:
        made = _script(case, format, tokenizer, ends, position)
        if isinstance(made, ParrotScript) and position + len(made.ids) + GAP <= MOST_POSITIONS:
            scripts.append(made)
            position += len(made.ids) + 1 + GAP
        else:
            reason = made if isinstance(made, str) else f"no room is left in {MOST_POSITIONS:,} positions"
            left_out.append(UnsaidCase(case.id, reason))
    return scripts, left_out


def end_ids(format: Format, tokenizer: ParrotTokenizer) -> list[int]:
    """The tokens that end a turn, the tokenizer's own first."""
    ends = [] if tokenizer.end is None else [tokenizer.end]
    ids = tokenizer.vocabulary.added
    ends += [ids[marker] for marker in turn_ends(format) if marker in ids]
    if not ends:
        raise UsageError("neither tokenizer_config.json (`eos_token`) nor the format names a token that ends a turn")
    return list(dict.fromkeys(ends))


def _script(
    case: ScriptCase, format: Format, tokenizer: ParrotTokenizer, ends: list[int], position: int
) -> ParrotScript | str:
    """The script of a case, or why there is none."""
    if case.policies or case.prompt is not None:
        return "is read with policies or a prompt of its own"
    ids = tokenizer.encode(case.raw)
    if not 0 < len(ids) <= MOST_IDS:
        return f"has {len(ids)} tokens; a script has 1 to {MOST_IDS:,}"
    if tokenizer.vocabulary.text(ids) != case.raw:
        return "this tokenizer's ids give another text back"
    end = None
    while ids and ids[-1] in ends:
        end = ids.pop()
    if not ids:
        return "nothing comes before the end of the turn"
    if not set(ends).isdisjoint(ids):
        return "holds a token that ends the turn"
    raw = tokenizer.vocabulary.text(ids)
    ended: Literal["stop", "length"] = "length" if case.ended == "length" else "stop"
    message = read_script(raw, format, case.start, case.tools, ended)
    return ParrotScript(
        name=case.id,
        format=format.name,
        case=case.id,
        position=position,
        ids=ids,
        raw=raw,
        end_id=end if end is not None else _end_after(message, format, tokenizer, ends),
        ended=ended,
        start=case.start or "",
        tools=case.tools,
        parts=[plain_part(part) for part in message.parts],
        notices=[notice.code for notice in message.notices],
    )


def _end_after(message: Message, format: Format, tokenizer: ParrotTokenizer, ends: list[int]) -> int:
    """The token that ends this turn: the one that ends turns with calls, where the format has such a one."""
    if message.tool_calls and message.parts[-1] is message.tool_calls[-1]:
        for marker in sorted(format.goes_on):
            if tokenizer.vocabulary.added.get(marker) in ends:
                return tokenizer.vocabulary.added[marker]
    first = tokenizer.vocabulary.added
    return next((first[marker] for marker in turn_ends(format) if first.get(marker) in ends), ends[0])


def read_script(
    raw: str,
    format: Format,
    start: str | None,
    tools: list[dict[str, Any]] | None,
    ended: str,
    mentions: Mentions = "literal",
) -> Message:
    """What a text says, read as a whole from where its case begins."""
    given: dict[str, Any] = {"start": start} if start in ("text", "thinking", "undecided") else {}
    reading = Reading(
        format=format,
        policies=Policies(seed=0, tools=tools, mentions=mentions, **given),
        sure=True,
        evidence="option",
        reason="the case says it",
    )
    parser = reading.parser()
    parser.feed(raw)
    parser.finish("length" if ended == "length" else "stop")
    return parser.message


def plain_part(part: Any) -> dict[str, Any]:
    """A part as plain data."""
    if isinstance(part, Text):
        return {"text": part.text}
    if isinstance(part, Thinking):
        return {"thinking": part.text} | ({} if part.complete else {"complete": False})
    found = {"call": part.name, "arguments": part.arguments}
    found |= {"error": part.error} if part.error is not None else {}
    return found | ({} if part.complete else {"complete": False})


def find_filler(tokenizer: ParrotTokenizer) -> str:
    """A text that adds one token each time that it is repeated after letters."""
    for filler in FILLERS:
        lengths = [len(tokenizer.encode("Hello" + filler * count)) for count in (1, 2, 3, 50, 51, 200)]
        if [length - lengths[0] for length in lengths] == [0, 1, 2, 49, 50, 199]:
            return filler
    raise UsageError("the tokenizer has no short word that stays one token when it is repeated")
