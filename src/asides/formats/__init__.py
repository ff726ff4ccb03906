"""Every format that asides knows, one family per file. A new family is a new file and its name in this list."""

from __future__ import annotations

from importlib import import_module

from .registry import formats, get_format, register, register_all

FAMILIES = (
    "apertus",
    "apriel",
    "auto",
    "cohere",
    "deepseek",
    "dots",
    "ernie",
    "functionary",
    "gemma",
    "generic",
    "gigachat",
    "glm",
    "granite",
    "harmony",
    "hunyuan",
    "inkling",
    "internlm",
    "jamba",
    "kimi",
    "lfm",
    "llama",
    "longcat",
    "minicpm",
    "minimax",
    "mistral",
    "muse",
    "nemotron",
    "olmo",
    "phi",
    "qwen",
    "reka",
    "rwkv",
    "seed",
    "solar",
    "step",
    "xlam",
)
"""The modules that hold formats; each has a tuple `FORMATS`."""

for _family in FAMILIES:
    register_all(import_module(f"{__name__}.{_family}").FORMATS)

__all__ = ["FAMILIES", "formats", "get_format", "register"]
