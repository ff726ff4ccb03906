"""What NexRL builds on its parsers: the service holder's step, the configuration key, and an inference client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._api import parse
from ..._config.schema import Config
from ...parts import Thinking
from .._source import Message, ReplySource, Transport
from ._reasoning import BaseReasoningParser, MiniMaxAppendThinkDetector, create_reasoning_parser
from ._tools import BaseToolParser, ToolParser, create_tool_parser

if TYPE_CHECKING:
    from ...client._client import Client


class HolderOutput(NamedTuple):
    """What a service holder returns."""

    reasoning_string: str | None
    """The reasoning between its tokens, for the client's parser; None where there is none."""
    content: str
    """The rest. Calls are in it as they were written, for the tool parser."""


def split_output(raw: str, reasoning_parser: str | BaseReasoningParser = "think_tag") -> HolderOutput:
    """The service holder's step: a model's raw output in, the reasoning string and the cleaned content out."""
    parser = create_reasoning_parser(reasoning_parser) if isinstance(reasoning_parser, str) else reasoning_parser
    closed = _close_before_calls(raw, parser)
    return HolderOutput(parser.extract_reasoning_string(closed), parser.parse_non_stream(closed)[1])


def _close_before_calls(raw: str, parser: BaseReasoningParser) -> str:
    """The output with an end token before calls that were made in unclosed thinking, so that they become content."""
    detector = parser.detector
    if isinstance(detector, MiniMaxAppendThinkDetector):
        return raw
    message = parse(raw, detector.format, start=detector.whole_start)
    thoughts = [part.span[1] for part in message.parts if isinstance(part, Thinking)]
    for notice in reversed(message.notices):
        if notice.code == "implicit_close":
            end = max(end for end in thoughts if end <= notice.offset)
            raw = raw[:end] + detector.think_end_token + raw[end:]
    return raw


def parser_from_config(config: Mapping[str, Any] | Config | None) -> BaseReasoningParser:
    """The parser that `inference_service.reasoning_parser` names; `think_tag` where nothing does."""
    return create_reasoning_parser(_setting(config, "reasoning_parser") or "think_tag")


def _setting(config: Mapping[str, Any] | Config | None, name: str) -> str:
    if isinstance(config, Config):
        return str(getattr(config.inference_service, name, ""))
    section = (config or {}).get("inference_service") or {}
    return str(section.get(name) or "")


class InferenceServiceClient:
    """Sends messages to a model and returns answer, reasoning and calls, each in its own field."""

    def __init__(
        self,
        source: str | Client | Transport,
        config: Mapping[str, Any] | Config | None = None,
        *,
        model: str = "",
        key: str = "",
        reasoning_parser: str | BaseReasoningParser | None = None,
        tool_parser: str | BaseToolParser | None = None,
    ) -> None:
        """`source` is the address of a server, or a callable that takes messages (docs/how-to/compat/nexrl.md)."""
        self._source = ReplySource(source, key)
        self._model = model
        if isinstance(reasoning_parser, str):
            reasoning_parser = create_reasoning_parser(reasoning_parser)
        self.reasoning_parser: BaseReasoningParser = reasoning_parser or parser_from_config(config)
        """Splits reasoning from content that the server has not split itself."""
        tool_parser = tool_parser or _setting(config, "tool_parser")
        if not tool_parser:
            format = self.reasoning_parser.detector.format
            tool_parser = ToolParser(format if format.calls else "auto")
        self.tool_parser: ToolParser | BaseToolParser = (
            create_tool_parser(tool_parser) if isinstance(tool_parser, str) else tool_parser
        )
        """Reads the calls in what is left of the content."""

    def generate(self, messages: Sequence[Message], **parameters: Any) -> dict[str, Any]:
        """The messages of the reply and nothing else: `{"choices": [{"message": {...}}]}`."""
        reply = self.complete(messages, **parameters)
        return {"choices": [{"message": choice["message"]} for choice in reply["choices"]]}

    def complete(self, messages: Sequence[Message], **parameters: Any) -> dict[str, Any]:
        """The whole reply in OpenAI's chat shape: with ids, `finish_reason` and `usage`."""
        reply = self._source.reply(messages, model=self._model, **parameters)
        for choice in reply["choices"]:
            choice["message"] = self._clean(choice["message"])
        return reply

    def _clean(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        raw, reasoning = sent.get("content") or "", sent.get("reasoning_content")
        calls = list(sent.get("tool_calls") or ())
        if not reasoning and not (calls and not raw):
            # The server has split nothing off, so it is still in the content.
            reasoning_string, raw = split_output(raw, self.reasoning_parser)
            if reasoning_string is not None:
                reasoning = self.reasoning_parser.parse_reasoning_string(reasoning_string).reasoning_content
        found = self.tool_parser.parse(raw)
        message: dict[str, Any] = {"role": "assistant", "content": found.cleaned_content}
        thoughts = [thought for thought in (reasoning, found.reasoning_content) if thought]
        if thoughts:
            message["reasoning_content"] = "\n\n".join(thoughts)
        calls += [{"id": call.id, "type": call.type, "function": call.function} for call in found.tool_calls or ()]
        if calls:
            message["tool_calls"] = calls
        if found.unparsed:
            message["unparsed_tool_calls"] = list(found.unparsed)
        return message
