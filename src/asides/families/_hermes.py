"""Nous Research's Hermes, and others that took over its JSON calls in ChatML: SmolLM 3, Bielik, Trinity."""

from __future__ import annotations

from ._family import Family, Model, Switch
from ._qwen import QWEN3

HERMES = QWEN3.but(
    name="hermes",
    aliases=("trinity", "smollm3", "bielik", "exaone", "json_tools"),
    source="chat templates of Hermes 2 Pro, Hermes 3, SmolLM3 and Bielik v3: ChatML, JSON calls, no opener in the "
    "generation prompt by default; Hermes 4 and Trinity think in the same tags",
)
FAMILY = Family(
    name="Hermes",
    formats=(HERMES,),
    models=(
        Model(r"deephermes", "hermes", True, who="DeepHermes"),
        Model(r"hermes-?{}", "hermes", True, "4 4.3", switch=Switch(keyword="thinking")),
        Model(r"hermes-?{}", "hermes", False, "2 2.5 3"),
        Model(r"trinity-large-thinking", "qwen3.5", True, who="Trinity Large Thinking", line="Trinity"),
        Model(r"trinity-(?:mini|nano)", "trinity", None, line="Trinity"),
        Model(r"smollm-?{}", "smollm3", True, "3", line="SmolLM"),
        Model(r"bielik.*-v{}", "bielik", True, "3 3.0", line="Bielik"),
    ),
    switch=Switch(),
    rank=7,
)
