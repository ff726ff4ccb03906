"""`asides stats --jobs`: any number of processes gives what one gives, and none of them is left or lost in silence."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from asides._cli.inputs.rows import InputRow
from asides._cli.stats import jobs
from asides._cli.stats.jobs import Jobs, count_lines
from asides._cli.stats.read import Counting
from asides._cli.streams import STDERR, OutputStream
from asides.analysis._summary import MOST_GROUPS
from asides.errors import Error
from asides.terminal._progress import Progress
from tests.cli.running import COMMAND, Running, run, unmeasured

FRAGMENTS = (
    "Wait, is it? ",
    "Let me check.\n\n",
    "It is four. ",
    "等等，不对。",
    "so we try it again and it fails " * 9,
)


def generated(count: int, seed: int = 1) -> bytes:
    """Traces with everything that depends on order: oddities, many groups, several fields, ties, half a surrogate."""
    choose = random.Random(seed)
    lines = []
    for _ in range(count):
        thought = "".join(choose.choices(FRAGMENTS, k=choose.randint(0, 9)))
        record = {
            "model": f"model {choose.randint(0, MOST_GROUPS + 40)}",
            choose.choice(("text", "output", "nothing")): f"<think>{thought}</think>\ud800",
        }
        lines.append(choose.choice(("", "nonsense", *[json.dumps(record)] * 8)))
    return "\n".join(lines).encode() + b"\n"


def hidden() -> Progress:
    return Progress(OutputStream(STDERR), hidden=True)


@pytest.mark.parametrize("count", [2, 3])
def test_any_number_of_processes_counts_the_same(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Law: batches of a few lines, counted by whoever is free, come to exactly what one process counts."""
    monkeypatch.setattr(jobs, "BATCH", 20_000)
    setup: dict[str, Any] = {"by": "model"}
    one, several = Counting(**setup), Counting(**setup)
    with Jobs(count, setup, several, hidden()) as handed:
        for path, seed in (("a", 1), ("b", 2)):
            given = enumerate(generated(800, seed).split(b"\n"))
            lines = [(InputRow(number, line, len(line)), path, f"{path}:{number}") for number, line in given if line]
            count_lines(one, lines)
            for line in lines:
                handed.add(*line)
        handed.finish()
        assert len(handed._workers) == count
    assert json.dumps(several.to_dict()) == json.dumps(one.to_dict())
    assert several.notes() == one.notes()
    assert len(one.groups.summaries) == MOST_GROUPS + 1


def test_the_command_says_the_same(tmp_path: Path) -> None:
    """From files and from a pipe, with a reply and a document between the traces; small input starts no process."""
    (tmp_path / "a.jsonl").write_bytes(generated(7000, 3))
    (tmp_path / "reply.txt").write_bytes(b"<think>Wait.</think>No.")
    (tmp_path / "list.json").write_bytes(b'[{"answer": "<think>Hm.</think>x"}]')
    (tmp_path / "b.jsonl").write_bytes(generated(50, 4))
    files = [tmp_path / name for name in ("a.jsonl", "reply.txt", "list.json", "b.jsonl")]
    assert files[0].stat().st_size > 2 * jobs.BATCH
    one = run("stats", "--json", "--by", "model", *files)
    several = run("stats", "--json", "--by", "model", "--jobs", "2", *files)
    assert (several.returncode, several.stdout, several.stderr) == (0, one.stdout, one.stderr)
    piped = files[0].read_bytes()
    assert (
        run("stats", "--json", "--jobs=auto", given=piped).stdout == run("stats", "--json", given=piped).stdout != b""
    )


def test_tags_of_ones_own_reach_the_workers(tmp_path: Path) -> None:
    """They are no format that has a name."""
    path = tmp_path / "own.jsonl"
    path.write_bytes(b'{"text": "<plan>%b</plan>Four."}\n' % (b"Two and two. " * 80) * (2 * jobs.BATCH // 1000))
    tags = ("--tags", "<plan>", "</plan>")
    one, several = (run("stats", "--json", *tags, *more, path) for more in ([], ["--jobs", "2"]))
    assert (several.returncode, several.stdout) == (0, one.stdout)
    assert b'"thinking_words": 0' not in one.stdout


def test_ctrl_c_shows_what_was_counted_and_leaves_no_process() -> None:
    """One progress display, then the figures of all workers up to there, and exit code 130."""
    lines = b"".join(line + b"\n" for line in generated(300).split(b"\n") if line)
    with Running("stats", "--jobs", "2", "--as", "traces", terminals="stderr") as process:
        shown = b""
        os.set_blocking(process.stderr, False)
        while b"replies" not in shown and process.process.poll() is None:
            process.write(lines)
            with suppress(BlockingIOError):
                shown += os.read(process.stderr, 65536)
        os.set_blocking(process.stderr, True)
        workers = children(process.process.pid)
        os.kill(process.process.pid, signal.SIGINT)
        table = process.read_rest(process.stdout).decode()
        assert process.wait() == 130
        assert "words of thinking" in table
        said = process.read_rest(process.stderr).decode()
        assert "interrupted" in said
        assert "Traceback" not in said
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)


def children(process: int) -> list[int]:
    """The processes that a process started, where the system tells."""
    path = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def test_a_worker_that_dies_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that says which lines are lost; no figures are shown as if they were whole."""
    monkeypatch.setattr(jobs, "BATCH", 1000)
    with Jobs(1, {}, Counting(), hidden()) as handed:
        handed.add(InputRow(6, b" " * 1000), "a", "a:7")
        handed.add(InputRow(7, b" "), "a", "a:8")
        (worker,) = handed._workers
        worker._process.kill()
        worker._process.wait()
        worker._output.read()
        with pytest.raises(Error, match=r"ended by signal 9 while it counted a:7 to a:7; out of memory"):
            handed.finish()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--jobs", "many"], "must be a number of processes or auto, not 'many'"),
        (["--history", "--jobs", "2"], "--jobs cannot be used with --history, which one process reads\n"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    """One line of reason."""
    done = run("stats", *arguments)
    assert done.returncode == 2
    assert words in done.stderr.decode()


def test_one_process_imports_nothing_of_it() -> None:
    """Starting is as fast as it was."""
    script = (
        "import sys\nfrom asides._cli import main\nmain(['stats', '--json'])\n"
        "print(*(name for name in ('asides._cli.stats.jobs', 'subprocess', 'multiprocessing') if name in sys.modules),"
        " file=sys.stderr)\n"
    )
    done = subprocess.run([COMMAND[0], "-c", script], input=b"", capture_output=True, env=unmeasured())
    assert done.stderr.strip() == b""
