"""What older versions wrote: exports and rows from before a reply was kept as one record, with all its parts in order.

`written_before.jsonl` holds replies as the version before wrote them, each as the line of its export and as its rows:
a stop marker, several thoughts, broken calls, a reply of a gateway, one whose thoughts stand where its known parts
cannot put them, a notice whose code is gone, and an empty one.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from asides import _history as history
from asides._history import KeptReply
from asides._history.imports import read_own
from asides.parts import Text, Thinking, ToolCall

WRITTEN = [json.loads(line) for line in Path(__file__).with_name("written_before.jsonl").read_bytes().splitlines()]
REPLIES = {"stop": 0, "several": 1, "broken": 2, "cut": 3, "scattered": 4, "empty": 5}


def lined(name: str) -> KeptReply:
    """A reply from its line."""
    return read_own(json.loads(WRITTEN[REPLIES[name]]["line"]))


@pytest.fixture
def store(tmp_path: Path) -> history.History:
    """A store whose rows were written by the version before."""
    path = tmp_path / "h.db"
    history.open(str(path)).close()
    connection = sqlite3.connect(path)
    for written in WRITTEN:
        _insert(
            connection,
            "replies (number, id, time, model, source, agent, conversation, format, text, exact, body, client)",
            written["row"],
            9,
        )
        for row in written["thoughts"]:
            _insert(connection, "thoughts (reply, place, characters, complete, seconds, text, exact)", row, 6)
    connection.commit()
    connection.close()
    return history.open(str(path), create=False)


def _insert(connection: sqlite3.Connection, table: str, row: list[Any], exact: int) -> None:
    values = [bytes.fromhex(value) if place == exact and value else value for place, value in enumerate(row)]
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", values)


@pytest.mark.parametrize("name", REPLIES)
def test_a_line_has_the_id_that_it_had(name: str) -> None:
    """It is imported once, whichever version exported it, and is exported as it was."""
    written = json.loads(WRITTEN[REPLIES[name]]["line"])
    assert lined(name).id == written["id"]
    assert json.loads(history.records.encode_line(lined(name).to_record())) == written


def test_a_store_is_sound_and_says_the_same(store: history.History) -> None:
    """Every row is what its id says, and what its line says. Nothing is written again."""
    with store:
        problems = [problem for step in store.verify() for problem in step.problems if "index" not in problem]
        assert problems == []
        assert list(store.replies()) == [lined(name) for name in REPLIES]
        assert store.add([lined(name) for name in REPLIES]) == 0
        assert [turn.text for turn in store.conversation("talk")] == ["Why?", "sun", "bde"]


def test_what_they_say() -> None:
    """All that was written is in the reply; the order of parts is that of thoughts, then text, then calls."""
    assert lined("stop").reply.termination == "stop"
    assert lined("stop").reply.parts == (Thinking("2+2"), Text("It is 4."))
    several = lined("several")
    assert several.reply.thinking == "a\n\nc"
    assert several.reply.times.thoughts == (1.25, None)
    assert [notice.code for notice in several.reply.notices] == ["stray_close"]
    (broken,) = lined("broken").reply.tool_calls
    assert (broken.name, broken.complete, broken.error is None) == ("f", True, False)
    (cut,) = lined("cut").reply.tool_calls
    assert (cut.complete, cut.error) == (False, "incomplete")
    scattered = lined("scattered")
    assert [thought.index for thought in scattered.thoughts] == [0, 3]
    assert scattered.reply.parts == (
        Thinking("first"),
        Text("one\n\ntwo"),
        ToolCall("g", "{}", "call_1"),
        Thinking("late\ud800", False),
    )
    assert [notice.code for notice in scattered.reply.notices] == ["code_of_long_ago"]
    assert lined("empty").reply.parts == ()
