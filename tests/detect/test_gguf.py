"""Detection from the metadata of GGUF files, written by the `gguf` package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from asides._conversation._report_process import report_on
from asides.detect import detect
from asides.detect._from_gguf import read_metadata
from asides.errors import UsageError
from tests.conversation.templates import TEMPLATES
from tests.detect.templates import ECHO

gguf = pytest.importorskip("gguf")

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
TOKENS = {"<|im_start|>": CONTROL, "<|im_end|>": CONTROL, "<think>": USER_DEFINED, "</think>": USER_DEFINED}


def write(path: Path, *, template: str | None = None, name: str = "", **more: Any) -> Path:
    """A GGUF with a vocabulary and no tensors."""
    writer = gguf.GGUFWriter(str(path), "qwen3")
    if name:
        writer.add_name(name)
    words = [f"word{number}" for number in range(5000)]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([*words, *TOKENS])
    writer.add_token_types([NORMAL] * len(words) + list(TOKENS.values()))
    writer.add_token_merges([f"a b{number}" for number in range(5000)])
    writer.add_eos_token_id(5001)
    if template is not None:
        writer.add_chat_template(template)
    writer.add_array("general.tags", ["a", "b"])
    writer.add_float32("some.number", 1.5)
    writer.add_bool("some.truth", True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    return path


def test_tokens_and_template(tmp_path: Path) -> None:
    found = detect(tokenizer=write(tmp_path / "model.gguf", template=ECHO))
    assert (found.format, found.thinks, found.switch) == ("qwen3", True, "enable_thinking")
    assert (found.open_id, found.close_id) == (5002, 5003)


def test_tokens_alone(tmp_path: Path) -> None:
    found = detect(tokenizer=str(write(tmp_path / "model.gguf")))
    assert (found.thinks, found.open_id, found.close_id) == (True, 5002, 5003)


def test_the_name_within(tmp_path: Path) -> None:
    found = detect(tokenizer=write(tmp_path / "model.gguf", name="Holo2 8B"))
    assert found.format == "qwen3_thinking"


def test_whatever_it_is_called(tmp_path: Path) -> None:
    found = detect(tokenizer=write(tmp_path / "sha256-0123456789"))
    assert found.open_id == 5002


def test_a_reader_of_the_package(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(str(write(tmp_path / "model.gguf", template=ECHO)))
    found = detect(tokenizer=reader)
    assert (found.format, found.open_id, found.switch) == ("qwen3", 5002, "enable_thinking")


def test_we_read_what_the_package_reads(tmp_path: Path) -> None:
    path = write(tmp_path / "model.gguf", template=ECHO, name="Somebody")
    fields = gguf.GGUFReader(str(path)).fields
    ours = read_metadata(path)
    assert len(ours["tokenizer.ggml.tokens"]) == 5004
    for name, value in ours.items():
        theirs = fields[name].contents()
        plain = [item.decode() for item in value] if isinstance(value, list) and isinstance(value[0], bytes) else value
        assert (plain.decode() if isinstance(plain, bytes) else plain) == theirs


def test_a_report_on_its_chat_template(tmp_path: Path) -> None:
    """By characters, with the markers and the end of a turn that the file has."""
    report = report_on(write(tmp_path / "model.gguf", template=TEMPLATES["chatml"]))
    assert (report.unit, report.stops[0]) == ("character", "<|im_end|>")
    assert [each.extends for each in report.next_prompts][:2] == [True, False]
    with pytest.raises(UsageError, match="holds no chat template"):
        report_on(write(tmp_path / "bare.gguf"))
