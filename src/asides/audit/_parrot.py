"""Makes parrots: checkpoints that say scripts, as GGUF and as safetensors, in a folder with all that a server needs.

The weights are described in `_codes`, the scripts in `_scripts`. What is written: `parrot.gguf` for llama.cpp and what
is built on it; `model.safetensors`, `config.json`, `generation_config.json`, the tokenizer's own files and
`chat_template.jinja` for transformers; `manifest.json`. The same input gives the same bytes, so nothing holds a date.

    make_parrot(tokenizer, get_format("qwen3"), cases, Path("parrots/qwen3"))
"""

from __future__ import annotations

import hashlib
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .._engine.format import Format
from ..errors import UsageError
from ._codes import GAIN, WIDTH, position_embeddings, token_embeddings
from ._gguf import Tensor, Value, write_gguf
from ._manifest import NAME, Manifest, ParrotFile, ParrotScript, write_manifest
from ._safetensors import write_safetensors
from ._scripts import FIRST_POSITION, ScriptCase, end_ids, find_filler, make_scripts
from ._tokenizer import ParrotTokenizer

HEADS = 2
INNER = 64
"""The width of the feed-forward layer, which does nothing."""
EPSILON = 1e-5
SPARE = 64
"""Positions after the last script."""
GGUF_NAME = "parrot.gguf"
SAFETENSORS_NAME = "model.safetensors"

Progress = Callable[[int, int], object]
"""Gets the bytes that are written and how many there will be."""


def make_parrot(
    tokenizer: ParrotTokenizer,
    format: Format,
    cases: Sequence[ScriptCase],
    folder: Path,
    *,
    version: str,
    first: int = FIRST_POSITION,
    progress: Progress = lambda done, total: None,
) -> Manifest:
    """Write a parrot into a folder, which is there only once all of it is."""
    scripts, left_out = make_scripts(cases, format, tokenizer, first)
    if not scripts:
        reasons = "".join(f"; {each.case}: {each.reason}" for each in left_out[:3])
        raise UsageError(f"no case of {format.name} can be said with this tokenizer{reasons}")
    ends = end_ids(format, tokenizer)
    manifest = Manifest(
        asides=version,
        name=f"parrot-{format.name}",
        format=format.name,
        tokenizer=tokenizer.source,
        vocabulary=len(tokenizer.tokens),
        context=scripts[-1].position + len(scripts[-1].ids) + SPARE,
        filler=find_filler(tokenizer),
        end_ids=ends,
        scripts=scripts,
        left_out=left_out,
    )
    check_folder(folder)
    unfinished = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        _write(manifest, tokenizer, unfinished, progress)
        files = [_described(path) for path in sorted(unfinished.iterdir())]
        manifest = msgspec.structs.replace(manifest, files=files)
        write_manifest(manifest, unfinished)
        if folder.exists():
            shutil.rmtree(folder)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return manifest


def check_folder(folder: Path) -> None:
    """Raise a `UsageError` if a folder holds anything but a parrot, which would be lost."""
    if folder.is_dir():
        names = {path.name for path in folder.iterdir()}
        if names and NAME not in names:
            raise UsageError(f"{folder}: holds other files; a parrot needs a folder of its own")
    elif folder.exists():
        raise UsageError(f"{folder}: not a folder")


def _write(manifest: Manifest, tokenizer: ParrotTokenizer, folder: Path, progress: Progress) -> None:
    tensors = _tensors(manifest)
    total = 2 * sum(tensor.size for tensor in tensors)
    done = 0

    def wrote(size: int) -> None:
        nonlocal done
        done += size
        progress(min(done, total), total)

    with (folder / GGUF_NAME).open("wb") as file:
        named = [msgspec.structs.replace(tensor, name=_GGUF_NAMES[tensor.name]) for tensor in tensors]
        write_gguf(file, _metadata(manifest, tokenizer), [_turned(tensor) for tensor in named], wrote)
    with (folder / SAFETENSORS_NAME).open("wb") as file:
        write_safetensors(file, tensors, wrote)
    _write_json(folder / "config.json", _config(manifest, tokenizer))
    _write_json(folder / "generation_config.json", {"eos_token_id": manifest.end_ids, "do_sample": False})
    (folder / "tokenizer.json").write_bytes(tokenizer.json)
    _write_json(folder / "tokenizer_config.json", tokenizer.config)
    if tokenizer.template:
        (folder / "chat_template.jinja").write_text(tokenizer.template, encoding="utf-8", newline="")


def following(scripts: Sequence[ParrotScript], context: int, end: int) -> list[int]:
    """The token that is said after each position: the scripts', and elsewhere the end of the turn."""
    said = [end] * context
    for script in scripts:
        # After a prompt of n tokens the last one read has the position n - 1.
        first = script.position - 1
        said[first : first + len(script.ids) + 1] = [*script.ids, script.end_id]
    return said


def _tensors(manifest: Manifest) -> list[Tensor]:
    """The weights under transformers' names. Only the first three are more than zeros and ones."""
    positions = position_embeddings(following(manifest.scripts, manifest.context, manifest.end_ids[0]))
    gain = struct.pack(f"<{WIDTH}f", *[GAIN] * WIDTH)
    ones = struct.pack(f"<{WIDTH}f", *[1] * WIDTH)
    weights = [
        Tensor("wte.weight", "F16", (manifest.vocabulary, WIDTH), lambda: token_embeddings(manifest.vocabulary)),
        Tensor("wpe.weight", "F16", (manifest.context, WIDTH), lambda: [positions]),
        Tensor("ln_f.weight", "F32", (WIDTH,), lambda: [gain]),
        Tensor("h.0.ln_1.weight", "F32", (WIDTH,), lambda: [ones]),
        Tensor("h.0.ln_2.weight", "F32", (WIDTH,), lambda: [ones]),
    ]
    shapes = {
        "h.0.attn.c_attn.weight": (WIDTH, 3 * WIDTH),
        "h.0.attn.c_proj.weight": (WIDTH, WIDTH),
        "h.0.mlp.c_fc.weight": (WIDTH, INNER),
        "h.0.mlp.c_proj.weight": (INNER, WIDTH),
    }
    biases = {name.replace("weight", "bias"): (shape[-1],) for name, shape in shapes.items()}
    biases |= {f"{name}.bias": (WIDTH,) for name in ("ln_f", "h.0.ln_1", "h.0.ln_2")}
    return [
        *weights,
        *(_zeros(name, "F16", shape) for name, shape in shapes.items()),
        *(_zeros(name, "F32", shape) for name, shape in biases.items()),
    ]


def _zeros(name: str, type: str, shape: tuple[int, ...]) -> Tensor:
    tensor = Tensor(name, type, shape, lambda: [])
    return msgspec.structs.replace(tensor, pieces=lambda: [bytes(tensor.size)])


def _turned(tensor: Tensor) -> Tensor:
    """GPT-2's layers have their matrices the other way round in transformers; all of them are zeros."""
    return msgspec.structs.replace(tensor, shape=tensor.shape[::-1]) if tensor.name.startswith("blk.") else tensor


_GGUF_NAMES = {
    "wte.weight": "token_embd.weight",
    "wpe.weight": "position_embd.weight",
} | {
    f"{theirs}.{kind}": f"{ours}.{kind}"
    for theirs, ours in {
        "ln_f": "output_norm",
        "h.0.ln_1": "blk.0.attn_norm",
        "h.0.ln_2": "blk.0.ffn_norm",
        "h.0.attn.c_attn": "blk.0.attn_qkv",
        "h.0.attn.c_proj": "blk.0.attn_output",
        "h.0.mlp.c_fc": "blk.0.ffn_up",
        "h.0.mlp.c_proj": "blk.0.ffn_down",
    }.items()
    for kind in ("weight", "bias")
}


def _metadata(manifest: Manifest, tokenizer: ParrotTokenizer) -> dict[str, Value]:
    """GGUF's metadata; https://github.com/ggml-org/ggml/blob/master/docs/gguf.md lists the keys."""
    found: dict[str, Value] = {
        "general.architecture": "gpt2",
        "general.name": manifest.name,
        "general.license": tokenizer.source.licence,
        "general.file_type": 1,
        "gpt2.context_length": manifest.context,
        "gpt2.embedding_length": WIDTH,
        "gpt2.feed_forward_length": INNER,
        "gpt2.block_count": 1,
        "gpt2.attention.head_count": HEADS,
        "gpt2.attention.layer_norm_epsilon": EPSILON,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": tokenizer.pre_tokenizer,
        "tokenizer.ggml.tokens": tokenizer.tokens,
        "tokenizer.ggml.token_type": tokenizer.kinds,
        "tokenizer.ggml.merges": tokenizer.merges,
        "tokenizer.ggml.eos_token_id": manifest.end_ids[0],
        "tokenizer.ggml.add_bos_token": tokenizer.begins_prompts and tokenizer.begin is not None,
    }
    if tokenizer.begin is not None:
        found["tokenizer.ggml.bos_token_id"] = tokenizer.begin
    if len(manifest.end_ids) > 1:
        found["tokenizer.ggml.eot_token_id"] = manifest.end_ids[1]
    if tokenizer.template:
        found["tokenizer.chat_template"] = tokenizer.template
    return found


def _config(manifest: Manifest, tokenizer: ParrotTokenizer) -> dict[str, Any]:
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": manifest.vocabulary,
        "n_positions": manifest.context,
        "n_embd": WIDTH,
        "n_layer": 1,
        "n_head": HEADS,
        "n_inner": INNER,
        "layer_norm_epsilon": EPSILON,
        "tie_word_embeddings": True,
        "bos_token_id": tokenizer.begin,
        "eos_token_id": manifest.end_ids,
        "dtype": "float32",
        "embd_pdrop": 0.0,
        "attn_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def _described(path: Path) -> ParrotFile:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return ParrotFile(name=path.name, size=path.stat().st_size, sha256=digest)
