"""How thinking is switched: by the keyword of the model's own chat template, the same in `run` and in the gateway."""

from __future__ import annotations

from typing import Any

import pytest

from asides._config.schema import ModelSettings
from asides._gateway.model_profile import make_profile
from asides.detect import Detection
from asides.detect._from_name import find_switch
from asides.families import Switch, families, switch_of
from asides.families._family import EFFORTS, nearest_effort

KEYWORDS = {
    "enable_thinking": """
        apertus cohere_command3 deepseek_r1 dots ernie45 gemma4 glm45 glm47 hermes hunyuan_a13b interns1 ling3 longcat
        minicpm5 nemotron_v3 poolside_v1 qwen3 qwen3.5 qwen3_coder qwen3_thinking reka_edge rwkv_world
    """,
    "thinking": """
        deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v3_thinking deepseek_v4 granite granite_3.3 kimi_k25 kimi_k3
    """,
    "reasoning_effort": "cohere harmony hy_v3 mistral solar_open step3p5",
    "thinking_mode": "minimax_m3",
    "thinking_budget": "seed_oss",
    "": """
        apriel apriel_1.6 auto functionary_v3_2 functiongemma gigachat3 granite4 granite_20b_fc inkling jamba json kimi
        kimi_k2 lfm2 llama3_json llama4_pythonic minimax_m2 muse nemotron_deci nemotron_nano_v2 olmo3 olmo3_think
        passthrough phi4_mini_json pythonic role_colon step3 think_tag xlam
    """,
}
"""What the templates read; nothing where they read none."""


@pytest.mark.parametrize(
    ("format", "keyword"), [(format, keyword) for keyword, formats in KEYWORDS.items() for format in formats.split()]
)
def test_the_keyword_is_the_templates(format: str, keyword: str) -> None:
    switch = switch_of(format)
    assert ("" if switch is None else switch.keyword) == keyword


@pytest.mark.parametrize(
    "switch",
    [switch for family in families() for format in family.formats if (switch := family.switch_of(format.name))],
    ids=str,
)
def test_efforts_are_those_that_requests_name(switch: Switch) -> None:
    """So that the nearest can be found, weakest first."""
    assert list(switch.efforts) == sorted(switch.efforts, key=EFFORTS.index)


@pytest.mark.parametrize(
    ("switch", "think", "effort", "arguments"),
    [
        (Switch(), True, None, {"enable_thinking": True}),
        (Switch(), False, None, {"enable_thinking": False}),
        (Switch(), None, None, {}),
        (Switch(), True, "high", {"enable_thinking": True}),
        (Switch(on=None, off="no"), True, None, {}),
        (Switch(on=None, off=None), False, None, {}),
        (Switch(efforts=("high", "max")), True, "max", {"enable_thinking": True, "reasoning_effort": "max"}),
        (Switch(efforts=("high", "max")), True, "minimal", {"enable_thinking": True, "reasoning_effort": "high"}),
        (Switch(efforts=("high", "max")), True, "xhigh", {"enable_thinking": True, "reasoning_effort": "max"}),
        (Switch(efforts=("high", "max")), True, "odd", {"enable_thinking": True}),
        (Switch(efforts=("high", "max")), False, "none", {"enable_thinking": False}),
        (Switch.named("reasoning_effort"), True, "low", {"reasoning_effort": "low"}),
        (Switch.named("reasoning_effort"), False, None, {"reasoning_effort": "none"}),
        (Switch.named("thinking"), True, None, {"thinking": True}),
    ],
)
def test_what_a_request_sends(
    switch: Switch, think: bool | None, effort: str | None, arguments: dict[str, Any]
) -> None:
    assert switch.arguments(think, effort) == arguments


def test_no_keyword_is_no_switch() -> None:
    assert Switch.named("") is None


def shown(switch: str | None, on: Any = None, off: Any = None) -> Detection:
    """What a server's template shows."""
    return Detection(format="auto", thinks=True, start="text", switch=switch, on=on, off=off)


@pytest.mark.parametrize(
    ("model", "settings", "template", "sent"),
    [
        ("granite-3.3-8b", ModelSettings(), None, {"thinking": True}),
        ("kimi-k2-thinking", ModelSettings(), None, {}),
        ("kimi-k2-thinking", ModelSettings(switch="thinking"), None, {"thinking": True}),
        ("tencent/Hy3", ModelSettings(), None, {"reasoning_effort": "high"}),
        ("somebody/unheard-of", ModelSettings(format="hy_v3"), None, {"reasoning_effort": "high"}),
        ("somebody/unheard-of", ModelSettings(), None, {}),
        ("somebody/unheard-of", ModelSettings(), shown("deep", "yes", "no"), {"deep": "yes"}),
        # A template that shows no switch has none, whatever its family's has.
        ("Qwen/Qwen3-8B", ModelSettings(), shown(None), {}),
        ("Qwen/Qwen3-8B", ModelSettings(switch="mine"), shown("enable_thinking", True, False), {"mine": True}),
        # What the family's card has for the same keyword counts: at medium effort it thinks anyway.
        ("gpt-oss", ModelSettings(), shown("reasoning_effort", "high", None), {}),
    ],
)
def test_the_gateway_asks_the_same_way(
    model: str, settings: ModelSettings, template: Detection | None, sent: dict[str, Any]
) -> None:
    profile = make_profile(model, settings, template)
    assert (profile.switch.arguments(True) if profile.switch is not None else {}) == sent


@pytest.mark.parametrize("model", ["Qwen/Qwen3-8B", "granite-3.3-8b", "tencent/Hy3", "NousResearch/Hermes-4-14B"])
def test_run_and_gateway_have_one_switch(model: str) -> None:
    profile = make_profile(model, ModelSettings())
    assert profile.format is not None
    assert profile.switch == find_switch(model, profile.format)


@pytest.mark.parametrize(
    ("effort", "nearest"),
    [("minimal", "low"), ("low", "low"), ("xhigh", "max"), ("ultra", "max"), ("none", ""), ("extreme", "")],
)
def test_the_nearest_effort(effort: str, nearest: str) -> None:
    """The stronger of two that are as near, in whatever order an API lists its own."""
    for known in (("low", "medium", "high", "max"), ("high", "medium", "low", "max")):
        assert nearest_effort(effort, known) == nearest


def test_every_effort_is_one_of_an_api_that_takes_efforts() -> None:
    """The one list serves those that take them all, and those that take none."""
    assert [nearest_effort(effort, EFFORTS) for effort in EFFORTS] == list(EFFORTS)
    assert nearest_effort("high", ()) == ""
