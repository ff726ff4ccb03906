"""`asides split`: files, read as `asides.parse` reads them."""

from __future__ import annotations

import json
from pathlib import Path

import asides
from tests.cli.running import run

LONE = "so it is 4</think>It is 4.\n"
PLAIN = "Just words."


def files(folder: Path) -> tuple[Path, Path]:
    first, second = folder / "first.txt", folder / "second.txt"
    first.write_text(PLAIN)
    second.write_text(LONE)
    return first, second


def test_a_file_is_read_as_parse_reads_it(tmp_path: Path) -> None:
    _, lone = files(tmp_path)
    done = run("split", "-f", "qwen3", lone)
    message = asides.parse(LONE, "qwen3")
    assert done.stdout.decode() == message.text
    assert done.stderr.decode() == f"Thinking\n  {message.thinking}\n"
    assert done.returncode == 0


def test_start_may_be_given(tmp_path: Path) -> None:
    _, lone = files(tmp_path)
    done = run("split", "-f", "qwen3", "--start", "text", lone)
    assert done.stdout.startswith(b"so it is 4")
    assert b"--start thinking" in done.stderr


def test_several_files_each_on_its_own_line(tmp_path: Path) -> None:
    assert run("split", "-f", "qwen3", *files(tmp_path)).stdout == b"Just words.\nIt is 4.\n"


def test_numbers_name_the_file(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    done = run("split", "-f", "qwen3", "-n", first, second)
    assert done.stdout.decode() == f"{first}:1:Just words.\n{second}:1:It is 4.\n"
    assert done.stderr.decode() == f"{second}:thinking 1:1:so it is 4\n"
    done = run("split", "-f", "qwen3", "-n", "--only", "thinking", second, second)
    line = f"{second}:thinking 1:1:so it is 4"
    assert done.stdout.decode() == f"{line}\n{line}"


def test_json_names_the_file(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    events = [json.loads(line) for line in run("split", "-f", "qwen3", "--json", first, second).stdout.splitlines()]
    assert [event["path"] for event in events if event["type"] == "file"] == [str(first), str(second)]


def test_a_missing_file_does_not_stop_the_others(tmp_path: Path) -> None:
    first, _ = files(tmp_path)
    done = run("split", "-f", "qwen3", tmp_path / "none.txt", tmp_path, first)
    assert (done.returncode, done.stdout) == (2, b"Just words.")
    assert b"none.txt: No such file or directory" in done.stderr
    assert f"{tmp_path}: Is a directory".encode() in done.stderr


def test_strict_goes_on_with_the_next_file(tmp_path: Path) -> None:
    first, second = files(tmp_path)
    done = run("split", "-f", "qwen3", "--strict", "--start", "text", second, first)
    assert done.returncode == 1
    assert done.stdout == b"so it is 4\nJust words."
    assert f"{second}: stray_close".encode() in done.stderr


def test_standard_input_by_dash_or_by_nothing() -> None:
    for arguments in ([], ["-"]):
        done = run("split", "-f", "qwen3", *arguments, given=LONE.encode())
        assert (done.stdout, done.stderr) == (b"It is 4.\n", b"Thinking\n  so it is 4\n")


def test_each_file_starts_anew(tmp_path: Path) -> None:
    cut = tmp_path / "cut.txt"
    cut.write_text("<think>never closed")
    first, _ = files(tmp_path)
    assert run("split", "-f", "qwen3", cut, first).stdout == b"Just words."
