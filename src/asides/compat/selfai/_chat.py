"""SelfAI's clients and their configuration: send prompts, show thoughts in a UI, return clean text.

`ChatClient` stands for SelfAI's three interfaces; the planner adds reading JSON. Thoughts go to `ui` as they end, and
the memory has them beside the clean answer only with `save_to_memory`. SelfAI's configuration section `think_tags`
decides about all of that (`ThinkTags`).

    client = ChatClient(api_base="http://127.0.0.1:8000", model="minimax-m2", ui=TerminalUI())
    client.generate_response("You are brief.", "2+2?")
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..._engine.format import Format
from ...errors import Error, UsageError
from ...events import PartEnd, PartStart, ThinkingDelta
from ...policies import Start
from ...reply._items import ReplyEvent
from ...terminal._style import codes
from .._source import Message, ReplySource, Transport
from .._streaming import text_of_event, without_call_markers
from ._tags import FORMAT, parse_think_tags

if TYPE_CHECKING:
    from ...client._client import Client


class ThinkTags(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """SelfAI's configuration section `think_tags`."""

    enabled: bool = True
    """Whether thoughts are split off at all; without it replies pass unchanged."""
    display_in_ui: bool = True
    """Whether thoughts are shown, or only split off."""
    save_to_memory: bool = False
    """Whether a client's memory keeps the thoughts of a reply beside its clean text."""
    display_style: str = "blue"
    """The colour of headings: blue, cyan, grey or another."""


def read_config(config: Mapping[str, Any] | None) -> ThinkTags:
    """Read `think_tags` from a whole configuration, or from the section alone; defaults where it is missing."""
    if not config:
        return ThinkTags()
    section = config.get("think_tags")
    if section is None:
        section = config if set(config) & set(ThinkTags.__struct_fields__) else {}
    try:
        found = msgspec.convert(section, ThinkTags)
    except msgspec.ValidationError as error:
        raise UsageError(f"think_tags: {error}; its keys are {', '.join(ThinkTags.__struct_fields__)}") from error
    codes(found.display_style)
    return found


class UI(Protocol):
    """Whatever shows thoughts: `TerminalUI`, or your own."""

    def show_think_tags(self, think_contents: Sequence[str]) -> object:
        """Show thoughts that have ended."""


class PlanError(Error, ValueError):
    """A planner's answer is no JSON."""


class ChatClient:
    """Sends prompts to a model. Thoughts go to `ui`, clean text to the caller.

    `api_base` is a server's address, or any callable that takes messages (docs/how-to/compat/selfai.md).
    """

    def __init__(
        self,
        api_key: str = "",
        api_base: str | Client | Transport = "",
        model: str = "",
        ui: UI | None = None,
        *,
        config: Mapping[str, Any] | ThinkTags | None = None,
        format: str | Format = FORMAT,
        start: Start | None = None,
    ) -> None:
        if api_base == "":
            raise UsageError("the client needs api_base: the address of a model server, or a callable")
        self._source = ReplySource(api_base, api_key)
        self._model = model
        # Calls are text of the answer: SelfAI reads them later in its pipeline.
        self._format = without_call_markers(format)
        self._start = start
        self.ui = ui
        """What shows the thoughts; None where nobody sees them."""
        self.config: ThinkTags = config if isinstance(config, ThinkTags) else read_config(config)
        """The settings of `think_tags`: whether thoughts are shown and remembered, and in which colour."""
        self.memory: list[dict[str, Any]] = []
        """The conversation as messages: clean text, and with `save_to_memory` the `thoughts` beside it."""

    def generate_response(
        self,
        system_prompt: str,
        user_prompt: str,
        max_tokens: int | None = None,
        temperature: float | None = None,
        history: Sequence[Message] | None = None,
        **fields: Any,
    ) -> str:
        """The clean answer. `history` are earlier messages; `client.memory` makes it a conversation."""
        fields |= {"max_tokens": max_tokens, "temperature": temperature}
        clean, thoughts = self._ask(_messages(system_prompt, history, user_prompt), fields)
        self._remember(user_prompt, clean, thoughts)
        return clean

    def stream_generate_response(
        self,
        system_prompt: str,
        user_prompt: str,
        max_tokens: int | None = None,
        temperature: float | None = None,
        history: Sequence[Message] | None = None,
        **fields: Any,
    ) -> Iterator[str]:
        """The clean answer, chunk by chunk. Each thought is shown when it has ended."""
        fields |= {"max_tokens": max_tokens, "temperature": temperature}
        pieces: list[str] = []
        thoughts: list[str] = []
        for kind, text in self._split_reply(_messages(system_prompt, history, user_prompt), fields, whole=False):
            if kind == "thinking":
                thoughts.append(text)
                self._show([text])
            else:
                pieces.append(text)
                yield text
        self._remember(user_prompt, "".join(pieces), thoughts)

    def chat(self, messages: Sequence[Message], **fields: Any) -> str:
        """The clean answer to messages in OpenAI's shape. It is not remembered."""
        return self._ask(messages, fields)[0]

    def memory_text(self) -> str:
        """The memory as SelfAI writes it to a file."""
        lines: list[str] = []
        for message in self.memory:
            lines += ("---", "User:" if message["role"] == "user" else "SelfAI:")
            lines += [f"<think>{thought}</think>\n" for thought in message.get("thoughts", ())]
            lines.append(message["content"])
        return "\n".join(lines) + "\n" if lines else ""

    def _ask(self, messages: Sequence[Message], fields: Mapping[str, Any]) -> tuple[str, list[str]]:
        pieces: list[str] = []
        thoughts: list[str] = []
        for kind, text in self._split_reply(messages, fields, whole=True):
            (thoughts if kind == "thinking" else pieces).append(text)
        self._show(thoughts)
        return "".join(pieces), thoughts

    def _split_reply(
        self, messages: Sequence[Message], fields: Mapping[str, Any], whole: bool
    ) -> Iterator[tuple[str, str]]:
        """The reply as it comes: `("thinking", a whole thought)` and `("text", more of the answer)`."""
        kind = ""
        thought: list[str] = []
        items = self._source.items(
            [{"role": message["role"], "content": message["content"]} for message in messages],
            model=self._model,
            format=self._format if self.config.enabled else None,
            start=(self._start or ("undecided" if whole else None)) if self.config.enabled else None,
            **{name: value for name, value in fields.items() if value is not None},
        )
        for item in items:
            if not isinstance(item, ReplyEvent) or item.choice != 0:
                continue
            if isinstance(item.event, PartStart):
                kind, thought = item.event.kind, []
            if kind != "thinking":
                if text := text_of_event(item.event, kind):
                    yield "text", text
            elif isinstance(item.event, ThinkingDelta):
                thought.append(item.event.text)
            elif isinstance(item.event, PartEnd):
                yield "thinking", "".join(thought)

    def _show(self, thoughts: list[str]) -> None:
        if self.ui is not None and thoughts and self.config.display_in_ui:
            self.ui.show_think_tags(thoughts)

    def _remember(self, user_prompt: str, clean: str, thoughts: list[str]) -> None:
        answer: dict[str, Any] = {"role": "assistant", "content": clean}
        if self.config.save_to_memory and thoughts:
            answer["thoughts"] = thoughts
        self.memory += ({"role": "user", "content": user_prompt}, answer)


class PlannerMinimaxInterface(ChatClient):
    """A client whose answers are plans in JSON."""

    def plan(self, system_prompt: str, user_prompt: str, **fields: Any) -> Any:
        """Ask for a plan and read it."""
        return self._read_plan(self.generate_response(system_prompt, user_prompt, **fields))

    def parse_plan(self, raw_response: str) -> Any:
        """The plan in a raw answer; its thoughts are shown."""
        clean, thoughts = parse_think_tags(raw_response)
        self._show(thoughts)
        return self._read_plan(clean)

    _parse_plan = parse_plan
    """The name of it in SelfAI's document."""

    def _read_plan(self, clean: str) -> Any:
        text = clean.strip()
        if text.startswith("```") and text.endswith("```"):
            text = text[3:-3].removeprefix("json")
        try:
            return json.loads(text)
        except ValueError as error:
            raise PlanError(f"the planner's answer is no JSON ({error}); it begins {clean.strip()[:80]!r}") from error


MinimaxInterface = ChatClient
"""`ChatClient` under the name that SelfAI's documents use."""
MergeMinimaxInterface = ChatClient
"""The same; which of the two an agent names makes no difference here."""


def _messages(system_prompt: str, history: Sequence[Message] | None, user_prompt: str) -> list[Message]:
    system = [{"role": "system", "content": system_prompt}] if system_prompt else []
    return [*system, *(history or ()), {"role": "user", "content": user_prompt}]
