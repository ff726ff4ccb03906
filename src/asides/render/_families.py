"""The families that have a renderer. How each writes is the template on its card; here is what is no text.

That is: which tokens end an answer, what may become of earlier thinking, the whitespace that belongs to no part, where
an answer begins, and the options that the template is given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from .._engine.format import END, TEXT, Format
from ..policies import Start
from ._base import Renderer, named_token
from ._messages import ChatMessage, EarlierThinking, MessageDict, RendererError, read_message
from ._whitespace import PartWhitespace

Effort = Literal["low", "medium", "high"]
USER = "\n\nUser:"
"""Where an answer of `RoleColon` ends: the model goes on with the next turn."""


class RoleColon(Renderer):
    """`User: ...` and `Assistant: ...`, for models without tokens of their own for turns."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep",)
    whitespace: ClassVar[PartWhitespace] = PartWhitespace(begin=" ")
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # A model may also end its answer with its own token.
        ends = [USER, *filter(None, [named_token(self.vocabulary, "eos")])]
        return super()._make_format().but(states={TEXT: dict.fromkeys(ends, END)})

    def get_stop_sequences(self) -> list[int] | list[str]:
        """The string with which a user's turn begins."""
        return [USER]

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[MessageDict]
    ) -> list[int] | None:
        """The next prompt. The answer has already written the user's header, so only a user's message can follow."""
        new = [read_message(message) for message in new_messages]
        if not new or new[0].role != "user" or not self.vocabulary.text(completion_ids).endswith(USER):
            return None
        (first, *rest), opening = self._render(new, opens="assistant")
        return [*prompt_ids, *completion_ids, *first.body, *self._follows(rest), *opening]

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        end = named_token(self.vocabulary, "eos")
        return raw.endswith((USER, end) if end else USER)


class Llama3(Renderer):
    """Llama 3: a header for every turn, and a token that ends it."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep",)
    stops: ClassVar[tuple[str, ...]] = ("<|eot_id|>",)
    thinks = False
    calls = False

    def _make_format(self) -> Format:
        # What it cannot write it does not read either: JSON and tags in an answer are text.
        found = super()._make_format()
        return found.but(states={TEXT: {stop: END for stop, to in found.states[TEXT].items() if to == END}}, calls=())


class Qwen3(Renderer):
    """Qwen3 with thinking. The prompt opens no block: the model does."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("strip", "turn", "keep")
    whitespace: ClassVar[PartWhitespace] = PartWhitespace(open="\n", close="\n", after="\n\n", before_call="\n")
    stops: ClassVar[tuple[str, ...]] = ("<|im_end|>",)
    closed: ClassVar[bool] = False
    """Whether the prompt ends with an empty block."""

    def _variables(self) -> dict[str, Any]:
        return {"closed": self.closed}


class Qwen3DisableThinking(Qwen3):
    """Qwen3 with thinking turned off: the prompt ends with an empty block."""

    closed = True


class DeepSeekV3Thinking(Renderer):
    """DeepSeek V3.1 with thinking: the prompt ends with the opener, but for one that ends with a tool's result."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("turn", "strip", "keep")
    stops: ClassVar[tuple[str, ...]] = ("<｜end▁of▁sentence｜>",)
    start: ClassVar[Start | None] = "thinking"
    closed: ClassVar[bool] = False
    """Whether the prompt ends with the closer."""

    def __init__(self, tokenizer: Any, *, system_role_as_user: bool = False, **options: Any) -> None:
        super().__init__(tokenizer, **options)
        self.system_role_as_user = system_role_as_user
        """Whether a system message in the middle is written as a user's; else it is an error."""

    def _variables(self) -> dict[str, Any]:
        return {"closed": self.closed, "system_role_as_user": self.system_role_as_user}


class DeepSeekV3DisableThinking(DeepSeekV3Thinking):
    """DeepSeek V3.1 without thinking: the prompt ends with the closer."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("strip",)
    start: ClassVar[Start | None] = "text"
    closed = True

    @property
    def has_extension_property(self) -> bool:
        """Always: an answer is written the same way wherever it stands."""
        return True


class KimiK2(Renderer):
    """Kimi K2. The prompt opens no block: the model does. Without thinking it writes an empty one."""

    stops: ClassVar[tuple[str, ...]] = ("<|im_end|>",)

    def _turn_start(self, messages: Sequence[ChatMessage]) -> int:
        """A turn goes on until an answer without calls, whoever writes in it."""
        # The last message ends no earlier turn: it is the answer of an example.
        ends = (at for at, each in enumerate(messages[:-1], 1) if each.role == "assistant" and not each.calls)
        return max(ends, default=0)

    def create_conversation_prefix_with_tools(
        self, tools: Iterable[Mapping[str, Any]], system_prompt: str = ""
    ) -> list[dict[str, Any]]:
        """A declaration of its own, before the system's message."""
        declaration = {"role": "tool_declare", "content": "", "tools": list(tools)}
        # Without a system's message the template writes its own.
        return [declaration, *([{"role": "system", "content": system_prompt}] if system_prompt else [])]


class GptOss(Renderer):
    """gpt-oss. With `effort` a system message in the family's own words stands first; without it there is none."""

    histories: ClassVar[tuple[EarlierThinking, ...]] = ("keep", "turn", "strip")
    stops: ClassVar[tuple[str, ...]] = ("<|return|>", "<|call|>")
    start: ClassVar[Start | None] = None

    def __init__(
        self, tokenizer: Any, *, effort: Effort | None = None, date: str | None = None, **options: Any
    ) -> None:
        super().__init__(tokenizer, **options)
        if effort not in (None, "low", "medium", "high"):
            raise RendererError(f"effort is low, medium or high, not {effort!r}")
        self.effort = effort
        """The effort that the system message asks for; None leaves that message out."""
        self.date = date
        """The date that the system message names, if any."""

    def _variables(self) -> dict[str, Any]:
        return {"effort": self.effort, "date": self.date}

    @property
    def has_extension_property(self) -> bool:
        """Never: the token that ends an answer is another one later on."""
        return False
