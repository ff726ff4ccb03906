"""`python -m benchmarks.against REVISION [part-of-a-row's-name]`: this working tree beside an earlier revision.

Both are loaded into one process, the earlier one under another name, and take turns at the same texts: the best of
seven, in processor time. A row that is slower than the bound is measured once more, and counts only if it is slower
again. With a part of a name, every such row is printed. Answers whether a change costs speed, which two runs of
`make bench` on a busy machine cannot.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks import analysis, calls, measure, performance, samples, streaming, whole
from benchmarks.performance import Run, streamed

BOUND = 1.15
BEFORE = "asides_before"
CHUNK = 4
LENGTH = 20_000
TRACE = 5_000


def load(revision: str, folder: str) -> ModuleType:
    """The package as it was. Its imports within itself are relative, so it can have another name."""
    archive = subprocess.run(["git", "archive", revision, "src/asides"], capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
    Path(folder, "src", "asides").rename(Path(folder, BEFORE))
    sys.path.insert(0, folder)
    return import_module(BEFORE)


def parsed(name: str, text: str, **policies: Any) -> Run:
    """Takes a whole text apart."""
    return lambda package: lambda: package.parse(text, name, **policies)


def rows() -> Iterator[tuple[str, Run]]:
    """What is compared, by name."""
    yield from ((f"performance {row.name}", row.run) for row in performance.rows())
    for name, entries in streaming.ENTRIES.items():
        for state, before in entries.items():
            for kind, sample in samples.TEXTS.items():
                text = before + samples.of_length(sample, LENGTH)
                yield f"streaming {name} {state} {kind}", streamed(name, samples.cut(text, CHUNK))
    prose = samples.cut(samples.of_length(samples.PROSE, LENGTH), CHUNK)
    for name in import_module(BEFORE).formats():
        yield f"streaming every format {name}", streamed(name, prose)
    yield from whole_texts()
    yield from call_grammars()
    for name in ("openai_chat", "anthropic", "ollama", "openai_responses"):
        yield f"dialects {name} through", through(name)
    for kind, thinking in analysis.THINKING.items():
        yield f"analysis {kind}", counted(thinking)


def counted(thinking: str) -> Run:
    """Takes a reply apart and counts it in."""
    text = f"<think>{samples.of_length(thinking, TRACE)}</think>\n\nIt is 4."

    def make(package: ModuleType) -> Callable[[], object]:
        figures: Any = import_module(f"{package.__name__}.analysis")
        return lambda: figures.summarize([figures.analyze(package.parse(text))])

    return make


def whole_texts() -> Iterator[tuple[str, Run]]:
    """Replies taken apart at once."""
    for name in whole.NAMES:
        for size in (200, 2_000, LENGTH, 200_000):
            for shape, text in whole.shapes(name, size).items():
                if text:
                    yield f"whole {name} {shape} {samples.count(size)}", parsed(name, text)


def call_grammars() -> Iterator[tuple[str, Run]]:
    """Long and short arguments in every call grammar, streamed and whole."""
    for grammar in calls.GRAMMARS:
        for kind, words in (("words", calls.WORDS), ("markup", calls.MARKUP)):
            if not calls.check(grammar, words):
                text = grammar.before + samples.of_length(words, LENGTH) + grammar.after
                cut = samples.cut(text, CHUNK)
                yield f"calls {grammar.name} {kind}", streamed(grammar.format, cut, tools=calls.TOOLS)
                yield f"calls whole {grammar.name} {kind}", parsed(grammar.format, text, tools=calls.TOOLS)
                short = grammar.before + "Paris" + grammar.after
                if kind == "words":
                    yield f"calls short {grammar.name}", parsed(grammar.format, short, tools=calls.TOOLS)
    for shape, make in calls.JSON_SHAPES.items():
        for length in (100, 10_000, 100_000):
            text = f'<tool_call>\n{{"name": "f", "arguments": {json.dumps(make(length))}}}\n</tool_call>'
            yield f"calls JSON {shape} {samples.count(length)}", parsed("qwen3", text)


def either(now: str, before: str) -> Any:
    """A module by its present name, or by the one that it had in an older revision."""
    try:
        return import_module(now)
    except ModuleNotFoundError:
        return import_module(before)


def through(name: str) -> Run:
    """A stream of one dialect, read, split and written again."""

    def make(package: ModuleType) -> Callable[[], object]:
        root = package.__name__
        dialect: Any = import_module(f"{root}.dialects.{name}")
        reply = either(f"{root}.reply._items", f"{root}.reply.items")
        request = either(f"{root}.dialects._request", f"{root}.dialects.request")
        split = either(f"{root}.reply._splitter", f"{root}.reply.splitter")
        format = either(f"{root}.families", f"{root}.formats").get_format("qwen3")
        raw_text = getattr(reply, "RawText", None) or reply.Words
        asked = request.Request(dialect=dialect.NAME, model="model", stream=True)

        def splitter() -> Any:
            return split.Splitter(format, lambda format: package.Parser(format))

        text = samples.of_length(samples.PROSE, LENGTH)
        first = splitter()
        items = first.feed(reply.Begin("reply_1", "model", 1_700_000_000))
        for chunk in samples.cut(f"<think>{text}</think>{text}", CHUNK):
            items += first.feed(raw_text(0, chunk))
        items += first.feed(reply.Ended(0))
        writer = dialect.ReplyWriter(asked)
        chunks = [chunk for chunk in map(writer.feed, items) if chunk] + [writer.finish()]

        def run() -> None:
            feed, cut, out = dialect.ReplyReader().feed, splitter().feed, dialect.ReplyWriter(asked).feed
            for chunk in chunks:
                for piece in feed(chunk):
                    for item in cut(piece):
                        out(item)

        return run

    return make


def ratio(run: Run, packages: dict[str, ModuleType]) -> float:
    """How long the present takes, as a ratio to the past."""
    functions = {name: run(package) for name, package in packages.items()}
    for function in functions.values():
        function()
    number = measure.enough(functions["before"], seconds=0.01)
    times = measure.best_of_each(functions, repeat=7, number=number)
    return times["now"] / times["before"]


def main() -> None:
    """Compare, and print every row above the bound, then the distribution."""
    if len(sys.argv) < 2:
        sys.exit("python -m benchmarks.against REVISION [part-of-a-row's-name]")
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as folder:
        packages = {"before": load(sys.argv[1], folder), "now": import_module("asides")}
        measure.print_machine()
        found: list[tuple[float, str]] = []
        slower: list[list[str]] = []
        for name, run in rows():
            if wanted not in name:
                continue
            try:
                first = ratio(run, packages)
            except Exception as error:  # what one of the two cannot read is no figure
                print(f"{name}: not compared: {error!r}", flush=True)
                continue
            found.append((first, name))
            if wanted:
                print(f"{name}: {first:.2f}x", flush=True)
            if first > BOUND and (second := ratio(run, packages)) > BOUND:
                slower.append([name, f"{first:.2f}x", f"{second:.2f}x"])
                print(f"{name}: {first:.2f}x, {second:.2f}x", flush=True)
    found.sort()
    quantiles = [found[len(found) * share // 100][0] for share in (0, 25, 50, 75, 95)] if found else []
    print(
        f"\n{len(found)} rows; least, quarter, median, three quarters, 95 %: {[f'{each:.2f}x' for each in quantiles]}"
    )
    print(f"{len(slower)} rows above {BOUND}x twice in a row")


if __name__ == "__main__":
    main()
