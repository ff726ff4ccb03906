"""What a client sends back with its next request, written by each dialect's own writer.

`write_back` writes a message of the assistant; calls that may not be run are left out. `write_turn` writes all that a
turn adds to a conversation: the same message, with what the provider wants back with its thoughts, and an answer to
every call. There a broken call stays: the model shall see what it wrote, and that it was not run. Servers refuse a
result without its call and arguments that are no JSON object, so a call that has a name goes back with `{}`, and its
text in its result; one without a name can be no call, so it goes back as text.

Messages and Responses have blocks and items of their own between the parts: redacted and encrypted thoughts, what the
server's tools did, the ids of items. Those go back as they came, at their places (`OwnItem`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from ..errors import UsageError
from ..families import EarlierThinking
from ..message import Message
from ..parts import Text, Thinking, ToolCall
from ..reply._items import Chunk, Foreign, RawText
from . import anthropic, ollama, openai_chat, openai_responses
from ._custom_tools import input_of
from ._request import CallPiece, OtherPiece, Request, RequestPiece, RequestTurn, TextPiece, ThinkingPiece, WriteOptions

if TYPE_CHECKING:
    from ._base import Dialect


class ThinkingProof(NamedTuple):
    """What a server sent with a thought and wants back with it, untouched."""

    signature: str = ""
    details: tuple[dict[str, Any], ...] = ()


class OwnItem(NamedTuple):
    """A block or an item of a reply that goes back to the API that sent it."""

    place: int
    """How many parts had begun when it came."""
    item: dict[str, Any]
    whole: bool
    """Whether this is all of it, to be sent as it is; otherwise its type and id, and its part has the rest."""


def own_item(foreign: Foreign, place: int) -> OwnItem | None:
    """What goes back of something that only its API understands; None where nothing does."""
    item = foreign.data.get("item")
    match foreign.event:
        case "content_block":
            return OwnItem(place, foreign.data, True)
        case "response.output_item.done" if isinstance(item, dict):
            return OwnItem(place, item, True)
        case "response.output_item.added" if isinstance(item, dict) and item.get("id"):
            return OwnItem(place, item, False)
    return None


class _Api(msgspec.Struct, frozen=True):
    """How messages go back in one API."""

    dialect: Dialect
    messages: str
    """The field of a request that holds them."""
    thinking: tuple[str, ...]
    """How thoughts may go back: the first is the default."""
    in_order: bool = False
    """Whether thoughts stand between the texts. Without them there is one text, joined as a person would read it."""
    wants_proof: bool = False
    """Whether a thought is taken back only with what came with it."""
    names_tools: bool = False
    """Whether a result says which tool it is of: where calls have no ids. Elsewhere the field is unknown."""


_APIS = {
    api.dialect.NAME: api
    for api in (
        _Api(openai_chat, "messages", ("auto", "reasoning_content", "reasoning", "drop")),
        _Api(ollama, "messages", ("auto", "thinking", "drop"), names_tools=True),
        _Api(anthropic, "messages", ("drop", "thinking"), in_order=True, wants_proof=True),
        _Api(openai_responses, "input", ("drop", "reasoning"), in_order=True),
    )
}


def write_back(api: str, message: Message, thinking: str, earlier: EarlierThinking | None) -> list[dict[str, Any]]:
    """The message as the API of this name takes it: its text, the calls that may be run, thoughts as `thinking` says.

    `earlier`: when the model wants the thoughts of all its turns back, and not only those before calls.
    """
    how = _APIS[api]
    if thinking not in how.thinking:
        raise UsageError(f"thinking must be one of {', '.join(map(repr, how.thinking))}, not {thinking!r}")
    if thinking == "auto":
        called = any(call.error is None for call in message.tool_calls)
        thinking = how.thinking[1] if called or _is_wanted(earlier) else "drop"
    replay: Literal["reasoning_content", "reasoning", "drop"] = "reasoning_content"
    if thinking == "drop":
        replay = "drop"
    elif thinking == "reasoning" and not how.in_order:
        replay = "reasoning"
    options = WriteOptions(replay=replay, every_thought=_every(earlier) and thinking != "drop")
    pieces = _joined_pieces(message) if replay == "drop" or not how.in_order else _pieces_in_order(message)
    return _written(how, [RequestTurn("assistant", tuple(pieces))], options)


def write_turn(
    api: str,
    message: Message,
    results: Mapping[str, str],
    *,
    earlier: EarlierThinking | None,
    field: str,
    proofs: Mapping[int, ThinkingProof],
    items: Sequence[OwnItem] = (),
) -> list[dict[str, Any]]:
    """All that a turn adds to the conversation: the message, an answer to each of its calls, and what was unreadable.

    `results`: what the calls gave that may be run, by their ids. `field`: the name under which the server sends
    thoughts. `proofs`: what came with a thought, by its place among the parts. `items`: what came between the parts.
    """
    how = _APIS[api]
    custom: set[str] = set()
    calls = [call for call in message.tool_calls if call.name]
    unreadable = [call for call in message.tool_calls if not call.name]
    if how.in_order:
        wanted = not how.wants_proof and bool(calls or _is_wanted(earlier))
        pieces = _without_last_thoughts(_OwnPieces(message, proofs, items, field).write(wanted))
        custom = {piece.id for piece in pieces if isinstance(piece, CallPiece) and "item" in piece.extra}
        options = WriteOptions(field=field or "reasoning_content")
    else:
        text = "\n\n".join(filter(None, (message.text, *(_wrote(call) for call in unreadable))))
        pieces = [TextPiece(text)] if text else []
        if message.thinking and (calls or _is_wanted(earlier)):
            details = tuple(detail for _, proof in sorted(proofs.items()) for detail in proof.details)
            pieces.insert(0, ThinkingPiece(message.thinking, details=details))
        pieces += [_sent_call(call) for call in calls]
        # By the name that the server itself writes: it may know no other.
        replay: Literal["reasoning_content", "reasoning"] = "reasoning" if field == "reasoning" else "reasoning_content"
        options = WriteOptions(replay=replay, every_thought=_every(earlier))
    # An empty message is refused where a message is its pieces; elsewhere it keeps the roles in turn.
    turns = [RequestTurn("assistant", tuple(pieces))] if pieces or not how.in_order else []
    for call in calls:
        failed = call.error is not None
        text = f"This call was not run: {call.error_message}. It was written so:\n{_wrote(call)}" if failed else ""
        answer = (TextPiece(text or results[call.id]),)
        name = call.name if how.names_tools else ""
        extra = {"type": "custom_tool_call_output"} if call.id in custom else {}
        turns.append(RequestTurn("tool", answer, call_id=call.id, tool_name=name, is_error=failed, extra=extra))
    if unreadable:
        reasons = "\n".join(f"A call was not run: {call.error_message}." for call in unreadable)
        turns.append(RequestTurn("user", (TextPiece(reasons),)))
    return _written(how, turns, options, how.dialect.NAME if how.in_order else "")


def _without_last_thoughts(pieces: list[RequestPiece]) -> list[RequestPiece]:
    """Without the thoughts that nothing follows, as in a reply that was cut: Anthropic and OpenAI refuse these."""
    end = len(pieces)
    while end and (isinstance(piece := pieces[end - 1], ThinkingPiece) or _is_thought(piece)):
        end -= 1
    return pieces[:end]


def _is_thought(piece: RequestPiece) -> bool:
    """Whether this is a thought that goes back as it came."""
    return isinstance(piece, OtherPiece) and piece.data.get("type") in ("reasoning", "redacted_thinking", "thinking")


def messages_field(api: str) -> str:
    """The field of a request of this API that holds the conversation."""
    return _APIS[api].messages


def _written(how: _Api, turns: Sequence[RequestTurn], options: WriteOptions, dialect: str = "") -> list[dict[str, Any]]:
    # A request of no dialect, where nothing in it is of the same one: so each writes for any server that speaks it.
    request = Request(dialect=dialect, turns=tuple(turns))
    written: list[dict[str, Any]] = how.dialect.write_request(request, options)[how.messages]
    return written


def _every(earlier: EarlierThinking | None) -> bool:
    """Whether the model wants a thought with each of its turns."""
    return earlier is not None and earlier.with_tools


def _is_wanted(earlier: EarlierThinking | None) -> bool:
    """Whether the model wants the thoughts of turns without calls back."""
    return earlier is not None and (earlier.with_tools or earlier.default)


def _wrote(call: ToolCall) -> str:
    """What the model wrote of a broken call; of one that the server has read, its arguments."""
    return call.raw or call.arguments


def _sent_call(call: ToolCall) -> CallPiece:
    return CallPiece(call.name, "{}" if call.error is not None else call.arguments, call.id)


def has_own_after_text(chunks: list[Chunk]) -> bool:
    """Whether something that only its API understands stands after text.

    Then the text before it goes out before it, as in a stream. A whole reply is held until it is known what its first
    text is, and what stands between would come first.
    """
    texts = [place for place, chunk in enumerate(chunks) if isinstance(chunk, RawText)]
    after = chunks[texts[0] :] if texts else []
    return any(
        isinstance(chunk, Foreign) and chunk.dialect in _APIS and _APIS[chunk.dialect].in_order for chunk in after
    )


class _OwnPieces:
    """Writes a message for the API that it came from, with what came between its parts."""

    def __init__(
        self, message: Message, proofs: Mapping[int, ThinkingProof], items: Sequence[OwnItem], field: str
    ) -> None:
        self._message = message
        self._proofs = proofs
        self._field = field
        # A thought that is nothing but its signature may be a part too.
        signatures = [proof.signature for proof in proofs.values() if proof.signature]
        self._whole = [each for each in items if each.whole and each.item.get("signature") not in signatures]
        self._begun = [each for each in items if not each.whole]

    def write(self, wanted: bool) -> list[RequestPiece]:
        """`wanted`: whether thoughts go back that we have found ourselves."""
        pieces: list[RequestPiece] = []
        for index, part in enumerate(self._message.parts):
            pieces += self._between(index)
            if isinstance(part, Text):
                pieces.append(TextPiece(part.text, self._of_message(index)))
            elif isinstance(part, ToolCall):
                pieces.append(self._call(index, part) if part.name else TextPiece(_wrote(part)))
            elif piece := self._thought(index, part, wanted):
                pieces.append(piece)
        return pieces + self._between(len(self._message.parts))

    def _between(self, index: int) -> list[RequestPiece]:
        found = [OtherPiece(each.item) for each in self._whole if each.place <= index]
        self._whole = [each for each in self._whole if each.place > index]
        return list(found)

    def _take(self, index: int, *kinds: str) -> dict[str, Any]:
        """The type and id of the item that a part is of; empty where the server has made none of it."""
        for each in self._begun:
            if each.place <= index and each.item.get("type") in kinds:
                self._begun.remove(each)
                return each.item
        return {}

    def _of_message(self, index: int) -> dict[str, Any]:
        item = self._take(index, "message")
        return {"message": {"id": item["id"], "status": "completed"}, "annotations": []} if item else {}

    def _call(self, index: int, call: ToolCall) -> CallPiece:
        item = self._take(index, "function_call", "custom_tool_call")
        sent = _sent_call(call)
        item = {name: value for name, value in item.items() if value}
        if item.get("type") == "custom_tool_call":
            item |= {"call_id": call.id, "input": input_of(call.arguments)}
            return msgspec.structs.replace(sent, extra={"item": item})
        return msgspec.structs.replace(sent, extra=item)

    def _thought(self, index: int, part: Thinking, wanted: bool) -> ThinkingPiece | None:
        if proof := self._proofs.get(index):
            return ThinkingPiece(part.text, proof.signature, proof.details)
        item = self._take(index, "reasoning")
        for each in self._whole:
            if item and each.item.get("id") == item["id"]:
                self._whole.remove(each)
                return ThinkingPiece(part.text, details=(each.item,))
        if item and self._field != "encrypted_content":  # Ollama's, which has the thought itself there
            return ThinkingPiece(part.text, details=(item | _reasoning_fields(part.text, self._field),))
        return ThinkingPiece(part.text) if item or wanted else None


def _reasoning_fields(text: str, field: str) -> dict[str, Any]:
    """The fields of a reasoning item, under the name that the server has written the thought."""
    if field == "summary_text":
        return {"summary": [{"type": "summary_text", "text": text}]}
    return {"summary": [], "content": [{"type": "reasoning_text", "text": text}]}


def _joined_pieces(message: Message) -> list[RequestPiece]:
    pieces: list[RequestPiece] = [ThinkingPiece(message.thinking)] if message.thinking else []
    if message.text:
        pieces.append(TextPiece(message.text))
    pieces += [CallPiece(call.name, call.arguments, call.id) for call in message.tool_calls if call.error is None]
    return pieces


def _pieces_in_order(message: Message) -> list[RequestPiece]:
    pieces: list[RequestPiece] = []
    for part in message.parts:
        if isinstance(part, Text):
            pieces.append(TextPiece(part.text))
        elif isinstance(part, Thinking):
            pieces.append(ThinkingPiece(part.text))
        elif part.error is None:
            pieces.append(CallPiece(part.name, part.arguments, part.id))
    return pieces
