"""Other shapes: lines of JSON and back, Parquet, the plain files; and raw output that is read."""

from __future__ import annotations

import json
import stat
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides import UsageError
from asides import _history as history
from asides._cli.history.import_files import read_record
from asides._cli.inputs.rows import decoded, rows_of
from asides._history import KeptReply
from asides._history.exports import Export, JsonLinesExport, ParquetExport, PlainFilesExport
from asides._history.records import encode_line
from asides.parts import ToolCall
from asides.reading import Reading
from tests.history.generated import STEADY
from tests.history.samples import HOSTILE, START, asked, record, reply

REPLIES = [reply("one", "two", model="m"), reply("three", after=1, asked=asked("Why?")), reply(after=2)]


def read(line: bytes, **options: Any) -> KeptReply:
    """The reply of a line, as `asides history import` reads it."""
    (row,) = rows_of("jsonl", [line])
    value, problem = decoded(row)
    if problem is not None:
        raise UsageError(problem[1])
    (found,) = read_record(value, Reading.of(), time=START, **options)
    return found


def stopped(writer: Export) -> None:
    """Ctrl-C after the first reply."""
    with suppress(KeyboardInterrupt), writer:
        writer.write(REPLIES[0])
        raise KeyboardInterrupt


@STEADY
@given(st.text(st.characters(exclude_categories=()), max_size=50), st.floats(allow_nan=False, allow_infinity=False))
def test_lines_of_json_come_back(text: str, seconds: float) -> None:
    """What is exported is imported as it was, with the same id."""
    thought = {"index": 0, "text": text, "complete": False, "seconds": seconds}
    wanted = record(text=text, thoughts=[thought], asked=[{"role": "user", "text": text}], seconds=seconds)
    line = encode_line(wanted.to_record())
    assert b"\n" not in line
    assert read(line) == wanted


def test_a_file_of_lines(tmp_path: Path) -> None:
    """It has its name only when it is whole, and only its owner may read it."""
    path = tmp_path / "out.jsonl"
    with JsonLinesExport(path) as lines:
        for made in REPLIES:
            lines.write(made)
        assert not path.exists()
    assert [read(line) for line in path.read_bytes().splitlines()] == REPLIES
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_going_on_with_lines(tmp_path: Path) -> None:
    """An export that was stopped in the middle of a line goes on after the last whole one."""
    path = tmp_path / "out.jsonl"
    stopped(JsonLinesExport(path))
    part = tmp_path / "out.jsonl.part"
    part.write_bytes(part.read_bytes() + b'{"id": "half of a li')
    with JsonLinesExport(path, resume=True) as lines:
        assert lines.after == REPLIES[0].id
        for made in REPLIES[1:]:
            lines.write(made)
    assert [read(line) for line in path.read_bytes().splitlines()] == REPLIES


def test_going_on_with_something_else(tmp_path: Path) -> None:
    """A file that is no half-written export is not touched in the dark."""
    (tmp_path / "out.jsonl.part").write_text("my notes\n")
    with pytest.raises(UsageError, match="not a half-written export"):
        JsonLinesExport(tmp_path / "out.jsonl", resume=True)
    assert (tmp_path / "out.jsonl.part").read_text() == "my notes\n"


def test_parquet(tmp_path: Path) -> None:
    """A row for each reply, its thoughts in it; hostile text included."""
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not here: pip install 'asides[parquet]'")
    path = tmp_path / "out.parquet"
    hostile = [record(text=text, thoughts=[{"index": 0, "text": text}]) for text in HOSTILE]
    with ParquetExport(path) as table:
        for made in [*REPLIES, *hostile]:
            table.write(made)
    rows = parquet.read_table(path).to_pylist()
    assert len(rows) == len(REPLIES) + len(HOSTILE)
    assert rows[0]["thoughts"] == [
        {"index": 0, "text": "one", "complete": True, "seconds": None},
        {"index": 1, "text": "two", "complete": True, "seconds": None},
    ]
    assert rows[0]["time"] == START
    assert rows[1]["asked"][0]["text"] == "Why?"
    assert [row["id"] for row in rows] == [made.id for made in [*REPLIES, *hostile]]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_parquet_that_was_stopped(tmp_path: Path) -> None:
    """Nothing is left of it."""
    pytest.importorskip("pyarrow", reason="pyarrow is not here: pip install 'asides[parquet]'")
    stopped(ParquetExport(tmp_path / "out.parquet"))
    assert not list(tmp_path.iterdir())


def test_plain_files(tmp_path: Path) -> None:
    """A file for each reply that thought, named by agent and time; twice is once, and two in one second are two."""
    made = [
        reply("first\nline", "second", agent="code helper/../x"),
        reply("same second", agent="code helper/../x"),
        reply("no agent", model="Qwen/Qwen3-8B"),
        reply(agent="no thoughts"),
        reply("\ud800", agent="\0"),
    ]
    for _ in range(2):
        with PlainFilesExport(tmp_path) as files:
            for one in made:
                files.write(one)
    stamp = f"{START.astimezone():%Y%m%d-%H%M%S}"
    folder = tmp_path / "thinks"
    found = {path.name: path.read_text() for path in folder.iterdir()}
    assert found[f"code-helper-..-x_{stamp}_thinks.txt"] == "[Thinking 1]\nfirst\nline\n\n[Thinking 2]\nsecond\n"
    assert found[f"code-helper-..-x_{stamp}-{made[1].id[:12]}_thinks.txt"] == "[Thinking 1]\nsame second\n"
    assert f"Qwen-Qwen3-8B_{stamp}_thinks.txt" in found
    assert len(found) == 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_raw_output_is_read() -> None:
    """A trace's raw text is taken apart; what else it says is kept where it belongs."""
    line = json.dumps(
        {"source": "some traces", "model": "m", "text": "<think>hm</think>yes", "timestamp": 1_700_000_000.5}
    ).encode()
    found = read(line)
    assert (found.reply.text, found.thoughts[0].text) == ("yes", "hm")
    assert (found.reply.model, found.agent, found.source) == ("m", "some traces", "import")
    assert found.time == datetime.fromtimestamp(1_700_000_000.5, UTC)
    assert read(b'{"response": "x", "created_at": "2026-01-01T00:00:00Z"}').time == datetime(2026, 1, 1, tzinfo=UTC)
    assert read(b'{"text": "no", "mine": "<think>a</think>b"}', field="mine").reply.text == "b"
    assert read(b'{"text": "x", "time": "whenever", "model": 7}').time == START
    assert read(b'"a line that is a text"').reply.text == "a line that is a text"
    assert read(b'{"conversation": "c1", "text": "x"}').conversation == "c1"
    beside = read(b'{"content": "b", "reasoning_content": "a"}')
    assert (beside.thoughts[0].text, beside.reply.text) == ("a", "b")
    blocks = [{"type": "text", "text": "b"}, {"type": "thinking", "thinking": "a"}, {"type": "text", "text": "c"}]
    typed = read(json.dumps({"content": blocks}).encode())
    assert [part.text for part in typed.reply.parts if not isinstance(part, ToolCall)] == ["b", "a", "c"]
    assert typed.reply.text == "b\n\nc"
    assert read(encode_line(typed.to_record())) == typed


@pytest.mark.parametrize(
    ("written", "time"),
    [
        ("1700000000", datetime.fromtimestamp(1_700_000_000, UTC)),
        ("1700000000.5", datetime.fromtimestamp(1_700_000_000.5, UTC)),
        ("20260102", datetime(2026, 1, 2).astimezone(UTC)),
        (" 2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
        (date(2026, 1, 2), datetime(2026, 1, 2, tzinfo=UTC)),
        ("1712123100000", START),  # milliseconds would be no year that anybody meant
        (None, START),
    ],
)
def test_times_as_csv_and_tables_write_them(written: object, time: datetime) -> None:
    """Digits are seconds, dates are dates; what is neither is the time of the file."""
    (found,) = read_record({"text": "x", "time": written}, Reading.of(), time=START)
    assert found.time == time


def test_turns_of_one_record_stay_in_order() -> None:
    """Each is a reply, the same words twice too."""
    turns = [{"role": "user", "content": "?"}, *({"role": "assistant", "content": text} for text in ("b", "a", "b"))]
    record: dict[str, Any] = {"messages": turns, "conversation_id": "c", "time": "9999-12-31T23:59:59.999998Z"}
    found = read_record(record, Reading.of(), time=START)
    assert [reply.reply.text for reply in found] == ["b", "a", "b"]
    record["time"] = 1
    found = read_record(record, Reading.of(), time=START, model="m")
    assert [reply.reply.text for reply in sorted(found, key=lambda reply: reply.time)] == ["b", "a", "b"]
    assert len({reply.id for reply in found}) == 3
    assert {(reply.conversation, reply.reply.model) for reply in found} == {("c", "m")}


def questions(record: dict[str, Any], field: str = "") -> list[list[tuple[str, str]]]:
    found = read_record(record, Reading.of(), time=START, field=field)
    return [[(turn.role, turn.text) for turn in reply.asked] for reply in found]


def test_what_was_asked_is_kept_with_each_reply() -> None:
    """The turns since the reply before; the conversation is one, by the same name for every import."""
    turns: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "2+2?"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": "<think>Add.</think>", "tool_calls": [{"function": {"name": "add"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "4"},
        {"role": "assistant", "content": "Four."},
        {"role": "user", "content": "Thanks."},
    ]
    assert questions({"messages": turns}) == [[("system", "Be brief."), ("user", "2+2?")], [("tool", "4")]]
    first, second = read_record({"messages": turns}, Reading.of(), time=START)
    assert (first.conversation, second.asked[0].call_id) == (second.conversation, "c1")
    assert first.conversation
    assert read_record({"messages": turns}, Reading.of(), time=START) == [first, second]
    talk = [{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "Four."}]
    assert questions({"conversations": talk}) == questions({"a": {"b": talk}}, "a.b") == [[("user", "2+2?")]]


QUESTIONS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "a prompt": ({"prompt": "2+2?", "output": "4"}, [("user", "2+2?")]),
    "an instruction": ({"instruction": "Add.", "input": "2, 2", "output": "4"}, [("user", "Add.\n\n2, 2")]),
    "the messages of a request": (
        {"messages": [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "2+2?"}], "response": "4"},
        [("user", "2+2?")],
    ),
    "a prompt that a template has written": ({"prompt": "<|im_start|>assistant\nHi", "output": "4"}, []),
    "the word of a person": ({"prompt": "Assistant: 2+2?", "output": "4"}, [("user", "Assistant: 2+2?")]),
    "no question": ({"prompt": {"a": 1}, "question": 7, "output": "4"}, []),
}  # fmt: skip


@pytest.mark.parametrize(("record", "expected"), QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_beside_the_output_is_kept(record: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert questions(record) == [expected]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "no model output"),
        (b'{"text": 5}', "no model output"),
        (b'{"thoughts": 5, "time": "x"}', "not a record of `asides history export`"),
        (b"\xff\xfe", "no UTF-8"),
        (b"\xf7abc", "no UTF-8: byte 0"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_lines_that_hold_no_reply(line: bytes, words: str) -> None:
    """Each is an error in words."""
    with pytest.raises(UsageError, match=words):
        read(line)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=()), max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
TIMES = st.sampled_from(["2026-01-01", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T00:00:00", 1, 1e300])
OWN = {
    "time": TIMES | JSON,
    "thoughts": st.lists(
        st.fixed_dictionaries({"index": st.integers(), "text": JSON | st.text()}, optional={"seconds": st.floats()}),
        max_size=2,
    ),
    **{
        name: JSON | st.text()
        for name in ("id", "model", "text", "calls", "notices", "asked", "seconds", "termination")
    },
}


TURNS = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(("user", "assistant", "tool", "system", "nobody")) | JSON,
            "content": JSON | st.text(),
        },
        optional={"tool_call_id": JSON, "value": JSON},
    ),
    max_size=4,
)
ASKED = {
    name: JSON | st.text() | TURNS for name in ("messages", "prompt", "instruction", "input", "output", "response")
}


@settings(STEADY, max_examples=50)
@given(record=st.fixed_dictionaries({}, optional=OWN) | st.fixed_dictionaries({}, optional=ASKED))
def test_any_record_is_kept_or_refused(tmp_path: Path, record: dict[str, object]) -> None:
    """A line that someone else made is a reply that can be kept and read again, or an error in words."""
    try:
        found = read_record(json.loads(json.dumps(record)), Reading.of(), time=START)
    except UsageError:
        return
    with history.open(str(tmp_path / "kept.db")) as store:
        store.add(found)
        assert [store.reply(kept.id) for kept in found] == found
        assert not [problem for step in store.verify() for problem in step.problems]
        with PlainFilesExport(tmp_path) as files:
            for kept in found:
                files.write(kept)
        assert list(store.purge())[-1].replies == len(found)


def test_an_id_is_not_believed() -> None:
    """A record that was edited has another id than it says."""
    record = msgspec.json.decode(encode_line(REPLIES[0]))
    record["text"] = "edited"
    found = read(msgspec.json.encode(record))
    assert found.reply.text == "edited"
    assert found.id != REPLIES[0].id
