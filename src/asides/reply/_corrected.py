"""The items of a reply that is written in one piece: nothing of it has gone out, so its parts are moved (`Retyped`)."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..events import Delta, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta
from ..message import within
from ._items import ReplyEvent, ReplyItem


def corrected(items: Iterable[ReplyItem]) -> list[ReplyItem]:
    """The items without a `Retyped`: each part begins as what it turned out to be."""
    found = items if isinstance(items, list) else list(items)
    for item in found:
        if type(item) is ReplyEvent and type(item.event) is Retyped:
            return _moved(found, item, item.event)
    return found


def _moved(items: list[ReplyItem], item: ReplyEvent, retyped: Retyped) -> list[ReplyItem]:
    """The items with a part as one of the other kind: its deltas in one piece, its tokens on the other side."""
    own = [
        each
        for each in items
        if type(each) is ReplyEvent
        and each.choice == item.choice
        and isinstance(each.event, PartStart | TextDelta | ThinkingDelta | PartEnd)
        and each.event.index == retyped.index
    ]
    texts = [each.event.text for each in own if isinstance(each.event, TextDelta | ThinkingDelta)]
    span = next((each.event.span for each in own if isinstance(each.event, PartEnd)), (0, item.characters))
    kind: type[Delta] = ThinkingDelta if retyped.kind == "thinking" else TextDelta
    delta = ReplyEvent(
        item.choice,
        kind(retyped.index, item.raw or within("".join(texts), span)),
        tuple(token for each in own for token in each.other_logprobs) if retyped.kind == "text" else (),
        tuple(token for each in own for token in (*each.other_logprobs, *each.logprobs))
        if retyped.kind != "text"
        else (),
    )
    others = {id(each) for each in (*own, item)}
    found: list[ReplyItem] = []
    for each in items:
        if id(each) not in others:
            found.append(each)
        elif isinstance(each, ReplyEvent) and isinstance(each.event, PartStart):
            found += [ReplyEvent(each.choice, msgspec.structs.replace(each.event, kind=retyped.kind)), delta]
        elif isinstance(each, ReplyEvent) and isinstance(each.event, PartEnd):
            found.append(ReplyEvent(each.choice, each.event))
    return corrected(found)
