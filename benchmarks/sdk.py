"""Section `sdk`: what a chunk costs that `asides.openai` takes apart, beside the bare loop over OpenAI's SDK.

The SDK reads the same bytes in all of them, without a socket: its own work is the reference, because nobody gets a
chunk without it. `split` takes its objects apart, a wrapped client the bytes before it. The aim is 1.3x.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any

import asides
import asides.openai
from benchmarks import measure, samples

CHUNK = 4
SIZE = 4_000
"""Characters of the thought, and of the answer."""
AIM = 1.3
BASE: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "Qwen/Qwen3-8B"}


def _deltas(separates: bool) -> Iterator[dict[str, str]]:
    """What a server sends: raw text, or thought and answer apart."""
    thought = answer = samples.of_length(samples.PROSE, SIZE)
    texts = (
        [("reasoning_content", thought), ("content", answer)]
        if separates
        else [("content", f"<think>\n{thought}\n</think>\n\n{answer}")]
    )
    for field, text in texts:
        yield from ({field: piece} for piece in samples.cut(text, CHUNK))


def _frames(separates: bool) -> list[bytes]:
    """A streamed reply, frame by frame, as a server sends it."""
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": delta, "finish_reason": None} for delta in _deltas(separates)
    ]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    frames = [f"data: {json.dumps({**BASE, 'choices': [choice]})}\n\n".encode() for choice in choices]
    return [*frames, b"data: [DONE]\n\n"]


def _answer(httpx: Any, frames: list[bytes], request: Any) -> Any:
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter(frames))


def _bare(client: Any) -> str:
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    return "".join(chunk.choices[0].delta.content or "" for chunk in stream)


def _split(client: Any) -> str:
    stream = client.chat.completions.create(model="m", messages=[], stream=True)
    return "".join(event.text for event in asides.openai.split(stream) if isinstance(event, asides.TextDelta))


def run() -> None:
    """Print the table."""
    try:
        openai, httpx = import_module("openai"), import_module("httpx")
    except ImportError:
        print("SDK: needs openai.\n")
        return
    rows = []
    for name, separates in (("raw text", False), ("separated by the server", True)):
        frames = _frames(separates)
        chunks = len(frames) - 1
        transport = httpx.MockTransport(partial(_answer, httpx, frames))
        http = httpx.Client(transport=transport)
        with openai.OpenAI(api_key="none", base_url="http://local/v1", http_client=http) as client:
            assert "<think>" not in _split(client)
            wrapped = asides.openai.wrap(client)
            assert _bare(wrapped) == _split(client)
            found = measure.best_of_each(
                {"bare": partial(_bare, client), "split": partial(_split, client), "wrap": partial(_bare, wrapped)}
            )
        row = [name, measure.duration(found["bare"] / chunks)]
        for way in ("split", "wrap"):
            times = found[way] / found["bare"]
            row += [measure.duration(found[way] / chunks), f"{times:.2f}x", measure.verdict(times, AIM)]
        rows.append(row)
    title = f"SDK: a chunk of {CHUNK} characters through OpenAI's SDK {openai.__version__}, bare and taken apart"
    head = ["server", "bare loop", "split(stream)", "ratio", "1.3x", "wrap(client)", "ratio", "1.3x"]
    measure.print_table(title, head, rows)
