"""Coverage-guided search for inputs that break a law: any exception but ours, lost characters, a cut that matters,
work that grows faster than the input. For every registered format. Run it with `make fuzz`; it needs atheris.

What it finds is printed as a case for `tests/cases`, to be put there once it is mended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["asides"]):
    import asides

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support import check_chunking, check_held, check_kept, cut, markers, run

NAMES = asides.formats()
SOME = (
    '"',
    "`",
    "\n```\n",
    " ",
    "\n",
    "{",
    "}",
    '{"name": "f", "arguments": {"a": 1}}',
    "[",
    "]",
    "a",
    "\ud800",
    "\x00",
)
POLICIES: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("start", (None, "text", "thinking", "undecided")),
    ("mentions", ("literal", "marker")),
    ("whitespace", ("tidy", "exact")),
    ("calls_in_thinking", (None, "resolve", "never", "always")),
    ("limit", (1_048_576, 16)),
)
GROWTH = 4
"""How many times an input is repeated to see whether work grows with it."""
WORTH = 200
"""Below this many calls nothing can be said of growth."""


def draw(data: atheris.FuzzedDataProvider) -> tuple[str, str, dict[str, Any], list[int]]:
    """A format, a text of its markers and of anything else, policies, and places to cut at."""
    name = NAMES[data.ConsumeIntInRange(0, len(NAMES) - 1)]
    policies = {key: choices[data.ConsumeIntInRange(0, len(choices) - 1)] for key, choices in POLICIES}
    places = [data.ConsumeIntInRange(0, 200) for _ in range(data.ConsumeIntInRange(1, 4))]
    pieces = [*markers(asides.get_format(name)), *SOME]
    text = ""
    while data.remaining_bytes() and len(text) < 300:
        choice = data.ConsumeIntInRange(0, 255)
        if choice < 160:
            text += pieces[choice * len(pieces) // 160]
        else:
            text += data.ConsumeUnicode(choice % 16)
    return name, text, policies, places


def check(name: str, text: str, policies: dict[str, Any], places: list[int]) -> None:
    """Hold one input to the laws."""
    outcome = check_chunking(name, text, [cut(text, places), tuple(text)], policies)
    check_kept(name, text, outcome, policies)
    check_held(name, text, cut(text, places), policies)
    if len(text) % 16 == 0:
        few, many = (work(name, text * times, policies) for times in (GROWTH, GROWTH * GROWTH))
        if few > WORTH and many > few * GROWTH * 2:
            raise AssertionError(f"law 4: {few} calls for {GROWTH} times the input, {many} for {GROWTH * GROWTH} times")


def work(name: str, text: str, policies: dict[str, Any]) -> int:
    """How many functions are called to read a text seven characters at a time."""
    count = 0

    def tally(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        run(name, cut(text, range(7, len(text), 7)), **policies)
    finally:
        sys.setprofile(None)
    return count


def as_case(name: str, text: str, policies: dict[str, Any]) -> str:
    """The input as a case; what the parts should be is for a person to say."""
    chosen = {key: value for key, value in policies.items() if value is not None}
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in chosen.items())
    lines = [f'format = "{name}"', "", "[[case]]", 'name = "found by the fuzzer"']
    if any(0xD800 <= ord(character) < 0xE000 for character in text):
        lines.append(f"# TOML cannot hold half a surrogate pair; the input in Python is {text!r}")
    lines += [f"input = {json.dumps(text)}", f"options = {{{options}}}", "parts = []"]
    return "\n".join(lines)


def one_input(raw: bytes) -> None:
    """What atheris calls."""
    name, text, policies, places = draw(atheris.FuzzedDataProvider(raw))
    try:
        check(name, text, policies, places)
    except BaseException:
        print(as_case(name, text, policies), f"# cut at {places}", sep="\n", file=sys.stderr)
        raise


if __name__ == "__main__":
    # Long inputs from the start: a text of a few pieces breaks nothing.
    atheris.Setup([sys.argv[0], "-len_control=0", "-max_len=200", *sys.argv[1:]], one_input)
    atheris.Fuzz()
