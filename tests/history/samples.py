"""Replies to keep, for the tests of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import asides
from asides._history import KeptReply, text_turn
from asides._history.records import from_record
from asides.dialects._request import RequestTurn
from asides.reply._reply import Reply, Times

START = datetime(2026, 11, 1, 12, 0, tzinfo=UTC)
RAW = (
    "<think>First thought.\nIs it a prime?</think>\n\nIt is 7.\n"
    '<tool_call>\n{"name": "find", "arguments": {"q": "seven"}}\n</tool_call>'
)
QUERIES = [
    *(
        "",
        " ",
        '"',
        '""',
        "*",
        "AND",
        "NOT",
        "a AND",
        "a OR",
        "NEAR(a b)",
        "a*",
        '"a',
        "a:b",
        "^a",
        "(",
        ")",
        "-a",
        "_",
    ),
    *(
        "a-b",
        "'",
        "';--",
        "\\",
        "%",
        "\0",
        "a\0b",
        "\ud800",
        "!",
        "&",
        "|",
        "<->",
        ":*",
        "a:*",
        "'a':*",
        "text:a",
        "🙂",
    ),
    *("{a b}: c", "x" * 5000, "a " * 5000, "__a__", "\u0301", "don't", "3.14", "a@b.c", "http://a.b/c?d=e"),
]
HOSTILE = [
    "a\0b",
    "\ud800 alone",
    "bytes \udc80\udcff",
    "\0",
    "'; DROP TABLE replies; --",
    '" AND * NEAR( OR NOT ^ : {',
    "\x1b[31mred\x1b[0m\r\x07",
    "emoji 👩‍👩‍👧‍👦 and ﷽ and \u202ereversed",
    "质数是什么",
    "x" * 1_500_000,
    "word " * 50_000,
    " ".join(f"w{number}" for number in range(60_000)),
    "%s %d ? :name",
    "\\u0000 \\x00",
]


def parsed(raw: str = RAW, **fields: Any) -> Reply:
    """A reply as the library makes it."""
    return Reply.of(asides.parse(raw, format="qwen3"), **fields)


def record(**fields: Any) -> KeptReply:
    """A reply of these fields, as an export writes them."""
    return from_record({"time": START, **fields}).named()


def reply(*thoughts: str, answer: str = "The answer.", after: float = 0, **fields: Any) -> KeptReply:
    """A reply with these thoughts, so many seconds after the start."""
    raw = "".join(f"<think>{thought}</think>" for thought in thoughts) + answer
    made = parsed(raw, times=Times(seconds=fields.pop("seconds", None)))
    return KeptReply.of(made, time=START + timedelta(seconds=after), **{"source": "run", **fields}).named()


def aged(days: float, thought: str) -> KeptReply:
    """A reply of so many days ago."""
    return msgspec.structs.replace(reply(thought), time=datetime.now(UTC) - timedelta(days=days)).named()


def asked(text: str) -> tuple[RequestTurn, ...]:
    """What a user said."""
    return (text_turn("user", text),)
