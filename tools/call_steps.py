"""The page docs/explanation/call_steps.md: what the parser does at each character of a few outputs with calls.

`python -m tools.call_steps` prints the examples; with `--write` they go into the page. Run it from the top of the
repository. A test fails while the page is not what this writes: the real parser reads each example, one character at a
time, and what it is in the middle of and what it returns is written down.

    python -m tools.call_steps 'hm</think>Four.' --format qwen3_thinking   # any other output, looked at in the same way
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

import asides
from asides._engine.modes import Mode
from asides.events import Event, TextDelta, ThinkingDelta, ToolCallDelta
from tools.blocks import Make, main

PAGE = Path("docs", "explanation", "call_steps.md")
WIDTH = 88
"""Characters of an output on one line of the page."""
LINE_BREAK = "⏎"
LETTERS = {
    Mode.BEGIN: "b",
    Mode.HEADER: "h",
    Mode.BARE_HEADER: "H",
    Mode.CALL: "c",
    Mode.DEAD: "d",
    Mode.AFTER_CALLS: "a",
    Mode.AFTER_STOP: "s",
    Mode.BEYOND: "x",
}
"""A letter for each mode; prose has one for text (`t`) and one for thinking (`k`)."""
EXAMPLES = {
    "call": 'Let me see.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>',
    "given_back": 'Calls begin with <tool_call> here:\n<tool_call>{"name": "now", "arguments": {}}</tool_call>',
    "draft": '<think>Either\n<tool_call>{"name": "now", "arguments": {}}</tool_call>\nor not.</think>No.',
}
"""By the name of a block: an output."""
FORMAT = "qwen3"


class Step(NamedTuple):
    """What one character did."""

    character: str
    letter: str
    """The mode after it."""
    events: list[Event]


def steps(text: str, format: str = FORMAT) -> list[Step]:
    """One for each character; the last has what comes out at the end of the output, and no character."""
    parser = asides.Parser(format, seed=0)
    found = []
    for character in text:
        events = parser.feed(character)
        found.append(Step(character, _letter(parser), events))
    events = parser.finish()
    return [*found, Step("", _letter(parser), events)]


def _letter(parser: asides.Parser) -> str:
    return LETTERS.get(parser._mode) or ("k" if parser.state == "thinking" else "t")


def show(text: str, format: str = FORMAT) -> str:
    """The output, line by line, with the modes and what comes out below each character; then the events."""
    found = steps(text, format)
    blocks: list[str] = []
    start = 0
    while start < len(text):
        stop = min(start + WIDTH, text.find("\n", start) + 1 or len(text))
        line = found[start:stop]
        blocks.append(
            f"{start:>4}  {''.join(step.character for step in line).replace(chr(10), LINE_BREAK)}\n"
            f"mode  {''.join(step.letter for step in line)}\n"
            f" out  {''.join('+' if step.events else '.' for step in line)}\n"
        )
        start = stop
    events = [
        f"- {_place(offset, step)}: {', '.join(f'`{_write(event)}`' for event in step.events)}"
        for offset, step in enumerate(found)
        if any(not _is_plain(event, step) for event in step.events)
    ]
    return "```text\n" + "\n".join(blocks) + "```\n\n" + "\n".join(events) + "\n"


def _is_plain(event: Event, step: Step) -> bool:
    """Whether it is no more than the character itself, perhaps with a space before it that waited for it."""
    text = event.text if isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta) else ""
    return text[-1:] == step.character and not text[:-1].strip()


def _place(offset: int, step: Step) -> str:
    if not step.character:
        return "at the end"
    return f"{offset}, {'the line break' if step.character == chr(10) else f'`{step.character}`'}"


def _write(event: Event) -> str:
    """An event without what is as it is by default, and without the sentence that explains a notice."""
    given = {
        field.name: getattr(event, field.name)
        for field in msgspec.structs.fields(type(event))
        if field.name != "message" and getattr(event, field.name) not in (field.default, "")
    }
    return f"{type(event).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def legend() -> str:
    """The letters that stand for modes."""
    rows = [
        "| letter | mode | reading |",
        "|---|---|---|",
        f"| `t` `k` | `PROSE` | {Mode.PROSE.value}: `t` text, `k` thinking |",
        *(f"| `{letter}` | `{mode.name}` | {mode.value} |" for mode, letter in LETTERS.items()),
    ]
    return "\n".join(rows) + "\n"


BLOCKS: Make = {"letters": legend, **{name: partial(show, text) for name, text in EXAMPLES.items()}}

if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].startswith("--"):
        print(show(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--format"] else FORMAT), end="")
    else:
        main(PAGE, BLOCKS)
