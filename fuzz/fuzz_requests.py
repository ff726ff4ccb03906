"""The same search for the readers of requests: a body is read, or refused with `RequestError`; and what was read can be
written in every dialect, or is refused there."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

from common import Input, cases, every_marker, fuzz, head_of

from asides.dialects._framing import read_odd_json
from tests.dialects import odd
from tests.dialects.odd import DIALECTS, REQUESTS

NAMES = tuple(DIALECTS)
EACH = 8
"""Every so manieth case is sent as what the assistant said before."""


def check(raw: bytes) -> None:
    """Read the bytes as a request."""
    given = Input(raw)
    body = read_odd_json(given.data)
    if body is not None:
        odd.read_asked(NAMES[given.number % len(NAMES)], body)


def seeds() -> Iterator[bytes]:
    """Recorded requests, whole and field by field, and cases as an earlier turn."""
    for number, name in enumerate(NAMES):
        head = head_of(number)
        for body in REQUESTS[name]:
            yield head + json.dumps(body).encode()
            needed = {key: body[key] for key in ("messages", "input", "prompt", "max_tokens") if key in body}
            yield from (head + json.dumps({**needed, key: value}).encode() for key, value in body.items())
        for _, text in cases()[::EACH]:
            said = [{"role": "user", "content": "?"}, {"role": "assistant", "content": text}]
            yield head + json.dumps({"messages": said, "input": said, "prompt": text, "max_tokens": 1}).encode()


def words() -> set[str]:
    """Names and values of fields."""
    found = {"null", "true", "false", "{}", "[]", '"\\ud800"', "1e999", "-1", "NaN"}
    found |= {"1000000", "2147483648", "1" + "0" * 30}
    for name in NAMES:
        for path in odd.places(REQUESTS[name]):
            value = odd.at(REQUESTS[name], path)
            found |= {json.dumps(value)} if isinstance(value, str) else set()
            found |= {f'"{path[-1]}":'} if path and isinstance(path[-1], str) else set()
    return found | every_marker()


if __name__ == "__main__":
    logging.disable()
    fuzz(check, seeds(), words())
