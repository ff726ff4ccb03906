"""Section `peers`: asides beside the libraries that install from a package index, first in correctness, then in time.

A figure for a peer that reads a shape wrongly would be bought by being wrong, so both tables belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

import msgspec

import asides
from asides.events import TextDelta, ThinkingDelta, ToolCallDelta
from benchmarks import measure, samples
from benchmarks.peers import PEERS, Harmony, Peer, StreamingPeer

SIZES = (2_000, 20_000, 200_000)
CHUNK = 4
Split = tuple[str, str]


class Shape(msgspec.Struct, frozen=True):
    """A reply, and what it says."""

    name: str
    tags: str
    """The reply between think tags."""
    harmony: str
    """The same for gpt-oss; empty where it has no counterpart."""
    expected: Split
    chunk: int = 0
    """Characters in a chunk, where it is read as a stream."""


_FINAL = "<|start|>assistant<|channel|>final<|message|>"
_ANALYSIS = "<|channel|>analysis<|message|>"
SHAPES = (
    Shape("one block", "<think>ab</think>cd", f"{_ANALYSIS}ab<|end|>{_FINAL}cd<|return|>", ("ab", "cd")),
    Shape(
        "two blocks",
        "<think>a</think>c<think>b</think>d",
        f"{_ANALYSIS}a<|end|>{_FINAL}c<|end|><|start|>assistant{_ANALYSIS}b<|end|>{_FINAL}d<|return|>",
        ("ab", "cd"),
    ),
    Shape("lone close", "ab</think>cd", "", ("ab", "cd")),
    Shape("unclosed", "<think>ab", f"{_ANALYSIS}ab", ("ab", "")),
    Shape("bad header", "", f"<|channel|>analysis x y<|message|>ab<|end|>{_FINAL}cd<|return|>", ("ab", "cd")),
    Shape("quoted tag", "<think>a `</think>` b</think>cd", "", ("a `</think>` b", "cd")),
    Shape("stream", "<think>ab</think>cd", f"{_ANALYSIS}ab<|end|>{_FINAL}cd<|return|>", ("ab", "cd"), chunk=3),
)


def run() -> None:
    """Print what each can read, then how long each takes."""
    present: list[Peer] = []
    remarks: list[str] = []
    for peer in PEERS:
        reason = peer.available()
        if reason is None:
            present.append(peer)
            remarks.append(f"{peer.name} {peer.version()}: {peer.note}.")
        else:
            remarks.append(f"{peer.name}: left out, because it is not available. {reason}")
    measure.settle()
    print_correctness(present)
    print_times(present)
    print_calls(present)
    print("\n".join(remarks), end="\n\n")


def ours(reply: str, name: str) -> Split:
    """As a peer's `split_whole`: parts of a kind joined with nothing between."""
    parts = asides.parse(reply, name).parts
    thinking = [part.text for part in parts if isinstance(part, asides.Thinking)]
    return "".join(thinking), "".join(part.text for part in parts if isinstance(part, asides.Text))


def ours_streamed(chunks: Iterable[str], name: str) -> Split:
    """As a peer's `stream`: every delta is looked at."""
    parser = asides.Parser(name)
    thinking: list[str] = []
    text: list[str] = []
    for chunk in chunks:
        for event in parser.feed(chunk):
            if isinstance(event, ThinkingDelta):
                thinking.append(event.text)
            elif isinstance(event, TextDelta):
                text.append(event.text)
    for event in parser.finish():
        if isinstance(event, ThinkingDelta):
            thinking.append(event.text)
        elif isinstance(event, TextDelta):
            text.append(event.text)
    return "".join(thinking), "".join(text)


def print_correctness(peers: Sequence[Peer]) -> None:
    rows: list[list[str]] = []
    for name in ("qwen3", "harmony"):
        cells = [_right(shape, _reply(shape, name == "harmony"), _reader(shape, name)) for shape in SHAPES]
        rows.append([f"asides, {name}", *cells])
    for peer in peers:
        cells = [_right(shape, _reply(shape, isinstance(peer, Harmony)), _peer_reader(shape, peer)) for shape in SHAPES]
        rows.append([peer.name, *cells])
    measure.print_table(
        "Side by side: is it right? (`wrong` is another split than the one meant; `-` has no counterpart)",
        ["", *(shape.name for shape in SHAPES)],
        rows,
    )


def _reply(shape: Shape, harmony: bool) -> str:
    return shape.harmony if harmony else shape.tags


def _reader(shape: Shape, name: str) -> Callable[[str], Split] | None:
    if shape.chunk:
        return lambda reply: ours_streamed(samples.cut(reply, shape.chunk), name)
    return lambda reply: ours(reply, name)


def _peer_reader(shape: Shape, peer: Peer) -> Callable[[str], Split] | None:
    if not shape.chunk:
        return peer.split_whole
    if isinstance(peer, Harmony):
        return lambda reply: peer.stream(peer.pieces(reply, shape.chunk))
    if isinstance(peer, StreamingPeer):
        # Cut blindly, as a server's chunks are; where a peer needs other cuts, that is what this shape shows.
        return lambda reply: peer.stream(samples.cut(reply, shape.chunk))
    return None


def _right(shape: Shape, reply: str, read: Callable[[str], Split] | None) -> str:
    if not reply or read is None:
        return "-"
    try:
        return "right" if read(reply) == shape.expected else "wrong"
    except Exception:  # Another's package may raise anything at all.
        return "raises"


def print_times(peers: Sequence[Peer]) -> None:
    whole: list[list[str]] = []
    streamed: list[list[str]] = []
    for peer in peers:
        name = "harmony" if isinstance(peer, Harmony) else "qwen3"
        for kind in ("prose", "code"):
            whole.append([peer.name, name, kind])
            if isinstance(peer, StreamingPeer):
                streamed.append([peer.name, name, kind])
            for size in SIZES:
                body = samples.of_length(samples.TEXTS[kind], size // 2)
                reply = peer.write(body, body)
                whole[-1] += _compare(partial(ours, reply, name), partial(peer.split_whole, reply))
                if isinstance(peer, StreamingPeer):
                    pieces, chunks = peer.pieces(reply, CHUNK), samples.cut(reply, CHUNK)
                    streamed[-1] += _compare(partial(ours_streamed, chunks, name), partial(peer.stream, pieces))
    headers = ["peer", "ours is", "of"]
    for size in SIZES:
        headers += [f"ours {samples.count(size)}", "peer", "ratio"]
    measure.print_table("Side by side: a whole reply. The ratio is the peer's time to ours", headers, whole)
    measure.print_table(
        f"Side by side: a reply in chunks of {CHUNK} characters, every delta looked at. "
        "The ratio is the peer's time to ours",
        headers,
        streamed,
    )


def _compare(function: Callable[[], object], other: Callable[[], object]) -> list[str]:
    number = measure.enough(function, seconds=0.002)
    times = measure.best_of_each({"ours": function, "peer": other}, repeat=3, number=number)
    return [
        measure.duration(times["ours"]),
        measure.duration(times["peer"]),
        measure.ratio(times["peer"], times["ours"]),
    ]


def print_calls(peers: Sequence[Peer]) -> None:
    """One call with a long argument, streamed. For those peers that can do that."""
    rows: list[list[str]] = []
    for peer in peers:
        if not isinstance(peer, StreamingPeer) or not peer.reads_calls:
            continue
        name = "harmony" if isinstance(peer, Harmony) else "qwen3"
        row = [peer.name, name]
        for size in SIZES[:2]:
            arguments = f'{{"text": "{samples.of_length("words and words ", size)}"}}'
            if name == "harmony":
                reply = f"<|channel|>commentary to=functions.f <|constrain|>json<|message|>{arguments}<|call|>"
            else:
                reply = f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'
            chunks, pieces = samples.cut(reply, CHUNK), peer.pieces(reply, CHUNK)
            row += _compare(partial(call_streamed, chunks, name), partial(peer.stream, pieces))
        rows.append(row)
    headers = ["peer", "ours is"]
    for size in SIZES[:2]:
        headers += [f"ours {samples.count(size)}", "peer", "ratio"]
    if rows:
        measure.print_table(
            f"Side by side: one call with a long string, in chunks of {CHUNK} characters. "
            "The ratio is the peer's time to ours",
            headers,
            rows,
        )


def call_streamed(chunks: Iterable[str], name: str) -> str:
    """The argument text of a streamed call, from its deltas."""
    return "".join(event.text for event in asides.split(chunks, name) if isinstance(event, ToolCallDelta))
