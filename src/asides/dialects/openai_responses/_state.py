"""Replies that are kept: what a request says of them, and the answers about them. Keeps nothing itself.

A kept reply is a document: the reply as its client was sent it, and the items of its own input. A request goes on from
one by `previous_response_id`: the input and the output of every reply of the chain stand before its own input. Or it
names single items (`item_reference`). Either way the items are read as those that a client sends back itself, so that
thinking returns to the model by the one path that there is.

    recall = read_recall(body)                     # Recall(store=True, previous="resp_5…", references=())
    body, own = expand(body, documents, items)     # now with the whole conversation as its input
    document = write_document(reply, own)          # to be kept
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from .._base import Recall
from .._framing import read_odd_json, to_json
from .._request import RequestError
from .._request_fields import expect, optional, without
from ._ids import input_id, response_of
from ._request import ENCRYPTED, LOGPROBS

__all__ = [
    "expand",
    "find_item",
    "list_items",
    "read_document",
    "read_recall",
    "response_of",
    "stands_alone",
    "write_deleted",
    "write_document",
    "write_response",
]

REFERENCE = "item_reference"
MOST_LISTED = 100
LISTED = 20
"""How many items a list holds, unless the request says."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


# Requests.


def stands_alone(body: dict[str, Any], raw: bytes) -> bool:
    """Whether a request says `store: false` and refers to nothing; then the field, which is honoured, goes."""
    if "store" not in body or body["store"] is not False or "previous_response_id" in body or "conversation" in body:
        return False
    # One search, instead of a look at every item; a text that happens to hold this costs no more than that look.
    if b"item_reference" in raw:
        return False
    del body["store"]
    return True


def read_recall(body: dict[str, Any]) -> Recall:
    """What a request says of kept replies. `RequestError` for a conversation, which is kept nowhere."""
    if body.get("conversation") is not None:
        message = "'conversation' is not supported: to go on from a reply, send its id as previous_response_id"
        raise RequestError(message, "conversation")
    items = body.get("input")
    references = [
        expect(item.get("id"), str, f"input[{index}].id")
        for index, item in enumerate(items if isinstance(items, list) else ())
        if isinstance(item, dict) and item.get("type") == REFERENCE
    ]
    store = optional(body, "store", bool, True)
    return Recall(store, optional(body, "previous_response_id", str, ""), tuple(references))


def expand(
    body: dict[str, Any], before: Sequence[dict[str, Any]], items: Mapping[str, dict[str, Any]]
) -> tuple[dict[str, Any], list[Any]]:
    """The request with its whole conversation as input, and its own items, those that it refers to in their places.

    `before` are the documents of the chain, the first of them first; `items` those that are referred to.
    """
    own = _own_input(body, items)
    rest = without(body, "store", "previous_response_id", "input")
    if not before and not items:
        return {**rest, "input": body.get("input")}, own
    earlier = [item for document in before for item in _items(document)]
    known = {item.get("id") for item in earlier} - {None}
    for index, item in enumerate(own):
        if isinstance(item, dict) and item.get("id") in known:
            message = f"input[{index}] is an item that previous_response_id brings already; leave it out"
            raise RequestError(message, f"input[{index}].id")
    return {**rest, "input": earlier + own}, own


def _own_input(body: dict[str, Any], items: Mapping[str, dict[str, Any]]) -> list[Any]:
    sent = body.get("input")
    if isinstance(sent, str):
        return [{"role": "user", "content": sent}]
    own = sent if isinstance(sent, list) else []  # what is neither is refused when the request is read
    return [items.get(item["id"], item) if _is_reference(item) else item for item in own] if items else own


def _is_reference(item: Any) -> bool:
    return isinstance(item, dict) and item.get("type") == REFERENCE


# Documents.


def write_document(response: dict[str, Any], own: list[Any]) -> bytes:
    """What is kept of a reply, and of the items of its own input."""
    return to_json({"response": response, "input": own})


def read_document(data: bytes) -> dict[str, Any]:
    """The same, to work with."""
    try:
        found: dict[str, Any] = msgspec.json.decode(data)
    except (msgspec.MsgspecError, UnicodeError):
        found = read_odd_json(data)  # an upstream's text may hold half a surrogate pair
    return found


def find_item(document: dict[str, Any], id: str) -> dict[str, Any] | None:
    """The item of this id in a reply or in its own input."""
    for item, listed in zip(_items(document), _listed_items(document), strict=True):
        if listed["id"] == id:
            found: dict[str, Any] = item  # as it was sent: what a list adds is for who reads it
            return found
    return None


def _items(document: dict[str, Any]) -> list[Any]:
    return [*document["input"], *document["response"]["output"]]


# Answers.


def write_response(document: dict[str, Any], query: Mapping[str, Sequence[str]]) -> Any:
    """The answer to `GET /responses/ID`: the reply as it was sent, with every field that `include` could ask for."""
    _check_query(query, ("include", "stream"))
    if any(_TRUTHS.get(value.lower(), True) for value in query.get("stream", ())):
        raise RequestError("'stream' is not supported here: only replies in the background could be streamed", "stream")
    return document["response"]


def write_deleted(id: str) -> dict[str, Any]:
    """The answer to `DELETE /responses/ID`."""
    return {"id": id, "object": "response", "deleted": True}


def list_items(documents: Sequence[dict[str, Any]], query: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The answer to `GET /responses/ID/input_items`: of the chain that ends with this reply, all but its own output."""
    _check_query(query, ("include", "limit", "order", "after"))
    items = [item for document in documents for item in _listed_items(document)]
    own = len(documents[-1]["response"]["output"])
    items = items[: len(items) - own]
    order = _last(query, "order", "desc")
    if order not in ("asc", "desc"):
        raise RequestError("order must be asc or desc", "order")
    if order == "desc":
        items.reverse()
    start = 0
    if after := _last(query, "after", ""):
        start = next((index + 1 for index, item in enumerate(items) if item["id"] == after), 0)
        if not start:
            raise RequestError(f"after: there is no item {after[:100]!r} in this list", "after")
    page = items[start : start + _limit(query)]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": start + len(page) < len(items),
    }


def _limit(query: Mapping[str, Sequence[str]]) -> int:
    limit = _last(query, "limit", str(LISTED))
    if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit[:9]) <= MOST_LISTED:
        raise RequestError(f"limit must be a whole number from 1 to {MOST_LISTED}", "limit")
    return int(limit)


def _listed_items(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield from (_listed(item, document, index) for index, item in enumerate(document["input"]))
    yield from document["response"]["output"]


def _listed(item: dict[str, Any], document: dict[str, Any], index: int) -> dict[str, Any]:
    """An item of a reply's own input, with what an item of a list has and what a client may leave out."""
    kind = item.get("type") or "message"
    listed = {**item, "type": kind, "id": item.get("id") or input_id(document["response"]["id"], kind, index)}
    if kind == "message" and isinstance(item.get("content"), str):
        part = {"type": "output_text" if item.get("role") == "assistant" else "input_text", "text": item["content"]}
        listed["content"] = [part | ({"annotations": []} if part["type"] == "output_text" else {})]
    return {"status": "completed", **listed} if kind != "reasoning" else listed


def _check_query(query: Mapping[str, Sequence[str]], known: tuple[str, ...]) -> None:
    for name, values in query.items():
        plain = name.removesuffix("[]")
        if plain not in known:
            raise RequestError(f"{name!r} is not supported here", plain)
        for value in values if plain == "include" else ():
            # What of these a reply has was written into it when it was made.
            if value not in (ENCRYPTED, LOGPROBS):
                raise RequestError(f"include: {value[:100]!r} is not supported", "include")


def _last(query: Mapping[str, Sequence[str]], name: str, default: str) -> str:
    return query[name][-1] if query.get(name) else default
