"""Replies of plain completions, written: streamed and whole.

The writer is that of chat completions with another shape of a choice: `content` is `text` here, thinking stands beside
it, and a call, which this API cannot say, is held until it ends and written as text. Log probabilities are lists side
by side, each token with its offset in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ...events import PartEnd, PartStart, ToolCallDelta
from ...reply._items import ReplyEvent, ReplyItem
from .._fields import as_json
from .._request import Request
from ..openai_chat._writer import ChatWriter, ChoiceShape, ChoiceWriter, Delta, Reasoning, Tokens
from ..openai_chat._writer import write_reply as write_chat_reply
from ._request import NAME


class _TextChoice(ChoiceWriter):
    """One choice: calls are text, tokens are columns."""

    counts = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._held: dict[int, tuple[PartStart, list[str]]] = {}
        self._before = 0
        """How many characters of text there were before the last item."""

    def deltas_of(self, item: ReplyEvent) -> list[Delta]:
        """What an item adds; a call is held until it ends."""
        self._before, event = self.length, item.event
        if isinstance(event, PartStart) and event.kind == "tool_call":
            self._held[event.index] = (event, [])
            item = ReplyEvent(item.choice, PartStart(event.index, "tool_call"))
        elif isinstance(event, ToolCallDelta):
            self._held[event.index][1].append(event.text)
            return []
        elif isinstance(event, PartEnd) and event.index in self._held:
            start, arguments = self._held.pop(event.index)
            if not item.withheld and (start.name or arguments):
                call = f'{{"name": {as_json(start.name)}, "arguments": {"".join(arguments) or "{}"}}}'
                item = ReplyEvent(item.choice, event, written=item.written or call)
        return super().deltas_of(item)

    def _text_tokens(self, tokens: Tokens) -> dict[str, Any]:
        columns = self._columns(tokens)
        place = max(self.length - sum(map(len, columns["tokens"])), self._before)
        offsets = columns["text_offset"] = []
        for token in columns["tokens"]:
            offsets.append(place)
            place += len(token)
        return columns

    def _columns(self, tokens: Tokens) -> dict[str, list[Any]]:
        names = {"tokens": "token", "token_logprobs": "logprob", "top_logprobs": "top_logprobs"}
        return {column: [token.get(name) for token in tokens] for column, name in names.items()}


def _flat(delta: Delta) -> dict[str, Any]:
    """A delta or a message as fields of a choice."""
    others = {name: value for name, value in delta.items() if name not in ("role", "content")}
    return {"text": delta.get("content") or "", **others}


_SHAPE = ChoiceShape(
    dialect=NAME,
    streamed="text_completion",
    whole="text_completion",
    choice=_TextChoice,
    opening=None,
    text=b'"text":',
    thinking=b'"text":"","%b":',
    behind=b"",
    of_delta=_flat,
    of_message=_flat,
)
CompletionsWriter: Callable[..., ChatWriter] = partial(ChatWriter, shape=_SHAPE)


def write_reply(
    items: Iterable[ReplyItem], request: Request, *, reasoning: Reasoning = "reasoning_content"
) -> dict[str, Any]:
    """A whole reply; an error's body where it failed."""
    return write_chat_reply(items, request, reasoning=reasoning, shape=_SHAPE)
