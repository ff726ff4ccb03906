"""Section `performance`: the table of docs/explanation/performance.md.

Each row is one kind of work, its reference in the same run.

Owns the rows and what each is measured against; the other sections look closer. Printed as Markdown, so that the page
can be made from it. `against.py` measures the same rows beside an earlier revision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import msgspec

import asides
from benchmarks import calls, measure, peers, samples
from benchmarks.streaming import Bare

FORMATS = ("qwen3", "auto")
REPLIES = (200, 2_000, 4_000)
CHUNKS = (1, 4, 16)
LENGTH = 8_000
"""Characters of a text that is fed in chunks."""
TRACES, TRACE = 2_000, 3_300
"""How many traces of how many characters the data job has; its rate does not depend on the number."""

Run = Callable[[ModuleType], Callable[[], object]]
"""Makes what is measured, for one version of the package."""


class Row(msgspec.Struct, frozen=True):
    """One kind of work."""

    name: str
    run: Run
    count: int = 1
    """How many times the work is done in a run."""
    reference: Callable[[], object] | None = None
    """What could not be faster, the same number of times."""
    rate: bool = False
    """Whether it is shown as a rate."""


def reply(size: int) -> str:
    """A reply as most are: a thought and a text."""
    prose = samples.of_length(samples.PROSE, size // 2)
    return f"<think>\n{prose.strip()}\n</think>\n\n{prose.strip()}"


def partition(text: str) -> tuple[str, str]:
    """The floor of taking a reply apart: it knows one pair of tags and nothing else."""
    thinking, _, rest = text.partition("</think>")
    return thinking.removeprefix("<think>").strip(), rest.strip()


def rows() -> Iterator[Row]:
    """Every row."""
    for size in REPLIES:
        text = reply(size)
        for name in FORMATS:
            yield Row(f"whole reply, {size} characters, {name}", _whole(text, name), reference=partial(partition, text))
    lines = [json.dumps({"id": number, "output": reply(TRACE)}).encode() for number in range(TRACES)]
    for name in FORMATS:
        yield Row(
            f"data job, JSON lines of 3.3 kB, {name}", _job(lines, name), TRACES, partial(_decode, lines), rate=True
        )
    for kind, sample in samples.KINDS.items():
        for size in CHUNKS:
            chunks = samples.cut("x " + samples.of_length(sample, LENGTH), size)
            for name in FORMATS:
                yield Row(f"chunk of {size}, {kind}, {name}", streamed(name, chunks), len(chunks), _bare(chunks))
    for grammar in calls.GRAMMARS:
        text = grammar.before + grammar.write(samples.of_length(samples.CODE, LENGTH)) + grammar.after
        chunks = samples.cut(text, calls.TOKEN)
        yield Row(
            f"code in a call, chunk of 4, {grammar.name}",
            streamed(grammar.format, chunks, tools=calls.TOOLS),
            len(chunks),
            _bare(chunks),
        )


def _whole(text: str, name: str) -> Run:
    def make(package: ModuleType) -> Callable[[], object]:
        def run() -> object:
            message = package.parse(text, name)
            return message.thinking, message.text

        return run

    return make


def _job(lines: list[bytes], name: str) -> Run:
    decode = msgspec.json.Decoder(dict[str, Any]).decode

    def make(package: ModuleType) -> Callable[[], object]:
        def run() -> None:
            for line in lines:
                message = package.parse(decode(line)["output"], name)
                _ = message.thinking, message.text

        return run

    return make


def _decode(lines: list[bytes]) -> None:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for line in lines:
        partition(decode(line)["output"])


def streamed(name: str, chunks: list[str], **policies: Any) -> Run:
    """Feeds chunks to a parser, to their end."""

    def make(package: ModuleType) -> Callable[[], object]:
        def run() -> None:
            parser = package.Parser(name, **policies)
            feed = parser.feed
            for chunk in chunks:
                feed(chunk)
            parser.finish()

        return run

    return make


def _bare(chunks: list[str]) -> Callable[[], object]:
    def run() -> None:
        feed = Bare().feed
        for chunk in chunks:
            feed(chunk)

    return run


def times(row: Row, packages: dict[str, ModuleType], repeat: int = 7) -> dict[str, float]:
    """Seconds for each time the work is done, by each package and by the reference, which take turns."""
    functions = {name: row.run(package) for name, package in packages.items()}
    if row.reference is not None:
        functions["reference"] = row.reference
    for function in functions.values():
        function()
    number = measure.enough(functions[next(iter(packages))], seconds=0.01)
    found = measure.best_of_each(functions, repeat=repeat, number=number)
    return {name: seconds / row.count for name, seconds in found.items()}


def shown(row: Row, seconds: float) -> str:
    """A time, or what it is as a rate."""
    return measure.rate(1, seconds, "") if row.rate else measure.duration(seconds)


def run() -> None:
    """Print the table, then the peers on the same replies."""
    print("| work | asides | reference | ratio |\n|---|---:|---:|---:|")
    for row in rows():
        found = times(row, {"ours": asides})
        ratio = measure.ratio(found["ours"], found["reference"])
        print(f"| {row.name} | {shown(row, found['ours'])} | {shown(row, found['reference'])} | {ratio} |")
    print("\nReferences: `str.partition` for whole replies, decoding and `str.partition` for the data job, else a bare")
    print("method call that returns a list of one record.\n")
    _print_peers()


def _print_peers() -> None:
    """The peers that are installed, on whole replies, and whether they are right."""
    print(
        "| whole reply | "
        + " | ".join(f"{size} characters" for size in REPLIES)
        + " | right |\n|---|---:|---:|---:|---|"
    )
    for peer in peers.PEERS:
        reason = peer.available()
        if reason is not None:
            print(f"| {peer.name} | not measured: {reason.splitlines()[0][:60]} | | | |")
            continue
        cells, right = [], True
        for size in REPLIES:
            thinking, text = partition(reply(size))
            written = peer.write(thinking, text)
            right = right and tuple(map(str.strip, peer.split_whole(written))) == (thinking, text)
            split = partial(peer.split_whole, written)
            cells.append(measure.duration(measure.best(split, number=measure.enough(split, seconds=0.01))))
        print(f"| {peer.name} {peer.version()} | {' | '.join(cells)} | {'yes' if right else 'no'} |")
    print()
