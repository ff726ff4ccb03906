"""What a scripted model says, in the bytes of each API. Written by hand, so that no writer of ours checks itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

CREATED = 1_700_000_000


@dataclass(frozen=True)
class Speech:
    """What the model says, and how its server sends it."""

    words: str | tuple[str, ...]
    """Its raw text; several for several choices."""
    size: int = 3
    """Characters in a frame."""
    cuts: int | Sequence[int] | None = None
    """Where the bytes of a stream are cut: every so many, or at these offsets."""
    seed: int | None = None
    """Cut at random offsets instead."""
    pause: float = 0.0
    """Seconds after each piece."""
    reason: str = "stop"
    usage: tuple[int, int] | None = (11, 22)
    """Tokens in and out."""
    done: bool = True
    """Whether a stream ends with `[DONE]`."""
    line: str = "\n"
    """How lines of a stream end."""
    thought: str = ""
    """Thinking that the server has split off."""
    field: str = "reasoning_content"
    """Its name."""
    calls: tuple[tuple[str, str], ...] = ()
    """Calls that the server has split off: name, arguments."""
    ids: str = "call"
    """How their ids begin; servers give no id twice."""

    @property
    def choices(self) -> tuple[str, ...]:
        """The raw text of each choice."""
        return (self.words,) if isinstance(self.words, str) else self.words

    def pieces(self) -> Iterator[tuple[int, str]]:
        """The pieces of all choices, taking turns."""
        longest = max(map(len, self.choices))
        for start in range(0, longest, self.size):
            for index, words in enumerate(self.choices):
                if words[start : start + self.size]:
                    yield index, words[start : start + self.size]


Render = Callable[[Speech, dict[str, Any]], bytes]


def _usage(speech: Speech) -> dict[str, int]:
    taken, given = speech.usage or (0, 0)
    return {"prompt_tokens": taken, "completion_tokens": given, "total_tokens": taken + given}


def _calls(speech: Speech) -> list[dict[str, Any]]:
    return [
        {
            "index": index,
            "id": f"{speech.ids}_{index}",
            "type": "function",
            "function": {"name": name, "arguments": arguments},
        }
        for index, (name, arguments) in enumerate(speech.calls)
    ]


def _events(speech: Speech, frames: Sequence[dict[str, Any]]) -> bytes:
    lines = [f"data: {json.dumps(frame, ensure_ascii=False)}" for frame in frames]
    if speech.done:
        lines.append("data: [DONE]")
    return "".join(line + speech.line * 2 for line in lines).encode()


def chat_stream(speech: Speech, body: dict[str, Any]) -> bytes:
    """Chat completions, streamed."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": CREATED, "model": body.get("model")}

    def frame(index: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}]}

    numbers = range(len(speech.choices))
    frames = [frame(index, {"role": "assistant", "content": ""}) for index in numbers]
    for start in range(0, len(speech.thought), speech.size):
        frames.append(frame(0, {speech.field: speech.thought[start : start + speech.size]}))
    frames += [frame(index, {"content": piece}) for index, piece in speech.pieces()]
    frames += [frame(0, {"tool_calls": [call]}) for call in _calls(speech)]
    frames += [frame(index, {}, "tool_calls" if speech.calls else speech.reason) for index in numbers]
    if speech.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        frames.append({**base, "choices": [], "usage": _usage(speech)})
    return _events(speech, frames)


def chat_whole(speech: Speech, body: dict[str, Any]) -> bytes:
    """Chat completions, whole."""
    choices = []
    for index, words in enumerate(speech.choices):
        message: dict[str, Any] = {"role": "assistant", "content": words}
        if speech.thought:
            message[speech.field] = speech.thought
        if speech.calls:
            message["tool_calls"] = [{k: v for k, v in call.items() if k != "index"} for call in _calls(speech)]
        reason = "tool_calls" if speech.calls else speech.reason
        choices.append({"index": index, "message": message, "logprobs": None, "finish_reason": reason})
    reply = {"id": "chatcmpl-1", "object": "chat.completion", "created": CREATED, "model": body.get("model")}
    return json.dumps({**reply, "choices": choices, "usage": _usage(speech)}, ensure_ascii=False).encode()


def completions_stream(speech: Speech, body: dict[str, Any]) -> bytes:
    """Plain completions, streamed."""
    base = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": body.get("model")}
    frames = [
        {**base, "choices": [{"index": index, "text": piece, "logprobs": None, "finish_reason": None}]}
        for index, piece in speech.pieces()
    ]
    for index in range(len(speech.choices)):
        end = {"index": index, "text": "", "logprobs": None, "finish_reason": speech.reason}
        frames.append({**base, "choices": [end]})
    if speech.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
        frames.append({**base, "choices": [], "usage": _usage(speech)})
    return _events(speech, frames)


def completions_whole(speech: Speech, body: dict[str, Any]) -> bytes:
    """Plain completions, whole."""
    choices = [
        {"index": index, "text": words, "logprobs": None, "finish_reason": speech.reason}
        for index, words in enumerate(speech.choices)
    ]
    reply = {"id": "cmpl-1", "object": "text_completion", "created": CREATED, "model": body.get("model")}
    return json.dumps({**reply, "choices": choices, "usage": _usage(speech)}, ensure_ascii=False).encode()


def _ollama_end(speech: Speech) -> dict[str, Any]:
    taken, given = speech.usage or (0, 0)
    counts = {"prompt_eval_count": taken, "eval_count": given, "total_duration": 5_000, "eval_duration": 4_000}
    return {"done": True, "done_reason": speech.reason, **counts}


def _ollama_message(speech: Speech, **fields: str) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **fields}


def _ollama_calls(speech: Speech) -> list[dict[str, Any]]:
    return [{"function": {"name": name, "arguments": json.loads(arguments)}} for name, arguments in speech.calls]


def _lines(base: dict[str, Any], frames: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps({**base, **frame}, ensure_ascii=False) + "\n" for frame in frames).encode()


def ollama_stream(speech: Speech, body: dict[str, Any]) -> bytes:
    """Ollama's chat, streamed."""
    frames: list[dict[str, Any]] = []
    for start in range(0, len(speech.thought), speech.size):
        piece = speech.thought[start : start + speech.size]
        frames.append({"message": _ollama_message(speech, thinking=piece), "done": False})
    frames += [{"message": _ollama_message(speech, content=piece), "done": False} for _, piece in speech.pieces()]
    if speech.calls:
        frames.append({"message": {**_ollama_message(speech), "tool_calls": _ollama_calls(speech)}, "done": False})
    frames.append({"message": _ollama_message(speech), **_ollama_end(speech)})
    return _lines({"model": body.get("model"), "created_at": "2026-01-02T03:04:05Z"}, frames)


def ollama_whole(speech: Speech, body: dict[str, Any]) -> bytes:
    """Ollama's chat, whole."""
    message = _ollama_message(speech, content=speech.choices[0])
    if speech.thought:
        message["thinking"] = speech.thought
    if speech.calls:
        message["tool_calls"] = _ollama_calls(speech)
    base = {"model": body.get("model"), "created_at": "2026-01-02T03:04:05Z"}
    return _lines(base, [{"message": message, **_ollama_end(speech)}])


def generate_stream(speech: Speech, body: dict[str, Any]) -> bytes:
    """Ollama's generate, streamed."""
    frames: list[dict[str, Any]] = [{"response": piece, "done": False} for _, piece in speech.pieces()]
    frames.append({"response": "", **_ollama_end(speech)})
    return _lines({"model": body.get("model"), "created_at": "2026-01-02T03:04:05Z"}, frames)


def generate_whole(speech: Speech, body: dict[str, Any]) -> bytes:
    """Ollama's generate, whole."""
    base = {"model": body.get("model"), "created_at": "2026-01-02T03:04:05Z"}
    return _lines(base, [{"response": speech.choices[0], **_ollama_end(speech)}])
