"""What `asides batch` cannot read: each has its reason and its exit code, and nothing that was written is lost."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from asides._cli import main
from tests.cli.batch_files import read_lines, read_parquet, rows, write_lines, write_parquet

ROW = {"id": 1, "text": "<think>a</think>b", "model": "m"}


def refused(capfd: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    """The reason of a command that ends with exit code 2."""
    try:
        code: object = main(["batch", *map(str, arguments)])
    except SystemExit as ended:
        code = ended.code
    assert code == 2
    found = capfd.readouterr()
    assert found.out == ""
    return found.err


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl", "in.arrow"])
@pytest.mark.parametrize("option", ["--field", "--format-field", "--prompt-field", "--by"])
def test_a_column_that_does_not_exist(
    name: str, option: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The names there are, and the nearest; nothing is left behind."""
    path = tmp_path / name
    if name.endswith(".arrow"):
        table = pa.Table.from_pylist([ROW])
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    else:
        (write_lines if name.endswith("l") else write_parquet)(path, [ROW])
    reason = refused(capfd, path, "-o", tmp_path / "out.parquet", option, "txet")
    what = "field" if name.endswith("l") else "column"
    assert f"{path}: no {what} 'txet'; did you mean text? it has id, text, model" in reason
    assert list(tmp_path.iterdir()) == [path]


def test_a_column_that_is_no_text(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its type is named; and so is a table in which nothing looks like an output."""
    path = write_parquet(tmp_path / "in.parquet", [{"id": 1, "n": 2.5}])
    assert "the column 'n' holds double, no text" in refused(capfd, path, "-o", tmp_path / "o.parquet", "--field", "n")
    assert "no output found; it has id, n; --field names" in refused(capfd, path, "-o", tmp_path / "o.parquet")


@pytest.mark.parametrize(("name", "kind"), [("in.parquet", "a Parquet"), ("in.arrow", "an Arrow")])
def test_a_file_that_is_something_else(name: str, kind: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Refused before anything is written, whether it is empty, cut off or another thing."""
    good = write_parquet(tmp_path / "good.parquet", [ROW])
    for content in (b"", b"PAR1", b'{"text": "a"}\n' * 100, good.read_bytes()[:-20]):
        (tmp_path / name).write_bytes(content)
        reason = refused(capfd, good, tmp_path / name, "-o", tmp_path / "out.parquet")
        assert f"{tmp_path / name}: not {kind} file: " in reason
    assert not list(tmp_path.glob("out*"))
    (tmp_path / "notes.txt").write_text("Dear all")
    assert "neither Parquet nor Arrow nor JSON nor CSV" in refused(
        capfd, tmp_path / "notes.txt", "-o", tmp_path / "out.parquet"
    )


def _damage(path: Path, group: int) -> None:
    about = pq.ParquetFile(path).metadata.row_group(group).column(2)
    data = bytearray(path.read_bytes())
    at = about.dictionary_page_offset or about.data_page_offset
    data[at : at + 200] = b"\xff" * 200
    path.write_bytes(data)


@pytest.mark.parametrize("size", ["0.0001", "32"], ids=["a range each", "one range"])
@pytest.mark.parametrize("out", ["out.parquet", "out.jsonl"])
def test_a_damaged_row_group(tmp_path: Path, capfd: pytest.CaptureFixture[str], size: str, out: str) -> None:
    """It costs its own rows, which stay rows; the reason names the file and the row group."""
    path = write_parquet(tmp_path / "in.parquet", rows(400), group=100)
    _damage(path, 2)
    errors = tmp_path / "bad.jsonl"
    command = ["batch", str(path), "-o", str(tmp_path / out), "--range-size", size, "--errors", str(errors)]
    assert main(command) == 1
    assert f"{path}: row group 2 is damaged" in capfd.readouterr().err
    found = (read_parquet if out.endswith("parquet") else read_lines)(tmp_path / out)
    assert [row["id"] for row in found] == [None if 200 <= id < 300 else id for id in range(400)]
    assert [row["row_error"] is None for row in found] == [not 200 <= id < 300 for id in range(400)]
    assert {row["row_error"]["code"] for row in found[200:300]} == {"damaged"}
    assert [problem["row"] for problem in read_lines(errors)] == list(range(200, 300))
    assert not (tmp_path / f"{out}.partial").exists()


def test_a_damaged_row_group_beside_other_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of several files the one is named that has it; rows of the others are all there, also with workers."""
    good = write_parquet(tmp_path / "good.parquet", rows(300), group=100)
    bad = write_parquet(tmp_path / "worse.parquet", rows(300), group=100)
    _damage(bad, 0)
    out = tmp_path / "out.jsonl"
    assert main(["batch", str(bad), str(good), "-o", str(out), "--range-size", "0.0001", "--jobs", "2"]) == 1
    reason = capfd.readouterr().err
    assert f"{bad}: row group 0 is damaged" in reason
    assert str(good) not in reason
    assert "100 rows are lost" in reason
    assert sum(row["row_error"] is None for row in read_lines(out)) == 500


def test_compressed_lines_that_end_in_the_middle(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What came before is written, and the end is a row that says what is wrong."""
    path = tmp_path / "in.jsonl.gz"
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows(20_000))
    path.write_bytes(gzip.compress(lines)[:-10_000])
    out = tmp_path / "out.jsonl"
    assert main(["batch", str(path), "-o", str(out)]) == 1
    assert f"{path}: damaged after " in capfd.readouterr().err
    *found, last = read_lines(out)
    assert len(found) > 100
    assert all(row["row_error"] is None for row in found[:-1])
    assert last["row_error"]["code"] == "damaged"


def test_a_row_of_70_megabytes(tmp_path: Path) -> None:
    """More than is allowed: not split, counted, listed; the rest of it and all other rows are there. `--row-limit`."""
    long, longer = ("<think>a</think>" + "x" * count for count in (7_000_000, 70_000_000))
    lines = write_lines(tmp_path / "in.jsonl", [ROW, {**ROW, "id": 2, "text": long}, {**ROW, "id": 3}])
    table = write_parquet(tmp_path / "in.parquet", [ROW, {**ROW, "id": 2, "text": longer}, {**ROW, "id": 3}])
    sources: list[tuple[Path, list[str], str]] = [(lines, ["--row-limit", "6"], "7,000,016"), (table, [], "70,000,016")]
    for source, limit, size in sources:
        errors = tmp_path / "bad.jsonl"
        command = ["batch", str(source), "-o", str(tmp_path / "o.parquet"), "--errors", str(errors), "--force"]
        assert main([*command, *limit]) == 0
        found = read_parquet(tmp_path / "o.parquet")
        assert [(row["id"], row["text"]) for row in found] == [(1, "b"), (2, None), (3, "b")]
        assert found[1]["row_error"]["code"] == "too_long"
        assert f"{size} bytes" in found[1]["row_error"]["message"]
        (problem,) = read_lines(errors)
        assert problem["code"] == "too_long"
        assert problem["file"] == str(source)
        assert {"line": 2}.items() <= problem.items() or {"row": 1}.items() <= problem.items()
        assert len(problem["raw"]) == 1_000_000
    assert main(["batch", str(table), "-o", str(tmp_path / "o.parquet"), "--row-limit", "71", "--force"]) == 0
    assert len(read_parquet(tmp_path / "o.parquet")[1]["text"]) == 70_000_000


def test_a_line_that_is_longer_than_can_be_read(tmp_path: Path) -> None:
    """It is passed over without being held, and the lines around it are read."""
    source = write_lines(tmp_path / "in.jsonl", [ROW, {**ROW, "text": "x" * 5_000_000}, {**ROW, "id": 3}])
    assert main(["batch", str(source), "-o", str(tmp_path / "o.jsonl"), "--row-limit", "0.5"]) == 0
    found = read_lines(tmp_path / "o.jsonl")
    assert [row.get("id") for row in found] == [1, None, 3]
    assert found[1]["row_error"]["code"] == "too_long"
    assert "a row of 5,000,0" in found[1]["row_error"]["message"]


BAD: list[tuple[Any, str, str]] = [
    (b'{"id": 5, "text": "\xff\xfe"}', "invalid_utf8", "byte 19 of the row"),
    (b'{"id": 5, "text": ', "no_json", "not valid JSON"),
    ({"id": 5, "other": 1}, "no_output", "no field holds"),
    ({"id": 5, "outputs": ["a", "b"]}, "several_replies", "--turns"),
    ({"id": 5, "text": "a", "format": "mine"}, "name_taken", "--prefix"),
]


@pytest.mark.parametrize(("bad", "code", "words"), BAD, ids=[code for _, code, _ in BAD])
@pytest.mark.parametrize("output", ["out.jsonl", "out.parquet"])
def test_a_bad_line(
    bad: Any, code: str, words: str, output: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A row of its own with a reason; counted, listed with its line, and the exit code only as asked for."""
    good = [{**ROW, "id": number} for number in range(300)]
    source = write_lines(tmp_path / "in.jsonl", [*good[:200], b"", bad, *good[200:]])
    out, errors = tmp_path / output, tmp_path / "bad.jsonl"
    arguments = ["batch", str(source), "-o", str(out), "--errors", str(errors), "--range-size", "0.002", "--force"]
    assert main([*arguments, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["errors"] == {code: 1}
    found = read_lines(out) if output.endswith("l") else read_parquet(out)
    assert len(found) == 301
    assert found[200]["row_error"]["code"] == code
    assert words in found[200]["row_error"]["message"]
    assert [row["text"] for row in found] == ["b"] * 200 + [None] + ["b"] * 100
    (problem,) = read_lines(errors)
    assert (problem["file"], problem["line"], problem["code"]) == (str(source), 202, code)
    written = bad if isinstance(bad, bytes) else json.dumps(bad).encode()
    assert problem["raw"] == written.decode("utf-8", "backslashreplace")
    assert main([*arguments, "--fail-above", "0.5%"]) == 0
    assert main([*arguments, "--fail-above", "0.3%"]) == 1
    assert "more than --fail-above allows" in capfd.readouterr().err
    assert main([*arguments, "--fail-above", "1"]) == 0
    assert main([*arguments, "--fail-above", "0"]) == 1
    assert len(found) == 301


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
def test_an_unknown_format_in_a_column(name: str, tmp_path: Path) -> None:
    """That row alone; the nearest names are in its error."""
    records = [{**ROW, "how": how} for how in ("qwen3", "qwem3", None)]
    source = (write_lines if name.endswith("l") else write_parquet)(tmp_path / name, records)
    errors = tmp_path / "bad.jsonl"
    options = ["--format-field", "how", "--errors", str(errors)]
    assert main(["batch", str(source), "-o", str(tmp_path / "o.parquet"), *options]) == 0
    found = read_parquet(tmp_path / "o.parquet")
    assert [row["text"] for row in found] == ["b", None, "b"]
    assert found[1]["row_error"]["code"] == "unknown_format"
    assert "did you mean qwen3" in found[1]["row_error"]["message"]
    (problem,) = read_lines(errors)
    assert problem["raw"] == ROW["text"]


def test_invalid_utf8_in_a_table(tmp_path: Path) -> None:
    """Arrow does not check its strings: that row alone is bad."""
    column = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.array([0, 1, 3, 4], pa.int32()).buffers()[1], pa.py_buffer(b"a\xff\xfeb")]
    )
    path = tmp_path / "in.arrow"
    table = pa.table({"text": column})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    errors = tmp_path / "bad.jsonl"
    arguments = ["batch", str(path), "-o", str(tmp_path / "o.jsonl"), "--field", "text", "--errors", str(errors)]
    assert main(arguments) == 0
    found = read_lines(tmp_path / "o.jsonl")
    assert [row["text"] for row in found] == ["a", None, "b"]
    assert found[1]["row_error"]["code"] == "invalid_utf8"
    assert read_lines(errors)[0]["raw"] == "\\xff\\xfe"


def test_an_output_that_exists(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It stays as it is, unless `--force` replaces it, when the new one is whole."""
    source = write_lines(tmp_path / "in.jsonl", [ROW])
    out = tmp_path / "out.jsonl"
    out.write_text("precious")
    assert f"{out}: exists already; --force" in refused(capfd, source, "-o", out)
    assert out.read_text() == "precious"
    assert refused(capfd, source, "-o", out, "--force", "--field", "nothing")
    assert out.read_text() == "precious"
    assert main(["batch", str(source), "-o", str(out), "--force"]) == 0
    assert read_lines(out)[0]["text"] == "b"


def test_tables_without_rows(tmp_path: Path) -> None:
    """They have columns, and so has the output."""
    source = tmp_path / "in.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.int64()), "text": pa.array([], pa.string())}), source)
    for name in ("out.parquet", "out.jsonl", "out.arrow"):
        assert main(["batch", str(source), "-o", str(tmp_path / name)]) == 0
    names = ["id", "thinking", "text", "calls", "termination", "notices", "format", "beyond", "row_error"]
    assert pq.read_schema(tmp_path / "out.parquet").names == names
    assert pq.read_metadata(tmp_path / "out.parquet").num_rows == 0


def test_other_wrong_usage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One line of reason each."""
    source = write_lines(tmp_path / "in.jsonl", [ROW])
    taken = write_parquet(tmp_path / "taken.parquet", [{**ROW, "thinking": "mine"}])
    number = write_parquet(tmp_path / "number.parquet", [{**ROW, "id": "x"}])
    other = write_parquet(tmp_path / "other.parquet", [ROW])
    (tmp_path / "empty").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    out = tmp_path / "out.parquet"
    for arguments, words in (
        ([source], "required: -o"),
        ([source, "-o", tmp_path / "out.csv"], "the name of the output must end in one of .parquet"),
        ([source, "-o", tmp_path / "no" / "out.parquet"], "there is no folder"),
        ([source, "-o", "nosuch://bucket/out.parquet"], "nosuch://bucket/out.parquet: Protocol not known: nosuch"),
        ([source, "-o", out, "--errors", "s3://bucket/bad.jsonl"], "only OUT may be an address"),
        ([source, "-o", out, "--work", tmp_path / "no"], "there is no folder"),
        ([source, "-o", source, "--force"], "the output cannot be an input too"),
        ([source, "-o", tmp_path / "folder.parquet", "--force"], "is a folder; name a file"),
        (["-", "-o", out, "--resume"], "--resume and --keep need files"),
        ([source, "-o", "-", "--json"], "-o - and --json would write to the same place"),
        ([tmp_path / "none.parquet", "-o", out], "no such file"),
        ([tmp_path / "empty", "-o", out], "no file here ends in .parquet"),
        ([f"file://{tmp_path}/none.parquet", "-o", out], "no such file"),
        (["nosuch://bucket/x.parquet", "-o", out], "nosuch://bucket/x.parquet: "),
        ([taken, "-o", out], "has thinking already, as new columns are called; --prefix split_"),
        ([other, number, "-o", out], "the column 'id' has types that do not go together: int64, string"),
        ([source, "-o", out, "--format", "qwem3"], "did you mean qwen3"),
        ([source, "-o", out, "--fail-above", "many"], "must be a share such as 0.1% or a number of rows"),
        ([source, "-o", out, "--limit", "0"], "must be a number of rows above 0"),
        ([source, "-o", out, "--range-size", "-1"], "must be a number of megabytes above 0"),
        ([source, "-o", out, "--tokenizer", tmp_path / "none.json"], "none.json: no such file"),
    ):
        reason = refused(capfd, *arguments)
        assert words in reason, arguments
        assert "Traceback" not in reason
        assert not out.exists()
        assert not Path(f"{out}.partial").exists(), arguments


@pytest.mark.parametrize(
    ("module", "source", "words"),
    [("pyarrow", "in.jsonl", "asides batch needs pyarrow"), ("fsspec", "file:///in.jsonl", "addresses need fsspec")],
)
def test_a_package_that_is_missing(
    module: str,
    source: str,
    words: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The error says what to install."""
    monkeypatch.setitem(sys.modules, module, None)
    reason = refused(capfd, source, "-o", tmp_path / "out.parquet")
    assert words in reason
    assert f"pip install {module}" in reason
