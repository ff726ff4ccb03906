"""tinker-cookbook's renderers by their names and shapes, over `asides.render`: ids in, a message of parts out.

`Renderer` wraps one of ours and has the cookbook's methods; prompts and examples are lists of ids, so that no torch is
needed. Messages are the cookbook's TypedDicts: a string, or parts in the order of writing where there is thinking.

    renderer = get_renderer("qwen3", tokenizer)
    message, termination = renderer.parse_response(sampled)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Literal, NotRequired, TypedDict

from .. import render
from ..errors import UsageError
from ..events import Event
from ..render import Example, RendererError, TrainOnWhat, register_renderer

__all__ = [
    "ContentPart",
    "Message",
    "ParseTermination",
    "Renderer",
    "RendererError",
    "TextPart",
    "ThinkingPart",
    "TrainOnWhat",
    "UnparsedToolCall",
    "get_renderer",
    "get_text_content",
    "parse_response",
    "register_renderer",
    "remove_thinking",
]


class TextPart(TypedDict):
    """A text part."""

    type: Literal["text"]
    """Always `text`."""
    text: str
    """Text of the answer, without markers."""


class ThinkingPart(TypedDict):
    """A thinking part."""

    type: Literal["thinking"]
    """Always `thinking`."""
    thinking: str
    """The text of one thought, without its markers."""


ContentPart = TextPart | ThinkingPart
"""A part of a message's content, as the cookbook has it."""


class UnparsedToolCall(TypedDict):
    """A call that may not be run."""

    raw_text: str
    """What the model wrote, with the call's own markers."""
    error: str
    """Why the call may not be run, as a sentence."""


class Message(TypedDict):
    """A message: its content is a string, or parts in the order of writing where there is thinking."""

    role: str
    """Who wrote the message: `assistant` for what a model sampled."""
    content: str | list[ContentPart]
    """The answer as a string, or a list of parts where there is thinking."""
    tool_calls: NotRequired[list[dict[str, Any]]]
    """Calls that may be run, in OpenAI's shape; absent where there are none."""
    unparsed_tool_calls: NotRequired[list[UnparsedToolCall]]
    """Calls that may not be run; absent where there are none."""


class ParseTermination(StrEnum):
    """How an answer ended. True where it ended cleanly, so that `if ok:` reads as with the bool of older versions."""

    STOP_SEQUENCE = "stop_sequence"
    """The last token is a stop token of the family."""
    EOS = "eos"
    """The model's end-of-sequence token ended it. Never returned here: renderers list that token among the stop
    tokens."""
    MALFORMED = "malformed"
    """The output does not end with a stop token, or text follows one: it was cut off."""

    @property
    def is_clean(self) -> bool:
        """Whether the answer was not cut off."""
        return self is not ParseTermination.MALFORMED

    @property
    def is_stop_sequence(self) -> bool:
        """Whether it ended with a stop token."""
        return self is ParseTermination.STOP_SEQUENCE

    def __bool__(self) -> bool:
        return self.is_clean


class Renderer:
    """One of `asides.render`'s renderers in the cookbook's shape. Prompts and examples are lists of ids."""

    def __init__(self, renderer: render.Renderer) -> None:
        self.renderer = renderer
        """The renderer underneath, with all that it can do beside this."""

    @property
    def has_extension_property(self) -> bool:
        """Whether the prompt of a longer conversation always begins with the example of the shorter one."""
        return self.renderer.has_extension_property

    def get_stop_sequences(self) -> list[int] | list[str]:
        """Where sampling must stop."""
        return self.renderer.get_stop_sequences()

    def build_generation_prompt(
        self, messages: Iterable[Mapping[str, Any]], role: str = "assistant", prefill: str | None = None
    ) -> list[int]:
        """The ids of a prompt."""
        return self.renderer.build_generation_prompt(messages, role, prefill)

    def build_supervised_example(
        self,
        messages: Iterable[Mapping[str, Any]],
        train_on_what: TrainOnWhat | str = TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    ) -> Example:
        """The ids of a conversation and the weight of each."""
        return self.renderer.build_supervised_example(messages, train_on_what)

    def create_conversation_prefix_with_tools(
        self, tools: Iterable[Mapping[str, Any]], system_prompt: str = ""
    ) -> list[dict[str, Any]]:
        """The messages that declare tools."""
        return self.renderer.create_conversation_prefix_with_tools(tools, system_prompt)

    def parse_response(
        self, response: Sequence[int], prompt_ids: Sequence[int] | None = None
    ) -> tuple[Message, ParseTermination]:
        """The message that was sampled, and how it ended. `prompt_ids` decide where the answer begins."""
        found, ended = self.renderer.parse_response(response, prompt_ids)
        message = Message(role=found["role"], content=found["content"])
        if "tool_calls" in found:
            message["tool_calls"] = found["tool_calls"]
        if "unparsed_tool_calls" in found:
            message["unparsed_tool_calls"] = [
                UnparsedToolCall(raw_text=call["raw"], error=call["reason"]) for call in found["unparsed_tool_calls"]
            ]
        return message, ParseTermination.STOP_SEQUENCE if ended else ParseTermination.MALFORMED

    def parse_response_streaming(
        self, response: Iterable[int], prompt_ids: Sequence[int] | None = None
    ) -> Iterator[Event]:
        """The engine's events as ids come; joined they are what `parse_response` returns."""
        return self.renderer.parse_response_streaming(response, prompt_ids)

    def to_openai_message(self, message: Message) -> dict[str, Any]:
        """The message with its thinking in `reasoning_content`."""
        converted: dict[str, Any] = {**message, "content": get_text_content(message)}
        content = message["content"]
        parts = [] if isinstance(content, str) else content
        if thoughts := "".join(part["thinking"] for part in parts if part["type"] == "thinking"):
            converted["reasoning_content"] = thoughts
        return converted


def get_renderer(
    name: str, tokenizer: Any, image_processor: None = None, model_name: str | None = None, **options: Any
) -> Renderer:
    """The renderer of this name. `options` are those of `asides.render.get_renderer`: `history`, `seed`."""
    if image_processor is not None:
        raise UsageError("asides.render reads and writes text alone; leave image_processor out")
    return Renderer(render.get_renderer(name, tokenizer, **options))


def parse_response(
    renderer: Renderer | render.Renderer, response: Sequence[int], prompt_ids: Sequence[int] | None = None
) -> tuple[Message, ParseTermination]:
    """The same as `renderer.parse_response`, for any renderer of `asides.render` too."""
    found = renderer if isinstance(renderer, Renderer) else Renderer(renderer)
    return found.parse_response(response, prompt_ids)


def get_text_content(message: Message) -> str:
    """The answer alone."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


def remove_thinking(message: Message) -> Message:
    """The message without its thinking parts."""
    without = message.copy()
    if not isinstance(message["content"], str):
        without["content"] = [part for part in message["content"] if part["type"] == "text"]
    return without
