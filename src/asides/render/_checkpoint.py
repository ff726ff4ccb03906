"""Any model that has a chat template, in the shape of a renderer: `asides.Conversation` with the names of the others.

The other renderers write by templates of ours. This one runs the checkpoint's own, so its prompts are those of
transformers, but for markers that users and tools spell out. What a template decides (earlier thinking, how tools are
declared) is the template's: there is no `history`, and keywords go to it as they are. Training needs `Conversation`
only; this is for code that is written for renderers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

from .._engine.format import Format
from ..errors import UsageError
from ..families import get_format
from ..families._registry import canonical_name, fold, switch_of
from ..policies import Start
from ._base import Example, Renderer, TrainOnWhat, trained_messages
from ._messages import MessageDict, RendererError, read_message

if TYPE_CHECKING:
    from .._conversation import Conversation, Prompt


class CheckpointRenderer(Renderer):
    """A model's own chat template as a renderer. `get_renderer` makes it for names that have no template here.

    Examples:
        >>> from splintr import Tokenizer
        >>> from asides.render import get_renderer
        >>> template = (
        ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        ...     "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
        ... )
        >>> renderer = get_renderer("qwen3.5", Tokenizer.from_pretrained("qwen3"), template=template)
        >>> type(renderer).__name__, len(renderer.build_generation_prompt([{"role": "user", "content": "Hi"}]))
        ('CheckpointRenderer', 9)
    """

    name = "checkpoint"
    start: ClassVar[Start | None] = None

    def __init__(
        self,
        tokenizer: Any,
        *,
        model: str | None = None,
        template: str | PathLike[str] | None = None,
        seed: int | None = None,
        **template_kwargs: Any,
    ) -> None:
        if "history" in template_kwargs:
            raise RendererError(
                "the checkpoint's template decides about earlier thinking; there is no history to choose"
            )
        self.conversation: Conversation = _conversation(tokenizer, template, model, template_kwargs)
        """What writes."""
        self._with_tools: dict[str, Conversation] = {}
        super().__init__(self.conversation.tokenizer, seed=seed)

    def _make_format(self) -> Format:
        return self.conversation.reading.format

    def _stop_ids(self) -> list[int]:
        return [self.vocabulary.added[stop] for stop in self.conversation.stops if stop in self.vocabulary.added]

    @property
    def has_extension_property(self) -> bool:
        """Not promised: only the template knows. `extend` says it for each answer."""
        return False

    def build_generation_prompt(
        self, messages: Iterable[MessageDict], role: str = "assistant", prefill: str | None = None
    ) -> list[int]:
        """The ids of a prompt. `prefill` is how the answer begins: text of the caller, so markers in it are tokens."""
        if role != "assistant":
            raise RendererError(f"a chat template asks for the assistant's answer, not for the {role}'s")
        ids = list(self._prompt(messages, True).ids)
        return ids + self._encode(self._marked(prefill)) if prefill else ids

    def build_supervised_example(
        self,
        messages: Iterable[MessageDict],
        train_on_what: TrainOnWhat | str = TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    ) -> Example:
        """The ids of a conversation and the weight of each. What a prompt would supply carries no weight."""
        what, given = TrainOnWhat(train_on_what), list(messages)
        trained = trained_messages(given, what)
        prompt = self._prompt(given, False)
        if what is TrainOnWhat.ALL_TOKENS:
            return Example(list(prompt.ids), [1] * len(prompt))
        weights = [
            int(
                owner is not None
                and trained[owner]
                and (sampled if given[owner].get("role") == "assistant" else kind != "header")
            )
            for owner, sampled, kind in zip(prompt.message, prompt.sampled, prompt.kind, strict=True)
        ]
        return Example(list(prompt.ids), weights)

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[MessageDict]
    ) -> list[int] | None:
        """The next prompt, beginning with exactly these ids; None where the template would write them otherwise."""
        turn = self.conversation.prompt([{"role": "user", "content": "x"}]).add(completion_ids)
        following = turn.next([_given(message, as_text=False) for message in new_messages])
        if following.broke is not None:
            return None
        return [*prompt_ids, *completion_ids, *following.ids[len(turn.ids) :]]

    def _prompt(self, messages: Iterable[MessageDict], asks: bool) -> Prompt:
        given = list(messages)
        tools = [tool for message in given for tool in message.get("tools") or ()]
        # Some templates take arguments as objects only, some as JSON only.
        try:
            return self._conversation_with(tools).prompt(
                [_given(each, as_text=False) for each in given], add_generation_prompt=asks
            )
        except UsageError as error:
            if not any(message.get("tool_calls") for message in given):
                raise RendererError(str(error)) from error
        try:
            return self._conversation_with(tools).prompt(
                [_given(each, as_text=True) for each in given], add_generation_prompt=asks
            )
        except UsageError as error:
            raise RendererError(str(error)) from error

    def _conversation_with(self, tools: list[Any]) -> Conversation:
        """The conversation with these tools."""
        if not tools:
            return self.conversation
        key = json.dumps(tools, sort_keys=True, default=str)
        if key not in self._with_tools:
            self._with_tools[key] = self.conversation.but(tools=tools)
        return self._with_tools[key]


def _conversation(
    tokenizer: Any, template: str | PathLike[str] | None, model: str | None, keywords: dict[str, Any]
) -> Conversation:
    from .._conversation import Conversation

    format = model if model is not None and canonical_name(model) is not None else None
    if format is not None:
        keywords = {**_keywords(format), **keywords}
    try:
        return Conversation(tokenizer, template, model=None if format else model, format=format, **keywords)
    except UsageError as error:
        if template is not None or getattr(tokenizer, "chat_template", None):
            raise
        raise RendererError(
            f"there is no chat template at hand for {model or 'this tokenizer'}. Give template=, the text or a Path of "
            "the checkpoint's chat_template.jinja, tokenizer_config.json or GGUF; or as the tokenizer their folder"
        ) from error


def _keywords(name: str) -> dict[str, Any]:
    """The keywords of the template that the end of a tinker-cookbook name stands for."""
    folded = fold(name)
    if not folded.endswith("disablethinking"):
        return {}
    switch = switch_of(get_format(name).name)
    if switch is None or switch.off is None:
        raise RendererError(f"{name}: no keyword is known that turns thinking off")
    return {switch.keyword: switch.off}


def _given(message: MessageDict, as_text: bool) -> dict[str, Any]:
    """A message as chat templates take it: the thought beside the text, calls in OpenAI's shape."""
    read = read_message(message)
    thoughts = [part.text for part in read.parts if part.thinks]
    if len(thoughts) > 1 or (thoughts and not read.parts[0].thinks):
        raise RendererError("a chat template takes one thought of a message, and that before its text")
    given: dict[str, Any] = {"role": read.role, "content": read.text}
    if thoughts:
        given["reasoning_content"] = thoughts[0]
    if read.calls:
        given["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": _arguments(call.arguments, as_text)},
            }
            for call in read.calls
        ]
    given |= {key: value for key, value in (("name", read.name), ("tool_call_id", read.call_id)) if value}
    return given


def _arguments(arguments: str, as_text: bool) -> Any:
    if as_text:
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
