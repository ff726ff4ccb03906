"""Section `dialects`: what a frame costs to read and to write, and what a whole reply costs, for every dialect.

The reference of frames is `msgspec` decoding and encoding them without looking at them, that of whole replies the same
with a parser for each, as if there were no shortcut. Knows the face that every dialect has, and none by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import msgspec

import asides
from asides._engine.shortcut import parse_ordinary
from asides._gateway.exchange import read_whole
from asides._gateway.pipeline import ItemFilter, split_whole
from asides._gateway.record import RequestRecord
from asides.dialects._framing import to_json
from asides.dialects._request import Request
from asides.families import get_format
from asides.policies import DEFAULTS, Policies
from asides.reply._items import Begin, Chunk, Ended, RawText, ReplyItem, Usage
from asides.reply._splitter import Splitter
from benchmarks import measure, samples

DIALECTS = ("openai_chat", "openai_completions", "anthropic", "openai_responses", "ollama")
CHUNK = 4
SIZE = 20_000
WHOLE = 2_000
CALL = '\n<tool_call>\n{"name": "find", "arguments": {"query": "%s"}}\n</tool_call>' % ("abc " * 200)


def splitter() -> Splitter:
    format = get_format("qwen3")
    return Splitter(format, lambda format: asides.Parser(format))


def whole_splitter(policies: Policies, *, shortcut: bool) -> Splitter:
    """As the gateway makes one for a reply in one piece."""
    format = get_format("qwen3")
    ordinary = partial(parse_ordinary, format=format, policies=policies.but(collect=True)) if shortcut else None
    return Splitter(
        format, lambda format: asides.Parser(format, policies.but(start="undecided")), parse_ordinary=ordinary
    )


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
    measure.print_table(
        f"Whole replies of {WHOLE} characters: split into items, and all the way from body to body; by a parser, and "
        "by the shortcut that the gateway takes for those of the ordinary shape",
        [
            "dialect",
            "split: calls",
            "shortcut",
            "time",
            "shortcut",
            "body to body: calls",
            "shortcut",
            "time",
            "shortcut",
        ],
        [[name, *_measure_whole(import_module(f"asides.dialects.{name}"))] for name in DIALECTS],
    )


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


def _measure_whole(dialect: Any) -> list[str]:
    """Calls and time of one whole reply, by a parser and by the shortcut."""
    request = Request(dialect=dialect.NAME, model="model", include_usage=True)
    policies = DEFAULTS.but(collect=False, seed=1)
    prose = samples.of_length(samples.PROSE, WHOLE // 2)
    plain = Splitter(get_format("passthrough"), lambda format: asides.Parser(format))
    sent: list[Chunk] = [Begin("reply_1", "model", 1_700_000_000), RawText(0, f"<think>\n{prose}\n</think>\n\n{prose}")]
    items = [item for chunk in (*sent, Ended(0), Usage(10, 20)) for item in plain.feed(chunk)]
    body = to_json(dialect.write_reply(items, request))
    chunks = read_whole(dialect, body)

    def split(chunks: list[Chunk], shortcut: bool) -> list[ReplyItem]:
        record = RequestRecord("id", "POST", "/")
        filter = ItemFilter(whole_splitter(policies, shortcut=shortcut), record)
        record.begin_reply(filter.splitter, collect=False, limit=0)
        return split_whole(chunks, filter, on_error=_raise)

    def through(shortcut: bool) -> bytes:
        return to_json(dialect.write_reply(split(read_whole(dialect, body), shortcut), request))

    cells: list[str] = []
    for run in (partial(split, chunks), through):
        functions: dict[str, Callable[[], object]] = {
            "parser": partial(run, shortcut=False),
            "shortcut": partial(run, shortcut=True),
        }
        number = measure.enough(functions["parser"], seconds=0.01)
        times = measure.best_of_each(functions, repeat=15, number=number)
        cells += [str(measure.calls(function)) for function in functions.values()]
        cells += map(measure.duration, times.values())
    return cells


def _raise(error: Exception) -> None:
    raise error
