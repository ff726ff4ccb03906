"""ByteDance Seed-OSS."""

from __future__ import annotations

from .._engine.format import Format
from .tagged_syntaxes import SEED_XML

SEED_OSS = Format.tags(
    "<seed:think>",
    "</seed:think>",
    name="seed_oss",
    source="chat template of Seed-OSS: no opener in the generation prompt (vLLM starts in thinking)",
    stops=("<seed:eos>",),
    calls=(SEED_XML,),
    assistant=("<seed:bos>assistant\n",),
)
FORMATS = (SEED_OSS,)
