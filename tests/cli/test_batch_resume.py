"""`asides batch` killed, interrupted or on a full disk: nothing finished is lost, and nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

from asides._cli import main
from tests.cli.batch_files import rows, write_lines, write_parquet
from tests.cli.running import COMMAND, Running, environment, run, unmeasured
from tests.waiting import PATIENCE

RANGES = 60


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table whose every row group is a range."""
    return write_parquet(tmp_path_factory.mktemp("in") / "in.parquet", rows(RANGES * 40), group=40)


def manifest(output: Path) -> list[dict[str, Any]]:
    """The ranges that are finished; a line that is cut off is none."""
    path = Path(f"{output}.partial/manifest.jsonl")
    lines = path.read_bytes().split(b"\n")[1:-1] if path.exists() else []
    return [json.loads(line) for line in lines]


def finished_files(output: Path) -> dict[int, tuple[int, int]]:
    """Which file each finished range is: its inode and when it was written."""
    found = {}
    for entry in manifest(output):
        about = os.stat(f"{output}.partial/range-{entry['range']:06d}.rows")
        found[entry["range"]] = (about.st_ino, about.st_mtime_ns)
    return found


def test_killed_at_ten_moments_it_goes_on(source: Path, tmp_path: Path) -> None:
    """With SIGKILL: no half file ever has a name, no finished range is split again, and the columns are the same."""
    choose = random.Random(os.urandom(8))
    assert main(["batch", str(source), "-o", str(tmp_path / "whole.parquet"), "--range-size", "0.001"]) == 0
    out = tmp_path / "out.parquet"
    arguments = ["batch", str(source), "-o", str(out), "--range-size", "0.001", "--resume"]
    kills = 0
    while kills < 10 or out.exists():
        if out.exists():  # all was done before we came to kill it: from the beginning
            out.unlink()
        before = finished_files(out)
        command = [*COMMAND, *arguments, "--jobs", str(kills % 2 + 1)]
        process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        wanted = len(before) + choose.randint(0, 4)
        deadline = time.monotonic() + PATIENCE
        while len(manifest(out)) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        time.sleep(choose.uniform(0, 0.03))
        process.kill()
        errors = process.communicate()[1]
        assert b"Traceback" not in errors
        kills += process.returncode == -signal.SIGKILL
        after = finished_files(out) if Path(f"{out}.partial").exists() else {}
        assert after.items() >= before.items() or out.exists()
        numbers = [entry["range"] for entry in manifest(out)]
        assert len(numbers) == len(set(numbers))
        assert out.exists() or not list(tmp_path.glob("out.*.tmp"))
    before = finished_files(out)
    done = run(*arguments, "--jobs", "2", "--keep")
    assert done.returncode == 0, done.stderr
    after = finished_files(out)
    assert after.items() >= before.items()
    assert sorted(after) == list(range(RANGES))
    assert len(manifest(out)) == RANGES
    assert pq.read_table(out).equals(pq.read_table(tmp_path / "whole.parquet"))


def test_workers_end_with_a_killed_parent(source: Path, tmp_path: Path) -> None:
    """None goes on splitting for nobody."""
    out = tmp_path / "out.parquet"
    for process in started(out, "batch", str(source), "-o", str(out), "--range-size", "0.001", "--jobs", "2"):
        pid = process.process.pid
        try:
            workers = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except FileNotFoundError:
            continue  # it has ended
        process.process.kill()
        if process.wait() == -signal.SIGKILL and workers:
            break
    assert workers
    deadline = time.monotonic() + PATIENCE
    while any(os.path.exists(f"/proc/{worker}") for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)


def started(out: Path, *arguments: str) -> Iterator[Running]:
    """The job as it has finished a range; again from the beginning as long as it had ended before it was stopped."""
    for _ in range(20):
        out.unlink(missing_ok=True)
        shutil.rmtree(f"{out}.partial", ignore_errors=True)
        with Running(*arguments) as process:
            while not manifest(out) and process.process.poll() is None:
                time.sleep(0.001)
            yield process


def interrupted(out: Path, *arguments: str) -> str:
    """Leave a job behind that did not end because of Ctrl-C; what it printed."""
    for process in started(out, *arguments):
        process.process.send_signal(signal.SIGINT)
        code, printed = process.wait(), process.read_rest(process.stderr).decode()
        if code and len(manifest(out)) < RANGES:
            break  # else all ranges were finished, and perhaps being joined
    assert code == 130
    return printed


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_finishes_what_runs_and_prints_how_to_go_on(source: Path, tmp_path: Path, jobs: str) -> None:
    """Exit code 130; the command that it prints does the rest."""
    out = tmp_path / "out.parquet"
    arguments = ["batch", str(source), "-o", str(out), "--range-size", "0.001", "--jobs", jobs, "--figures"]
    printed = interrupted(out, *arguments)
    assert "Traceback" not in printed
    assert not out.exists()
    assert not list(Path(f"{out}.partial").glob("range-*.tmp"))
    finished = len(manifest(out))
    assert 0 < finished < RANGES
    assert ("finishing the ranges that are being split; press Ctrl-C again" in printed) == (jobs == "2")
    assert f"{finished} of {RANGES} ranges are finished in {out}.partial; continue with: asides batch " in printed
    again = printed.partition("continue with: asides ")[2].split()
    done = run(*again)
    assert done.returncode == 0, done.stderr
    assert f"{finished} of {RANGES} ranges were finished before" in done.stderr.decode()
    assert pq.read_metadata(out).num_rows == RANGES * 40
    assert not Path(f"{out}.partial").exists()


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="there is no second file system")
def test_a_working_folder_on_another_disk(source: Path, tmp_path: Path) -> None:
    """Where a file cannot simply be renamed, the output still has its name only when it is whole."""
    out = tmp_path / "out.parquet"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as work:
        done = run("batch", str(source), "-o", str(out), "--work", work, "--keep")
        assert done.returncode == 0, done.stderr
        folder = Path(work) / "out.parquet.partial"
        assert sorted(path.name for path in folder.iterdir()) == ["lock", "manifest.jsonl", "range-000000.rows"]
    assert pq.read_metadata(out).num_rows == RANGES * 40
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_resume_refuses_another_job(source: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Other options, other inputs, inputs that have changed: it names what differs, and changes nothing."""
    copy = tmp_path / "in.parquet"
    copy.write_bytes(source.read_bytes())
    out = tmp_path / "out.parquet"
    interrupted(out, "batch", str(copy), "-o", str(out), "--range-size", "0.001")
    before = finished_files(out)
    same = ["batch", str(copy), "-o", str(out), "--range-size", "0.001"]
    refused = [
        (same, "is left from a job that was stopped; --resume continues it, --force starts again"),
        ([*same, "--resume", "--format", "qwen3"], 'format was "auto", is "qwen3"'),
        ([*same, "--resume", "--exact"], 'whitespace was "tidy", is "exact"'),
        ([*same, "--resume", "--raw"], "raw was false, is true"),
        ([*same, "--resume", "--limit", "7"], "limit_rows was null, is 7"),
        ([*same, str(source), "--resume"], f"{source} was no input"),
    ]
    for arguments, words in refused:
        assert main(arguments) == 2
        assert words in capfd.readouterr().err
    os.utime(copy, (1, 1))
    assert main([*same, "--resume"]) == 2
    assert f"{copy} has changed" in capfd.readouterr().err
    assert finished_files(out) == before
    assert main([*same, "--force"]) == 0
    assert pq.read_metadata(out).num_rows == RANGES * 40


def test_two_jobs_do_not_work_on_one_output(source: Path, tmp_path: Path) -> None:
    """The second one is refused while the first runs."""
    out = tmp_path / "out.parquet"
    for process in started(out, "batch", str(source), "-o", str(out), "--range-size", "0.001", "--figures"):
        process.process.send_signal(signal.SIGSTOP)
        second = run("batch", source, "-o", out, "--range-size", "0.001", "--figures", "--resume")
        ended = process.process.poll() is not None  # before it could be stopped
        process.process.send_signal(signal.SIGCONT)
        assert process.wait() == 0
        if not ended:
            break
    assert second.returncode == 2
    assert b"another job is writing this output" in second.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("name", ["out.parquet", "out.jsonl"])
def test_a_full_disk(tmp_path: Path, jobs: str, name: str) -> None:
    """While a range is written, or while they are joined: a reason, exit code 2, and what is finished stays."""
    source = write_lines(
        tmp_path / "in.jsonl", [{"text": f"<think>a</think>{os.urandom(500).hex()}"} for _ in range(600)]
    )
    out = tmp_path / name
    arguments: list[str | Path] = ["batch", source, "-o", out, "--range-size", "0.1", "--jobs", jobs]

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    command = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, env=unmeasured(), timeout=PATIENCE, preexec_fn=limited)
    printed = done.stderr.decode()
    assert done.returncode == 2
    assert "File too large" in printed
    assert "Traceback" not in printed
    assert not out.exists()
    finished = len(manifest(out))
    assert finished
    assert "--resume" in printed
    before = finished_files(out)
    again = run(*arguments, "--resume", "--keep")
    assert again.returncode == 0, again.stderr
    assert finished_files(out).items() >= before.items()
    count = pq.read_metadata(out).num_rows if name.endswith("parquet") else out.read_bytes().count(b"\n")
    assert count == 600


def test_a_full_file_system(tmp_path: Path) -> None:
    """A real one: ENOSPC is told, and after making space the job goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting needs a privilege that this process has not")
    try:
        source = write_lines(tmp_path / "in.jsonl", [{"text": os.urandom(500).hex()} for _ in range(600)])
        arguments: list[str | Path] = ["batch", source, "-o", disk / "out.jsonl", "--range-size", "0.05"]
        done = run(*arguments)
        assert done.returncode == 2
        assert b"No space left on device" in done.stderr
        assert b"Traceback" not in done.stderr
        assert manifest(disk / "out.jsonl")
        subprocess.run(["mount", "-o", "remount,size=9m", disk], check=True)
        assert run(*arguments, "--resume").returncode == 0
        assert (disk / "out.jsonl").read_bytes().count(b"\n") == 600
    finally:
        subprocess.run(["umount", disk], check=True)
