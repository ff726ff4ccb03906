"""What a long argument costs in SGLang, streamed: our two parsers by name beside SGLang's own, in one run.

    PYTHONPATH=.venv-plugin-sglang/sources .venv-plugin-sglang/bin/python -m benchmarks.sglang_plugin

A call with one argument of so many kilobytes comes in chunks of four characters, through SGLang's `ReasoningParser` and
`FunctionCallParser` as its server drives them. Per chunk a reader that is linear costs the same at every size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from asides.plugins.sglang import register

from .measure import best_of_fresh, duration, print_machine, print_table, ratio

CHUNK = 4
KILOBYTES = (1, 3, 6, 12, 24)
WORDS = "The quick brown fox jumps over the lazy dog.\n"
CALLS = {
    "XML": (
        "<tool_call>\n<function=write>\n<parameter=text>\n{}\n</parameter>\n</function>\n</tool_call>",
        ("qwen3", "qwen3_coder"),
        "asides_qwen3_coder",
    ),
    "JSON": (
        '<tool_call>\n{{"name": "write", "arguments": {{"text": "{}"}}}}\n</tool_call>',
        ("qwen3", "qwen25"),
        "asides_qwen3",
    ),
}
"""The call, SGLang's names of its parsers, ours."""


def reader(thoughts: str, calls: str, chunks: list[str]) -> Callable[[], int]:
    """A stream that is ready to be read; reading it returns in how many pieces the argument comes."""
    from sglang.srt.entrypoints.openai.protocol import Tool
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parameters = {"type": "object", "properties": {"text": {"type": "string"}}}
    first = ReasoningParser(thoughts, force_reasoning=False)
    second = FunctionCallParser([Tool(type="function", function={"name": "write", "parameters": parameters})], calls)

    def read() -> int:
        items: list[Any] = []
        for chunk in chunks:
            items += second.parse_stream_chunk(first.parse_stream_chunk(chunk)[1] or "")[1]
        items += second.parse_stream_chunk(first.parse_stream_end()[1] or "")[1]
        items += second.parse_stream_end()[1]
        return sum(1 for item in items if item.parameters)

    return read


def measured(call: str, words: str, ours: str, theirs: tuple[str, str]) -> tuple[str, ...]:
    """A row: time, time for each chunk and pieces of the argument, of ours and theirs; how many times as long."""
    text = call.format(words)
    chunks = [text[place : place + CHUNK] for place in range(0, len(text), CHUNK)]
    makers = {"ours": partial(reader, ours, ours, chunks), "theirs": partial(reader, *theirs, chunks)}
    found = best_of_fresh(makers, repeat=2)
    figures = [
        figure
        for name, make in makers.items()
        for figure in (duration(found[name]), duration(found[name] / len(chunks)), str(make()()))
    ]
    return (*figures, ratio(found["theirs"], found["ours"]))


def main() -> None:
    """Print a table for each syntax."""
    register()
    print_machine()
    for name, (call, theirs, ours) in CALLS.items():
        rows = []
        for kilobytes in KILOBYTES:
            words = (WORDS * (kilobytes * 1000 // len(WORDS) + 1))[: kilobytes * 1000]
            written = words.replace("\n", "\\n") if name == "JSON" else words
            rows.append((f"{kilobytes} kB", *measured(call, written, ours, theirs)))
        own = ("a chunk", "pieces")
        headers = ("argument", ours, *own, " + ".join(theirs), *own, "SGLang / asides")
        print_table(f"{name}, {CHUNK} characters a chunk", headers, rows)


if __name__ == "__main__":
    main()
