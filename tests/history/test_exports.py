"""Other shapes: lines of JSON and back, Parquet, the plain files; and raw output that is read."""

from __future__ import annotations

import json
import stat
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import asides
from asides import UsageError
from asides import _history as history
from asides._history.exports import Export, JsonLinesExport, ParquetExport, PlainFilesExport
from asides._history.imports import read_line
from asides._history.records import encode_line
from tests.history.generated import STEADY
from tests.history.samples import HOSTILE, START, asked, record, reply

READ = partial(read_line, parse=asides.parse, format="auto", time=START)
REPLIES = [reply("one", "two", model="m"), reply("three", after=1, asked=asked("Why?")), reply(after=2)]


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
    assert READ(line) == wanted


def test_a_file_of_lines(tmp_path: Path) -> None:
    """It has its name only when it is whole, and only its owner may read it."""
    path = tmp_path / "out.jsonl"
    with JsonLinesExport(path) as lines:
        for made in REPLIES:
            lines.write(made)
        assert not path.exists()
    assert [READ(line) for line in path.read_bytes().splitlines()] == REPLIES
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
    assert [READ(line) for line in path.read_bytes().splitlines()] == REPLIES


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
    found = READ(line)
    assert (found.reply.text, found.thoughts[0].text) == ("yes", "hm")
    assert (found.reply.model, found.agent, found.source) == ("m", "some traces", "import")
    assert found.time == datetime.fromtimestamp(1_700_000_000.5, UTC)
    assert READ(b'{"response": "x", "created_at": "2026-01-01T00:00:00Z"}').time == datetime(2026, 1, 1, tzinfo=UTC)
    assert READ(b'{"text": "no", "mine": "<think>a</think>b"}', field="mine").reply.text == "b"
    assert READ(b'{"text": "x", "time": "whenever", "model": 7}').time == START


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "not a JSON object"),
        (b'"x"', "not a JSON object"),
        (b"{}", "no model output"),
        (b'{"text": 5}', "no model output"),
        (b'{"thoughts": 5, "time": "x"}', "not a record of `asides history export`"),
        (b"\xff\xfe", "not valid JSON"),
        (b"\xf7abc", "not valid JSON: it is not UTF-8 text"),
        (b"[" * 100_000, "not valid JSON"),
    ],
)
def test_lines_that_hold_no_reply(line: bytes, words: str) -> None:
    """Each is an error in words."""
    with pytest.raises(UsageError, match=words):
        READ(line)


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


@settings(STEADY, max_examples=50)
@given(record=st.fixed_dictionaries({}, optional=OWN))
def test_any_record_is_kept_or_refused(tmp_path: Path, record: dict[str, object]) -> None:
    """A line that someone else made is a reply that can be kept and read again, or an error in words."""
    line = json.dumps(record).encode()
    try:
        found = READ(line)
    except UsageError:
        return
    with history.open(str(tmp_path / "kept.db")) as store:
        store.add([found])
        assert store.reply(found.id) == found
        assert not [problem for step in store.verify() for problem in step.problems]
        with PlainFilesExport(tmp_path) as files:
            files.write(found)
        assert list(store.purge())[-1].replies == 1


def test_an_id_is_not_believed() -> None:
    """A record that was edited has another id than it says."""
    record = msgspec.json.decode(encode_line(REPLIES[0]))
    record["text"] = "edited"
    found = READ(msgspec.json.encode(record))
    assert found.reply.text == "edited"
    assert found.id != REPLIES[0].id
