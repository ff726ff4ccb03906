"""What a client is sent where the first part turns out to be of the other kind: in each API, streamed and whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from asides import Policies, dialects
from asides._gateway.stops import StopStrings
from asides.dialects._request import Request, ThinkingOptions
from asides.reading import Reading
from asides.reply import Begin, Chunk, Ended, RawText, ReplyItem
from tests.gateway.clients import events as frames

LATE = "hm so</think>Four."
NEVER = "It is 4."
CANNOT_TAKE_BACK = ("openai_chat", "completions", "anthropic", "ollama")


def items_of(text: str, start: str, reason: str = "stop") -> list[ReplyItem]:
    reading = Reading.of(format="qwen3", policies=Policies(start=start, retype=True))  # type: ignore[arg-type]  # a word of `Start`
    splitter = reading.splitter()
    chunks: list[Chunk] = [Begin(), *(RawText(0, character) for character in text), Ended(0, reason)]  # type: ignore[arg-type]  # a `Reason`
    return [item for chunk in chunks for item in splitter.feed(chunk)]


def streamed(name: str, items: list[ReplyItem], request: Request, **options: Any) -> tuple[str, str, dict[str, Any]]:
    """The thinking and the text that the deltas of a stream hold, and where its end is said."""
    writer = dialects.get(name).ReplyWriter(request, **options)
    body = b"".join(map(writer.feed, items)) + writer.finish()
    thinking, text, last = "", "", {}
    found = [json.loads(line) for line in body.splitlines()] if name == "ollama" else frames(body)
    for frame in found:
        if frame == "[DONE]":
            continue
        if name == "ollama":
            thinking += frame["message"].get("thinking", "")
            text += frame["message"]["content"]
            last = frame
        elif name == "anthropic":
            delta = frame.get("delta", {})
            thinking += delta.get("thinking", "")
            text += delta.get("text", "")
            last = delta if frame["type"] == "message_delta" else last
        else:
            last = frame["choices"][0]
            delta = last.get("delta", last)
            thinking += delta.get("reasoning_content", "")
            text += delta.get("content" if "delta" in last else "text") or ""
    return thinking, text, last


def asking(name: str, show: bool = True) -> Request:
    return Request(dialect=name, model="m", stream=True, thinking=ThinkingOptions(show=show))


@pytest.mark.parametrize("show", [True, False])
@pytest.mark.parametrize("name", CANNOT_TAKE_BACK)
def test_words_are_set_apart_and_counted(name: str, show: bool) -> None:
    """A thought that went out as text stays, the answer is set apart, and the end says how much of it was none."""
    thinking, text, last = streamed(name, items_of(LATE, "text"), asking(name, show))
    assert (thinking, text) == ("", "hm so\n\nFour.")
    assert last["retyped_characters"] == len("hm so")


@pytest.mark.parametrize("show", [True, False])
@pytest.mark.parametrize("name", CANNOT_TAKE_BACK)
def test_an_answer_that_went_out_as_a_thought_is_sent_once_more(name: str, show: bool) -> None:
    thinking, text, last = streamed(name, items_of(NEVER, "thinking"), asking(name, show))
    assert (thinking, text) == (NEVER if show else "", NEVER)
    assert "retyped_characters" not in last


@pytest.mark.parametrize("name", CANNOT_TAKE_BACK)
def test_nothing_is_said_where_nothing_was_wrong(name: str) -> None:
    for text, start in ((NEVER, "text"), (LATE, "thinking")):
        found = streamed(name, items_of(text, start), asking(name))
        assert found[1] == text.rpartition("</think>")[2]
        assert "retyped_characters" not in found[2]


def test_tags_close_the_thought_where_it_ends() -> None:
    request = asking("openai_chat")
    assert streamed("openai_chat", items_of(LATE, "text"), request, reasoning="tags")[1] == "hm so</think>\n\nFour."
    text = streamed("openai_chat", items_of(NEVER, "thinking"), request, reasoning="tags")[1]
    assert text == f"<think>{NEVER}</think>\n\n{NEVER}"


@pytest.mark.parametrize(("text", "start"), [(LATE, "text"), (LATE, "thinking"), (NEVER, "text"), (NEVER, "thinking")])
@pytest.mark.parametrize("name", ["responses", *CANNOT_TAKE_BACK])
def test_a_whole_reply_is_right(name: str, text: str, start: str) -> None:
    """Items of a stream that are written in one piece: nothing has gone out, so nothing is said twice or counted."""
    name = "openai_responses" if name == "responses" else name
    dialect, request = dialects.get(name), asking(name)
    expected = json.dumps(dialect.write_reply(items_of(text, "undecided"), request), default=str)
    found = json.dumps(dialect.write_reply(items_of(text, start), request), default=str)
    assert without_ids(found) == without_ids(expected)


def without_ids(body: str) -> Any:
    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            made = ("id", "created", "created_at", "signature")
            return {name: clean(inner) for name, inner in value.items() if name not in made}
        return [clean(inner) for inner in value] if isinstance(value, list) else value

    return clean(json.loads(body))


@pytest.mark.parametrize("show", [True, False])
@pytest.mark.parametrize(("text", "start"), [(" " + LATE, "text"), (NEVER, "thinking")])
def test_responses_correct_what_they_hold(text: str, start: str, show: bool) -> None:
    """The items of the stream end as any; the last event, and what is kept, hold what the whole reply would."""
    dialect, request = dialects.get("openai_responses"), asking("openai_responses", show)
    writer = dialect.ReplyWriter(request)
    body = b"".join(map(writer.feed, items_of(text, start))) + writer.finish()
    found = frames(body)
    whole = dialect.write_reply(items_of(text, "undecided"), request)
    last = found[-1]["response"]
    assert last == writer.written
    assert without_ids(json.dumps(last["output"])) == without_ids(json.dumps(whole["output"]))
    assert len({item["id"] for item in last["output"]}) == len(last["output"])
    added = [frame["output_index"] for frame in found if frame["type"] == "response.output_item.added"]
    done = [frame["output_index"] for frame in found if frame["type"] == "response.output_item.done"]
    assert added == done == list(range(len(added)))
    words = "".join(frame["delta"] for frame in found if frame["type"] == "response.output_text.delta")
    assert words == (" hm soFour." if start == "text" else NEVER)


def test_stop_strings_end_an_answer_that_was_taken_for_a_thought() -> None:
    stops = StopStrings(("END",))
    items = stops.apply(items_of("It is 4. END or not", "thinking"))
    assert stops.found
    assert streamed("openai_chat", items, asking("openai_chat"))[1] == "It is 4. "
