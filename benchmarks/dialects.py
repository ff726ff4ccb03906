"""Section `dialects`: what a frame costs to read and to write, for every dialect.

The reference is `msgspec` decoding and encoding the same frames without looking at them. Knows the face that every
dialect has, and none by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import msgspec

import asides
from asides.dialects.request import Request
from asides.families import get_format
from asides.reply.items import Begin, Ended, RawText, ReplyItem, Usage
from asides.reply.splitter import Splitter
from benchmarks import measure, samples

DIALECTS = ("openai_chat", "openai_completions", "anthropic", "openai_responses", "ollama")
CHUNK = 4
SIZE = 20_000
CALL = '\n<tool_call>\n{"name": "find", "arguments": {"query": "%s"}}\n</tool_call>' % ("abc " * 200)


def splitter() -> Splitter:
    format = get_format("qwen3")
    return Splitter(format, lambda format: asides.Parser(format))


def items() -> list[ReplyItem]:
    """A reply that thinks, answers and calls, cut as servers cut them."""
    prose = samples.of_length(samples.PROSE, SIZE)
    raw = f"<think>{prose}</think>\n\n{prose}{CALL}"
    split = splitter()
    found: list[ReplyItem] = split.feed(Begin("reply_1", "model", 1_700_000_000))
    for chunk in samples.cut(raw, CHUNK):
        found += split.feed(RawText(0, chunk))
    return found + split.feed(Ended(0)) + split.feed(Usage(10, 20))


def run() -> None:
    """Print the table."""
    rows = []
    for name in DIALECTS:
        try:
            dialect = import_module(f"asides.dialects.{name}")
        except ImportError:
            continue
        rows.append([name, *_measure(dialect)])
    measure.print_table(
        f"Dialects: frames of {CHUNK} characters, read (bytes to pieces) as a ratio to msgspec decoding them, written "
        "(items to bytes) as a ratio to msgspec encoding them, and both together",
        ["dialect", "frames", "read", "written", "both", "through", "frames per second"],
        rows,
    )
    print("`through`: read, split by the parser and written again, as a ratio to decoding and encoding.\n")


def _measure(dialect: Any) -> list[str]:
    request = Request(dialect=dialect.NAME, model="model", stream=True, include_usage=True)
    told = items()
    writer = dialect.ReplyWriter(request)
    chunks = [chunk for chunk in map(writer.feed, told) if chunk] + [writer.finish()]
    bodies = [line[line.index(b"{") :] for chunk in chunks for line in chunk.split(b"\n") if b"{" in line]
    decoder, encoder = msgspec.json.Decoder(), msgspec.json.Encoder()
    values = [decoder.decode(body) for body in bodies]

    def decode() -> None:
        for body in bodies:
            decoder.decode(body)

    def encode() -> None:
        for value in values:
            encoder.encode(value)

    def read() -> None:
        feed = dialect.ReplyReader().feed
        for chunk in chunks:
            feed(chunk)

    def write() -> None:
        feed = dialect.ReplyWriter(request).feed
        for item in told:
            feed(item)

    def through() -> None:
        feed, split, out = dialect.ReplyReader().feed, splitter().feed, dialect.ReplyWriter(request).feed
        for chunk in chunks:
            for piece in feed(chunk):
                for item in split(piece):
                    out(item)

    functions: dict[str, Callable[[], object]] = {
        "decode": decode,
        "encode": encode,
        "read": read,
        "write": write,
        "through": through,
    }
    times = measure.best_of_each(functions, repeat=25)
    floor = times["decode"] + times["encode"]
    both = times["read"] + times["write"]
    return [
        str(len(bodies)),
        measure.ratio(times["read"], times["decode"]),
        measure.ratio(times["write"], times["encode"]),
        measure.ratio(both, floor),
        measure.ratio(times["through"], floor),
        measure.rate(len(bodies), both, "frames"),
    ]
