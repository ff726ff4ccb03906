"""Replies to keep, for the tests of history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

import asides
from asides._history import Reply, Turn

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


def message(raw: str = RAW) -> asides.Message:
    """A message as the library makes it."""
    return asides.parse(raw, format="qwen3")


def reply(*thoughts: str, answer: str = "The answer.", after: float = 0, **fields: Any) -> Reply:
    """A reply with these thoughts, so many seconds after the start."""
    raw = "".join(f"<think>{thought}</think>" for thought in thoughts) + answer
    return Reply.of(message(raw), time=START + timedelta(seconds=after), **{"source": "run", **fields}).named()


def aged(days: float, thought: str) -> Reply:
    """A reply of so many days ago."""
    return msgspec.structs.replace(reply(thought), time=datetime.now(UTC) - timedelta(days=days)).named()


def asked(text: str) -> tuple[Turn, ...]:
    """What a user said."""
    return (Turn("user", text),)
