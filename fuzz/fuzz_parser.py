"""Coverage-guided search for inputs that break a law of the parser: any exception but ours, lost characters, a cut that
matters, too much held. For every registered format and every policy. `make fuzz` runs it; it needs atheris.

What it finds is printed as a case for `tests/cases`, to be put there once it is mended.
"""

from __future__ import annotations

import json

from common import Input, every_marker, fuzz, seeds_of_cases

from tests.support import characters, check_chunking, check_held, check_kept, check_one_path, run

LENGTH = 400
"""How many characters of a text are looked at step by step; of longer ones only cuts are compared."""
SOME = ('{"name": "f", "arguments": {"a": 1}}', "\n```\n", "`", '"', "[", "]", "{", "}", "\n\n", "</", "\ud800")


def check(raw: bytes) -> None:
    """Hold one input to the laws."""
    given = Input(raw)
    name, text, policies = given.format.name, given.text, given.policies
    ways = [given.chunks, characters(text)]
    if not policies.keys() & {"strict", "collect"}:
        outcome = check_chunking(name, text, ways, policies)
        check_kept(name, text, outcome, policies)
        check_one_path(name, text, policies)
        if len(text) <= LENGTH:
            check_held(name, text, given.chunks, policies)
        return
    whole = run(name, (text,), **{**policies, "collect": True})
    for chunks in ways:
        found = run(name, chunks, **policies)
        if (found.events, found.error) != (whole.events, whole.error):
            raise AssertionError(f"law 1: the cut, or collecting, changes the events: {list(chunks)!r}")


def as_case(raw: bytes) -> str:
    """The input as a case; what the parts should be is for a person to say."""
    given = Input(raw)
    options = ", ".join(f"{key} = {json.dumps(value)}" for key, value in given.policies.items())
    lines = [f'format = "{given.format.name}"', "", "[[case]]", 'name = "found by the fuzzer"']
    if any(0xD800 <= ord(character) < 0xE000 for character in given.text):
        lines.append(f"# TOML cannot hold half a surrogate pair; the input in Python is {given.text!r}")
    lines += [f"input = {json.dumps(given.text)}", f"options = {{{options}}}", "parts = []"]
    return "\n".join([*lines, f"# policies {given.policies!r}, cut at {given.places}"])


if __name__ == "__main__":
    fuzz(check, seeds_of_cases(), {*every_marker(), *SOME}, as_case)
