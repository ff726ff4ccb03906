"""Owns how each peer is called: one thin adapter per library, the same few methods on each.

Must not know asides, nor time anything. A peer that is not installed is a reason in words, never an
error. Peers are imported by name at run time, so nothing here needs them to be present.
"""

from __future__ import annotations

import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, ClassVar

from benchmarks import measure, vocabulary

TAGS = ("<think>", "</think>")


class Peer(ABC):
    """A library that splits thinking from text. Every method but `available` needs it to be installed."""

    name: ClassVar[str]
    distribution: ClassVar[str]
    """What pip installs."""
    note: ClassVar[str]
    """What a reader must know before comparing its figure with another."""

    @abstractmethod
    def load(self) -> None:
        """Import what the other methods use, so that no measured call pays for it. Twice does no harm."""

    @abstractmethod
    def split_whole(self, text: str) -> tuple[str, str]:
        """The thinking and the text of a whole reply."""

    def available(self) -> str | None:
        """None when it can be used; otherwise why not."""
        try:
            self.load()
        except Exception as error:  # Importing another's package may raise anything at all.
            return f"{type(error).__name__}: {error}"
        return None

    def version(self) -> str:
        return metadata.version(self.distribution)

    def write(self, thinking: str, text: str) -> str:
        """A reply in the markers that this peer reads."""
        return thinking.join(TAGS) + text


class StreamingPeer(Peer):
    """A peer that also reads a reply as it comes."""

    reads_calls: ClassVar[bool] = False
    """Whether it finds tool calls in a stream."""

    @abstractmethod
    def pieces(self, text: str, size: int) -> Sequence[Any]:
        """The reply cut as this peer is fed, in pieces of about `size` characters. Not to be measured."""

    @abstractmethod
    def stream(self, pieces: Sequence[Any]) -> tuple[str, str]:
        """Feed every piece to a new parser and look at every delta, as a program that shows them would."""


class PydanticAI(StreamingPeer):
    """`split_content_into_text_and_thinking`, and for streams the parts manager. Both private."""

    name = "pydantic-ai"
    distribution = "pydantic-ai-slim"
    note = (
        "whole: an unclosed <think> becomes text. "
        "stream: sees a tag only when it is a piece by itself, so `pieces` cuts there"
    )

    def load(self) -> None:
        _ = self._split, self._new_manager

    @cached_property
    def _split(self) -> Any:
        return import_module("pydantic_ai._thinking_part").split_content_into_text_and_thinking

    @cached_property
    def _new_manager(self) -> Any:
        manager = import_module("pydantic_ai._parts_manager").ModelResponsePartsManager
        parameters = import_module("pydantic_ai.models").ModelRequestParameters()
        return lambda: manager(model_request_parameters=parameters)

    def split_whole(self, text: str) -> tuple[str, str]:
        thinking: list[str] = []
        answer: list[str] = []
        for part in self._split(text, TAGS):
            (thinking if part.part_kind == "thinking" else answer).append(part.content)
        return "".join(thinking), "".join(answer)

    def pieces(self, text: str, size: int) -> Sequence[str]:
        pieces: list[str] = []
        while text:
            found = [(at, tag) for tag in TAGS if (at := text.find(tag)) >= 0]
            at, tag = min(found, default=(len(text), ""))
            pieces += _cut(text[:at], size)
            pieces += [tag] if tag else []
            text = text[at + len(tag) :]
        return pieces

    def stream(self, pieces: Sequence[str]) -> tuple[str, str]:
        manager = self._new_manager()
        thinking: list[str] = []
        answer: list[str] = []
        for piece in pieces:
            for event in manager.handle_text_delta(vendor_part_id="content", content=piece, thinking_tags=TAGS):
                if event.event_kind == "part_start":
                    kind, content = event.part.part_kind, event.part.content
                else:
                    kind, content = event.delta.part_delta_kind, event.delta.content_delta
                (thinking if kind == "thinking" else answer).append(content)
        return "".join(thinking), "".join(answer)


class Transformers(StreamingPeer):
    """The `ResponseParser` of `transformers.utils.chat_parsing`, with a template for the Qwen3 family."""

    name = "transformers"
    distribution = "transformers"
    note = "the template is read once, before measuring; a malformed tool call raises for the whole reply"
    reads_calls = True

    # Written for this comparison, after the fields that the library documents. A field that may not
    # repeat keeps only its last thought or text, so all may, and are joined; nothing is stripped.
    _WORDS: ClassVar[dict[str, Any]] = {
        "content": "text",
        "content_args": {"strip": False},
        "repeats": True,
        "join": "",
    }
    TEMPLATE: ClassVar[dict[str, Any]] = {
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "thinking": {"open": TAGS[0], "close": TAGS[1], **_WORDS},
            "tool_calls": {
                "open": "<tool_call>",
                "close": "</tool_call>",
                "content": "json",
                "repeats": True,
            },
            "content": {"close": "<|im_end|>", **_WORDS},
        },
    }

    def load(self) -> None:
        # Its import tells on stderr that torch is missing, which is as it should be here.
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        _ = self._module, self._template

    @cached_property
    def _module(self) -> Any:
        return import_module("transformers.utils.chat_parsing")

    @cached_property
    def _template(self) -> Any:
        loader = import_module("transformers.utils.chat_parsing.response_templates")
        return loader.load_response_template(self.TEMPLATE)

    def split_whole(self, text: str) -> tuple[str, str]:
        message = self._module.parse_response(text, self._template, prefix="")
        return message.get("thinking", ""), message.get("content", "")

    def pieces(self, text: str, size: int) -> Sequence[str]:
        return _cut(text, size)

    def stream(self, pieces: Sequence[str]) -> tuple[str, str]:
        parser = self._module.ResponseParser(self._template, prefix="")
        found: dict[str, list[str]] = {"thinking": [], "content": [], "tool_calls": []}
        for piece in pieces:
            for event in parser.feed(piece):
                if event["type"] == "region_chunk":
                    found[event["field"]].append(event["text"])
        for event in parser.finalize()[1]:
            if event["type"] == "region_chunk":
                found[event["field"]].append(event["text"])
        return "".join(found["thinking"]), "".join(found["content"])


class Harmony(StreamingPeer):
    """`StreamableParser` of openai-harmony, and for whole replies its parser of completions."""

    name = "openai-harmony"
    distribution = "openai-harmony"
    note = "reads token ids of gpt-oss only; `split_whole` counts the encoding of its text, `stream` does not"
    reads_calls = True

    def load(self) -> None:
        _ = self._encoding

    @cached_property
    def _module(self) -> Any:
        return import_module("openai_harmony")

    @cached_property
    def _encoding(self) -> Any:
        name = self._module.HarmonyEncodingName.HARMONY_GPT_OSS
        variable = "TIKTOKEN_ENCODINGS_BASE"
        if variable in os.environ:  # The caller has the file and says where.
            return self._module.load_harmony_encoding(name)
        content = vocabulary.o200k_base()
        if content is None:
            raise LookupError(f"no installed package carries {vocabulary.FILE_NAME} (bpe-openai would)")
        # The file is read once, while loading, so neither it nor the variable is needed afterwards.
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, vocabulary.FILE_NAME).write_bytes(content)
            os.environ[variable] = folder
            try:
                return self._module.load_harmony_encoding(name)
            finally:
                del os.environ[variable]

    def write(self, thinking: str, text: str) -> str:
        return (
            f"<|channel|>analysis<|message|>{thinking}<|end|>"
            f"<|start|>assistant<|channel|>final<|message|>{text}<|return|>"
        )

    def split_whole(self, text: str) -> tuple[str, str]:
        return self.split_ids(self.encode(text))

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._encoding.encode(text, allowed_special="all")
        return ids

    def split_ids(self, ids: Sequence[int]) -> tuple[str, str]:
        """Like `split_whole`, for ids that are there already, as they are behind a model."""
        thinking: list[str] = []
        answer: list[str] = []
        messages = self._encoding.parse_messages_from_completion_tokens(ids, self._module.Role.ASSISTANT)
        for message in messages:
            pieces = thinking if message.channel == "analysis" else answer
            pieces += [content.text for content in message.content]
        return "".join(thinking), "".join(answer)

    def pieces(self, text: str, size: int) -> Sequence[int]:
        # It takes one id at a time, whatever the size asked for.
        return self.encode(text)

    def stream(self, pieces: Sequence[int]) -> tuple[str, str]:
        parser = self._module.StreamableParser(self._encoding, self._module.Role.ASSISTANT)
        thinking: list[str] = []
        answer: list[str] = []
        for token in pieces:
            parser.process(token)
            delta = parser.last_content_delta
            if delta:
                (thinking if parser.current_channel == "analysis" else answer).append(delta)
        parser.process_eos()
        return "".join(thinking), "".join(answer)


class LiteLLM(Peer):
    """`_parse_content_for_reasoning`: one regular expression. It has nothing that splits a stream."""

    name = "litellm"
    distribution = "litellm"
    note = "sees one block only, and only at the very start of the reply"

    def load(self) -> None:
        # Else its import asks the network for a list of prices, three times when there is none.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        _ = self._parse

    @cached_property
    def _parse(self) -> Any:
        module = import_module("litellm.litellm_core_utils.prompt_templates.common_utils")
        return module._parse_content_for_reasoning

    def split_whole(self, text: str) -> tuple[str, str]:
        thinking, answer = self._parse(text)
        return thinking or "", answer or ""


PEERS: tuple[Peer, ...] = (PydanticAI(), Transformers(), Harmony(), LiteLLM())


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def main() -> None:
    """Try every peer on one small reply, and say which can be compared."""
    rows: list[list[str]] = []
    remarks: list[str] = []
    for peer in PEERS:
        reason = peer.available()
        if reason is not None:
            rows.append([peer.name, "-", "-", "-"])
            remarks.append(f"{peer.name}: not available. {reason}")
            continue
        reply = peer.write("a", "b")
        streamed = repr(peer.stream(peer.pieces(reply, 4))) if isinstance(peer, StreamingPeer) else "-"
        rows.append([peer.name, peer.version(), repr(peer.split_whole(reply)), streamed])
        remarks.append(f"{peer.name}: {peer.note}")
    title = "Every peer on the thought 'a' and the text 'b'"
    measure.print_table(title, ["peer", "version", "whole", "stream"], rows)
    print("\n".join(remarks))


if __name__ == "__main__":
    main()
