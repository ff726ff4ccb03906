"""tinker-cookbook's renderers by their names and shapes, over `asides.render`: ids in, a message of parts out.

`Renderer` wraps one of ours and has the cookbook's methods; prompts and examples are lists of ids, so that no torch is
needed. Its subclasses have the cookbook's names and parameters. Messages are the cookbook's TypedDicts: a string, or
parts in the order of writing where there is thinking.

    renderer = get_renderer("qwen3", tokenizer)      # or Qwen3Renderer(tokenizer)
    message, termination = renderer.parse_response(sampled)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

from .. import render
from ..errors import UsageError
from ..events import Event
from ..render import Example, RendererError, TrainOnWhat, register_renderer
from ..render._messages import EarlierThinking

__all__ = [
    "ContentPart",
    "DeepSeekV3DisableThinkingRenderer",
    "DeepSeekV3ThinkingRenderer",
    "GptOssRenderer",
    "KimiK2Renderer",
    "Llama3Renderer",
    "Message",
    "ParseTermination",
    "Qwen3DisableThinkingRenderer",
    "Qwen3Renderer",
    "Renderer",
    "RendererError",
    "RoleColonRenderer",
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


class _Strips(Renderer):
    """A family whose history may keep thinking: `strip_thinking_from_history=False`."""

    _family: ClassVar[Callable[..., render.Renderer]]

    def __init__(self, tokenizer: Any, strip_thinking_from_history: bool = True, *, seed: int | None = None) -> None:
        super().__init__(self._family(tokenizer, history=_history(strip_thinking_from_history), seed=seed))


class Qwen3Renderer(_Strips):
    """Qwen3's; the same as `get_renderer("qwen3", tokenizer)`."""

    _family = render.Qwen3


class Qwen3DisableThinkingRenderer(Qwen3Renderer):
    """Qwen3's without thinking; the same as `get_renderer("qwen3_disable_thinking", tokenizer)`."""

    _family = render.Qwen3DisableThinking


class KimiK2Renderer(_Strips):
    """Kimi K2's; the same as `get_renderer("kimi_k2", tokenizer)`."""

    _family = render.KimiK2


class DeepSeekV3ThinkingRenderer(Renderer):
    """DeepSeek V3's with thinking; the same as `get_renderer("deepseekv3_thinking", tokenizer)`."""

    _family: ClassVar[Callable[..., render.Renderer]] = render.DeepSeekV3Thinking

    def __init__(
        self,
        tokenizer: Any,
        system_role_as_user: bool = False,
        strip_thinking_from_history: bool = True,
        *,
        seed: int | None = None,
    ) -> None:
        history = _history(strip_thinking_from_history)
        super().__init__(self._family(tokenizer, system_role_as_user=system_role_as_user, history=history, seed=seed))


class DeepSeekV3DisableThinkingRenderer(DeepSeekV3ThinkingRenderer):
    """DeepSeek V3's without thinking; the same as `get_renderer("deepseekv3_disable_thinking", tokenizer)`."""

    _family = render.DeepSeekV3DisableThinking


class GptOssRenderer(Renderer):
    """gpt-oss's; without a system message the same as `get_renderer("gpt_oss", tokenizer)`."""

    def __init__(
        self,
        tokenizer: Any,
        use_system_prompt: bool = False,
        reasoning_effort: Literal["low", "medium", "high"] | None = None,
        current_date: str | None = None,
        *,
        seed: int | None = None,
    ) -> None:
        if use_system_prompt is (reasoning_effort is None):
            raise UsageError("use_system_prompt=True and a reasoning_effort (low, medium, high) go together")
        super().__init__(render.GptOss(tokenizer, effort=reasoning_effort, date=current_date, seed=seed))


class RoleColonRenderer(Renderer):
    """`User: …` and `Assistant: …`; the same as `get_renderer("role_colon", tokenizer)`."""

    def __init__(self, tokenizer: Any, *, seed: int | None = None) -> None:
        super().__init__(render.RoleColon(tokenizer, seed=seed))


class Llama3Renderer(Renderer):
    """Llama 3's; the same as `get_renderer("llama3", tokenizer)`."""

    def __init__(self, tokenizer: Any, *, seed: int | None = None) -> None:
        super().__init__(render.Llama3(tokenizer, seed=seed))


def _history(strip: bool) -> EarlierThinking | None:
    """What the cookbook's `strip_thinking_from_history` asks of ours: True is the family's default in both."""
    return None if strip else "keep"


_CLASSES: dict[type[render.Renderer], type[Renderer]] = {
    render.Qwen3: Qwen3Renderer,
    render.Qwen3DisableThinking: Qwen3DisableThinkingRenderer,
    render.DeepSeekV3Thinking: DeepSeekV3ThinkingRenderer,
    render.DeepSeekV3DisableThinking: DeepSeekV3DisableThinkingRenderer,
    render.KimiK2: KimiK2Renderer,
    render.GptOss: GptOssRenderer,
    render.RoleColon: RoleColonRenderer,
    render.Llama3: Llama3Renderer,
}
"""The cookbook's class for each of ours, so that `isinstance` says of a renderer by name what it says there."""


def get_renderer(
    name: str, tokenizer: Any, image_processor: None = None, model_name: str | None = None, **options: Any
) -> Renderer:
    """The renderer of this name. `options` are those of `asides.render.get_renderer`: `history`, `seed`."""
    if image_processor is not None:
        raise UsageError("asides.render reads and writes text alone; leave image_processor out")
    found = render.get_renderer(name, tokenizer, **options)
    renderer = Renderer.__new__(_CLASSES.get(type(found), Renderer))
    Renderer.__init__(renderer, found)
    return renderer


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
