"""The same search for the readers of replies: any bytes, cut anywhere, are read in every dialect and written in every
other without an exception; and what was read does not depend on the cut."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

from common import Input, cases, every_marker, fuzz, head_of

from asides.dialects._framing import read_odd_json
from tests.dialects import odd
from tests.dialects.odd import DIALECTS, STREAMS, WHOLE
from tests.support import cut

NAMES = tuple(DIALECTS)
EACH = 8
"""Every so manieth case is sent as the words of a reply."""


def check(raw: bytes) -> None:
    """Read the bytes as a stream, a whole reply and an error."""
    given = Input(raw)
    dialect = NAMES[given.number % len(NAMES)]
    whole = odd.read_stream(dialect, [given.data])
    parts = odd.read_stream(dialect, cut(given.data, given.places))  # type: ignore[type-var, arg-type]
    if said(whole.pieces) != said(parts.pieces):
        raise AssertionError(f"the cut changes what was read: {whole.pieces} and {parts.pieces}")
    odd.read_failure(dialect, 500, given.data)
    body = read_odd_json(given.data)
    if body is not None:
        odd.read_whole(dialect, body)


def said(pieces: list[Any]) -> list[str]:
    """What the pieces say, to compare; NaN equals itself."""
    return [repr(piece) for piece in pieces]


def seeds() -> Iterator[bytes]:
    """Recorded streams and bodies, and cases as the words of a reply."""
    texts = [text for _, text in cases()][::EACH]
    for number, name in enumerate(NAMES):
        head = head_of(number)
        yield from (head + b"".join(odd.to_stream(name, frames)) for frames in STREAMS[name])
        yield from (head + json.dumps(body).encode() for body in WHOLE[name])
        for text in texts:
            yield head + b"".join(odd.to_stream(name, frames_of(name, text)))


def frames_of(dialect: str, text: str) -> list[Any]:
    """A reply that says a text."""
    if dialect == "ollama":
        return [{"message": {"content": text}}, {"done": True}]
    if dialect == "anthropic":
        delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
        return [delta, {"type": "message_stop"}]
    if dialect == "openai_responses":
        return [{"type": "response.output_text.delta", "delta": text}, {"type": "response.completed", "response": {}}]
    field = {"text": text} if dialect == "completions" else {"delta": {"content": text}}
    return [{"choices": [{"index": 0, **field}]}, {"choices": [{"index": 0, "finish_reason": "stop"}]}]


def words() -> set[str]:
    """Names and values of fields, and markers."""
    found = {"data: ", "event: ", "[DONE]", "\n\n", "null", "true", "{}", "[]", '"\\ud800"', "1e999", "NaN", "-1"}
    found |= {"1000000", "1" + "0" * 30}
    for path in (path for recorded in (STREAMS, WHOLE) for name in NAMES for path in odd.places(recorded[name])):
        found |= {f'"{path[-1]}":' if isinstance(path[-1], str) else "" for _ in path[-1:]}
    return found | every_marker()


if __name__ == "__main__":
    logging.disable()
    fuzz(check, seeds(), words())
