"""Calls that were cut off, in APIs that have no place for them: nothing of them is lost, and nothing is made up."""

from __future__ import annotations

import json
from functools import partial

import pytest

from asides import Parser, get_format
from asides.dialects import ALL, Dialect
from asides.dialects.request import Request, ThinkingOptions
from asides.policies import DEFAULTS
from asides.reply.items import Ended, RawText
from asides.reply.splitter import Splitter

WITHOUT_A_NAME = '<|tools_prefix|>[{"f'
CUT_OFF = WITHOUT_A_NAME + '": {"a": 1'


def reply_of(dialect: Dialect, format: str, raw: str, *, show: bool = True) -> str:
    """The reply of an API, as JSON, to a client that wants to see thinking or not, of output that was cut off."""
    splitter = Splitter(get_format(format), partial(Parser, policies=DEFAULTS), seed=1)
    items = [*splitter.feed(RawText(0, raw)), *splitter.feed(Ended(0, "length"))]
    request = Request(dialect=dialect.NAME, model="m", thinking=ThinkingOptions(show=show))
    return json.dumps(dialect.write_reply(items, request))


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
@pytest.mark.parametrize("written", [WITHOUT_A_NAME, CUT_OFF])
def test_in_an_open_thought_it_is_the_end_of_that(dialect: Dialect, written: str) -> None:
    """So a client that hides thinking does not see it. An API that has calls in pieces has the call as it came."""
    raw, as_text = "<|inner_prefix|>hm" + written, json.dumps(written)[1:-1]
    reply = reply_of(dialect, "apertus", raw)
    assert as_text in reply or (written == CUT_OFF and r'"arguments": "{\"a\": 1"' in reply)
    assert as_text not in reply_of(dialect, "apertus", raw, show=False)


@pytest.mark.parametrize("dialect", ALL, ids=lambda dialect: dialect.NAME)
def test_of_a_marker_alone_nothing_is_made_up(dialect: Dialect) -> None:
    """There is neither a name nor an argument to write."""
    assert "arguments" not in reply_of(dialect, "qwen3", "<tool_call>")
