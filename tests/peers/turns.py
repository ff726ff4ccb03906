"""Turns whose reading is known, from three sources that are never added up.

- *recorded*: what models have written, in files of JSON Lines that stand beside the repository. The reading is ours.
- *generated*: parts that are drawn by a seed and written as the family writes them, so the reading is what was drawn.
- *written*: the cases of `tests/cases`, whose parts were written by hand for this project.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import asides
from asides import Format, get_format
from asides._engine.format import TEXT, THINKING
from asides.audit._manifest import ParrotScript
from asides.audit._scripts import ScriptCase, cases_of, make_scripts, shipped_cases
from asides.audit._stand_in import stand_in
from tests.laws.test_round_trip import BARE, WRITERS, Write
from tests.peers.parsers import Turn
from tools.scoreboard_scripts import case_lines

SEED = 34
EACH = 3
"""Turns of each shape that are drawn for a format."""
SHAPES = {
    "text": "S",
    "call": "C",
    "text and call": "SC",
    "thought and text": "TS",
    "thought and call": "TC",
    "thought, text and call": "TSC",
    "thought that never closes": "U",
    "two thoughts": "TSTS",
    "close quoted in a thought": "QS",
    "draft in a closed thought": "DS",
    "call in a thought that never closes": "UC",
    "text after a call": "CS",
}
"""T a thought, S a text, C a call; U a thought without its close, Q one that quotes the close, D one with a call."""
ODD = tuple(SHAPES)[6:]
"""Shapes that models write now and then; how they are to be read is nowhere fixed but by what was drawn."""
_SENTENCE = "the map shows rain over Oslo while wind from the north turns at noon and the harbour stays calm"
WORDS = _SENTENCE.split(" ")
NAME = "get_weather"
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": "The weather.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    }
]
RECORDED = {
    "r1distill_gpqa_kennethleungty": "deepseek_r1",
    "rlft_3b_reasoninggym": "deepseek_r1",
    "webdancer_think_toolcall": "qwen3",
    "deepseek_v32_dsml_fixtures_vllm": "deepseek_v32",
}
"""The format that each file of recorded outputs is in."""
MOST_RECORDED = 40
MOST_CHARACTERS = 6000
"""Of a recorded output: longer ones take some parsers minutes."""


class KnownTurn(NamedTuple):
    """A turn, and where it comes from."""

    source: str
    name: str
    shape: str
    turn: Turn


class _Drawn(NamedTuple):
    case: ScriptCase
    parts: list[dict[str, Any]]
    shape: str


def thinking_markers(format: Format) -> tuple[str, str] | None:
    """What opens and closes a thought."""
    openers = [marker for marker, to in format.states.get(TEXT, {}).items() if to == THINKING]
    closers = [marker for marker, to in format.states.get(THINKING, {}).items() if to == TEXT]
    return (openers[0], closers[0]) if openers and closers else None


def writer_of(format: Format) -> Write | None:
    """How the family writes a call; None where nothing here knows it."""
    if format.name in WRITERS:
        return WRITERS[format.name]
    first = format.calls[0] if format.calls else None
    same = [name for name in WRITERS if first is not None and first in get_format(name).calls[:1]]
    return WRITERS[same[0]] if same else None


def generated(format: Format) -> Iterator[_Drawn]:
    """Turns by a seed; those shapes that the format can write."""
    markers, write = thinking_markers(format), writer_of(format)
    for shape, kinds in SHAPES.items():
        thinks = any(kind in "TUQD" for kind in kinds)
        calls = any(kind in "CD" for kind in kinds)
        if (thinks and markers is None) or (calls and write is None) or not _writes(format, kinds, markers):
            continue
        for number in range(EACH):
            chance = random.Random(f"{SEED} {format.name} {shape} {number}")
            raw, parts = _draw(chance, kinds, markers or ("", ""), write)
            start = "text"
            if thinks and format.start == THINKING and markers is not None:
                raw, start = raw.removeprefix(f"{markers[0]}\n"), "thinking"
            case = ScriptCase(
                id=f"{shape} {number}", formats=[format.name], raw=raw, start=start, tools=TOOLS if calls else None
            )
            yield _Drawn(case, parts, shape)


def _writes(format: Format, kinds: str, markers: tuple[str, str] | None) -> bool:
    """Whether models of the family may write a turn like this."""
    if format.name in BARE and "C" in kinds and kinds != "C":
        return False  # a call without an opener is the whole reply
    if kinds.count("T") > 1 and markers is not None and " " in markers[0]:
        return False  # a sentence opens the one thought
    return format.calls_in_thinking != "always" or "D" not in kinds


def _draw(
    chance: random.Random, kinds: str, markers: tuple[str, str], write: Write | None
) -> tuple[str, list[dict[str, Any]]]:
    def words() -> str:
        chosen = chance.sample(WORDS, chance.randint(4, 9))
        return " ".join(chosen).capitalize() + "."

    def call() -> tuple[str, dict[str, Any]]:
        assert write is not None
        given = {"city": chance.choice(["Oslo", "Bergen", "San Francisco"]), "days": chance.randint(1, 9)}
        return write(NAME, given), {"call": NAME, "arguments": json.dumps(given)}

    raw = ""
    parts: list[dict[str, Any]] = []
    for kind in kinds:
        said = words()
        if kind == "C":
            written, part = call()
            raw += written + "\n"
            parts.append(part)
            continue
        if kind == "Q":
            said += f" I must close with `{markers[1]}` and then answer."
        elif kind == "D":
            said += f" I could write {call()[0]} but I need not. {words()}"
        if kind == "S":
            raw += f"{said}\n"
            parts.append({"text": said})
        else:
            raw += f"{markers[0]}\n{said}\n" + (f"{markers[1]}\n\n" if kind != "U" else "")
            parts.append({"thinking": said} | ({"complete": False} if kind == "U" and len(kinds) == 1 else {}))
    return raw.rstrip("\n"), parts


def written(format: Format) -> Iterator[ScriptCase]:
    """The cases of this project for a format, each text once."""
    yield from cases_of(shipped_cases(), format)


def recorded(format: Format, folder: Path) -> Iterator[ScriptCase]:
    """Recorded outputs in a format: a sample, the same every time."""
    for stem, name in RECORDED.items():
        path = folder / f"{stem}.jsonl"
        if name == format.name and path.exists():
            texts = [json.loads(line)["text"] for line in path.read_text(encoding="utf-8").splitlines()]
            short = [(number, text) for number, text in enumerate(texts) if len(text) <= MOST_CHARACTERS]
            for number, text in sorted(random.Random(SEED).sample(short, min(MOST_RECORDED, len(short)))):
                opened = "<think>" in text.partition("</think>")[0]
                start = "text" if opened or "</think>" not in text else "thinking"
                yield ScriptCase(id=f"{stem} {number}", formats=[name], raw=text, start=start, tools=TOOLS)


def turns_of(name: str, folder: Path | None) -> Iterator[KnownTurn]:
    """All turns of a format."""
    format = get_format(name)
    drawn = {each.case.id: each for each in generated(format)}
    sources: dict[str, list[ScriptCase]] = {
        "recorded": list(recorded(format, folder)) if folder is not None else [],
        "generated": [each.case for each in drawn.values()],
        "written": list(written(format)),
    }
    for source, cases in sources.items():
        if not cases:
            continue
        tokenizer = stand_in(format, [case.raw for case in cases], "", "")
        for script in _scripts(cases, format, tokenizer):
            shape = ""
            if source == "generated":
                shape = drawn[script.name].shape
                script = msgspec.structs.replace(script, parts=drawn[script.name].parts)
            yield KnownTurn(source, script.name, shape, _turn(format, tokenizer, script))


def _scripts(cases: list[ScriptCase], format: Format, tokenizer: Any) -> Iterable[ParrotScript]:
    """Each case by itself, because a parrot has room for some of them only."""
    for case in cases:
        yield from make_scripts([case], format, tokenizer)[0]


def _turn(format: Format, tokenizer: Any, script: ParrotScript) -> Turn:
    """A script after the prompt that the family's template would end with."""
    prompt = format.assistant[0] if format.assistant else "assistant:\n"
    markers = thinking_markers(format)
    thinks: bool | None = None
    if markers is not None:
        opener, closer = markers
        first = min((script.raw.find(each) for each in markers if each in script.raw), default=-1)
        thinks = any("thinking" in part for part in script.parts)
        if not thinks:
            prompt += f"{opener}\n\n{closer}\n\n"
        elif script.start == "thinking" or (first >= 0 and script.raw.startswith(closer, first)):
            prompt += f"{opener}\n"  # so a template does, where the reply has only a close
    return Turn(format, tokenizer, script, prompt, thinks)


def ours(turn: Turn, streamed: bool) -> asides.Message:
    """The same turn as asides reads it after that prompt."""
    reading = asides.Reading.of(
        format=turn.format.name,
        prompt=turn.prompt,
        policies=asides.Policies(tools=turn.script.tools, calls=True, seed=0),
    )
    if not streamed:
        return reading.parse(turn.script.raw, turn.script.ended)
    parser = reading.parser()
    for _, text in turn.pieces():
        parser.feed(text)
    parser.finish(turn.script.ended)
    return parser.message


def script_turns() -> list[Turn]:
    """The scripts of the scoreboard. Both peers take a reply that opens no thought for one as long as thinking is on,
    so a script without a thought is read as the reply to a request that has turned it off."""
    format = get_format("qwen3")
    cases = [msgspec.json.decode(line, type=ScriptCase) for line in case_lines().splitlines()]
    tokenizer = stand_in(format, [case.raw for case in cases], "", "")
    return [_turn(format, tokenizer, script) for script in _scripts(cases, format, tokenizer)]
