"""Ids from any engine, one by one: thoughts in brackets, the answer beside them, and what each id was.

    pip install . splintr-rs
    python examples/plain_loop.py

`sample` stands for the engine: vLLM, llama.cpp, SGLang, an RL loop's sampler... whatever yields ids. It prints:

    [Two][ and][ two][ 🤔][ make][ four][.]It is 4.
    Thinking: ids (2, 11)
    Text: ids (13, 18)
    tokens of thinking: 9
    ended with a stop token: True
"""

from __future__ import annotations

from collections.abc import Iterator

import splintr

import asides

TOKENIZER = splintr.Tokenizer.from_pretrained("qwen3")
PROMPT = "<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n"
ANSWER = "<think>\nTwo and two 🤔 make four.\n</think>\n\nIt is 4.<|im_end|>"


def sample(prompt_ids: list[int]) -> Iterator[int]:
    """What a model would generate."""
    yield from TOKENIZER.encode_with_special(ANSWER)


def main() -> None:
    """Print the answer as it comes, and then what the ids were."""
    prompt_ids = TOKENIZER.encode_with_special(PROMPT)
    parser = asides.TokenParser(TOKENIZER, "qwen3", prompt_ids=prompt_ids)
    for id in sample(prompt_ids):
        show(parser.feed(id))
    show(parser.finish())
    message = parser.message
    print()
    for part in message.parts:
        print(f"{type(part).__name__}: ids {part.tokens}")
    print("tokens of thinking:", sum(message.mask("thinking")))
    print("ended with a stop token:", message.termination == "stop")


def show(events: list[asides.events.Event]) -> None:
    """Write events as they come."""
    for event in events:
        if isinstance(event, asides.ThinkingDelta):
            print(f"[{event.text}]", end="", flush=True)
        elif isinstance(event, asides.TextDelta):
            print(event.text, end="", flush=True)


if __name__ == "__main__":
    main()
