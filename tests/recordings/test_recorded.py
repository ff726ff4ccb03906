"""The recorded upstream: it answers as a server would that sends raw markers, and says what it is."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

import asides
from asides._recordings.replies import recordings
from asides._recordings.upstream import Recorded
from asides.dialects._framing import SseReader

CHAT = "/v1/chat/completions"
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
DANGER = {"type": "function", "function": {"name": "run_command", "parameters": {"type": "object"}}}
THINKERS = [model for model in recordings().model if not model.call]


def ask(path: str = CHAT, **body: Any) -> tuple[int, Any]:
    """The status and the JSON of a whole reply."""

    async def asking() -> tuple[int, bytes]:
        answer = await Recorded(pace=0.0).answer(path, body)
        return answer.status, b"".join([chunk async for chunk in answer.chunks])

    status, data = asyncio.run(asking())
    return status, msgspec.json.decode(data)


def stream(path: str = CHAT, **body: Any) -> list[Any]:
    """The frames of a streamed reply, without the `[DONE]` that ends it."""

    async def asking() -> list[bytes]:
        answer = await Recorded(pace=0.0).answer(path, {**body, "stream": True})
        assert (answer.status, answer.content_type) == (200, "text/event-stream")
        reader = SseReader()
        return [frame.raw async for chunk in answer.chunks for frame in reader.feed(chunk)]

    *frames, last = asyncio.run(asking())
    assert last == b"[DONE]"
    return [msgspec.json.decode(frame) for frame in frames]


def question(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def content(**body: Any) -> str:
    """The raw text of a whole reply."""
    status, reply = ask(**body)
    assert status == 200
    text = reply["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


def read(model: str, raw: str, *, thinks: bool = True) -> asides.Message:
    """Raw output, read as the model's settings say; where thinking is off, from text on."""
    format, start = Recorded().settings(model)
    parser = asides.Parser(format, start=start if thinks or format == "gpt_oss" else "text")
    parser.feed(raw)
    parser.finish()
    return parser.message


def refused(**body: Any) -> tuple[int, str]:
    """The status and the message of a refusal in OpenAI's shape."""
    status, reply = ask(**{"model": "recorded-qwen3", "messages": question("hi"), **body})
    assert set(reply["error"]) == {"message", "type", "param", "code"}
    return status, reply["error"]["message"]


@pytest.mark.parametrize("model", [model.name for model in THINKERS])
@pytest.mark.parametrize(
    "recording",
    [recording for recording in recordings().recording if not recording.cut],
    ids=lambda recording: recording.asked[0],
)
def test_every_recording_is_one_thought_and_one_answer(model: str, recording: Any) -> None:
    """Read as its model's settings say, a recording is its thought and its answer, for all that it is asked by."""
    for asked in recording.asked:
        message = read(model, content(model=model, messages=question(f"So, {asked.upper()}?")))
        assert message.thinking == recording.thinking
        assert message.text == recording.answer
        assert message.notices == ()


@pytest.mark.parametrize("model", [model.name for model in THINKERS])
@pytest.mark.parametrize(
    "recording", [recording for recording in recordings().recording if recording.cut], ids=lambda each: each.asked[0]
)
def test_a_recording_that_was_cut_off_ends_in_its_thought(model: str, recording: Any) -> None:
    status, reply = ask(model=model, messages=question(recording.question))
    choice = reply["choices"][0]
    assert (status, choice["finish_reason"]) == (200, "length")
    message = read(model, choice["message"]["content"])
    assert (message.thinking, message.text, message.complete) == (recording.thinking, "", False)


def test_ten_recordings_are_long_and_each_answers_its_question() -> None:
    """Of 300 to 3,000 words, with their source named; together at most 200 kB compressed."""
    known = recordings().recording
    long = [recording for recording in known if recording.question]
    assert len(long) == 10
    for recording in long:
        assert 300 <= len(recording.thinking.split()) <= 3000
        assert recording.source
        assert content(model="recorded-qwen3", messages=question(recording.question)).count(recording.thinking) == 1
    files = Path(asides.__file__).parent / "_recordings"
    assert sum(len(gzip.compress(path.read_bytes())) for path in files.glob("*.toml")) < 200_000


@pytest.mark.parametrize("recorded", recordings().model, ids=lambda model: model.name)
def test_thinking_can_be_turned_off(recorded: Any) -> None:
    """With thinking off there is no thought, only the answer. DeepSeek R1 thinks all the same, as the model does."""
    off: list[dict[str, Any]] = [{"chat_template_kwargs": {"enable_thinking": False}}, {"reasoning_effort": "none"}]
    for body in off:
        raw = content(model=recorded.name, messages=question("a haiku"), **body)
        always = recorded.format == "deepseek_r1"
        message = read(recorded.name, raw, thinks=always)
        assert bool(message.thinking) is always
        assert message.text


def test_the_raw_markers_are_sent() -> None:
    """Nothing is split here: each family's own markers are in the content."""
    raw = {model.name: content(model=model.name, messages=question("hi")) for model in THINKERS}
    assert raw["recorded-qwen3"].startswith("<think>\n")
    assert "<think>" not in raw["recorded-deepseek-r1"]
    assert "\n</think>\n\n" in raw["recorded-deepseek-r1"]
    assert raw["recorded-gpt-oss"].startswith("<|channel|>analysis<|message|>")
    assert raw["recorded-magistral"].startswith("[THINK]")


def test_a_question_that_is_not_on_record_gets_an_honest_answer() -> None:
    """Who asks something else is told that no model runs, and how to get one."""
    text = content(model="recorded-qwen3", messages=question("Which hieroglyph is this?"))
    assert "No model is running" in text
    assert "asides serve --upstream" in text


@pytest.mark.parametrize("model", Recorded().models)
def test_a_stream_is_the_whole_reply_in_pieces(model: str) -> None:
    """The pieces of a stream join to the content of a whole reply; role first, the reason last."""
    body: dict[str, Any] = {"model": model, "messages": question("17 * 23"), "tools": [WEATHER]}
    frames = stream(**body)
    first, *middle, last = [frame["choices"][0] for frame in frames]
    assert first["delta"] == {"role": "assistant", "content": ""}
    assert "".join(choice["delta"]["content"] for choice in middle) == content(**body)
    assert max(len(choice["delta"]["content"]) for choice in middle) < 10
    assert (last["delta"], last["finish_reason"]) == ({}, "stop")
    assert len({frame["id"] for frame in frames}) == 1
    assert not any("usage" in frame for frame in frames)


def test_usage_comes_when_asked_for() -> None:
    """The usage frame has no choices, stands last and agrees with the whole reply."""
    body: dict[str, Any] = {"model": "recorded-qwen3", "messages": question("hi")}
    *others, last = stream(**body, stream_options={"include_usage": True})
    assert last["choices"] == []
    assert last["usage"] == ask(**body)[1]["usage"]
    assert last["usage"]["completion_tokens"] == len(others) - 2
    assert all(frame["usage"] is None for frame in others)


def test_most_tokens_and_stop() -> None:
    """`max_tokens` cuts with the reason `length`; `stop` cuts before the first of its texts."""
    body: dict[str, Any] = {"model": "recorded-qwen3", "messages": question("17 times 23")}
    cut = ask(**body, max_tokens=5)[1]
    assert cut["choices"][0]["finish_reason"] == "length"
    assert cut["usage"]["completion_tokens"] == 5
    assert content(**body).startswith(cut["choices"][0]["message"]["content"])
    assert len(stream(**body, max_completion_tokens=5)) == 7
    for stop in ("340", ["nowhere", "340"]):
        stopped = ask(**body, stop=stop)[1]
        assert stopped["choices"][0]["finish_reason"] == "stop"
        assert stopped["choices"][0]["message"]["content"].endswith("17 times 20 is ")


def test_a_tool_is_called_and_its_result_told() -> None:
    """The client's weather tool is called by its own name and parameter; then its result is passed on."""
    asked = question("How is the weather?")
    message = read("recorded-tools", content(model="recorded-tools", messages=asked, tools=[DANGER, WEATHER]))
    assert [type(part) for part in message.parts] == [asides.Thinking, asides.Text, asides.ToolCall]
    (call,) = message.tool_calls
    assert (call.name, call.arguments, call.error) == ("get_weather", '{"city":"Lisbon"}', None)
    results = [{"role": "tool", "content": "{sunny}"}, {"role": "tool", "content": [{"type": "text", "text": "24 C"}]}]
    told = content(model="recorded-tools", messages=[*asked, {"role": "assistant"}, *results], tools=[WEATHER])
    assert read("recorded-tools", told).text == "The tool says: {sunny} 24 C"


def test_no_other_tool_is_ever_called() -> None:
    """A recording that called any tool it is shown could do harm, so it says what it would need."""
    for more in ({"tools": [DANGER]}, {"tools": [WEATHER], "tool_choice": "none"}, {}):
        raw = content(model="recorded-tools", messages=question("What is the weather?"), **more)
        message = read("recorded-tools", raw)
        assert message.tool_calls == ()
        assert "get_weather" in message.text


def test_completions() -> None:
    """A prompt is continued with the same recordings, as text, whole and streamed."""
    body: dict[str, Any] = {"model": "recorded-deepseek-r1", "prompt": "How many r in strawberry?"}
    status, whole = ask("/v1/completions", **body)
    assert (status, whole["object"]) == (200, "text_completion")
    text = whole["choices"][0]["text"]
    assert text == content(model="recorded-deepseek-r1", messages=question("strawberry"))
    frames = stream("/v1/completions", **body)
    assert "".join(frame["choices"][0]["text"] for frame in frames) == text
    assert frames[-1]["choices"][0]["finish_reason"] == "stop"


def test_models() -> None:
    """The list names every model, and each can be asked for."""
    status, listed = ask("/v1/models")
    assert (status, [entry["id"] for entry in listed["data"]]) == (200, list(Recorded().models))
    assert ask("/v1/models/recorded-tools")[1] == listed["data"][-1]
    assert ask("/v1/models/gpt-5")[0] == 404


def test_what_cannot_be_answered_is_refused_in_words() -> None:
    """An unknown model is a 404 that lists names; a request that asks too much, or nothing, is a 400."""
    status, message = refused(model="gpt-5")
    assert status == 404
    assert all(model in message for model in Recorded().models)
    assert refused(model=None)[0] == 404
    bodies: list[dict[str, Any]] = [
        {"n": 2},
        {"messages": []},
        {"messages": "hi"},
        {"max_tokens": 0},
        {"stop": 7},
        {"stream_options": "usage"},
        {"pace": -1},
    ]
    for body in bodies:
        status, message = refused(**body)
        assert status == 400
        assert f"`{next(iter(body))}`" in message
    assert ask("/v1/completions", model="recorded-qwen3", prompt=[1, 2])[0] == 400
    assert ask("/v1/embeddings", model="recorded-qwen3")[0] == 404


def test_a_request_may_bring_its_own_pace() -> None:
    """A field `pace` wins over the upstream's own, so that scripts need not wait."""

    async def hurrying() -> int:
        body: dict[str, Any] = {"model": "recorded-qwen3", "messages": question("hi"), "pace": 0}
        slow = Recorded(pace=3600.0)
        replies = [await slow.answer(CHAT, body), await slow.answer(CHAT, {**body, "stream": True})]
        return len([chunk for reply in replies async for chunk in reply.chunks])

    assert asyncio.run(hurrying()) > 20


def test_a_reader_that_leaves_ends_the_replay() -> None:
    """Closing the chunks early leaves nothing behind, and the pace is kept between tokens, not before the first."""

    async def leaving() -> int:
        body: dict[str, Any] = {"model": "recorded-qwen3", "messages": question("hi"), "stream": True}
        answer = await Recorded(pace=3600.0).answer(CHAT, body)
        async for chunk in answer.chunks:
            assert b'"role"' in chunk
            break
        await answer.chunks.aclose()
        return len(asyncio.all_tasks())

    assert asyncio.run(leaving()) == 1, "more than this test's own task is left"
