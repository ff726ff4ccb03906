"""Law 11: what is sent for the first turns of a conversation does not change when another turn comes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides.dialects import anthropic, ollama, openai_chat, openai_responses
from asides.dialects._arrange import arrange
from asides.dialects._base import Dialect
from asides.dialects._request import CallPiece, Request, RequestTurn, TextPiece, ThinkingPiece, Tool, WriteOptions

DIALECTS: tuple[Dialect, ...] = (openai_chat, openai_responses, anthropic, ollama)
WORDS = st.text("ab \n", min_size=1, max_size=6).filter(str.strip)


@st.composite
def conversations(draw: st.DrawFn) -> list[list[RequestTurn]]:
    """Steps of a conversation: each adds what a client sends with one more request."""
    first = [RequestTurn("system", (TextPiece(draw(WORDS)),))] if draw(st.booleans()) else []
    steps = [[*first, RequestTurn("user", (TextPiece(draw(WORDS)),))]]
    for step in range(draw(st.integers(1, 4))):
        pieces: list[Any] = [ThinkingPiece(draw(WORDS))] if draw(st.booleans()) else []
        pieces.append(TextPiece(draw(WORDS)))
        ids = [f"call_{step}_{number}" for number in range(draw(st.integers(0, 2)))]
        pieces += [CallPiece("find", f'{{"q":{number}}}', id) for number, id in enumerate(ids)]
        answers = [RequestTurn("tool", (TextPiece(draw(WORDS)),), id, "find") for id in draw(st.permutations(ids))]
        later = [RequestTurn("system", (TextPiece(draw(WORDS)),))] if draw(st.booleans()) else []
        following = [*answers, *later] if answers else [*later, RequestTurn("user", (TextPiece(draw(WORDS)),))]
        steps.append([RequestTurn("assistant", tuple(pieces)), *following])
    return steps


def sent(client: Dialect, upstream: Dialect, steps: Sequence[list[RequestTurn]], options: WriteOptions) -> Any:
    """What the upstream is sent of these steps by a client of another API."""
    turns = tuple(turn for step in steps for turn in step)
    asked = Request(dialect=client.NAME, model="m", turns=turns, tools=(Tool("find"),), max_tokens=99)
    request = client.read_request(client.write_request(asked))
    body = upstream.write_request(arrange(request).request, options)
    return body.pop("input" if "input" in body else "messages"), body


@pytest.mark.parametrize(
    ("client", "upstream"),
    list(product(DIALECTS, DIALECTS)),
    ids=lambda dialect: dialect.NAME,
)
@given(steps=conversations(), proved=st.booleans(), every=st.booleans())
def test_turns_are_only_appended(
    client: Dialect, upstream: Dialect, steps: list[list[RequestTurn]], proved: bool, every: bool
) -> None:
    """For every pair of APIs, with proofs demanded or not: the messages before are the beginning of those after."""
    options = WriteOptions(proved=proved, foreign_thoughts="text", every_thought=every)
    before, rest = sent(client, upstream, steps[:1], options)
    for stop in range(2, len(steps) + 1):
        after, others = sent(client, upstream, steps[:stop], options)
        assert after[: len(before)] == before
        assert others == rest
        before = after
