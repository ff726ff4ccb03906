"""`asides stats` as a real process: replies, traces, the history; tables, JSON and the report."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import asides
from asides import _history as history
from asides.reply._reply import Reply, Times
from tests.cli.running import Running, environment, run
from tests.detect.test_tokenizer import QWEN, tokenizer_json, write
from tests.waiting import PATIENCE

LOOP = "so we try it again with the other one and it fails " * 12
RECORDS: list[dict[str, Any]] = [
    {"model": "calm", "text": "<think>Add two and two.</think>Four."},
    {"model": "calm", "text": "<think>Add them.\n\nIs it four?</think>Four.", "thinking_seconds": 2.5},
    {"model": "calm", "text": "No thinking."},
    {"model": "restless", "text": "<think>Wait, is it? Let me check.\n\nAlternatively, five.</think>Four."},
    {"model": "restless", "text": f"<think>{LOOP}"},
]


def lines(records: list[Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lines(RECORDS))
    return path


def told(*arguments: str | Path, given: bytes = b"", code: int = 0) -> Any:
    """What `--json` says."""
    done = run("stats", "--json", *arguments, given=given)
    assert done.returncode == code, done.stderr.decode()
    return json.loads(done.stdout)


def test_a_reply(tmp_path: Path) -> None:
    """A text is one reply, from a file or from standard input."""
    reply = b"<think>Wait, is it four? Let me check.</think>It is four."
    path = tmp_path / "reply.txt"
    path.write_bytes(reply)
    shown = run("stats", path).stdout.decode()
    assert shown.startswith("1 reply in 1 file\n")
    assert "words of thinking                          7" in shown
    assert "questions                                  1" in shown
    assert "looping                                   no" in shown
    assert "form of the thoughts" in shown
    assert "quality" not in shown
    assert "  substance" in shown
    assert told(given=reply)["all"] == {**told(path)["all"], "longest": told(given=reply)["all"]["longest"]}


def test_traces_by_model_stand_side_by_side(traces: Path) -> None:
    """A column for each model while they fit, with bars."""
    shown = run("stats", traces, "--by", "model").stdout.decode()
    head = next(line for line in shown.splitlines() if "calm" in line)
    assert "restless" in head
    row = next(line for line in shown.splitlines() if line.startswith("words of thinking"))
    assert row.split()[-1].startswith("█")
    assert "longest loops" in shown
    assert f"{traces}:5" in shown


def test_many_groups_have_a_line_each(tmp_path: Path) -> None:
    """Where columns do not fit."""
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lines([{"model": f"model {number}", "text": "<think>Yes.</think>x"} for number in range(9)]))
    shown = run("stats", path, "--by", "model").stdout.decode().splitlines()
    assert all(sum(line.startswith(f"model {number} ") for line in shown) == 1 for number in range(9))
    assert any("words, steps: medians" in line for line in shown)
    assert not any("quality" in line or "form" in line for line in shown)


def test_what_is_not_known_of_a_group_is_not_told_as_none(traces: Path) -> None:
    """Of one model nobody measured the time: that is a dash, not zero seconds."""
    shown = run("stats", traces, "--by", "model").stdout.decode().splitlines()
    (line,) = [line for line in shown if line.startswith("seconds of thinking")]
    assert "2.5" in line
    assert line.split()[-1] == "-"


def test_json_has_everything(traces: Path) -> None:
    """All together, and each group."""
    found = told(traces, "--by", "model")
    assert (found["by"], found["fields"], found["files"]) == ("model", {"text": 5}, 1)
    assert [(group["name"], group["replies"]) for group in found["groups"]] == [("calm", 3), ("restless", 2)]
    calm, restless = found["groups"]
    assert calm["distributions"]["seconds"]["max"] == 2.5
    assert (restless["replies_with"]["loop"], restless["replies_with"]["unclosed"]) == (1, 1)
    assert restless["turn_kinds"]["stop"] == 1
    assert 0 < restless["quality_score"] < 1
    assert set(restless["quality_parts"]) == {
        "substance",
        "structure",
        "checking",
        "steadiness",
        "freshness",
        "closed",
    }
    assert found["all"]["replies"] == 5


def test_files_side_by_side(traces: Path, tmp_path: Path) -> None:
    """`--by-file` compares whatever the files hold."""
    reply = tmp_path / "reply.txt"
    reply.write_bytes(b"<think>Yes.</think>x")
    found = told("--by-file", traces, reply)
    assert [(group["name"], group["replies"]) for group in found["groups"]] == [(str(traces), 5), (str(reply), 1)]


def test_lines_that_are_no_traces_are_told_and_counted(tmp_path: Path) -> None:
    """Reading goes on after them."""
    path = tmp_path / "traces.jsonl"
    path.write_bytes(b'{"prompt": "x"}\nnonsense\n\n' + lines(RECORDS[:1]) + b"{\n[1]\n")
    done = run("stats", "--json", path)
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["skipped"] == {"no_json": 2, "unreadable": 0, "no_output": 2}
    assert found["all"]["replies"] == 1
    assert f"asides: not valid JSON: 2 lines ({path}:2, {path}:5)" in done.stderr.decode()
    assert "--field names the field" in done.stderr.decode()


def test_a_field_can_be_named(tmp_path: Path) -> None:
    """Dots lead inside."""
    path = tmp_path / "traces.jsonl"
    path.write_bytes(lines([{"text": "no", "run": {"said": "<think>a b c</think>d", "took": 4}}]))
    found = told(path, "--field", "run.said", "--seconds-field", "run.took")
    assert found["all"]["totals"]["thinking_words"] == 3
    assert found["all"]["distributions"]["seconds"]["p50"] == 4


@pytest.mark.parametrize("name", ["traces.json", "traces.txt", "-"])
def test_a_json_document_is_traces_too(name: str, tmp_path: Path) -> None:
    """A list of records, by its name or by what is in it."""
    document = json.dumps(RECORDS, indent=1).encode()
    if name != "-":
        (tmp_path / name).write_bytes(document)
    found = told(tmp_path / name if name != "-" else "-", given=document)
    assert found["all"]["replies"] == 5


@pytest.mark.parametrize(
    "text", ['{"plan": 1}', '[THINK]So.[/THINK]["a", "b"]', '{"text": 1}\nno', "[1, 2]", '"unclosed']
)
def test_a_reply_that_begins_like_json_is_a_reply(text: str) -> None:
    """Only records with an output in them are traces."""
    assert told(given=text.encode())["all"]["replies"] == 1


def test_what_a_file_is_can_be_said(traces: Path) -> None:
    """`--as text` reads a trace file as one reply, `--as traces` a text as lines."""
    assert told(traces, "--as", "text")["all"]["replies"] == 1
    found = told("--as", "traces", given=b"just words\n")
    assert (found["all"]["replies"], found["skipped"]["no_json"]) == (0, 1)


def test_nothing_is_no_error() -> None:
    """No input, no replies."""
    done = run("stats")
    assert (done.returncode, done.stdout) == (0, b"no replies to count\n")
    assert told()["all"]["replies"] == 0


@pytest.mark.parametrize(
    ("name", "start", "reason"),
    [
        ("traces.parquet", b"PAR1\x15\x04", "not a Parquet file"),
        ("traces.arrow", b"ARROW1\0\0", "not an Arrow file"),
        ("stream.arrow", b"\xff\xff\xff\xff\x10", "not an Arrow file"),
        ("traces.jsonl.gz", gzip.compress(b"{}", mtime=0), "the compressed data is damaged"),
        ("packed.jsonl", b"\x28\xb5\x2f\xfd\x04", "ZSTD decompress failed"),
    ],
)
def test_a_packed_file_is_not_counted_as_a_reply(
    name: str, start: bytes, reason: str, traces: Path, tmp_path: Path
) -> None:
    """Where it cannot be read: its bytes could be counted, and the figures of noise look like figures."""
    packed = tmp_path / name
    packed.write_bytes(start + b"<think>2+2</think>It is 4.\n")
    result = run("stats", traces, packed, "--json")
    assert result.returncode == 2
    assert f"{name}: {reason}" in result.stderr.decode()
    assert json.loads(result.stdout)["all"] == told(traces)["all"]
    assert told("--as", "text", packed)["all"]["replies"] == 1


def test_a_file_that_is_not_there(traces: Path) -> None:
    """The others are counted; the exit code says it."""
    found = told("no/such/file", traces, code=2)
    assert found["all"]["replies"] == 5
    assert found["unreadable_files"] == ["no/such/file: no such file"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--format", "nonsense"], "no format"),
        (["--history", "--field", "x"], "--history cannot be used with FILE"),
        (["--since", "1d"], "need --history"),
        (["--html", "-", "--json"], "the same place"),
        (["--by", "model", "--by-file"], "not allowed with"),
        (["--tokenizer", "no/such.json"], "no such file"),
        (["--history=no/such/store.db"], "no/such/store.db"),
        (["--html", "no/such/folder/x.html"], "no/such/folder"),
    ],
)
def test_wrong_usage(arguments: list[str], words: str) -> None:
    """One line of reason, exit code 2, no traceback."""
    done = run("stats", *arguments)
    assert done.returncode == 2
    assert words in done.stderr.decode()
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by", "modle"], "no record has the field 'modle' to compare by; did you mean model?"),
        (["--field", "txt"], "no record has an output in the field 'txt'; did you mean text?"),
        (["--by", "xyzzy"], "no record has the field 'xyzzy' to compare by; there are: model, text"),
        (["--field", "model.x"], "no record has an output in the field 'model.x'; did you mean model?"),
    ],
)
def test_a_field_that_no_record_has(traces: Path, arguments: list[str], message: str, jobs: list[str]) -> None:
    """It was mistyped: no table of nothing, but what may have been meant."""
    done = run("stats", traces, *arguments, *jobs)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", f"asides: {message}\n")


def test_a_field_that_some_records_have(traces: Path) -> None:
    """The others are counted together, or passed over."""
    with open(traces, "ab") as file:
        file.write(lines([{"text": "<think>No model.</think>x"}, {"model": "calm", "answer": "elsewhere"}]))
    found = told(traces, "--by", "model", "--field", "text")
    assert [group["name"] for group in found["groups"]] == ["calm", "restless", "(none)"]
    assert found["skipped"]["no_output"] == 1


def test_tokens_are_counted_with_a_tokenizer(traces: Path, tmp_path: Path) -> None:
    """A tokenizer.json, or the folder that holds it."""
    write(tmp_path / "tokenizer.json", tokenizer_json(QWEN))
    found = told(traces, "--tokenizer", tmp_path / "tokenizer.json")
    assert found["all"]["totals"]["thinking_tokens"] > 0
    assert found == told(traces, "--tokenizer", tmp_path)
    (tmp_path / "broken.json").write_bytes(b"{}")
    assert run("stats", traces, "--tokenizer", tmp_path / "broken.json").returncode == 2


def test_hostile_names_are_harmless_on_a_terminal(tmp_path: Path) -> None:
    """No escape code, no control character, no half surrogate reaches the screen."""
    path = tmp_path / "traces.jsonl"
    path.write_bytes(
        b'{"model": "\\u001b[2J\\u202e\\ud800evil\\n\\u0007", "text": "<think>'
        + LOOP.encode()
        + b'\\u001b]0;x</think>"}\n'
    )
    done = run("stats", path, "--by", "model")
    assert done.returncode == 0
    assert not {0x1B, 0x07} & set(done.stdout)
    assert "evil" in done.stdout.decode()
    assert "\u202e" not in done.stdout.decode()
    assert run("stats", path, "--by", "model", "--json").returncode == 0


def test_ascii_where_nothing_else_can_be_drawn(traces: Path) -> None:
    """On a dumb terminal, in a locale without UTF-8, and when asked."""
    for changes in ({"TERM": "dumb"}, {"LC_ALL": "C"}):
        with Running("stats", traces, "--by", "model", **changes) as process:
            shown = process.read_rest(process.stdout)
        assert shown.isascii()
        assert b"###" in shown
    assert run("stats", traces, "--ascii").stdout.isascii()


def test_no_colours_in_a_pipe_and_none_when_unwanted(traces: Path) -> None:
    """On a terminal there are some."""
    assert b"\x1b[" not in run("stats", traces).stdout
    for changes, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
        with Running("stats", traces, terminals="stdout", **changes) as process:
            assert (b"\x1b[" in process.read_rest(process.stdout)) is coloured


def test_the_report_is_written(traces: Path, tmp_path: Path) -> None:
    """In a pipe it is all that is made; with --json both are."""
    page = tmp_path / "report.html"
    done = run("stats", traces, "--by", "model", "--html", page)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr.decode() == f"asides: wrote {page}, a report of 5 replies in 1 file, field text\n"
    page_of_models = page.read_bytes()
    assert b"<svg" in page_of_models
    assert told(traces, "--html", page)["all"]["replies"] == 5
    to_output = run("stats", traces, "--by", "model", "--html", "-")
    assert (to_output.stdout, to_output.stderr) == (page_of_models, b"")


def test_the_history(tmp_path: Path) -> None:
    """What was kept has the figures of the replies that it was made from."""
    store = tmp_path / "history.db"
    with history.open(str(store)) as kept:
        for number, record in enumerate(RECORDS):
            kept.keep(
                Reply.of(asides.parse(record["text"]), times=Times(thoughts=(1.5,))),
                model=record["model"],
                time=datetime(2026, 1, number + 1, tzinfo=UTC),
            )
    found = told(f"--history={store}", "--by", "model")
    assert [(group["name"], group["replies"]) for group in found["groups"]] == [("calm", 3), ("restless", 2)]
    assert found["groups"][1]["replies_with"]["unclosed"] == 1
    assert found["groups"][0]["distributions"]["seconds"]["p50"] == 1.5
    assert told(f"--history={store}", "--since", "2026-01-03")["all"]["replies"] == 3
    page = tmp_path / "page.html"
    assert run("stats", f"--history={store}", "--html", page).returncode == 0
    assert page.stat().st_mode & 0o777 == 0o600  # it may quote thoughts, which only their owner may read
    wrong = run("stats", f"--history={store}", "--by", "nonsense")
    assert wrong.returncode == 2
    assert b"it has model, source" in wrong.stderr
    mistyped = run("stats", f"--history={store}", "--by", "modle")
    assert (mistyped.returncode, b"did you mean model?" in mistyped.stderr) == (2, True)


def test_progress_on_a_terminal_and_ctrl_c_shows_what_was_counted() -> None:
    """The figures up to there, and exit code 130."""
    with Running("stats", "--by", "model", terminals="stderr") as process:
        shown = b""
        while b"replies" not in shown:
            process.write(lines(RECORDS[:2]))
            if process.process.poll() is not None:
                break
            try:
                os.set_blocking(process.stderr, False)
                shown += os.read(process.stderr, 65536)
            except BlockingIOError:
                pass
        os.set_blocking(process.stderr, True)
        os.kill(process.process.pid, signal.SIGINT)
        table = process.read_rest(process.stdout).decode()
        assert process.wait() == 130
        assert b"MB" in shown
        assert "words of thinking" in table
        assert "interrupted" in process.read_rest(process.stderr).decode()


def test_no_progress_into_a_pipe(traces: Path) -> None:
    """Standard error is empty when all went well."""
    assert run("stats", traces).stderr == b""


def test_a_closed_pipe_is_no_error(traces: Path) -> None:
    """As in `asides stats | head -1`."""
    with Running("stats", traces) as process:
        process.close(process.stdout)
        assert process.wait() == 141
        assert process.read_rest(process.stderr) == b""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells a process its peak memory there")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Twenty times the traces, hardly more memory."""
    script = (
        "import sys\nfrom asides._cli import main\n"
        "main(['stats', '--json', sys.argv[1], '--by', 'model'])\n"
        "print(*[line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')], file=sys.stderr)\n"
    )
    record = {"text": "<think>" + "Let me add these numbers and see. " * 50 + "</think>Done."}
    peaks = []
    for count in (100, 2000):
        path = tmp_path / f"{count}.jsonl"
        path.write_bytes(lines([{"model": f"model {number % 3}", **record} for number in range(count)]))
        command = [sys.executable, "-c", script, str(path)]
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, env=environment(), check=True)
        peaks.append(int(done.stderr))
    grown = 1900 * len(record["text"]) // 1024
    assert grown > 3000
    assert peaks[1] - peaks[0] < grown // 2  # KiB


REAL = Path(__file__).parents[3] / "shared" / "data" / "traces"


@pytest.mark.skipif(not REAL.exists(), reason="the real traces are not here: ../shared/data/traces")
def test_real_traces() -> None:
    """Long thinking of a distilled R1, and an agent's calls."""
    found = told(
        "--by",
        "source",
        *(REAL / f"{name}.jsonl" for name in ("r1distill_gpqa_kennethleungty", "deepseek_v32_dsml_fixtures_vllm")),
    )
    agent, distilled = found["groups"]
    assert (agent["replies"], distilled["replies"], found["skipped"]) == (
        30,
        20,
        {"no_json": 0, "unreadable": 0, "no_output": 0},
    )
    assert (agent["totals"]["calls"], distilled["totals"]["calls"]) == (66, 0)
    assert distilled["replies_with"]["turns"] == 20
    assert distilled["distributions"]["thinking_words"]["p50"] > 100 * agent["distributions"]["thinking_words"]["p50"]


def test_help_teaches() -> None:
    """With examples."""
    shown = run("stats", "--help").stdout.decode()
    assert "asides stats traces.jsonl --by model" in shown
    assert "heuristic" in shown
