"""Ids of replies and of their items. Those of items are made from that of the reply, so that an item leads to it.

A reply is `resp_T`, T being random; the items of its output are `rs_T_0`, `msg_T_1`, `fc_T_2`; those of its input that
came without an id are listed as `msg_T_in0`, and so on.
"""

from __future__ import annotations

import re

RESPONSE = "resp_"
PREFIXES: dict[str, str] = {
    "reasoning": "rs_",
    "message": "msg_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
    "tool_search_call": "tsc_",
}
"""How the id of an item begins, by its type."""
_ITEM = re.compile(r"[a-z]{2,8}_([0-9a-f]{32})_(in)?(\d{1,9})")


def input_id(response: str, kind: str, index: int) -> str:
    """The id of an item at this place of a reply's input."""
    return f"{PREFIXES.get(kind, 'item_')}{response.removeprefix(RESPONSE)}_in{index}"


def response_of(item: str) -> str:
    """The id of the reply that an item belongs to; empty for an id that is none of ours."""
    found = _ITEM.fullmatch(item)
    return RESPONSE + found[1] if found else ""
