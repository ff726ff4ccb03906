"""What a report on a chat template is made of: its records, the sample conversation, and a template under study.

The sample is short: a system text, a question, a call with its result, an answer with its thought, another question. A
`Subject` finds out how much of it a template takes, and in which shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal, get_args

import msgspec

from ..errors import UsageError
from ._conversation import Conversation
from ._prompt import Prompt
from ._template import Owner

Message = dict[str, Any]
Origin = Literal["system", "user", "tool", "tools", "thinking", "text", "call", "marker", "template"]
"""What a stretch is: a kind, but `template` for headers and markers that no model samples."""
ORIGINS: tuple[Origin, ...] = get_args(Origin)

TOOLS: list[Message] = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather of a city.",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string", "description": "Its name."}},
                "required": ["city"],
            },
        },
    }
]
SYSTEM: Message = {"role": "system", "content": "Answer in one line."}
QUESTION: Message = {"role": "user", "content": "Is it warm in Rome?"}
SECOND: Message = {"role": "user", "content": "And in Oslo?"}
RESULT: Message = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": "21 degrees"}
CALL_THOUGHT, THOUGHT, WORDS = "The weather has to be looked up.", "21 degrees is warm.", "Yes, it is."
ARGUMENTS = {"city": "Rome"}
ARGUMENTS_TEXT = '{"city": "Rome"}'


def make_call(field: str, arguments: Any = ARGUMENTS, content: Any = "", thought: str = CALL_THOUGHT) -> Message:
    """An answer that calls. `field`: where its thought stands; empty for none."""
    function = {"name": "get_weather", "arguments": arguments}
    made: Message = {"role": "assistant", "content": content}
    if field:
        made[field] = thought
    return {**made, "tool_calls": [{"id": "call00001", "type": "function", "function": function}]}


def make_answer(field: str, content: Any = WORDS, thought: str = THOUGHT) -> Message:
    """An answer with its thought."""
    return {"role": "assistant", "content": content, **({field: thought} if field else {})}


class OriginStretch(msgspec.Struct, frozen=True, kw_only=True):
    """Neighbouring characters of the rendered conversation that are the same.

    What a template writes inside of words, such as the punctuation of a tool's definition, is counted with them.
    """

    text: str
    origin: Origin
    message: int | None
    """The index of their message; None for what belongs to none."""
    part: str
    """The field that they come from; empty for what the template writes."""
    sampled: bool
    """Whether a model writes them."""


class FieldFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a template makes of a field."""

    about: str
    """The field in a word or two: `thoughts`, `empty system text`…"""
    lossy: bool
    """Whether something is dropped, changed or refused."""
    says: str


class NextPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a next prompt begins with all that was before."""

    case: str
    """What comes next."""
    extends: bool
    reason: str = ""
    """As in `Break`."""
    message: int | None = None
    whose: str = ""
    """The same in words."""
    offset: int = 0
    """How many tokens (or characters) are still the same."""
    lost: int = 0
    """How many before it are not gone on from."""


class TwinDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A text whose loss and sampling differ, and how often in the sample."""

    text: str
    trained: bool
    """True: it is trained and no model writes it. False: a model writes it and it is not trained."""
    why: str
    times: int


class TwinReport(msgspec.Struct, frozen=True, kw_only=True):
    """A training template, whose loss is what stands in `{% generation %}`, beside what a model samples."""

    name: str
    trained: int
    """Tokens (or characters) with loss."""
    mistaken: int
    """Of these, those that no model writes."""
    missing: int
    """Those that a model writes and that have none."""
    otherwise: str = ""
    """What it writes where the template itself goes on otherwise; empty where both write the same."""
    differences: list[TwinDifference] = []
    error: str = ""
    """Why it could not be compared."""


class TemplateReport(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a chat template."""

    unit: Literal["token", "character"]
    """What is counted."""
    counted: str
    """By which tokenizer; or why there are no ids."""
    template: int
    """Characters of its source."""
    format: str
    """How answers are read."""
    messages: list[Message]
    """The conversation that was written."""
    tools: bool
    """Whether tools were given with it."""
    conversation: list[OriginStretch]
    findings: list[FieldFinding]
    next_prompts: list[NextPrompt]
    asks: str
    """What the prompt ends with, which asks for an answer."""
    stops: list[str]
    """What ends an answer."""
    after_stop: str
    """What the template writes after it, which no model samples."""
    total: int
    """Tokens (or characters) of the conversation."""
    sampled: int
    """Of these, those that a model writes."""
    twin: TwinReport | None = None
    twin_note: str = ""
    """Why there is none."""


class Subject:
    """A template under study: conversations with tools and without, and the field of thoughts that it reads."""

    def __init__(self, conversation: Conversation, characters: bool) -> None:
        self.characters = characters
        self.plain = conversation
        self.tooled = conversation.but(tools=TOOLS)
        self.field = "reasoning_content"
        self.needs_tools = ""
        try:
            self.empty_prompt: Prompt = self.plain.prompt([self.shaped(QUESTION)])
        except UsageError as error:
            # If this is refused too, nothing can be said.
            self.empty_prompt = self.tooled.prompt([self.shaped(QUESTION)])
            self.needs_tools, self.plain = str(error), self.tooled
        self.takes_system = self.error([SYSTEM, QUESTION]) == ""
        self.lead: list[Message] = [SYSTEM, QUESTION] if self.takes_system else [QUESTION]
        # Templates differ in whether the arguments of a call are an object or its JSON, and what stands beside it.
        self.arguments: Any = ARGUMENTS
        self.beside_call: str | None = ""
        self.call_error = self.error([*self.lead, self.call(""), RESULT], tools=True)
        self.takes_calls = any(
            self._writes_calls(beside, arguments)
            for beside, arguments in product(("", None), (ARGUMENTS, ARGUMENTS_TEXT))
        )
        if not self._writes_thoughts(self.field) and self._writes_thoughts("reasoning"):
            self.field = "reasoning"

    def call(self, field: str | None = None, **options: Any) -> Message:
        """An answer that calls, in the shape that this template takes."""
        shape = {"arguments": self.arguments, "content": self.beside_call}
        return make_call(self.field if field is None else field, **{**shape, **options})

    def write(self, messages: Sequence[Message], *, tools: bool = False, asks: bool | None = None) -> Prompt:
        """Write a conversation; a `UsageError` says why it is refused."""
        given = [*map(self.shaped, messages)]
        return (self.tooled if tools else self.plain).prompt(given, add_generation_prompt=asks)

    def shaped(self, message: Message) -> Message:
        """A message whose content is a list of parts, where a template takes nothing else."""
        content = message.get("content")
        if not self.plain.takes_only_parts or not content or not isinstance(content, str):
            return message
        return {**message, "content": [{"type": "text", "text": content}]}

    def error(self, messages: Sequence[Message], *, tools: bool = False) -> str:
        """Why a conversation is refused; empty where it is not."""
        try:
            self.write(messages, tools=tools)
        except UsageError as error:
            return str(error).partition(": ")[2] or str(error)
        return ""

    def keeps(self, messages: Sequence[Message], index: int, part: str, *, tools: bool = False) -> bool | None:
        """Whether a text of a message is written, if only in part; None where the conversation is refused."""
        try:
            prompt = self.write(messages, tools=tools)
        except UsageError:
            return None
        if part == "content" and isinstance(prompt.messages[index]["content"], list):
            part = "content.0.text"
        return not any(loss.owner == Owner(index, part) and loss.reason == "not written" for loss in prompt.losses)

    def size(self, text: str, ids: Sequence[int]) -> int:
        """How many tokens or characters."""
        return len(text) if self.characters else len(ids)

    def _writes_calls(self, beside: str | None, arguments: Any) -> bool:
        """Whether a call of this shape and its result are written; then it is the shape for all others."""
        at = len(self.lead)
        messages = [*self.lead, self.call("", content=beside, arguments=arguments), RESULT]
        name = self.keeps(messages, at, "tool_calls.0.function.name", tools=True)
        if not name or not self.keeps(messages, at + 1, "content", tools=True):
            return False
        self.beside_call, self.arguments, self.call_error = beside, arguments, ""
        return True

    def _writes_thoughts(self, field: str) -> bool:
        at = len(self.lead)
        if self.keeps([*self.lead, make_answer(field)], at, field):
            return True
        return self.takes_calls and bool(self.keeps([*self.lead, self.call(field), RESULT], at, field, tools=True))


def token_spans(prompt: Prompt) -> list[tuple[int, int]]:
    """Where each id stands, without overlap: half a character belongs to the first id that has a piece of it."""
    spans: list[tuple[int, int]] = []
    at = 0
    for stop in prompt._encoded.places().stops:
        spans.append((at, max(at, stop)))
        at = max(at, stop)
    return spans
