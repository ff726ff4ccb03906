"""`asides batch --tokenizer`: counts and places of tokens, by a real tokenizer, for every kind of row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import asides
from asides._cli import main
from asides._engine.calls.ids import seed_of
from tests.cli.batch_files import CALL, read_lines, read_parquet, write_lines, write_parquet
from tests.render import real

TEXTS = [
    "<think>Zwei und zwei: é 你好 𓂀.</think>\n\nEs sind vier.",
    None,
    "",
    "Nur das.",
    "<think>never closed, é 你好",
    "<think>",
    CALL,
    "<think>a</think>b<think>c</think>d",
    "x</think>y",
    "<|channel|>analysis<|message|>a<|end|>b",
    "<think>" + "so we try 你好 " * 2_000 + "</think>Done.",
]


@pytest.fixture(scope="module")
def tokenizer_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real tokenizer as a file, with truncation and padding switched on, as some are published."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    real.tokenizer("deepseek_v4").save(str(path))
    about = json.loads(path.read_bytes())
    about["truncation"] = {"direction": "Right", "max_length": 16, "strategy": "LongestFirst", "stride": 0}
    pad = {"strategy": {"Fixed": 16}, "direction": "Right", "pad_to_multiple_of": None}
    about["padding"] = {**pad, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
    path.write_text(json.dumps(about), encoding="utf-8")
    return path


def check(row: dict[str, Any], text: str) -> None:
    """The counts and the places of one reply, against the tokenizer itself and the message."""
    ids = real.encode("deepseek_v4", text)
    vocabulary = real.vocabulary("deepseek_v4")
    message = asides.parse(text, seed=seed_of(text))
    assert row["tokens"]["total"] == len(ids)
    assert len(row["parts"]) == len(message.parts)
    counts = {"thinking": 0, "text": 0, "calls": 0}
    end = 0
    for found, part in zip(row["parts"], message.parts, strict=True):
        assert (found["start"], found["end"]) == part.span
        held = vocabulary.text(ids[found["token_start"] : found["token_end"]])
        assert text[found["start"] : found["end"]] in held
        kind = {"thinking": "thinking", "text": "text", "tool_call": "calls"}[found["kind"]]
        counts[kind] += found["token_end"] - max(end, found["token_start"])
        end = found["token_end"]
    assert {name: row["tokens"][name] for name in counts} == counts
    assert sum(counts.values()) <= len(ids)


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_every_row_has_its_tokens(kind: str, jobs: str, tokenizer_file: Path, tmp_path: Path) -> None:
    """Nulls have none, a thought that never closes has those that are there, a call has its own."""
    write = write_parquet if kind == "parquet" else write_lines
    source = write(tmp_path / f"in.{kind}", [{"id": number, "text": text} for number, text in enumerate(TEXTS)])
    out = tmp_path / f"out.{kind}"
    options = ["--tokenizer", str(tokenizer_file), "--jobs", jobs, "--range-size", "0.001"]
    assert main(["batch", str(source), "-o", str(out), *options]) == 0
    found = (read_parquet if kind == "parquet" else read_lines)(out)
    assert len(found) == len(TEXTS)
    for row, text in zip(found, TEXTS, strict=True):
        if text is None:
            assert row["tokens"] is None or set(row["tokens"].values()) == {None}
            assert not row["parts"]
        else:
            check(row, text)
    unclosed, only_opener, call, empty = found[4], found[5], found[6], found[2]
    assert unclosed["tokens"]["thinking"] == unclosed["tokens"]["total"] - 1  # all but the opener
    assert only_opener["tokens"] == {"total": 1, "thinking": 0, "text": 0, "calls": 0}
    assert call["tokens"]["calls"] > 0
    assert empty["tokens"] == {"total": 0, "thinking": 0, "text": 0, "calls": 0}
    assert found[-1]["tokens"]["total"] > 6_000  # not what the file's truncation leaves


def test_turns_have_their_tokens(tokenizer_file: Path, tmp_path: Path) -> None:
    """Each reply of a conversation by itself."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": TEXTS[0]}] * 2
    source = write_lines(tmp_path / "in.jsonl", [{"messages": turns}])
    out = tmp_path / "out.jsonl"
    assert main(["batch", str(source), "-o", str(out), "--tokenizer", str(tokenizer_file.parent)]) == 0
    (row,) = read_lines(out)
    assert len(row["turns"]) == 2
    for turn in row["turns"]:
        check(turn, TEXTS[0] or "")


def test_figures_count_tokens_too(tokenizer_file: Path, tmp_path: Path) -> None:
    """The same tokenizer, once."""
    source = write_lines(tmp_path / "in.jsonl", [{"text": TEXTS[0]}])
    out = tmp_path / "out.jsonl"
    options = ["--tokenizer", str(tokenizer_file), "--figures"]
    assert main(["batch", str(source), "-o", str(out), *options]) == 0
    (row,) = read_lines(out)
    encode = real.vocabulary("deepseek_v4").encode
    message = asides.parse(TEXTS[0] or "")
    assert row["figures"]["thinking_tokens"] == len(encode(message.thinking))
    assert row["figures"]["text_tokens"] == len(encode(message.text))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.json", "none.json: no such file; --tokenizer takes a tokenizer.json, or a folder with one"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B: no such file; --tokenizer takes a tokenizer.json, or a folder with one"),
        ("empty", "tokenizer.json: no such file"),
        ("config.json", "config.json: not a tokenizer.json"),
        ("text.json", "text.json: not a tokenizer.json"),
    ],
)
def test_what_is_no_tokenizer(
    name: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Refused with a reason before anything is written: a file that is not there, a model's name, other files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "config.json").write_text('{"model_type": "qwen3"}')
    (tmp_path / "text.json").write_text("no json")
    source = write_lines(tmp_path / "in.jsonl", [{"text": "a"}])
    assert main(["batch", str(source), "-o", "out.jsonl", "--tokenizer", name]) == 2
    error = capfd.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert not list(tmp_path.glob("out*"))
