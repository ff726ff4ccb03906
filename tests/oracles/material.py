"""What `make test-conversations` compares with: chat templates and tokenizers out of packages, and stand-ins.

A template without its tokenizer gets a stand-in: Qwen3's words, and as tokens of their own every marker that the
template spells. So text is cut by real merges, and each marker is one id, as in the checkpoint.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(os.environ.get("CONVERSATION_MATERIAL", ".venv-conversations/material"))

MARKER = re.compile(
    r"<\|[^\s|<>'\"]{1,40}\|?>|<[^\s|<>'\"]{1,40}\|>|<｜[^｜\n'\"]{1,40}｜>|</?(?:think|tool_call|tool_response|arg_key|arg_value|tools?)>"
    r"|\[/?[A-Z_]{4,24}\]|\[gMASK\]|<sop>|<(?:start|end)_of_turn>|<end_of_utterance>|</?s>|<bos>|<eos>"
)
STOPS = {
    "cohere": "<|END_OF_TURN_TOKEN|>",
    "gemma4": "<turn|>",
    "gemma": "<end_of_turn>",
    "glm": "<|endoftext|>",
    "gptoss": "<|return|>",
    "gpt-oss": "<|return|>",
    "lfm2": "<|im_end|>",
    "llama": "<|eot_id|>",
    "muse": "<|eot|>",
    "phi": "<|endoftext|>",
    "idefics": "<end_of_utterance>",
    "smolvlm": "<end_of_utterance>",
    "llava": "</s>",
    "deepseek": "<｜end▁of▁sentence｜>",
}
"""The end token that a stand-in has, by how the template is named; most have `<|im_end|>`."""


class Checkpoint(NamedTuple):
    """A template, and where a package carries it too, its tokenizer."""

    name: str
    template: str
    tokenizer: str = ""

    @property
    def thinking(self) -> str:
        """The field in which this template looks for thoughts."""
        fields = ("reasoning_content", "reasoning", "thinking")
        named = r"\b(?:message|msg|m|loop_message)\.{0}\b|['\"]{0}['\"]"
        return next((field for field in fields if re.search(named.format(field), self.template)), fields[0])


def tokenizer_of(checkpoint: Checkpoint) -> Any:
    """Its tokenizer as transformers loads it, or a stand-in; with its template."""
    if checkpoint.tokenizer:
        found = real_tokenizer(checkpoint.tokenizer)
    else:
        found = stand_in(sorted({each for each in MARKER.findall(checkpoint.template)}), _stop(checkpoint))
    found.chat_template = checkpoint.template
    return found


def _stop(checkpoint: Checkpoint) -> str:
    name = checkpoint.name.partition(" ")[2].lower()
    found = next((stop for part, stop in STOPS.items() if part in name), "")
    return found or "<|im_end|>"


@cache
def real_tokenizer(name: str) -> Any:
    """A tokenizer out of a package, loaded once."""
    folder = FOLDER / "tokenizers" / name
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    named = {key: _content(config.get(key)) for key in ("bos_token", "eos_token", "pad_token", "unk_token")}
    tokenizer = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    return import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **{key: value for key, value in named.items() if value}
    )


def _content(token: Any) -> str | None:
    return str(token["content"]) if isinstance(token, dict) else token if isinstance(token, str) else None


@cache
def _words() -> Any:
    return import_module("tokenizers").Tokenizer.from_file(str(FOLDER / "tokenizers" / "qwen3" / "tokenizer.json"))


def stand_in(markers: list[str], stop: str, bos: str = "<|bos|>") -> Any:
    """A tokenizer of Qwen3's words with these markers as tokens."""
    added = import_module("tokenizers").AddedToken
    tokenizer = import_module("transformers").PreTrainedTokenizerFast(
        tokenizer_object=_words(), bos_token=bos, eos_token=stop
    )
    tokenizer.add_tokens([added(each, special=False, normalized=False) for each in markers])
    return tokenizer


@cache
def checkpoints() -> dict[str, Checkpoint]:
    """Every template that packages carry, by its package and name."""
    found: list[Checkpoint] = []
    for folder in sorted((FOLDER / "tokenizers").iterdir()):
        template = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8")).get("chat_template")
        each = {each["name"]: each["template"] for each in template} if isinstance(template, list) else {"": template}
        found += [
            Checkpoint(f"npm {folder.name}{name and ' '}{name}", text, folder.name)
            for name, text in each.items()
            if text
        ]
    spec = importlib.util.find_spec("trl")
    assert spec is not None
    assert spec.submodule_search_locations
    for package, files in (
        ("trl", Path(spec.submodule_search_locations[0], "chat_templates")),
        ("llama.cpp", FOLDER / "templates"),
    ):
        for path in sorted(files.glob("*.jinja")):
            text = path.read_text(encoding="utf-8")
            found.append(Checkpoint(f"{package} {path.stem}", text, TOKENIZERS.get(path.stem, "")))
    return {each.name: each for each in found}


TOKENIZERS = {
    "qwen3": "qwen3",
    "qwen3_training": "qwen3",
    "qwen3_instruct_2507": "qwen3",
    "qwen3_instruct_2507_training": "qwen3",
    "Qwen-Qwen3-0.6B": "qwen3",
    "qwen2_5": "qwen2_5",
    "qwen2_5_training": "qwen2_5",
    "Qwen-Qwen2.5-7B-Instruct": "qwen2_5",
    "gptoss": "gptoss",
    "gptoss_training": "gptoss",
    "openai-gpt-oss-120b": "gptoss",
    "llama3_2": "llama3_2",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3_2",
    "deepseekv3": "deepseek_v3",
    "deepseekv3_training": "deepseek_v3",
    "gemma3": "gemma3",
    "gemma3_training": "gemma3",
    "mistralai-Mistral-Nemo-Instruct-2407": "mistral_nemo",
}
"""The tokenizer of a template, where a package carries that of the same checkpoint."""
