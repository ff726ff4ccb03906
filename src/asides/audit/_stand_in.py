"""A small tokenizer in place of a family's own: 4,000 tokens, of which the markers are those of a format.

It is made of the 256 bytes, of the words of given texts (each with the merges that lead to it) and of the markers, as
added tokens. So scripts are short in ids, markers have ids, and nothing of anybody's tokenizer is needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from .._engine.format import END, Format
from .._engine.vocabulary import BYTE_LEVEL
from ..detect._facts import Facts
from ._manifest import TokenizerSource
from ._tokenizer import ParrotTokenizer, make_tokenizer

SIZE = 4000
"""Tokens at most."""
_WORD = re.compile(r" ?[A-Za-z]+")
_TOKEN = re.compile(r"<[|｜][^<>|｜\s]{1,40}[|｜]>|</?[a-z][\w:.-]{0,40}>|\[/?[A-Z][A-Z_]{2,40}\]|</?s>")
"""What is a token of its own in a tokenizer of such a family, wherever it is written."""
_SPECIAL = re.compile(r"<[|｜].*[|｜]>|</?s>|\[.*\]")
"""Those that are left out of a decoded text."""
_BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def stand_in(format: Format, texts: Iterable[str], template: str, template_source: str) -> ParrotTokenizer:
    """A tokenizer for a format, which knows the words of these texts."""
    texts = [*texts, template or "", " a"]
    template = template or _plain_template(format)
    markers = _markers(format, template)
    vocab, merges = _vocabulary(texts, SIZE - len(markers))
    added = [
        {"id": len(vocab) + number, "content": marker, "special": _SPECIAL.fullmatch(marker) is not None}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for number, marker in enumerate(markers)
    ]
    content = msgspec.json.encode(
        {
            "version": "1.0",
            "added_tokens": added,
            "pre_tokenizer": _BYTES,
            "decoder": _BYTES,
            "model": {"type": "BPE", "vocab": vocab, "merges": merges},
        }
    )
    end = next((marker for marker in turn_ends(format) if marker in markers), markers[0])
    source = TokenizerSource(
        source=f"stand-in for {format.name}",
        sha256=hashlib.sha256(content).hexdigest(),
        licence="Apache-2.0",
        template=template_source or "made",
        template_sha256=hashlib.sha256(template.encode()).hexdigest(),
    )
    config: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "bos_token": None}
    return make_tokenizer(content, source, "stand-in", config=config, template=template, facts=Facts(stop=end))


def turn_ends(format: Format) -> list[str]:
    """The markers that end a turn, those first which end every kind of it."""
    ends = {marker: None for state in format.states.values() for marker, target in state.items() if target == END}
    return sorted(ends, key=lambda marker: marker in format.goes_on)


def _markers(format: Format, template: str) -> list[str]:
    """The format's markers that tokenizers have tokens for, and the template's, in one order."""
    markers = [*turn_ends(format), *(marker for state in format.states.values() for marker in state)]
    markers += [marker for syntax in format.calls for marker in syntax.openers + syntax.closers]
    if format.header is not None:
        markers += [format.header.channel_marker, format.header.type_marker, format.header.body]
    written = "\n".join([*markers, *format.assistant, *format.other_turns, *format.prompt_markers, template])
    return list(dict.fromkeys([*_TOKEN.findall(written), "<|stand_in_end|>"]))


def _plain_template(format: Format) -> str:
    """A template for a format whose own was not given: roles in words, and the format's generation prompt."""
    assistant = format.assistant[0] if format.assistant else "assistant:\n"
    written = msgspec.json.encode(assistant).decode()
    return (
        "{% if tools %}tools: {{ tools | tojson }}\n{% endif %}"
        "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
        f"{{% if add_generation_prompt %}}{{{{ {written} }}}}{{% endif %}}"
    )


def _vocabulary(texts: Iterable[str], most: int) -> tuple[dict[str, int], list[list[str]]]:
    """Bytes, then the words of the texts with all their beginnings, as far as there is room."""
    vocab = {letter: number for number, letter in enumerate(sorted(BYTE_LEVEL))}
    space = next(letter for letter, byte in BYTE_LEVEL.items() if byte == ord(" "))
    merges: list[list[str]] = []
    words = dict.fromkeys(word for text in texts for word in _WORD.findall(text))
    for word in sorted(words, key=lambda word: (len(word), word)):
        written = word.replace(" ", space)
        if len(vocab) + len(written) > most:
            break
        for place in range(1, len(written)):
            if written[: place + 1] not in vocab:
                vocab[written[: place + 1]] = len(vocab)
                merges.append([written[:place], written[place]])
    return vocab, merges
