"""`asides batch`: what comes out of each kind of file, of conversations, of samples, and what is counted."""

from __future__ import annotations

import gzip
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import asides
from asides._cli import main
from asides._cli.batch import job
from asides._cli.batch.inputs import plan_ranges
from asides._cli.history.import_files import read_record
from asides._cli.inputs.files import find_inputs
from asides._engine.calls.ids import seed_of
from asides.analysis import analyze
from asides.arrow import split
from asides.reading import Reading
from tests.cli.batch_files import CALL, read_lines, read_parquet, rows, write_lines, write_parquet
from tests.cli.running import OnScreen
from tools.commands_page import helps

NEW = ["thinking", "text", "calls", "termination", "notices", "format", "beyond", "row_error"]


def batch(*arguments: str | Path) -> int:
    """The command in this process."""
    return main(["batch", *map(str, arguments)])


def expected(record: dict[str, Any]) -> dict[str, Any]:
    """What a row must become, by `asides.parse`; but for the format."""
    others = {name: value for name, value in record.items() if name != "text"}
    if record["text"] is None:
        return {**others, **dict.fromkeys(NEW)}
    message = asides.parse(record["text"], seed=seed_of(record["text"]))
    calls = [
        {name: getattr(call, name) for name in ("name", "arguments", "id", "error")} for call in message.tool_calls
    ]
    return {
        **others,
        "thinking": message.thinking,
        "text": message.text,
        "calls": calls,
        "termination": message.termination,
        "notices": [notice.code for notice in message.notices],
        "beyond": 0 if message.beyond is None else message.beyond[1] - message.beyond[0],
        "row_error": None,
    }


def without_format(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "format" or value is None} for row in found]


RECORDS = rows(730)
EXPECTED = [expected(record) for record in RECORDS]


@pytest.mark.parametrize("output", ["out.parquet", "out.arrow", "out.jsonl", "out.jsonl.gz", "out.jsonl.zst"])
@pytest.mark.parametrize(
    "source", ["in.parquet", "in.jsonl", "in.jsonl.gz", "in.jsonl.zst", "in.arrow", "stream.arrow"]
)
def test_every_kind_becomes_every_kind(source: str, output: str, tmp_path: Path) -> None:
    """A row stays a row, with all its other columns, and is what `asides.parse` makes of it."""
    table = pa.Table.from_pylist(RECORDS)
    lines = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)
    path = tmp_path / source
    if source == "in.parquet":
        write_parquet(path, RECORDS)
    elif source.endswith(".gz"):
        path.write_bytes(gzip.compress(lines))
    elif source.endswith(".zst"):
        path.write_bytes(pa.compress(lines, "zstd", asbytes=True))
    elif source.endswith(".jsonl"):
        path.write_bytes(lines)
    else:
        make = pa.ipc.new_file if source == "in.arrow" else pa.ipc.new_stream
        with make(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    out = tmp_path / output
    assert batch(path, "-o", out, "--range-size", "0.02") == 0
    if output.endswith(".parquet"):
        found = read_parquet(out)
    elif output.endswith(".arrow"):
        found = pa.ipc.open_file(str(out)).read_all().to_pylist()
    else:
        with pa.input_stream(str(out), compression="detect") as stream:
            found = [json.loads(line) for line in stream.read().splitlines()]
    assert without_format(found) == EXPECTED
    assert {row["format"] for row in found} >= {"auto", "auto:<think>", "harmony", None}
    assert sorted(tmp_path.iterdir()) == sorted([path, out])


def test_any_number_of_processes_and_ranges_gives_the_same(tmp_path: Path) -> None:
    """Byte for byte, for JSON Lines; row for row, in columns."""
    source = write_parquet(tmp_path / "in.parquet", RECORDS, group=40)
    for number, options in enumerate((["--jobs", "2", "--range-size", "0.01"], ["--range-size", "0.01"], [])):
        assert batch(source, "-o", tmp_path / f"{number}.parquet", *options) == 0
        assert batch(source, "-o", tmp_path / f"{number}.jsonl", *options) == 0
    for number in (1, 2):
        assert read_parquet(tmp_path / f"{number}.parquet") == read_parquet(tmp_path / "0.parquet")
        assert (tmp_path / f"{number}.jsonl").read_bytes() == (tmp_path / "0.jsonl").read_bytes()


def test_folders_globs_and_addresses(tmp_path: Path) -> None:
    """Sorted, each file once, and never the output of the run before."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    write_parquet(folder / "b.parquet", RECORDS[100:200])
    write_lines(folder / "a.jsonl", RECORDS[:100])
    write_parquet(folder / "deep" / "c.pq", RECORDS[200:300])
    (folder / "state.json").write_text("{}")
    out = folder / "out.jsonl"
    assert batch(folder, folder / "b.parquet", "-o", out) == 0
    assert [row["id"] for row in read_lines(out)] == list(range(300))
    assert batch(folder, "-o", out, "--force") == 0
    assert [row["id"] for row in read_lines(out)] == list(range(300))
    assert batch(f"{folder}/**/*.p*q*", "-o", tmp_path / "glob.jsonl") == 0
    assert [row["id"] for row in read_lines(tmp_path / "glob.jsonl")] == list(range(100, 300))
    assert batch(f"file://{folder}/*.parquet", "-o", tmp_path / "address.jsonl") == 0
    assert [row["id"] for row in read_lines(tmp_path / "address.jsonl")] == list(range(100, 200))


def test_conversations_become_turns(tmp_path: Path) -> None:
    """Every turn of the assistant is split; the messages stay as they are."""
    talk = [
        {"role": "user", "content": "<think>not mine</think>"},
        {"role": "assistant", "content": "<think>a</think>b"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "d", "reasoning_content": "c"},
        {"role": "assistant", "content": CALL},
    ]
    records: list[dict[str, Any]] = [
        {"id": 1, "messages": talk},
        {"id": 2, "messages": talk[:2]},
        {"id": 3, "messages": None},
    ]
    outputs = []
    for name in ("in.jsonl", "in.parquet"):
        source = (
            write_lines(tmp_path / name, records) if name.endswith("l") else write_parquet(tmp_path / name, records)
        )
        assert batch(source, "-o", tmp_path / f"{name}.parquet") == 0
        outputs.append(read_parquet(tmp_path / f"{name}.parquet"))
    first, second, third = outputs[0]
    assert [(turn["thinking"], turn["text"]) for turn in first["turns"]] == [("a", "b"), ("c", "d"), ("look", "")]
    assert first["turns"][2]["calls"][0]["name"] == "find"
    assert first["messages"][0]["content"] == talk[0]["content"]
    assert len(second["turns"]) == 1
    assert third["turns"] is third["row_error"] is None
    assert [row["turns"] for row in outputs[1]] == [row["turns"] for row in outputs[0]]


def test_files_of_servers(tmp_path: Path) -> None:
    """The output file of an OpenAI batch, and what vLLM's offline inference is written as."""
    openai: list[dict[str, Any]] = [
        {
            "id": "batch_req_1",
            "custom_id": "request-1",
            "response": {
                "status_code": 200,
                "request_id": "r",
                "body": {
                    "id": "chatcmpl-1",
                    "object": "chat.completion",
                    "choices": [
                        {
                            "index": 0,
                            "message": {"role": "assistant", "content": "<think>a</think>b", "refusal": None},
                            "finish_reason": "stop",
                        }
                    ],
                },
            },
            "error": None,
        },
        {"id": "batch_req_2", "custom_id": "request-2", "response": None, "error": {"code": "batch_expired"}},
    ]
    assert batch(write_lines(tmp_path / "o.jsonl", openai), "-o", tmp_path / "o.out.jsonl") == 0
    done, expired = read_lines(tmp_path / "o.out.jsonl")
    assert (done["custom_id"], done["thinking"], done["text"]) == ("request-1", "a", "b")
    assert done["response"] == openai[0]["response"]
    assert (expired["text"], expired["row_error"], expired["error"]["code"]) == (None, None, "batch_expired")
    vllm = [
        {
            "request_id": str(number),
            "prompt": "Why?",
            "outputs": [{"index": at, "text": f"<think>{at}</think>x", "token_ids": [1]} for at in range(count)],
            "finished": True,
        }
        for number, count in enumerate((1, 2))
    ]
    assert batch(write_lines(tmp_path / "v.jsonl", vllm), "-o", tmp_path / "v.out.jsonl") == 0
    assert [[turn["thinking"] for turn in row["turns"]] for row in read_lines(tmp_path / "v.out.jsonl")] == [
        ["0"],
        ["0", "1"],
    ]
    assert batch(write_lines(tmp_path / "w.jsonl", vllm[:1]), "-o", tmp_path / "w.out.jsonl") == 0
    assert [row["thinking"] for row in read_lines(tmp_path / "w.out.jsonl")] == ["0"]
    assert batch(tmp_path / "w.jsonl", "-o", tmp_path / "x.jsonl", "--turns") == 0
    assert [len(row["turns"]) for row in read_lines(tmp_path / "x.jsonl")] == [1]


def test_columns_that_have_several_types(tmp_path: Path) -> None:
    """In different records, batches or ranges: as JSON, and nothing is lost. Missing keys are null, numbers widen."""
    records: list[dict[str, Any]] = [{"text": "a", "id": number, "n": 1, "empty": {}} for number in range(300)]
    records += [{"text": "a", "id": f"x{number}", "n": 1.5, "new": [{"a": 1}]} for number in range(300)]
    source = write_lines(tmp_path / "in.jsonl", records)
    for size in ("32", "0.005"):
        assert batch(source, "-o", tmp_path / "out.parquet", "--range-size", size, "--force") == 0
        found = read_parquet(tmp_path / "out.parquet")
        assert [json.loads(row["id"]) for row in found] == [record["id"] for record in records]
        assert [row["n"] for row in found] == [record["n"] for record in records]
        assert [row["new"] for row in found] == [record.get("new") for record in records]
        assert found[0]["empty"] == "{}"


def test_columns_of_several_tables_are_put_together(tmp_path: Path) -> None:
    """A column that one lacks is null there; an integer beside a float widens; text and number are refused."""
    one = write_parquet(tmp_path / "1.parquet", [{"text": "a", "n": 1}])
    two = write_parquet(tmp_path / "2.parquet", [{"text": "b", "n": 2.5, "more": "m"}])
    assert batch(one, two, "-o", tmp_path / "out.parquet") == 0
    assert [(row["n"], row["more"]) for row in read_parquet(tmp_path / "out.parquet")] == [(1.0, None), (2.5, "m")]


def test_limit_and_sample(tmp_path: Path) -> None:
    """The first rows; or rows drawn at random over all files, the same every time, from tables as from lines."""
    table = write_parquet(tmp_path / "in.parquet", RECORDS[:400])
    lines = write_lines(tmp_path / "in.jsonl", [*RECORDS[400:500], b"", *RECORDS[500:]])
    for limit in (5, 100, 401, 450, 5000):
        assert (
            batch(table, lines, "-o", tmp_path / "l.jsonl", "--limit", str(limit), "--force", "--range-size", "0.01")
            == 0
        )
        assert [row["id"] for row in read_lines(tmp_path / "l.jsonl")] == list(range(730))[:limit]
    samples = []
    for size in ("0.01", "32"):
        assert batch(table, lines, "-o", tmp_path / "s.jsonl", "--sample", "50", "--force", "--range-size", size) == 0
        samples.append([row["id"] for row in read_lines(tmp_path / "s.jsonl")])
    assert samples[0] == samples[1] == sorted(set(samples[0]))
    assert len(samples[0]) == 50
    assert any(number >= 400 for number in samples[0])
    assert without_format(read_lines(tmp_path / "s.jsonl")) == [EXPECTED[number] for number in samples[0]]


def test_ids_of_calls_depend_on_the_text_and_its_place_in_the_row(tmp_path: Path) -> None:
    """The same row has the same ids in every run, as a column and in the history; turns of one row have other ones."""
    turns = [{"role": "assistant", "content": content} for content in ("", CALL, CALL)]
    source = write_lines(tmp_path / "in.jsonl", [{"messages": turns}, {"messages": turns[:2]}])
    for name in ("a.jsonl", "b.jsonl"):
        assert batch(source, "-o", tmp_path / name, "--turns") == 0
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    ids = [[call["id"] for turn in row["turns"] for call in turn["calls"]] for row in read_lines(tmp_path / "a.jsonl")]
    assert ids[0][:1] == ids[1]
    assert len(set(ids[0])) == 2
    assert split(pa.array([CALL])).to_pylist()[0]["calls"][0]["id"] == ids[0][0]
    imported = read_record({"messages": turns}, Reading.of(), time=datetime.now(UTC))
    assert [call.id for kept in imported for call in kept.reply.tool_calls] == ids[0]


def test_what_can_be_added(tmp_path: Path) -> None:
    """The raw text, the parts, figures as `asides stats` counts them; a prefix before each name."""
    source = write_parquet(tmp_path / "in.parquet", RECORDS)
    options = ["--raw", "--parts", "--figures", "--prefix", "split_"]
    assert batch(source, "-o", tmp_path / "out.parquet", *options) == 0
    for record, row in zip(RECORDS, read_parquet(tmp_path / "out.parquet"), strict=True):
        assert row["split_raw"] == record["text"]
        if record["text"] is None:
            assert row["split_figures"] is row["split_parts"] is None
            continue
        message = asides.parse(record["text"], seed=seed_of(record["text"]))
        assert [(part["start"], part["end"]) for part in row["split_parts"]] == [part.span for part in message.parts]
        figures = analyze(message)
        assert row["split_figures"]["thinking_words"] == figures.thinking_words
        assert row["split_figures"]["quality"]["score"] == figures.quality.score


def test_the_report_is_that_of_stats(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """One pass for both: the page has the charts that `asides stats` draws of the same lines, and is announced."""
    source = write_lines(tmp_path / "in.jsonl", [record for record in RECORDS if record["text"]])
    assert main(["stats", str(source), "--by", "model", "--html", str(tmp_path / "stats.html")]) == 0
    for jobs in ("1", "2"):
        options: list[str | Path] = [
            "--by",
            "model",
            "--html",
            tmp_path / "batch.html",
            "--jobs",
            jobs,
            "--range-size",
            "0.05",
            "--force",
        ]
        assert batch(source, "-o", tmp_path / "out.jsonl", *options) == 0
        pages = [(tmp_path / name).read_text() for name in ("stats.html", "batch.html")]
        bodies = [page.partition("</h1>")[2].replace(", field text", "") for page in pages]
        assert bodies[0] == bodies[1] != ""
        assert f"wrote {tmp_path / 'batch.html'}, a report of" in " ".join(capfd.readouterr().err.split())


def test_the_summary(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows, thoughts, calls, notices by code, formats; the same for each group."""
    source = write_lines(tmp_path / "in.jsonl", [*RECORDS, b"nonsense"])
    assert batch(source, "-o", tmp_path / "out.jsonl", "--json", "--by", "model", "--jobs", "2") == 0
    found = json.loads(capfd.readouterr().out)
    read = [row for row in EXPECTED if row["text"] is not None]
    assert (found["rows"], found["replies"], found["nulls"]) == (731, len(read), 730 - len(read))
    assert found["thoughts"] == sum(bool(row["thinking"]) for row in read)
    assert found["calls"] == sum(len(row["calls"]) for row in read)
    codes = [code for row in read for code in row["notices"]]
    assert found["notices"] == {code: codes.count(code) for code in set(codes)}
    assert found["errors"] == {"no_json": 1}
    assert sum(found["formats"].values()) == len(read)
    for name in "ab":
        of_group = [row for row in read if row["model"] == name]
        assert found["groups"][name]["replies"] == len(of_group)
        assert found["groups"][name]["calls"] == sum(len(row["calls"]) for row in of_group)
    assert found["groups"]["(none)"]["errors"] == {"no_json": 1}
    assert batch(source, "-o", tmp_path / "again.jsonl", "--by", "model") == 0
    shown = capfd.readouterr()
    assert "rows that could not be read 1 (0.1%)" in " ".join(shown.out.split())
    assert "auto:<think>" in shown.out
    assert "--errors FILE" in shown.err


def test_formats_and_prompts_in_columns(tmp_path: Path) -> None:
    """Each row is read as its own column says; null means auto."""
    records: list[dict[str, Any]] = [
        {"text": "a</think>b", "how": "qwen3", "prompt": "<|im_start|>assistant\n<think>\n"},
        {"text": "a</think>b", "how": "passthrough", "prompt": None},
        {"text": "<think>a</think>b", "how": None, "prompt": None},
    ]
    for name in ("in.parquet", "in.jsonl"):
        source = (write_lines if name.endswith("l") else write_parquet)(tmp_path / name, records)
        options = ["--format-field", "how", "--prompt-field", "prompt", "--force"]
        assert batch(source, "-o", tmp_path / "out.jsonl", *options) == 0
        found = read_lines(tmp_path / "out.jsonl")
        assert [(row["thinking"], row["text"]) for row in found] == [("a", "b"), ("", "a</think>b"), ("a", "b")]
        assert [row["format"] for row in found][:2] == ["qwen3", "passthrough"]


def test_ranges_cover_all_rows_once(tmp_path: Path) -> None:
    """Whatever their size: the ranges of lines begin and end with lines, those of tables with row groups."""
    lines = write_lines(tmp_path / "in.jsonl", RECORDS)
    table = write_parquet(tmp_path / "in.parquet", RECORDS, group=30)
    inputs = find_inputs([str(lines), str(table)])
    for size in (1, 777, 50_000, 10**9):
        ranges = plan_ranges(inputs, size)
        for number in (0, 1):
            own = [each for each in ranges if each.input == number]
            assert [each.start for each in own] == [0, *(each.stop for each in own[:-1])]
        assert [each for each in ranges if each.input == 0][-1].stop == lines.stat().st_size
        data = lines.read_bytes()
        assert all(data[each.stop - 1] == 10 for each in ranges if each.input == 0)
        assert ranges[-1].stop == 25


def test_progress_on_a_terminal(tmp_path: Path) -> None:
    """A bar with the rate and the time left, taken away at the end; then the summary."""
    source = write_lines(tmp_path / "in.jsonl", RECORDS * 8)
    with OnScreen(
        "batch", source, "-o", tmp_path / "out.jsonl", "--figures", "--range-size", "0.1", columns=100
    ) as shown:
        bar = next(line for line in shown.until_glimpsed("rows/s") if "rows/s" in line)
        assert "%" in bar
        assert "left" in bar
        assert shown.end() == 0
        assert not any("rows/s" in line for line in shown.emulator.lines)
        assert any("formats" in line for line in shown.emulator.lines)


def test_progress_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """Where nobody looks at a screen, a line every so often: here after each of the ranges."""
    monkeypatch.setattr(job, "SECONDS_PER_LINE", 0.0)
    source = write_parquet(tmp_path / "in.parquet", RECORDS)
    assert batch(source, "-o", tmp_path / "out.jsonl", "--range-size", "0.0001") == 0
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 8
    assert re.fullmatch(r"asides: 100%, 730 rows, [\d,]+ rows/s, 0 s left", lines[-1])


PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "batch.md").read_text(encoding="utf-8")


def test_a_large_compressed_file_is_named_beforehand(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It is one range, so nothing is shown of it and nothing of it is kept until it is done."""
    small, large = tmp_path / "small.jsonl.gz", tmp_path / "large.jsonl.gz"
    small.write_bytes(gzip.compress(write_lines(tmp_path / "small.jsonl", RECORDS[:1]).read_bytes()))
    large.write_bytes(gzip.compress(write_lines(tmp_path / "large.jsonl", RECORDS).read_bytes()))
    size = large.stat().st_size / 1e6
    assert batch(small, large, "-o", tmp_path / "out.jsonl", "--range-size", str(size * 0.9)) == 0
    assert "large.jsonl.gz: 0 MB, compressed, and so one range: one process splits it" in capfd.readouterr().err
    assert batch(small, large, "-o", tmp_path / "again.jsonl", "--range-size", str(size * 1.1)) == 0
    assert "one range" not in capfd.readouterr().err


def test_the_example_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The lines on the page give the summary on the page."""
    (lines, arguments, shown), *_ = re.findall(r"```json\n(.*?)```\n\n```\n\$ asides batch (.*?)\n(.*?)```", PAGE, re.S)
    monkeypatch.chdir(tmp_path)
    Path("traces.jsonl").write_text(lines)
    assert batch(*arguments.split()) == 0
    assert capfd.readouterr().out == shown
    assert [problem["line"] for problem in read_lines(Path("bad.jsonl"))] == [4]


def test_every_code_is_on_the_page() -> None:
    """And every option that the page names is one."""
    for code in ("no_json", "invalid_utf8", "no_output", "several_replies", "name_taken", "too_long", "unknown_format"):
        assert f"`{code}`" in PAGE
    known = set(re.findall(r"--[a-z-]+", dict(helps())["asides batch"]))
    named = set(re.findall(r"(?<=`)--[a-z]+(?:-[a-z]+)*", PAGE))
    assert named
    assert named <= known
