"""`python -m tests.laws.seeded LAW`: a law over very many generated texts, the same for every run of a seed.

The tests beside this file try each law on a few texts for each format, because there are many formats. This tries one
law on as many texts as are wanted, spread evenly over the formats; without hypothesis, which remembers too much for
so many. What fails is made shorter while it fails in the same way, and printed. Nothing is asserted about time.

    chunking   laws 1 and 3: whole, by character, in equal pieces and cut at random, with any policies
    held       law 5: what `held` says after each piece
    streams    law 2: `Parser` without `start` ends with the parts of `parse`; what may differ is said in `differs`
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import asides
from asides import Message, Thinking, ToolCall
from asides._engine.format import TEXT
from tests.laws.texts import Choose, choices, make_text
from tests.support import (
    characters,
    check_chunking,
    check_held,
    check_kept,
    check_one_path,
    cut,
    fail,
    run,
    show_parts,
)

MOST_PIECES = 10
TRIES = 3000
"""How many shorter texts are tried for one that fails."""


def make_policies(name: str, choose: Choose) -> dict[str, Any]:
    """None for half of the texts, a few for the other half."""
    if choose((True, False)):
        return {}
    offered = choices(name)
    return {key: choose(offered[key]) for key in {choose(tuple(offered)) for _ in range(3)}}


def check_cuts(name: str, text: str, policies: dict[str, Any], chance: random.Random) -> None:
    """Laws 1 and 3, and that `parse` is the parser."""
    size = chance.randint(2, 12)
    places = [chance.randint(1, max(1, len(text))) for _ in range(chance.randint(1, 6))]
    ways = [characters(text), cut(text, range(size, len(text), size)), cut(text, places)]
    check_kept(name, text, check_chunking(name, text, ways, policies), policies)
    check_one_path(name, text, policies)


def check_holding(name: str, text: str, policies: dict[str, Any], chance: random.Random) -> None:
    """Law 5."""
    size = chance.randint(1, 9)
    check_held(name, text, cut(text, range(size, len(text), size)), policies)


def check_streams(name: str, text: str, policies: dict[str, Any], chance: random.Random) -> None:
    """Law 2 for streams: where nothing says where an output begins, it ends with the parts that `parse` gives."""
    del policies, chance
    whole, fed = asides.parse(text, name, seed=0), run(name, (text,), seed=0).message
    assert fed is not None
    if differs(whole, fed):
        fail("law 2: a stream ends otherwise", name, text, {}, show_parts(whole), "stream:", show_parts(fed))


def differs(whole: Message, fed: Message) -> bool:
    """Whether a stream ended otherwise than it may: with other parts, unless a call had gone out before a close."""
    if whole.parts == fed.parts and whole.text == fed.text and whole.beyond == fed.beyond:
        return False
    thought = whole.parts[0] if whole.parts else None
    sent = next((part.span[0] for part in fed.parts if isinstance(part, ToolCall)), None)
    if sent is None:
        return True
    closes = [notice.offset for notice in fed.notices if notice.code == "stray_close"]
    return not (isinstance(thought, Thinking) and sent < thought.span[1]) and not any(sent < at for at in closes)


Check = Callable[[str, str, dict[str, Any], random.Random], None]
LAWS: dict[str, Check] = {"chunking": check_cuts, "held": check_holding, "streams": check_streams}


def failure(check: Check, name: str, text: str, policies: dict[str, Any], seed: str) -> str:
    """What is wrong with a text; nothing if nothing is."""
    try:
        check(name, text, policies, random.Random(seed))
    except Exception as error:  # any error at all is a failure of law 4
        return str(error) if isinstance(error, AssertionError) else f"law 4: {type(error).__name__}: {error}"
    return ""


def shorten(check: Check, name: str, text: str, policies: dict[str, Any], seed: str) -> tuple[str, dict[str, Any]]:
    """The text and the policies without what the failure does not need."""
    law = failure(check, name, text, policies, seed).partition("\n")[0]

    def fails(text: str, policies: dict[str, Any]) -> bool:
        return failure(check, name, text, policies, seed).partition("\n")[0][:24] == law[:24]

    for key in list(policies):
        fewer = {other: value for other, value in policies.items() if other != key}
        if fails(text, fewer):
            policies = fewer
    tries, size = 0, max(1, len(text) // 2)
    while size and tries < TRIES:
        at = 0
        while at < len(text) and tries < TRIES:
            shorter = text[:at] + text[at + size :]
            tries += 1
            if fails(shorter, policies):
                text = shorter
            else:
                at += size
        size //= 2
    return text, policies


def main(arguments: list[str] | None = None) -> int:
    """Run one law, print what fails."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws.seeded", description=__doc__)
    parser.add_argument("law", choices=sorted(LAWS))
    parser.add_argument("--texts", type=int, default=100_000, help="how many texts (100000)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first of them (0)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", action="append", help="only this format; may be given again")
    parser.add_argument("--most", type=int, default=20, help="stop after so many failures (20)")
    options = parser.parse_args(arguments)
    check = LAWS[options.law]
    names = [
        name
        for name in options.format or asides.formats()
        if asides.get_format(name).start == TEXT or check is not check_streams
    ]
    failures, began = 0, time.monotonic()
    for number in range(options.first, options.first + options.texts):
        seed = f"{options.seed}.{number}"
        chance = random.Random(seed)
        name = names[number % len(names)]
        text = make_text(name, chance.choice, chance.randint(1, MOST_PIECES))
        policies = {} if check is check_streams else make_policies(name, chance.choice)
        if failure(check, name, text, policies, seed):
            failures += 1
            print(
                f"--- text {number}\n{failure(check, name, *shorten(check, name, text, policies, seed), seed)}",
                flush=True,
            )
            if failures >= options.most:
                break
        if (number + 1) % 5000 == 0:
            print(f"{number + 1} texts, {failures} failed, {time.monotonic() - began:.0f} s", flush=True)
    tried = number + 1 - options.first
    print(f"{options.law}: seed {options.seed}, {tried} texts over {len(names)} formats, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
