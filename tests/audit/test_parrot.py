"""Parrots: the files are what their formats say, the same each time, and the model in them says the scripts."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from asides import UsageError, get_format
from asides.audit import Manifest, read_manifest
from asides.audit._codes import code, half_floats
from asides.audit._parrot import make_parrot
from asides.audit._scripts import ScriptCase, cases_of, make_scripts
from asides.audit._stand_in import stand_in
from asides.audit._tokenizer import read_tokenizer

WEATHER: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "weather", "parameters": {"properties": {"city": {"type": "string"}}}}}
]
CALL = '<tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>'
CASES = [
    ScriptCase(id="plain", formats=["qwen3"], raw="It is four."),
    ScriptCase(id="thought", formats=["qwen3"], raw="<think>\n2+2 🤔\n</think>\n\nFour.<|im_end|>"),
    ScriptCase(id="call", formats=["qwen3"], raw=f"<think>\nAsk.\n</think>\n\n{CALL}", tools=WEATHER),
    ScriptCase(id="cut", formats=["qwen3"], raw="<think>\nso this is", ended="length"),
    ScriptCase(id="two turns", formats=["qwen3"], raw="One.<|im_end|>\nTwo."),
    ScriptCase(id="prompt", formats=["qwen3"], raw="b", prompt="<think>"),
    ScriptCase(id="another format", formats=["harmony"], raw="<|channel|>final<|message|>a"),
]


def write(folder: Path, **options: Any) -> Manifest:
    """A small parrot."""
    format = get_format("qwen3")
    chosen = cases_of(CASES, format)
    tokenizer = stand_in(format, [case.raw for case in chosen], "", "")
    return make_parrot(tokenizer, format, chosen, folder, version="1", **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parrot on the disk."""
    path = tmp_path_factory.mktemp("parrots") / "qwen3"
    write(path)
    return path


def test_codes_differ_in_a_quarter_of_their_places() -> None:
    """The code is linear, so its lightest word is its distance: for as many tokens as any vocabulary has."""
    words = [0]
    for number in range(19):
        words += [word ^ code(1 << number) for word in words]
    assert len(words) == 1 << 19
    assert len(set(words)) == len(words)
    assert min(word.bit_count() for word in words[1:]) >= 16
    assert code(12345) == words[12345]


def test_a_code_is_written_with_its_complement() -> None:
    numbers = np.frombuffer(half_floats(code(5), 64), np.float16)
    assert numbers.sum() == 0
    assert set(numbers.tolist()) == {64.0, -64.0}
    assert (numbers[:64] == -numbers[64:]).all()


def test_the_manifest_says_what_is_inside(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert [script.name for script in manifest.scripts] == ["plain", "thought", "call", "cut"]
    assert {each.case: each.reason for each in manifest.left_out} == {
        "two turns": "holds a token that ends the turn",
        "prompt": "is read with policies or a prompt of its own",
    }
    plain, thought, call, cut = manifest.scripts
    assert plain.parts == [{"text": "It is four."}]
    assert thought.raw == "<think>\n2+2 🤔\n</think>\n\nFour."
    assert thought.parts == [{"thinking": "2+2 🤔"}, {"text": "Four."}]
    assert call.parts == [{"thinking": "Ask."}, {"call": "weather", "arguments": '{"city": "Köln"}'}]
    assert call.tools == WEATHER
    assert (cut.ended, cut.parts) == ("length", [{"thinking": "so this is", "complete": False}])
    assert all(one.position + len(one.ids) < other.position for one, other in pairwise(manifest.scripts))
    for file in manifest.files:
        content = (folder / file.name).read_bytes()
        assert (file.size, file.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert {file.name for file in manifest.files} | {"manifest.json"} == {path.name for path in folder.iterdir()}
    assert manifest.vocabulary <= 4000
    assert sum(file.size for file in manifest.files) < 5_000_000


def test_the_same_input_gives_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write(tmp_path / "again")
    for path in folder.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name


def gguf_weights(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The tokens' embeddings and all weights, as another program reads them."""
    reader = gguf.GGUFReader(folder / "parrot.gguf")
    weights = {tensor.name: tensor.data for tensor in reader.tensors}
    return weights.pop("token_embd.weight"), weights


def safetensors_weights(folder: Path) -> tuple[Any, dict[str, Any]]:
    """The same of the other file, under the names of the first."""
    content = (folder / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header: dict[str, Any] = json.loads(content[8 : 8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    weights = {}
    for name, tensor in header.items():
        first, last = (8 + length + place for place in tensor["data_offsets"])
        numbers = np.frombuffer(content[first:last], {"F16": np.float16, "F32": np.float32}[tensor["dtype"]])
        weights[name] = numbers.reshape(tensor["shape"])
    assert last == len(content)
    return weights.pop("wte.weight"), {
        "position_embd.weight": weights["wpe.weight"],
        "output_norm.weight": weights["ln_f.weight"],
    }


def probabilities(tokens: Any, weights: dict[str, Any], ids: Sequence[int]) -> Any:
    """What a GPT-2 with these weights thinks of the next token after each of the ids; its layer adds nothing."""
    states = tokens[list(ids)].astype(np.float32) + weights["position_embd.weight"][: len(ids)].astype(np.float32)
    states -= states.mean(axis=1, keepdims=True)
    states /= np.sqrt(states.var(axis=1, keepdims=True) + 1e-5)
    logits = (states * weights["output_norm.weight"]) @ tokens.astype(np.float32).T
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    return chances / chances.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("read", [gguf_weights, safetensors_weights])
def test_the_model_says_the_scripts(folder: Path, read: Any) -> None:
    """Whatever the prompt is, and so surely that no sampling finds another token."""
    manifest = read_manifest(folder)
    tokens, weights = read(folder)
    layers = [weight for name, weight in weights.items() if name.startswith("blk") and "norm" not in name]
    assert not any(weight.any() for weight in layers)
    rng = np.random.default_rng(7)
    for script in manifest.scripts:
        prompt = rng.integers(0, manifest.vocabulary, script.position).tolist()
        chances = probabilities(tokens, weights, [*prompt, *script.ids])[script.position - 1 :]
        assert chances.argmax(axis=1).tolist() == [*script.ids, script.end_id]
        assert chances.max(axis=1).min() > 1 - 1e-6
    assert probabilities(tokens, weights, [1, 2, 3]).argmax(axis=1).tolist() == [manifest.end_ids[0]] * 3


def test_another_program_reads_the_tokenizer_in_the_gguf(folder: Path) -> None:
    fields = {name: field.contents() for name, field in gguf.GGUFReader(folder / "parrot.gguf").fields.items()}
    tokenizer = read_tokenizer(folder)
    assert fields["tokenizer.ggml.tokens"] == tokenizer.tokens
    assert fields["tokenizer.ggml.merges"] == tokenizer.merges
    assert fields["tokenizer.ggml.token_type"] == tokenizer.kinds
    assert fields["tokenizer.chat_template"] == (folder / "chat_template.jinja").read_text(encoding="utf-8")
    kinds = dict(zip(tokenizer.tokens, tokenizer.kinds, strict=True))
    assert (kinds["<|im_end|>"], kinds["<think>"], kinds["a"]) == (3, 4, 1)
    assert fields["tokenizer.ggml.eos_token_id"] == tokenizer.tokens.index("<|im_end|>")


def test_the_filler_adds_one_token(folder: Path) -> None:
    manifest, tokenizer = read_manifest(folder), read_tokenizer(folder)
    lengths = {count: len(tokenizer.encode("What is it?" + manifest.filler * count)) for count in range(1, 300)}
    assert {length - count for count, length in lengths.items()} == {lengths[1] - 1}


def test_a_call_ends_with_the_token_for_calls() -> None:
    """Where a format has one: gpt-oss ends a call with another token than an answer."""
    format = get_format("harmony")
    said = "<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{}"
    cases = [
        ScriptCase(id="call", formats=["harmony"], raw=said),
        ScriptCase(id="answer", formats=["harmony"], raw="<|channel|>final<|message|>Hi."),
    ]
    tokenizer = stand_in(format, [said], "", "")
    scripts, left_out = make_scripts(cases, format, tokenizer)
    assert not left_out
    assert [tokenizer.tokens[script.end_id] for script in scripts] == ["<|call|>", "<|return|>"]


def broken(**changes: Any) -> dict[str, Any]:
    """A tokenizer.json with something else in it."""
    vocab = {"a": 0, "b": 1}
    model = {"type": "BPE", "vocab": vocab, "merges": []} | changes.pop("model", {})
    return {"model": model, "pre_tokenizer": {"type": "ByteLevel"}, "added_tokens": []} | changes


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (broken(model={"type": "Unigram", "vocab": [["a", 0.0]]}), "a Unigram tokenizer"),
        (broken(model={"type": "WordPiece"}), "a WordPiece tokenizer"),
        (broken(model={"byte_fallback": True}), "in the manner of SentencePiece"),
        (broken(pre_tokenizer=None), "in the manner of SentencePiece"),
        (broken(model={"vocab": {}}), "has no tokens"),
        (broken(model={"vocab": {"a": -1}}), "ids from -1"),
        (broken(model={"vocab": {"a": 10**9}}), "ids from 1000000000"),
        (broken(model={"vocab": {"a": "b"}}), "not the JSON"),
        ({"model": []}, "not the JSON"),
        ([], "not of the expected kind"),
    ],
)
def test_a_tokenizer_that_cannot_be_used_is_named(content: Any, wanted: str, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(UsageError, match=wanted):
        read_tokenizer(path)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("tekken.json", "Mistral's tekken.json"),
        ("tokenizer.model", "SentencePiece"),
        ("qwen.tiktoken", "tiktoken ranks"),
        ("model.gguf", "a GGUF"),
    ],
)
def test_other_kinds_of_files_are_named(name: str, wanted: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\0")
    for given in (tmp_path, tmp_path / name):
        with pytest.raises(UsageError, match=wanted):
            read_tokenizer(given)


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (b"", "no manifest of a parrot"),
        (b"[]", "no manifest of a parrot"),
        (b'{"version": 99}', "version 99 of the manifest"),
        (b'{"version": 1}', "no manifest of a parrot"),
        (b"\xff", "no manifest of a parrot"),
        (b"[" * 100_000, "no manifest of a parrot"),
    ],
)
def test_a_broken_manifest_is_an_error_of_ours(content: bytes, wanted: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(UsageError, match=wanted):
        read_manifest(tmp_path)


def test_what_is_in_the_folder_is_not_lost(tmp_path: Path) -> None:
    """A folder with other files is refused, a parrot is replaced, and what failed leaves nothing."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        write(tmp_path / "work")
    write(tmp_path / "parrot")

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    before = read_manifest(tmp_path / "parrot")
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "parrot", first=600, progress=stop)
    assert read_manifest(tmp_path / "parrot") == before
    write(tmp_path / "parrot", first=600)
    assert read_manifest(tmp_path / "parrot").scripts[0].position == 600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parrot", "work"]
