"""`asides audit parrot`: what it writes, and what it says where it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from asides.audit import read_manifest
from asides.audit._stand_in import stand_in
from asides.families import get_format
from tests.cli.running import run

CASES = [
    {"id": "one/thought", "formats": ["qwen3"], "raw": "<think>\nhm\n</think>\n\nFour.", "parts": []},
    {"id": "one/plain", "formats": ["qwen3", "deepseek_r1"], "raw": "Four."},
    {"id": "two/cut", "formats": ["qwen3"], "raw": "<think>\nhm", "ended": "length"},
]


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A file of cases."""
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in CASES), encoding="utf-8")
    return path


def test_a_stand_in(tmp_path: Path, cases: Path) -> None:
    done = run("audit", "parrot", "--stand-in", "qwen3", "--cases", str(cases), "-o", str(tmp_path / "new" / "parrot"))
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"3 scripts of qwen3" in done.stdout
    manifest = read_manifest(tmp_path / "new" / "parrot")
    assert [script.name for script in manifest.scripts] == ["one/thought", "one/plain", "two/cut"]
    assert manifest.tokenizer.source == "stand-in for qwen3"


def test_a_tokenizer_of_somebodys(tmp_path: Path, cases: Path) -> None:
    """The template that is named counts; the licence and where the files come from are in the manifest."""
    model = tmp_path / "model"
    model.mkdir()
    made = stand_in(get_format("qwen3"), ["Four."], "", "")
    (model / "tokenizer.json").write_bytes(made.json)
    (model / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|im_end|>", "chat_template": "{{ no }}"}))
    (model / "LICENSE").write_text("\n  Some Licence 1.0\n")
    template = tmp_path / "chat.jinja"
    template.write_text(
        "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant\n"
    )
    common = ("audit", "parrot", "--tokenizer", str(model), "--cases", str(cases), "-o", str(tmp_path / "parrot"))
    done = run(*common, "--template", str(template), "--only", "one/", "-f", "qwen3", "--first", "300")
    assert (done.returncode, done.stderr) == (0, b"")
    manifest = read_manifest(tmp_path / "parrot")
    assert (manifest.scripts[0].name, manifest.scripts[0].position) == ("one/thought", 300)
    assert len(manifest.scripts) == 2
    assert manifest.tokenizer.licence == "LICENSE: Some Licence 1.0"
    assert (manifest.tokenizer.source, manifest.tokenizer.template) == ("model", "chat.jinja")
    assert (tmp_path / "parrot" / "tokenizer.json").read_bytes() == made.json
    assert (tmp_path / "parrot" / "chat_template.jinja").read_text() == template.read_text()
    assert "chat_template" not in json.loads((tmp_path / "parrot" / "tokenizer_config.json").read_bytes())


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (("--tokenizer", "none"), "none: no such file or folder"),
        (("--stand-in", "qwen33"), "there is no format 'qwen33'"),
        (("--stand-in", "qwen3", "-f", "qwen3"), "leave out --format"),
        (("--stand-in", "qwen3", "--only", "three"), "no case of the format qwen3 whose id contains 'three'"),
        (("--stand-in", "qwen3", "--first", "0"), "--first must be from 1"),
        (("--stand-in", "qwen3", "--template", "none.jinja"), "none.jinja: No such file"),
        (("--stand-in", "qwen3", "--cases", "none.jsonl"), "none.jsonl: No such file"),
        (("--stand-in", "qwen3", "--cases", "bad.jsonl"), "bad.jsonl, line 2: not a case"),
        (("--stand-in", "qwen3", "--cases", "odd.jsonl"), "unknown format 'no'"),
        (("--stand-in", "harmony"), "there is no case of the format harmony"),
        ((), "one of the arguments --tokenizer --stand-in is required"),
    ],
)
def test_mistakes(
    given: tuple[str, ...], wanted: str, tmp_path: Path, cases: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text(json.dumps(CASES[0]) + "\n{}\n")
    (tmp_path / "odd.jsonl").write_text(json.dumps({"id": "a", "formats": ["no"], "raw": ""}))
    done = run("audit", "parrot", "--cases", str(cases), *given, "-o", "parrot")
    assert (done.returncode, done.stdout) == (2, b"")
    assert wanted in done.stderr.decode()
    assert not (tmp_path / "parrot").exists()
