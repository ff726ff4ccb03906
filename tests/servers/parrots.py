"""The parrots of `make test-servers`: six families, each with its real tokenizer where a package has it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from asides import get_format
from asides.audit import Manifest
from asides.audit._parrot import make_parrot
from asides.audit._scripts import cases_of, shipped_cases
from asides.audit._stand_in import stand_in
from asides.audit._tokenizer import read_tokenizer

SCRIPTS = 28
"""Cases of each family, spread over all of them."""
FIRST = 900
"""Where the first script begins: no prompt of these tests is longer in its first turn."""


class ParrotFamily(msgspec.Struct, frozen=True):
    """A family, and where its tokenizer and template are in the material."""

    model: str
    """What the model is called: the gateway knows the family by it where the server shows no template."""
    format: str
    tokenizer: str
    """Empty: a stand-in."""
    template: str
    """Empty: the one beside the tokenizer."""


FAMILIES = {
    "qwen3": ParrotFamily("Qwen3-8B", "qwen3", "qwen3", ""),
    "deepseek": ParrotFamily("DeepSeek-V3.1", "deepseek_v31", "deepseek_r1", "deepseek-ai-DeepSeek-V3.1.jinja"),
    "gpt-oss": ParrotFamily("gpt-oss-20b", "harmony", "gptoss", "openai-gpt-oss-120b.jinja"),
    "glm": ParrotFamily("GLM-4.6", "glm45", "", "GLM-4.6.jinja"),
    "llama3": ParrotFamily(
        "Llama-3.2-3B-Instruct", "llama3_json", "llama3_2", "meta-llama-Llama-3.2-3B-Instruct.jinja"
    ),
    "mistral": ParrotFamily(
        "Mistral-Nemo-Instruct-2407", "mistral", "mistral_nemo", "mistralai-Mistral-Nemo-Instruct-2407.jinja"
    ),
}


def missing(family: ParrotFamily, material: Path) -> str:
    """What of the material is not there; empty where nothing is missing."""
    places = [material / "templates" / family.template, material / "tokenizers" / family.tokenizer]
    return ", ".join(place.name for place in places if not place.exists())


def write_parrot(family: ParrotFamily, material: Path, folder: Path) -> Manifest:
    """Make it in a folder of the model's name."""
    format = get_format(family.format)
    cases = [case for case in cases_of(shipped_cases(), format) if case.start != "thinking"]
    template = material / "templates" / family.template if family.template else None
    chosen = cases[:: max(1, len(cases) // SCRIPTS)]
    if family.tokenizer:
        tokenizer = read_tokenizer(material / "tokenizers" / family.tokenizer, template)
    else:
        assert template is not None
        tokenizer = stand_in(format, [case.raw for case in chosen], template.read_text(encoding="utf-8"), template.name)
    return make_parrot(tokenizer, format, chosen, folder / family.model, version="test", first=FIRST)
