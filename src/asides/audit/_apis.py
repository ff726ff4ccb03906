"""The APIs that an audit can ask in: the shapes that each one's reference requires of replies, streams and errors.

An `AuditedApi` is a dialect, which writes requests and reads replies, and the rules for what a server of that API must
send. Rules are small functions: they return what is wrong, as `(code, detail)`; none knows which server it is about.
Only what a client relies on is required; a field more is never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from ..dialects import Dialect, anthropic, ollama, openai_chat, openai_responses
from ..dialects._fields import as_object, as_objects
from ._wire import Answer

Wrong = tuple[str, str]
"""A code of a failure, and what was seen."""
_NUMBER = (int, float)


class AuditedApi(NamedTuple):
    """One API."""

    name: str
    """As `--api` takes it."""
    dialect: Dialect
    reference: str
    """The page that the rules are from."""
    whole: Callable[[dict[str, Any]], Iterator[Wrong]]
    """What is wrong with the shape of a whole reply."""
    stream: Callable[[Answer], Iterator[Wrong]]
    """What is wrong with the shape of a stream."""
    finish: Callable[[list[dict[str, Any]]], list[str]]
    """The reasons of the end, by the API's own names."""
    expected: Callable[[bool, bool], frozenset[str]]
    """Which reasons are right: (were there calls, was it cut)."""
    error: Callable[[dict[str, Any]], bool]
    """Whether the body of an error has the API's shape."""
    ids: bool = True
    """Whether calls have ids."""


def _want(found: dict[str, Any], where: str, /, **types: type | tuple[type, ...]) -> Iterator[Wrong]:
    for name, wanted in types.items():
        value = found.get(name)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            seen = "is missing" if name not in found else f"is {type(value).__name__}"
            yield "field_wrong", f"{where}{name} {seen}"


# Chat completions.


def _chat_whole(body: dict[str, Any]) -> Iterator[Wrong]:
    yield from _want(body, "", id=str, object=str, created=_NUMBER, model=str, choices=list)
    if body.get("object") != "chat.completion":
        yield "field_wrong", f"object is {body.get('object')!r}, not 'chat.completion'"
    choices = as_objects(body.get("choices"))
    if not choices:
        yield "field_wrong", "choices is empty"
        return
    yield from _want(choices[0], "choices[0].", index=int, message=dict, finish_reason=str)
    message = as_object(choices[0].get("message"))
    if message.get("role") != "assistant":
        yield "field_wrong", f"message.role is {message.get('role')!r}"
    if not isinstance(message.get("content"), str | None):
        yield "field_wrong", f"message.content is {type(message.get('content')).__name__}"
    for call in as_objects(message.get("tool_calls")):
        yield from _want(call, "tool_calls[].", id=str, type=str, function=dict)
        yield from _want(as_object(call.get("function")), "tool_calls[].function.", name=str, arguments=str)


def _chat_stream(answer: Answer) -> Iterator[Wrong]:
    ended = False
    for frame in answer.documents:
        if "error" in frame:
            continue
        yield from _want(frame, "", id=str, object=str, choices=list)
        if frame.get("object") != "chat.completion.chunk":
            yield "field_wrong", f"object is {frame.get('object')!r}, not 'chat.completion.chunk'"
        for choice in as_objects(frame.get("choices")):
            delta = as_object(choice.get("delta"))
            yield from _want(choice, "choices[].", index=int, delta=dict)
            for call in as_objects(delta.get("tool_calls")):
                yield from _want(call, "delta.tool_calls[].", index=int)
            if ended and any(delta.get(name) for name in ("content", "tool_calls", "reasoning_content", "reasoning")):
                yield "field_wrong", "content comes after the frame with finish_reason"
            ended = ended or choice.get("finish_reason") is not None
    if len({frame["id"] for frame in answer.documents if isinstance(frame.get("id"), str)}) > 1:
        yield "field_wrong", "the frames of one reply have several ids"
    if not answer.done:
        yield "no_end", "there is no data: [DONE]"


def _chat_finish(documents: list[dict[str, Any]]) -> list[str]:
    choices = [choice for document in documents for choice in as_objects(document.get("choices"))]
    return [str(choice["finish_reason"]) for choice in choices if choice.get("finish_reason") is not None]


def _chat_expected(calls: bool, cut: bool) -> frozenset[str]:
    return frozenset({"length"} if cut else {"tool_calls"} if calls else {"stop"})


def _openai_error(body: dict[str, Any]) -> bool:
    return isinstance(as_object(body.get("error")).get("message"), str)


# Responses.


def _responses_whole(body: dict[str, Any]) -> Iterator[Wrong]:
    yield from _want(body, "", id=str, object=str, status=str, model=str, output=list, created_at=_NUMBER)
    if body.get("object") != "response":
        yield "field_wrong", f"object is {body.get('object')!r}, not 'response'"
    for item in as_objects(body.get("output")):
        yield from _want(item, "output[].", type=str)
        if item.get("type") == "function_call":
            yield from _want(item, "function_call.", call_id=str, name=str, arguments=str)
        elif item.get("type") == "message":
            yield from _want(item, "message.", id=str, role=str, content=list)
        elif item.get("type") == "reasoning":
            yield from _want(item, "reasoning.", id=str, summary=list)


def _responses_stream(answer: Answer) -> Iterator[Wrong]:
    types = [str(frame.get("type")) for frame in answer.documents]
    if types[:1] != ["response.created"]:
        yield "field_wrong", f"the first event is {types[0] if types else 'missing'}, not response.created"
    last = types[-1] if types else ""
    if last not in ("response.completed", "response.incomplete", "response.failed", "error"):
        yield "no_end", f"the last event is {last or 'missing'}, not response.completed"
    numbers = [frame.get("sequence_number") for frame in answer.documents]
    if not all(type(number) is int for number in numbers):
        yield "field_wrong", "sequence_number is missing"
    elif any(after <= before for before, after in pairwise(numbers)):  # type: ignore[operator] # ints, by the line above
        yield "field_wrong", "sequence_number does not rise"
    for kind in ("response.output_item", "response.content_part"):
        added, done = types.count(f"{kind}.added"), types.count(f"{kind}.done")
        if added != done:
            yield "field_wrong", f"{added} {kind}.added and {done} {kind}.done"
    if answer.documents and last in ("response.completed", "response.incomplete"):
        yield from _responses_whole(as_object(answer.documents[-1].get("response")))


def _responses_finish(documents: list[dict[str, Any]]) -> list[str]:
    last = documents[-1] if documents else {}
    found = as_object(last.get("response")) or last
    reason = as_object(found.get("incomplete_details")).get("reason")
    return [f"{found.get('status')}{f':{reason}' if reason else ''}"] if found.get("status") else []


def _responses_expected(calls: bool, cut: bool) -> frozenset[str]:
    return frozenset({"incomplete:max_output_tokens"} if cut else {"completed"})


# Messages.


def _messages_whole(body: dict[str, Any]) -> Iterator[Wrong]:
    yield from _want(body, "", id=str, type=str, role=str, model=str, content=list, stop_reason=str, usage=dict)
    if body.get("type") != "message":
        yield "field_wrong", f"type is {body.get('type')!r}, not 'message'"
    for block in as_objects(body.get("content")):
        yield from _messages_block(block)


def _messages_block(block: dict[str, Any]) -> Iterator[Wrong]:
    yield from _want(block, "content[].", type=str)
    match block.get("type"):
        case "text":
            yield from _want(block, "text block: ", text=str)
        case "thinking":
            yield from _want(block, "thinking block: ", thinking=str, signature=str)
        case "tool_use":
            yield from _want(block, "tool_use block: ", id=str, name=str, input=dict)
        case _:
            pass


def _messages_stream(answer: Answer) -> Iterator[Wrong]:
    types = [str(frame.get("type")) for frame in answer.documents if frame.get("type") != "ping"]
    if types[:1] != ["message_start"]:
        yield "field_wrong", f"the first event is {types[0] if types else 'missing'}, not message_start"
    if types[-1:] != ["message_stop"] and "error" not in types:
        yield "no_end", f"the last event is {types[-1] if types else 'missing'}, not message_stop"
    opened: set[Any] = set()
    for frame in answer.documents:
        kind, index = frame.get("type"), frame.get("index")
        if kind == "content_block_start":
            if opened:
                yield "field_wrong", "a block begins before the one before it has ended"
            opened.add(index)
        elif kind == "content_block_delta" and index not in opened:
            yield "field_wrong", f"a delta of block {index!r}, which is not open"
        elif kind == "content_block_stop":
            if index not in opened:
                yield "field_wrong", f"block {index!r} ends and had not begun"
            opened.discard(index)
    if opened:
        yield "field_wrong", "a block has no content_block_stop"


def _messages_finish(documents: list[dict[str, Any]]) -> list[str]:
    found = [as_object(document.get("delta")) or document for document in documents]
    return [str(each["stop_reason"]) for each in found if each.get("stop_reason") is not None]


def _messages_expected(calls: bool, cut: bool) -> frozenset[str]:
    return frozenset({"max_tokens"} if cut else {"tool_use"} if calls else {"end_turn", "stop_sequence"})


def _messages_error(body: dict[str, Any]) -> bool:
    error = as_object(body.get("error"))
    return body.get("type") == "error" and isinstance(error.get("type"), str) and isinstance(error.get("message"), str)


# Ollama.


def _ollama_whole(body: dict[str, Any]) -> Iterator[Wrong]:
    yield from _want(body, "", model=str, created_at=str, message=dict, done=bool)
    message = as_object(body.get("message"))
    yield from _want(message, "message.", role=str, content=str)
    for call in as_objects(message.get("tool_calls")):
        yield from _want(as_object(call.get("function")), "tool_calls[].function.", name=str, arguments=dict)


def _ollama_stream(answer: Answer) -> Iterator[Wrong]:
    for frame in answer.documents:
        if "error" not in frame:
            yield from _ollama_whole(frame)
    done = [frame.get("done") for frame in answer.documents]
    if done[-1:] != [True]:
        yield "no_end", "the last line has not done: true"
    if True in done[:-1]:
        yield "field_wrong", "a line comes after the one with done: true"


def _ollama_finish(documents: list[dict[str, Any]]) -> list[str]:
    return [str(document["done_reason"]) for document in documents if document.get("done_reason")]


def _ollama_expected(calls: bool, cut: bool) -> frozenset[str]:
    return frozenset({"length"} if cut else {"stop"})


APIS: dict[str, AuditedApi] = {
    api.name: api
    for api in (
        AuditedApi(
            "chat",
            openai_chat,
            "https://platform.openai.com/docs/api-reference/chat",
            _chat_whole,
            _chat_stream,
            _chat_finish,
            _chat_expected,
            _openai_error,
        ),
        AuditedApi(
            "responses",
            openai_responses,
            "https://platform.openai.com/docs/api-reference/responses",
            _responses_whole,
            _responses_stream,
            _responses_finish,
            _responses_expected,
            _openai_error,
        ),
        AuditedApi(
            "messages",
            anthropic,
            "https://platform.claude.com/docs/en/api/messages",
            _messages_whole,
            _messages_stream,
            _messages_finish,
            _messages_expected,
            _messages_error,
        ),
        AuditedApi(
            "ollama",
            ollama,
            "https://docs.ollama.com/api/chat",
            _ollama_whole,
            _ollama_stream,
            _ollama_finish,
            _ollama_expected,
            lambda body: isinstance(body.get("error"), str),
            ids=False,
        ),
    )
}
"""Every API, by the name that `--api` takes."""
