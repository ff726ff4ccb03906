"""Parquet files that are joined without being decoded are what one file of all their rows would be."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from asides._cli.batch import parquet_join
from asides._cli.batch.parquet_join import ParquetJoin
from asides.errors import Error
from tests.cli.batch_files import read_parquet, rows, write_lines, write_parquet
from tests.cli.running import COMMAND, environment, run
from tests.waiting import PATIENCE

WRITERS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "with indexes of pages": {"write_page_index": True},
    "zstd": {"compression": "zstd"},
    "no dictionaries, old pages": {"use_dictionary": False, "data_page_version": "1.0", "version": "1.0"},
    "new pages": {"data_page_version": "2.0", "write_statistics": False, "store_schema": False},
    "sorted": {"sorting_columns": [pq.SortingColumn(0)]},
}


def table(count: int = 700) -> Any:
    """Columns of every kind that footers say something of: more than 15, nested, null, truth values, numbers."""
    base = pa.table(
        {
            "n": pa.array(range(count)),
            "text": [None if row % 7 == 0 else f"text {row} é" * (row % 5) for row in range(count)],
            "yes": [row % 2 == 0 for row in range(count)],
            "share": [row / 3 for row in range(count)],
            "nested": [[{"a": str(row), "b": [row]}] * (row % 3) for row in range(count)],
            "none": pa.nulls(count),
        }
    )
    for number in range(15):
        base = base.append_column(f"c{number}", pa.array([number] * count, pa.int32()))
    return base


def join(target: Path, paths: list[Path]) -> Path:
    """The files as one."""
    with target.open("wb") as file:
        joined = ParquetJoin(file)
        for path in paths:
            joined.add(str(path))
        joined.finish()
    return target


def statistics(group: Any) -> list[Any]:
    """What a row group says of each of its columns."""
    found = [group.column(number).statistics for number in range(group.num_columns)]
    return [each and each.to_dict() for each in found]


@pytest.mark.parametrize("options", WRITERS.values(), ids=WRITERS.keys())
def test_joined_files_are_one_file(options: dict[str, Any], tmp_path: Path) -> None:
    """Rows, row groups and statistics, from files with several row groups, with one and with none."""
    whole = table()
    paths = []
    for number, (start, count) in enumerate([(0, 300), (300, 0), (300, 17), (317, 383)]):
        paths.append(tmp_path / f"{number}.parquet")
        pq.write_table(whole.slice(start, count), paths[-1], row_group_size=70, **options)
    target = join(tmp_path / "all.parquet", paths)
    assert pq.read_table(target).equals(whole)
    about = pq.read_metadata(target)
    parts = [pq.read_metadata(path) for path in paths]
    assert (about.num_rows, about.num_row_groups) == (700, sum(part.num_row_groups for part in parts))
    groups = [part.row_group(at) for part in parts for at in range(part.num_row_groups)]
    for at, group in enumerate(groups):
        found = about.row_group(at)
        assert found.num_rows == group.num_rows
        assert statistics(found) == statistics(group)
        # Each row group by itself: whoever looks for one finds it in its place.
        start = sum(each.num_rows for each in groups[:at])
        assert pq.ParquetFile(target).read_row_group(at).equals(whole.slice(start, group.num_rows))


def test_a_footer_is_carried_over_byte_for_byte(tmp_path: Path) -> None:
    """Read and written again it is the same, for every way of writing and for fields of kinds that Parquet lacks."""
    for number, options in enumerate(WRITERS.values()):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table(), path, row_group_size=30, **options)
        with path.open("rb") as file:
            start, footer = parquet_join._read_footer(file, str(path))
        written = bytearray()
        parquet_join._write_record(written, footer)
        assert bytes(written) == path.read_bytes()[start:-8]
    record = {
        2: (7, b"\x01" * 8),
        3: (13, b"\x02" * 16),
        40: (9, (1, [1, 2])),
        41: (3, 255),
        42: (1, False),
        90: (6, -(2**63)),
        91: (6, 2**63 - 1),
        200: (10, (8, [b"x"] * 20)),
    }
    written = bytearray()
    parquet_join._write_record(written, record)
    assert parquet_join._FooterReader(bytes(written)).record() == record


@pytest.mark.parametrize(
    "data", [b"", b"PAR1", b"PAR1" + b"\xff\xff\xff\x7fPAR1", b"x" * 100, b"PAR1\x1f" + b"\x01\0\0\0PAR1"]
)
def test_a_damaged_file_is_refused(data: bytes, tmp_path: Path) -> None:
    """With its name."""
    path = tmp_path / "range-000000.rows"
    path.write_bytes(data)
    with pytest.raises(Error, match=r"range-000000\.rows: is damaged"):
        join(tmp_path / "all.parquet", [path])


def test_the_parent_only_copies(tmp_path: Path) -> None:
    """What a range's file has before its footer stands in the output as it is."""
    source = write_parquet(tmp_path / "in.parquet", rows(300), group=50)
    out = tmp_path / "out.parquet"
    done = run("batch", str(source), "-o", str(out), "--range-size", "0.001", "--jobs", "2", "--keep")
    assert done.returncode == 0, done.stderr
    output = out.read_bytes()
    ranges = sorted(Path(f"{out}.partial").glob("range-*.rows"))
    assert len(ranges) == 6
    at = 4
    for path in ranges:
        with path.open("rb") as file:
            length, _ = parquet_join._read_footer(file, str(path))
        assert output[at : at + length - 4] == path.read_bytes()[4:length]
        at += length - 4


def test_killed_while_ranges_of_lines_are_encoded(tmp_path: Path) -> None:
    """Columns are known when all lines have been read. What is encoded by then is not encoded again."""
    source = write_lines(tmp_path / "in.jsonl", [{**row, f"only_{row['id']}": 1} for row in rows(60)])
    assert run("batch", str(source), "-o", str(tmp_path / "whole.parquet")).returncode == 0
    out = tmp_path / "out.parquet"
    command = ["batch", str(source), "-o", str(out), "--range-size", "0.0005", "--jobs", "2"]
    folder = Path(f"{out}.partial")
    for _ in range(20):
        process = subprocess.Popen([*COMMAND, *command], env=environment(), stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not list(folder.glob("*.encoded")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0005)
        process.kill()
        process.wait()
        if not out.exists():
            break
        out.unlink()  # all was done before it was killed: from the beginning
        shutil.rmtree(folder, ignore_errors=True)
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    before = {path: path.stat().st_ino for path in folder.glob("*.encoded")}
    assert before
    done = run(*command, "--resume", "--keep")
    assert done.returncode == 0, done.stderr
    assert {path: path.stat().st_ino for path in before} == before
    assert read_parquet(out) == read_parquet(tmp_path / "whole.parquet")
