"""From events to a `Message`: the parts in their order, and what can be said of the whole.

`Message` is what the parser gives: it holds the raw text too. `Collector` is the fold from events to parts that it
shares with `asides.reply.Reply`, the record of a reply that came from a server. `OpenCalls` makes one part at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec

from .errors import UsageError
from .events import Event, Notice, PartEnd, PartStart, Retyped, ToolCallDelta
from .parts import Part, Span, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from .reading import Reading

Termination = Literal["stop", "end", "cut"]
"""How output ended: by a stop marker or a stop that was reported, with nothing open, or cut off."""
Role = Literal["thinking", "text", "call", "marker"]
"""What a token of an answer is: of a part of this kind, or of what stands around parts."""
FinishReason = Literal["stop", "length"]
"""How a server says that a reply ended: the model ended its turn, or it was cut (a limit, a filter, a lost
connection)."""

_ROLES = get_args(Role)
_FINISH_REASONS: dict[str, FinishReason] = {
    **dict.fromkeys(("stop", "tool_calls", "function_call", "end_turn", "tool_use", "stop_sequence"), "stop"),
    **dict.fromkeys(("length", "max_tokens", "content_filter", "refusal"), "length"),
}


def read_finish_reason(reason: str | None) -> FinishReason | None:
    """What a reason that an API gives means for reading: `stop`, `length` (cut), or None where nobody knows.

    Examples:
        >>> from asides.message import read_finish_reason
        >>> read_finish_reason("tool_calls"), read_finish_reason("max_tokens"), read_finish_reason(None)
        ('stop', 'length', None)
    """
    if reason is None:
        return None
    found = _FINISH_REASONS.get(reason) if isinstance(reason, str) else None
    if found is None:
        raise UsageError(f"finish_reason must be 'stop', 'length' (cut off) or None, not {reason!r}")
    return found


class Message(msgspec.Struct, frozen=True, repr_omit_defaults=True):
    """What a model wrote, taken apart.

    Examples:
        >>> message = asides.parse("<think>2+2</think>It is 4.")
        >>> message.parts
        (Thinking(text='2+2', span=(7, 10)), Text(text='It is 4.', span=(18, 26)))
        >>> message.to_openai()
        {'role': 'assistant', 'content': 'It is 4.'}
    """

    parts: tuple[Part, ...] = ()
    """The `Thinking`, `Text` and `ToolCall` parts in the order of writing; any number, any order."""
    raw: str = ""
    """The input, unchanged."""
    notices: tuple[Notice, ...] = ()
    """What was odd and tolerated, in the order in which it was found."""
    termination: Termination = "end"
    """`stop`: a stop marker was seen, or the server said that the model ended its turn. `cut`: the server said that the
    reply was cut; or nobody said anything, and thinking or a call was open. `end`: none of these."""
    thinking: str = ""
    """The thinking parts joined, each with the `gap` of its `PartStart` before it."""
    text: str = ""
    """The text parts joined, as a person would want to read them."""
    roles: tuple[Role, ...] = ()
    """Where token ids were read, one for each id: thinking, text, call or marker. None where text was read."""
    beyond: Span | None = None
    """Where in `raw` the output goes on as another turn, which is not read: `(start, end)`; None where it does not."""

    def token_roles(self) -> tuple[Role, ...]:
        """What each id is: `thinking`, `text`, `call` or `marker`. Empty where no ids were read."""
        return self.roles

    def mask(self, role: Role) -> list[bool]:
        """For each id, whether it has this role. A `UsageError` where text was read, which has no ids.

        Examples:
            >>> from splintr import Tokenizer
            >>> tokenizer = Tokenizer.from_pretrained("qwen3")
            >>> parser = asides.TokenParser(tokenizer, "qwen3")
            >>> events = [*parser.feed(tokenizer.encode_with_special("<think>2+2</think>Four.")), *parser.finish()]
            >>> parser.message.mask("text")
            [False, False, False, False, False, True, True]
        """
        if role not in _ROLES:
            raise UsageError(f"role must be one of {', '.join(map(repr, _ROLES))}, not {role!r}")
        if not self.roles and (self.raw or self.parts):
            raise UsageError("this message was read from text, so there is no mask; read ids with a TokenParser")
        return [found == role for found in self.roles]

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order, the broken ones too."""
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def complete(self) -> bool:
        """False when the last part is an incomplete thinking or call."""
        last = self.parts[-1] if self.parts else None
        return isinstance(last, Text) or last is None or last.complete

    def ended(self, finish_reason: str | None) -> Message:
        """The same message, which holds no call, with what the server says of its end."""
        reason = read_finish_reason(finish_reason)
        if reason is None:
            return self
        cut = reason == "length" and self.termination != "stop"
        return msgspec.structs.replace(self, termination="cut" if cut else "stop")

    # What may be sent back to a server. In each: clean text, and the calls that may be run.

    def to_openai(
        self,
        thinking: Literal["auto", "reasoning_content", "reasoning", "drop"] = "auto",
        *,
        model: str | None = None,
        reading: Reading | None = None,
    ) -> dict[str, Any]:
        """The message for the next request to a server that speaks chat completions.

        `thinking` is the field in which thoughts go back, or `"drop"`. `"auto"`: in `reasoning_content`, beside calls
        alone, because models that think between calls need it there and nowhere else; of a `model` (or the `reading`
        of one) that is known to want all its thoughts back, always.

        Examples:
            >>> asides.parse("<think>2+2</think>It is 4.").to_openai()
            {'role': 'assistant', 'content': 'It is 4.'}
            >>> call = '<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>'
            >>> message = asides.parse("<think>Add them.</think>" + call, "qwen3")
            >>> message.to_openai()["reasoning_content"]
            'Add them.'
        """
        return _write("openai_chat", self, thinking, model, reading)[0]

    def to_ollama(
        self,
        thinking: Literal["auto", "thinking", "drop"] = "auto",
        *,
        model: str | None = None,
        reading: Reading | None = None,
    ) -> dict[str, Any]:
        """The message for the next request to Ollama's chat. `thinking` as in `to_openai`; its field has one name.

        Examples:
            >>> asides.parse("<think>2+2</think>It is 4.").to_ollama(thinking="thinking")
            {'role': 'assistant', 'content': 'It is 4.', 'thinking': '2+2'}
        """
        return _write("ollama", self, thinking, model, reading)[0]

    def to_anthropic(self, thinking: Literal["drop", "thinking"] = "drop") -> dict[str, Any]:
        """The message for the next request to a server that speaks Anthropic's Messages.

        Anthropic takes a thought back only with its own signature, which a message does not have; so thoughts stay out.
        `"thinking"` writes them with a signature that proves nothing, for servers that do not check it.

        Examples:
            >>> asides.parse("<think>2+2</think>It is 4.").to_anthropic()
            {'role': 'assistant', 'content': 'It is 4.'}
        """
        return _write("anthropic", self, thinking, None, None)[0]

    def to_responses(self, thinking: Literal["drop", "reasoning"] = "drop") -> list[dict[str, Any]]:
        """The items for the `input` of the next request to a server that speaks Responses.

        OpenAI takes a thought back only as the item that it made itself, so thoughts stay out. `"reasoning"` writes
        them as items of their own, for servers that read their text, such as vLLM.

        Examples:
            >>> asides.parse("<think>2+2</think>It is 4.").to_responses()
            [{'type': 'message', 'role': 'assistant', 'content': 'It is 4.'}]
        """
        return _write("openai_responses", self, thinking, None, None)

    def to_dict(self) -> dict[str, Any]:
        """The message as plain data, with its thoughts as parts of the content and calls in OpenAI's shape.

        Not to be sent to a server: few take thoughts in the content, and some take them for the answer. `to_openai` and
        its like write what may be sent.

        Examples:
            >>> asides.parse("<think>2+2</think>It is 4.").to_dict()["content"]
            [{'type': 'thinking', 'thinking': '2+2'}, {'type': 'text', 'text': 'It is 4.'}]
        """
        content: list[dict[str, Any]] = []
        for part in self.parts:
            if isinstance(part, Thinking):
                content.append({"type": "thinking", "thinking": part.text})
            elif isinstance(part, Text):
                content.append({"type": "text", "text": part.text})
        thinks = any(isinstance(part, Thinking) for part in self.parts)
        message: dict[str, Any] = {"role": "assistant", "content": content if thinks else self.text}
        runnable = [call.to_dict() for call in self.tool_calls if call.error is None]
        unparsed = [{"raw": call.raw, "error": call.error} for call in self.tool_calls if call.error is not None]
        if runnable:
            message["tool_calls"] = runnable
        if unparsed:
            message["unparsed_tool_calls"] = unparsed
        return message


_WriteMessage = Callable[[str, Message, str, "str | None", "Reading | None"], list[dict[str, Any]]]
"""Writes a message as an API wants it back: its name, the message, how thoughts go back, the model or its reading."""


def _write_nothing(
    api: str, message: Message, thinking: str, model: str | None, reading: Reading | None
) -> list[dict[str, Any]]:
    raise LookupError(f"nobody writes {api}")  # pragma: no cover - the package itself sets another


_write: _WriteMessage = _write_nothing


def _write_messages_with(write: _WriteMessage) -> None:
    """From here on messages are written with this function: APIs are known above this module."""
    global _write
    _write = write


class Collector:
    """Builds parts from events: the one place that joins them, for the parser's `Message` and for a `Reply`.

    The parser holds the raw text, so its text and thinking are cut out by their spans at the end; it appends its events
    to `pending`, which costs no call, and `message` takes note of them. Who has no raw text puts deltas into `texts`.
    """

    __slots__ = ("_ends", "notices", "pending", "raw", "retyped", "starts", "texts")

    def __init__(self) -> None:
        self.starts: list[PartStart] = []
        """The `PartStart` of every part so far, in the order in which they came."""
        self._ends: dict[int, PartEnd] = {}
        self.texts: dict[int, list[str]] = {}
        """By index: the argument text of a call; where there is no raw text, also that of the other parts."""
        self.raw: dict[int, str] = {}
        """By index: what the model wrote of a call, where there is no raw text to cut it from."""
        self.retyped: set[int] = set()
        """The parts that turned out to be of the other kind."""
        self.notices: list[Notice] = []
        """The notices so far."""
        self.pending: list[Event] = []
        """Events that were appended and are not counted in yet."""

    def add(self, event: Event) -> None:
        """Take note of an event."""
        if isinstance(event, PartStart):
            self.starts.append(event)
        elif isinstance(event, PartEnd):
            self._ends[event.index] = event
        elif isinstance(event, ToolCallDelta):
            self.texts.setdefault(event.index, []).append(event.text)
        elif isinstance(event, Notice):
            self.notices.append(event)
        elif isinstance(event, Retyped):
            self.retyped.add(event.index)
            self.starts = [
                msgspec.structs.replace(start, kind=event.kind) if start.index == event.index else start
                for start in self.starts
            ]

    def parts(self, raw: str | None = None, open_span: Span = (0, 0)) -> tuple[tuple[Part, ...], str, str]:
        """The parts so far, thinking joined, text joined. A part that has not ended stands at `open_span`."""
        parts: list[Part] = []
        thinking: list[str] = []
        text: list[str] = []
        # A server may open a call before it names it, and name a later one first.
        starts = self.starts if raw is not None else sorted(self.starts, key=attrgetter("index"))
        for start in starts:
            index, kind = start.index, start.kind
            end = self._ends.get(index) or PartEnd(index, False, "incomplete", open_span)
            if kind == "tool_call":
                arguments = "".join(self.texts.get(index, ()))
                written = self.raw.get(index, "") if raw is None else raw[end.span[0] : end.span[1]]
                outcome = (end.complete, end.error, end.error_message)
                parts.append(ToolCall(start.name, arguments, start.id, *outcome, written, end.span))
                continue
            content = "".join(self.texts[index]) if raw is None else raw[end.span[0] : end.span[1]]
            if raw is None and index in self.retyped and index in self._ends:
                content = within(content, end.span)
            if kind == "thinking":
                thinking += (start.gap, content)
                parts.append(Thinking(content, end.complete, end.span))
            else:
                text += (start.gap, content)
                parts.append(Text(content, end.span))
        return tuple(parts), "".join(thinking), "".join(text)

    def message(self, raw: str, open_span: Span, termination: Termination, beyond: Span | None = None) -> Message:
        """The message so far, its texts cut from `raw`."""
        for event in self.pending:
            self.add(event)
        self.pending.clear()
        parts, thinking, text = self.parts(raw, open_span)
        return Message(parts, raw, tuple(self.notices), termination, thinking, text, (), beyond)


def within(content: str, span: Span) -> str:
    """What of a part that was retyped its span holds.

    Whitespace at the start of a text stays; at the start of a thought it belongs to the marker. A part that was ended
    by somebody else than the parser has no span.

    Examples:
        >>> from asides.message import within
        >>> within("  hm", (2, 4))
        'hm'
    """
    return content if span == (0, 0) else content[max(0, len(content) - (span[1] - span[0])) :]


class OpenCalls:
    """Builds each call at the moment when it ends, for those who pass calls on whole and one by one.

    To make all parts so far anew for each call would cost the square of their number.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        # By index: calls that a server has split off may end together.
        self._open: dict[int, tuple[PartStart, list[str]]] = {}

    def add(self, event: Event, raw: str = "") -> ToolCall | None:
        """Take note of an event; the call, if one ends with it. `raw`: what the model wrote of it."""
        if isinstance(event, ToolCallDelta):
            self._open[event.index][1].append(event.text)
        elif isinstance(event, PartStart):
            if event.kind == "tool_call":
                self._open[event.index] = (event, [])
        elif isinstance(event, PartEnd) and event.index in self._open:
            start, pieces = self._open.pop(event.index)
            outcome = (event.complete, event.error, event.error_message)
            return ToolCall(start.name, "".join(pieces), start.id, *outcome, raw, event.span)
        return None

    def cut(self) -> list[PartEnd]:
        """The ends of calls that never came to theirs, where a stream was given up."""
        return [PartEnd(index, False, "incomplete", error_message="the reply ended inside it") for index in self._open]
