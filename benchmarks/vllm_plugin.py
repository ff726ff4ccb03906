"""An XML argument streamed through vLLM's own parser layer: with its parsers, and with ours, in one run.

    make .venv-plugin-vllm/.host
    PYTHONPATH=.venv-plugin-vllm/sources .venv-plugin-vllm/bin/python -m benchmarks.vllm_plugin [BYTES ...]

Both read the same reply, a thought and then a call of Qwen3-Coder whose one argument has the size, in pieces of four
characters and markers as one, as `parse_delta` gets them from the engine. Seconds of CPU in this process, the best of
three for ours; a row for each size shows how the cost grows. What the pieces amount to must be the whole argument.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from typing import Any

SIZES = (1_500, 3_000, 6_000, 12_000, 24_000)
PIECE = 4
LINE = "    total += price[n] * count[n]  # the sum so far\n"
THOUGHT = "<think>\nI write the file.\n</think>\n\n"
REPLY = THOUGHT + "<tool_call>\n<function=write>\n<parameter=text>\n{}</parameter>\n</function>\n</tool_call>"
TOOL = {"name": "write", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}


class Vocabulary:
    """As much of a tokenizer as the parsers ask for: a character is its own id, a marker is one token."""

    MARKERS = ("<think>", "</think>", "<tool_call>", "</tool_call>")

    def __init__(self) -> None:
        self.ids = {chr(number): number for number in range(256)}
        self.ids |= {marker: 256 + number for number, marker in enumerate(self.MARKERS)}
        self.texts = {id: text for text, id in self.ids.items()}
        self.special_tokens = {marker: self.ids[marker] for marker in self.MARKERS}
        self.name_or_path = ""

    def get_vocab(self) -> dict[str, int]:
        """Every token and its id."""
        return self.ids

    def encode(self, text: str, **_: Any) -> list[int]:
        """The id of a marker, or the ids of text, byte by byte."""
        return [self.ids[text]] if text in self.special_tokens else [self.ids[chr(byte)] for byte in text.encode()]

    def decode(self, ids: list[int], **_: Any) -> str:
        """The text of ids."""
        return b"".join(map(self.decode_single_token_bytes, ids)).decode(errors="replace")

    def decode_single_token_bytes(self, id: int) -> bytes:
        """The bytes of one."""
        return self.texts[id].encode("latin-1")


def cut(reply: str) -> list[str]:
    """Pieces of four characters; a marker is a piece of its own."""
    found = []
    for text in re.split(f"({'|'.join(Vocabulary.MARKERS)})", reply):
        found += [text] if text in Vocabulary.MARKERS else [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return found


def stream(parser: Any, request: Any, pieces: list[tuple[str, list[int]]]) -> str:
    """Feed the pieces; the arguments that came."""
    arguments = []
    for number, (text, ids) in enumerate(pieces, 1):
        delta = parser.parse_delta(text, ids, request, [0], finished=number == len(pieces))
        if delta is not None:
            arguments += [call.function.arguments or "" for call in delta.tool_calls if call.function]
    return "".join(arguments)


def main(sizes: tuple[int, ...]) -> None:
    """Print a row for each size."""
    logging.disable(logging.WARNING)
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.parser.parser_manager import ParserManager
    from vllm.plugins import load_general_plugins

    load_general_plugins()
    tokenizer = Vocabulary()
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "?"}],
        "tools": [{"type": "function", "function": TOOL}],
    }
    request = ChatCompletionRequest.model_validate(body)
    print(f"{'argument':>9} {'vLLM 0.32':>10} {'asides':>9} {'ratio':>7}")
    for size in sizes:
        text = (LINE * (size // len(LINE) + 1))[:size].rstrip() + "\n"
        reply = REPLY.format(text)
        pieces = [(piece, tokenizer.encode(piece)) for piece in cut(reply)]
        seconds = {}
        for names, times in ((("qwen3_coder", "qwen3"), 1), (("asides_qwen3_coder",) * 2, 3)):
            made = ParserManager.get_parser(*names, True)
            assert made is not None
            spent = []
            for _ in range(times):
                parser = made(tokenizer, request.tools)
                begin = time.process_time()
                arguments = stream(parser, request, pieces)
                spent.append(time.process_time() - begin)
            assert json.loads(arguments)["text"].rstrip() == text.rstrip(), names
            seconds[names[0]] = min(spent)
        theirs, ours = seconds.values()
        print(f"{size:>9,} {theirs:>8.2f} s {ours * 1000:>6.0f} ms {theirs / ours:>6.0f}x", flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or SIZES)
