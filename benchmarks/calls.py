"""Section `calls`: what a chunk of one long argument costs in every call grammar, and JSON calls against `json.loads`.

Owns one example of each grammar. Must not know how any is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

import asides
from benchmarks import measure, samples

TOKEN = 4
"""Characters that count as one token here."""
SIZES: dict[int, tuple[int, ...]] = {64: (2_000, 256_000), 4: (2_000, 256_000), 1: (2_000, 32_000)}
"""Tokens of the argument, for each number of characters in a chunk. A grammar that is linear costs the same at each."""
AT_LEAST = 4_000
"""Chunks in a run: short arguments are read by several parsers."""


class Grammar(msgspec.Struct, frozen=True):
    """One way of writing a call, as one format writes it."""

    name: str
    format: str
    before: str
    """What stands before the long string."""
    after: str

    def write(self, words: str) -> str:
        """A string as it stands there: as JSON behind a quote, escaped twice in a string within one, else as it is."""
        if self.before.endswith('\\"'):
            return json.dumps(json.dumps(words, ensure_ascii=False)[1:-1], ensure_ascii=False)[1:-1]
        return json.dumps(words, ensure_ascii=False)[1:-1] if self.before.endswith('"') else words


_XML = ('<{0}invoke name="f"><{0}parameter name="a"{1}>', "</{0}parameter></{0}invoke>")


def _invoke(name: str, format: str, opener: str, closer: str, prefix: str = "", attribute: str = "") -> Grammar:
    before, after = (text.format(prefix, attribute) for text in _XML)
    return Grammar(name, format, opener + before, after + closer)


_KIMI = ("<|tool_calls_section_begin|><|tool_call_begin|>", "<|tool_call_end|><|tool_calls_section_end|>")
_DEEPSEEK = ("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>", "<｜tool▁call▁end｜><｜tool▁calls▁end｜>")
_M3 = "]<]minimax[>["
GRAMMARS = (
    Grammar("JSON", "qwen3", '<tool_call>\n{"name": "f", "arguments": {"a": "', '"}}\n</tool_call>'),
    Grammar("JSON by auto", "auto", '<tool_call>\n{"name": "f", "arguments": {"a": "', '"}}\n</tool_call>'),
    Grammar("JSON, bare", "llama3_json", '{"name": "f", "parameters": {"a": "', '"}}'),
    Grammar("JSON list", "hunyuan_a13b", '<tool_calls>[{"name": "f", "arguments": {"a": "', '"}}]</tool_calls>'),
    Grammar(
        "JSON in a string", "qwen3", '<tool_call>\n{"name": "f", "arguments": "{\\"a\\": \\"', '\\"}"}\n</tool_call>'
    ),
    Grammar(
        "XML, qwen3_coder",
        "qwen3_coder",
        "<tool_call>\n<function=f>\n<parameter=a>\n",
        "\n</parameter>\n</function>\n</tool_call>",
    ),
    _invoke("XML, minimax_m2", "minimax_m2", "</think><minimax:tool_call>", "</minimax:tool_call>"),
    _invoke(
        "DSML, typed",
        "deepseek_v32",
        "<｜DSML｜function_calls>",
        "</｜DSML｜function_calls>",
        "｜DSML｜",
        ' string="true"',
    ),
    Grammar(
        "XML, nested",
        "minimax_m3",
        f'{_M3}<tool_call>{_M3}<invoke name="f">{_M3}<a>',
        f"{_M3}</a>{_M3}</invoke>{_M3}</tool_call>",
    ),
    Grammar(
        "keys and values, GLM",
        "glm45",
        "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>",
        "</arg_value>\n</tool_call>",
    ),
    Grammar(
        "named, kimi_k2",
        "kimi_k2",
        f'{_KIMI[0]}functions.f:0<|tool_call_argument_begin|>{{"a": "',
        f'"}}{_KIMI[1]}',
    ),
    Grammar("named, deepseek_v31", "deepseek_v31", f'{_DEEPSEEK[0]}f<｜tool▁sep｜>{{"a": "', f'"}}{_DEEPSEEK[1]}'),
    Grammar("named, mistral", "mistral", '[TOOL_CALLS]f[ARGS]{"a": "', '"}'),
    Grammar("braces, gemma4", "gemma4", '<|tool_call>call:f{a:<|"|>', '<|"|>}<tool_call|>'),
    Grammar("Python", "pythonic", '[f(a="', '")]'),
    Grammar("Python, marked", "lfm2", '<|tool_call_start|>[f(a="', '")]<|tool_call_end|>'),
    Grammar(
        "header, harmony",
        "harmony",
        '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "',
        '"}<|call|>',
    ),
)
WORDS = "sort (left, right) then merge: a - b / 2 + [i] == 0 and so on, word by word, "
"""An argument without a character that any grammar must escape or could take for a marker's beginning."""
MARKUP = "if (a < b && c > d) { list<int> x; } // </p> and <li> </parameters> "
"""An argument full of what begins a marker in most grammars."""
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
    }
]


class Concatenates:
    """A parser that only keeps what it is given, and joins it at the end."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    def feed(self, chunk: str) -> list[asides.ToolCallDelta]:
        self._pieces.append(chunk)
        return []

    def finish(self) -> str:
        return "".join(self._pieces)


def run() -> None:
    """Print all tables."""
    print_streamed("plain words", WORDS, SIZES)
    print_streamed("markup", MARKUP, {4: (2_000, 16_000)})
    print_streamed("code", samples.CODE, {4: (2_000, 256_000), 16: (2_000, 64_000)})
    print_json()


def print_streamed(kind: str, words: str, sizes: dict[int, tuple[int, ...]]) -> None:
    rows: list[list[str]] = []
    for grammar in GRAMMARS:
        wrong = check(grammar, words)
        if wrong:
            rows.append([grammar.name, grammar.format, wrong, *[""] * (len(headers_for(sizes)) - 3)])
            continue
        row = [grammar.name, grammar.format]
        for size, lengths in sizes.items():
            costs = [cost(grammar, words, length * TOKEN, size) for length in lengths]
            row += [measure.duration(ours) for ours, _ in costs]
            row.append(measure.ratio(costs[-1][0], costs[0][0]))
            row.append(measure.ratio(costs[-1][0], costs[-1][1]))
        rows.append(row)
    measure.print_table(
        f"Calls: one chunk of one long string argument ({kind}), by tokens in the argument. `growth` is the last "
        "length to the first (flat is 1x),\n`to join` the last length to a parser that only keeps the chunks, to join",
        headers_for(sizes),
        rows,
    )


def headers_for(sizes: dict[int, tuple[int, ...]]) -> list[str]:
    headers = ["grammar", "format"]
    for size, lengths in sizes.items():
        headers += [f"{size} ch, {samples.count(lengths[0])}", *map(samples.count, lengths[1:]), "growth", "to join"]
    return headers


def check(grammar: Grammar, words: str) -> str:
    """What is wrong with how the example is read, or nothing: a figure for a wrong reading would be worth nothing."""
    message = asides.parse(grammar.before + grammar.write(words * 3) + grammar.after, grammar.format, tools=TOOLS)
    if len(message.tool_calls) != 1 or message.tool_calls[0].error is not None:
        return "not read"
    value = json.loads(message.tool_calls[0].arguments).get("a", "")
    return "" if value.strip() == (words * 3).strip() else "read wrongly"


def cost(grammar: Grammar, words: str, length: int, size: int) -> tuple[float, float]:
    """Seconds per chunk for us, and for what only joins."""
    text = grammar.before + grammar.write(samples.of_length(words, length)) + grammar.after
    chunks = samples.cut(text, size)
    copies = max(1, AT_LEAST // len(chunks))
    makers: dict[str, Callable[[], Callable[[], None]]] = {
        "ours": lambda: _reading([asides.Parser(grammar.format, tools=TOOLS) for _ in range(copies)], chunks),
        "join": lambda: _reading([Concatenates() for _ in range(copies)], chunks),
    }
    times = measure.best_of_fresh(makers, repeat=1 if len(chunks) > 100_000 else 2)
    each = len(chunks) * copies
    return times["ours"] / each, times["join"] / each


def _reading(parsers: Sequence[asides.Parser | Concatenates], chunks: Sequence[str]) -> Callable[[], None]:
    def read() -> None:
        for parser in parsers:
            feed = parser.feed
            for chunk in chunks:
                feed(chunk)
            parser.finish()

    return read


def print_json() -> None:
    """Whole calls in JSON against the standard library's parser on the same JSON."""
    rows: list[list[str]] = []
    lengths = (100, 1_000, 10_000, 100_000, 1_000_000)
    for name, make in JSON_SHAPES.items():
        row = [name]
        for length in lengths:
            body = json.dumps({"name": "f", "arguments": make(length)})
            text = f"<tool_call>\n{body}\n</tool_call>"
            functions: dict[str, Callable[[], object]] = {
                "ours": partial(asides.parse, text, "qwen3"),
                "loads": partial(json.loads, body),
            }
            number = measure.enough(functions["ours"], seconds=0.005)
            times = measure.best_of_each(functions, repeat=3, number=number)
            row.append(measure.ratio(times["ours"], times["loads"]))
        row += [measure.duration(times["ours"]), measure.duration(times["loads"])]
        rows.append(row)
    measure.print_table(
        "Calls: a whole reply with one JSON call, asides.parse as a ratio to json.loads of the call's body alone, "
        "by characters of the arguments",
        ["arguments", *map(samples.count, lengths), "ours", "json.loads"],
        rows,
    )


def _deep(length: int) -> object:
    value: object = "end"
    # Python's own encoder and parser refuse much deeper ones.
    for _ in range(min(length // 6, 400)):
        value = {"a": value}
    return {"a": value, "rest": "x" * max(0, length - 2400)}


JSON_SHAPES: dict[str, Callable[[int], object]] = {
    "one long string": lambda length: {"a": samples.of_length(WORDS, length)},
    "code with escapes": lambda length: {"a": samples.of_length(samples.CODE, length)},
    "many short members": lambda length: {f"key{number}": "value" for number in range(length // 18)},
    "numbers": lambda length: {"a": list(range(1000, 1000 + length // 6))},
    "deep, then a string": _deep,
}
