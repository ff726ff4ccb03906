"""The one reader of files of replies: every kind gives the same rows, to every command."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides._cli import main
from asides._cli.inputs.kinds import InputKind
from asides._cli.inputs.rows import decoded, rows_of, unpacked
from tests.cli.batch_files import read_lines
from tests.cli.running import run

RECORDS = [
    {"id": "1", "output": '<think>one,\n"two"</think>three', "model": "a"},
    {"id": "2", "output": "no thought; é 中 😀", "model": "b"},
    {"id": "3", "output": "", "model": "b"},
    {"id": "4", "output": "<think>[never] {closed} \\ ", "model": "a"},
]


def _csv(records: list[dict[str, str]], delimiter: str = ",") -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(records[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def _arrow(records: list[dict[str, str]]) -> bytes:
    table, sink = pa.Table.from_pylist(records), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _parquet(records: list[dict[str, str]]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records), sink, row_group_size=2)
    return bytes(sink.getvalue())


LINES = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
FILES = {
    "a.jsonl": LINES,
    "a.jsonl.gz": gzip.compress(LINES[:100]) + gzip.compress(LINES[100:]),
    "a.jsonl.zst": pa.compress(LINES, "zstd", asbytes=True),
    "a.json": json.dumps(RECORDS, indent=2).encode(),
    "b.json": b"\n".join(json.dumps(record, indent=1).encode() for record in RECORDS),
    "a.json.gz": gzip.compress(json.dumps(RECORDS).encode()),
    "a.csv": _csv(RECORDS),
    "b.csv": b"\xef\xbb\xbf" + _csv(RECORDS, ";"),
    "a.tsv": _csv(RECORDS, "\t"),
    "a.csv.gz": gzip.compress(_csv(RECORDS)),
    "a.parquet": _parquet(RECORDS),
    "a.arrow": _arrow(RECORDS),
}


@pytest.fixture(params=FILES)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of each kind, with the same records."""
    made = tmp_path / str(request.param)
    made.write_bytes(FILES[request.param])
    return made


def _figures(*arguments: str | Path, given: bytes = b"") -> Any:
    done = run("stats", "--json", "--by", "model", *arguments, given=given)
    assert done.returncode == 0, done.stderr.decode()
    found = json.loads(done.stdout)
    for group in [found["all"], *found["groups"]]:
        del group["loops"], group["longest"]
    return found


def test_stats_counts_the_same_of_every_kind(path: Path, tmp_path: Path) -> None:
    """Four replies, never the file as one; by its name, and from standard input by its first bytes."""
    (tmp_path / "all.jsonl").write_bytes(LINES)
    expected = _figures(tmp_path / "all.jsonl")
    assert expected["all"]["replies"] == 4
    assert _figures(path) == expected
    told = ["--as", "csv"] if ".csv" in path.name or ".tsv" in path.name else ["--as", "traces"]
    assert _figures("-", *told, given=path.read_bytes()) == expected


def test_batch_writes_the_same_of_every_kind(path: Path, tmp_path: Path) -> None:
    """To a file, and from standard input to standard output."""
    out = tmp_path / "out.jsonl"
    assert main(["batch", str(path), "-o", str(out)]) == 0
    found = read_lines(out)
    assert [row["id"] for row in found] == ["1", "2", "3", "4"]
    assert [row["thinking"] for row in found] == ['one,\n"two"', "", "", "[never] {closed} \\ "]
    assert [row["text"] for row in found] == ["three", "no thought; é 中 😀", "", ""]
    told = ["--as", "csv"] if "csv" in path.name or "tsv" in path.name else []
    if path.name in ("a.json.gz",):
        return  # what a compressed stream holds is not looked at
    done = run("batch", "-", *told, "-o", "-", given=path.read_bytes())
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout == out.read_bytes()
    assert b"rows that could not be read" in done.stderr


def test_import_saves_the_same_of_every_kind(path: Path, tmp_path: Path) -> None:
    """Each row once, whether from a file or from standard input; and what is saved is not saved again."""
    store = tmp_path / "h.db"
    done = run("history", "import", "--store", store, path)
    assert (done.returncode, done.stderr.decode()) == (0, f"asides: {path}: 4 replies saved\n")
    exported = [json.loads(line) for line in run("history", "export", "--store", store).stdout.splitlines()]
    found = {(each["model"], each["text"], *(thought["text"] for thought in each["thoughts"])) for each in exported}
    assert found == {
        ("a", "three", 'one,\n"two"'),
        ("b", "no thought; é 中 😀"),
        ("b", ""),
        ("a", "", "[never] {closed} \\ "),
    }
    assert b"0 replies saved, 4 already there" in run("history", "import", "--store", store, path).stderr
    told = ["--as", "csv"] if "csv" in path.name or "tsv" in path.name else []
    done = run("history", "import", "--store", tmp_path / "given.db", *told, given=path.read_bytes())
    assert (done.returncode, done.stderr) == (0, b"asides: standard input: 4 replies saved\n")


def test_a_pipe_with_a_name(path: Path, tmp_path: Path) -> None:
    """As `<(...)` makes one: a table in it is read too."""
    if "csv" in path.name or "tsv" in path.name:
        return
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(path.read_bytes()))
    writer.start()
    done = run("history", "import", "--store", tmp_path / "h.db", pipe)
    writer.join()
    assert (done.returncode, done.stderr.decode()) == (0, f"asides: {pipe}: 4 replies saved\n")


def test_folders_globs_and_addresses_are_imported(tmp_path: Path) -> None:
    """As `batch` takes them."""
    pytest.importorskip("fsspec", reason="fsspec is not here: pip install fsspec")
    folder = tmp_path / "traces"
    folder.mkdir()
    for number, record in enumerate(RECORDS):
        (folder / f"{number}.jsonl").write_text(json.dumps(record) + "\n")
    for number, meant in enumerate((f"{folder}", f"{folder}/*.jsonl", f"file://{folder}/*.jsonl")):
        store = tmp_path / f"{number}.db"
        done = run("history", "import", "--store", store, meant)
        assert (done.returncode, done.stderr.count(b": 1 reply saved\n")) == (0, 4), done.stderr
        assert run("history", "import", "--store", store, meant).stderr.count(b"1 already there") == 4


def test_rows_of_tables_that_python_cannot_hold(tmp_path: Path) -> None:
    """A text that is no UTF-8 and a date beyond the calendar cost their row; nanoseconds cost nothing."""
    bad = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff\xfe"], pa.binary()).buffers())
    table = pa.table(
        {
            "output": pa.chunked_array([["<think>a</think>b", "<think>c</think>d"], bad]),
            "time": pa.chunked_array([pa.array([1_700_000_000_000_000_001, 2, 3], pa.timestamp("ns"))]),
        }
    )
    path, store = tmp_path / "a.parquet", tmp_path / "h.db"
    pq.write_table(table, path)
    done = run("history", "import", "--store", store, path)
    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"asides: {path}, row 3: no UTF-8: a value of the row cannot be decoded",
        f"asides: {path}: 2 replies saved, 1 row skipped",
    ]
    counted = run("stats", path, "--json")
    assert json.loads(counted.stdout)["all"]["replies"] == 2
    assert b"cannot be read: 1 line" in counted.stderr


def test_a_column_that_is_not_there(tmp_path: Path) -> None:
    """One complaint, with what may have been meant."""
    path = tmp_path / "a.parquet"
    path.write_bytes(FILES["a.parquet"])
    done = run("history", "import", "--store", tmp_path / "h.db", path, "--field", "outptu")
    assert (done.returncode, done.stderr.decode()) == (
        2,
        f"asides: {path}: no column 'outptu'; did you mean output?\n",
    )


def test_a_conversation_by_its_id_is_no_output(tmp_path: Path) -> None:
    """An export of the history is counted by its answers, not by the names of its conversations."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"conversation": "5ab1", "text": "<think>a</think>b"}) + "\n")
    assert _figures_of(path)["fields"] == {"text": 1}


def test_nothing_stays_of_what_passes_through(tmp_path: Path) -> None:
    """No folder for a job that nobody can go on with, also where it fails."""
    for lines, code in ((LINES, 0), (b'{"nothing": 1}\n', 2)):
        done = run("batch", "-", "-o", "-", "--work", str(tmp_path), given=lines)
        assert done.returncode == code
        assert [*tmp_path.iterdir()] == []


def test_own_tags_and_a_model(tmp_path: Path) -> None:
    """In place of a format."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"output": "a plan</think>[PLAN]b[/PLAN]c"}) + "\n")
    for arguments, thinking in (
        (["--tags", "[PLAN]", "[/PLAN]"], "b"),
        (["--model", "deepseek-ai/DeepSeek-R1"], "a plan"),
    ):
        done = run("batch", str(path), "-o", "-", *arguments)
        assert json.loads(done.stdout)["thinking"] == thinking
        counted = _figures_of(path, *arguments)
        assert counted["all"]["totals"]["thinking_characters"] == len(thinking)
    both = ["-f", "think_tag", "--model", "deepseek-ai/DeepSeek-R1"]
    for command in (["batch", str(path), "-o", "-", *both], ["batch", str(path), "-o", "-", *both, "--jobs", "2"]):
        row = json.loads(run(*command).stdout)
        assert (row["format"], row["thinking"]) == ("think_tag", "a plan")


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("nobody/knows", "nothing is known of 'nobody/knows'; it is read as auto"),
        ("MiniMax-M2.99", "MiniMax 2.99, which is not known here; taken to begin like MiniMax"),
        ("Qwen/Qwen3-8B", ""),
        ("openai/gpt-oss-20b", ""),
    ],
)
def test_a_model_that_is_not_known_is_read_as_auto(model: str, told: str, tmp_path: Path) -> None:
    """It is said on standard error, once, by every command; and never an error."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"output": "<think>a</think>b"}) + "\n")
    text = tmp_path / "a.txt"
    text.write_text("<think>a</think>b")
    for command in (
        ["batch", path, "-o", "-"],
        ["stats", path],
        ["stats", path, "--jobs", "2"],
        ["history", "import", "--store", tmp_path / "h.db", path],
        ["split", text],
        ["view", text],
        [text],
    ):
        done = run(*command, "--model", model)
        assert done.returncode == 0, done.stderr
        said = [line for line in done.stderr.decode().splitlines() if "--model" in line]
        assert len(said) == bool(told)
        assert told in "".join(said)


def test_a_model_says_where_a_prompted_row_begins_only_without_a_prompt(tmp_path: Path) -> None:
    """The row's own prompt stands above the name, and its own format above the name's."""
    path = tmp_path / "a.jsonl"
    rows = [
        {"output": "a</think>b", "prompt": None, "format": None},
        {"output": "a", "prompt": "<think>\n\n</think>\n\n", "format": None},
        {"output": "a</think>b", "prompt": None, "format": "think_tag"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    fields = ["--prompt-field", "prompt", "--format-field", "format", "--prefix", "new_"]
    done = run("batch", path, "-o", "-", "--model", "Qwen/Qwen3-4B-Thinking-2507", *fields)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["new_format"], row["new_thinking"], row["new_text"]) for row in found] == [
        ("qwen3_thinking", "a", "b"),
        ("qwen3_thinking", "", "a"),
        ("think_tag", "a", "b"),
    ]


def test_what_harnesses_call_an_output(tmp_path: Path) -> None:
    """`resps`, a list of lists."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"doc_id": 1, "resps": [["<think>a</think>b"]], "target": "x"}) + "\n")
    assert _figures_of(path)["fields"] == {"resps": 1}
    done = run("batch", str(path), "-o", "-")
    assert json.loads(done.stdout)["thinking"] == "a"


def _figures_of(*arguments: str | Path) -> Any:
    return json.loads(run("stats", "--json", *arguments).stdout)


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.parquet"])
def test_a_field_that_holds_no_text_is_refused(name: str, tmp_path: Path) -> None:
    """With what it holds."""
    records = [{"score": 3, "parts": [1, 2], "output": "x"}]
    made = {"a.jsonl": json.dumps(records[0]).encode(), "a.json": json.dumps(records).encode()}
    (tmp_path / name).write_bytes(made.get(name) or _parquet(records))  # type: ignore[arg-type]
    for field in ("score", "parts"):
        done = run("batch", str(tmp_path / name), "-o", "-", "--field", field)
        assert done.returncode == 2
        assert b"no text" in done.stderr
        assert done.stdout == b""
        done = run("stats", str(tmp_path / name), "--field", field)
        assert done.returncode == 2
        assert b"holds no text" in done.stderr


def test_rows_of_csv_that_cannot_be_read(tmp_path: Path) -> None:
    """Each is told of, and the others are read."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,output\n1,a\n2,b,c,d\n3,\xff\n4,"x"y\n5,e\n6,"never closed\n')
    done = run("batch", str(path), "-o", "-")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    codes = [row["row_error"] and row["row_error"]["code"] for row in rows]
    assert codes == [None, "no_csv", "invalid_utf8", "no_csv", None, "no_csv"]
    counted = run("stats", str(path), "--json")
    assert json.loads(counted.stdout)["all"]["replies"] == 2
    assert b"4 values" in counted.stderr


def _cut(data: bytes, places: list[int]) -> Iterator[bytes]:
    before = 0
    for place in sorted(place % (len(data) + 1) for place in places):
        yield data[before:place]
        before = place
    yield data[before:]


@given(
    st.sampled_from(["json", "jsonl", "csv"]),
    st.lists(st.dictionaries(st.text(min_size=1), st.text() | st.integers() | st.none(), min_size=1), min_size=1),
    st.lists(st.integers(0, 10_000)),
)
def test_how_the_bytes_are_cut_does_not_matter(kind: InputKind, records: list[dict[str, Any]], cuts: list[int]) -> None:
    """Rows are those that were written, however the chunks fall."""
    if kind == "csv":
        records = [{"output": json.dumps(record)} for record in records]
        data = _csv(records)
    elif kind == "json":
        data = json.dumps(records).encode()
    else:
        data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    assert [decoded(row) for row in rows_of(kind, _cut(data, cuts))] == [(record, None) for record in records]
    packed = gzip.compress(data[:20]) + gzip.compress(data[20:])
    assert b"".join(unpacked(_cut(packed, cuts), "gzip")) == data


def test_an_element_that_is_not_valid_costs_itself() -> None:
    """And what is wrong with the array is the last row."""
    found = [decoded(row) for row in rows_of("json", [b'[{"a": 1}, {bad}, {"b": "]"}, {"c":'])]
    assert [problem and problem[0] for _, problem in found] == [None, "no_json", None, "no_json"]
    (row, last) = (decoded(row) for row in rows_of("json", [b"[1", b"] ", b" [2]"]))
    assert row == (1, None)
    assert last[1] == ("no_json", "not valid JSON: something follows the array")


def test_a_row_that_is_too_long_is_not_held() -> None:
    """Only its beginning is, whatever the chunks; those around it are read."""
    long = b'{"a": "' + b"x" * 5_000_000 + b'"}'
    for kind, data in (("jsonl", b"{}\n" + long + b"\n{}\n"), ("json", b"[{}," + long + b",{}]")):
        chunks = [data[at : at + 65536] for at in range(0, len(data), 65536)]
        first, between, last = rows_of(kind, chunks, 2_000_000)  # type: ignore[arg-type]
        assert decoded(first) == decoded(last) == ({}, None)
        assert (between.size, len(between.data)) == (len(long), 1_000_000)
        assert decoded(between)[1] == ("too_long", f"a row of {len(long):,} bytes; --row-limit allows more")
