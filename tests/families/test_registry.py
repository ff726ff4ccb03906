"""Names: every one that a peer gives resolves, however it is spelled; third parties can add theirs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from typing import Any

import pytest

import asides
from asides import Format, UnknownFormatError, UsageError
from asides._engine.format import HEADER, TEXT, THINKING
from asides.families import _registry as registry
from tests.support import check_each
from tools.formats_table import markdown_table, with_tables

PEERS = {
    "vllm reasoning": """
        cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 ernie45 gemma4 glm45 glm47 granite holo2
        hunyuan_a13b hy_v3 inkling kimi_k2 kimi_k3 ling3 mimo minimax_m2 minimax_m2_append_think minimax_m3 mistral
        muse_glimmer nemotron_v3 olmo3 openai_gptoss poolside_v1 qwen3 seed_oss step3 step3p5
    """,
    "vllm tools": """
        apertus cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4 dots ernie45
        functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4 hermes hunyuan_a13b hy_v3 inkling
        internlm jamba kimi_k2 kimi_k3 lfm2 ling3 llama3_json llama4_json llama4_pythonic longcat mimo minicpm5
        minimax_m2 minimax_m3 mistral muse_glimmer olmo3 openai phi4_mini_json poolside_v1 pythonic qwen3_coder
        qwen3_xml seed_oss step3 step3p5 xlam
    """,
    "sglang reasoning": """
        apertus2509 cohere_command4 deepseek-r1 deepseek-v3 deepseek-v4 dots gemma4 glm45 gpt-oss hunyuan inkling
        interns1 kimi kimi_k2 kimi_k3 mimo minimax minimax-append-think minimax-m3 mistral muse nemotron_3
        poolside_v1 qwen3 qwen3-thinking step3 step3p5
    """,
    "sglang tools": """
        apertus2509 cohere_command4 deepseekv3 deepseekv31 deepseekv32 deepseekv4 dots gemma4 gigachat3 glm glm45
        glm47 gpt-oss hermes hunyuan inkling interns1 kimi_k2 kimi_k3 lfm2 llama3 mimo minicpm5 minimax-m2
        minimax-m3 mistral muse poolside_v1 pythonic qwen qwen25 qwen3_coder step3 step3p5 trinity
    """,
    "ollama": """
        cogito cohere deepseek3 functiongemma gemma4 gemma4-no-thinking glimmer glm-4.7 glm-ocr harmony laguna lfm2
        lfm2-thinking ministral nemotron-3-nano nemotron-3.5-nano olmo3 olmo3-think ornith passthrough poolside-v1
        qwen3 qwen3-coder qwen3-thinking qwen3-vl-instruct qwen3-vl-thinking qwen3.5
    """,
    "llama.cpp": """
        ministral_3 gpt_oss muse_glimmer functionary_v3_2 kimi_k2 kimi_k3 cohere2moe lfm2 lfm2.5 gigachat_v3
        minimax_m3 deepseek_v3_2 gemma4 minicpm5 qwen3_coder
    """,
    "dynamo": """
        basic deepseek_r1 deepseek_v3 deepseek_v3_1 deepseek_v3_2 deepseek_v4 deepseekv4 gemma4 glm45 glm47 gpt_oss
        granite harmony hermes jamba kimi kimi_k2 kimi_k25 llama3_json minimax_append_think minimax_m2 mistral
        nemotron3 nemotron_deci nemotron_nano nemotron_v3 phi4 pythonic qwen25 qwen3 qwen3_coder step3
    """,
    "lmdeploy": """
        default qwen-qwq intern-s1 deepseek-r1 deepseek-v3 deepseek-v32 deepseek-v3.2 deepseek-v4 gpt-oss
    """,
    "smg": """
        passthrough deepseek_r1 qwen3 qwen3_thinking kimi glm45 step3 minimax cohere_cmd nano_v3 inkling
        deepseek_v31 kimi_k25 kimi_thinking kimi_k3 json
    """,
    "nexrl": """
        think_tag think default qwen3 deepseek_r1 kimi step3 nano_v3 minimax_append_think
    """,
    "tinker": """
        role_colon llama3 qwen3 qwen3_disable_thinking deepseekv3_thinking deepseekv3_disable_thinking kimi_k2
        gpt_oss
    """,
    "of November 2026": """
        hy_v4 deepseek_v41 deepseek-v41 deepseekv41 deepseek_v4_1 granite_thinking_parser minicpmv qwen3_json gigachat35
        k2_horizon plamo3 beam firefunction_v2 functionary_v3_1 command_r_plus iquest_q1 nanbeige spark25 spark2_5
        function_gemma json_tools muse_spark internlm2 interns2-preview interns2preview qwen2d5 qwen3coder exaone
        musespark1x step5
        llama tml_v0 glm5 glm5_3 hy3 laguna_s21 laguna_xs2 laguna_m1 laguna_xs21 llama_3 nemotron3 nemotron3_ultra
        qwen35 qwen36 qwen38 qwen3_vl kimi_k26 qwen3_5 qwen3_8
    """,
    "tinker with a suffix": """
        deepseekv4_1_low_reasoning deepseekv4_1_max_reasoning deepseekv4_1_preserve_thinking glm5_3_high_reasoning
        qwen3_8_medium_reasoning qwen3_8_xhigh_reasoning kimi_k26_low_thinking gpt_oss_high_reasoning
    """,
}
"""The names that other projects give their parsers and renderers."""

STARTS = {
    "qwen3": TEXT,
    "qwen3-thinking": THINKING,
    "qwen3.5": THINKING,
    "deepseek_r1": THINKING,
    "deepseek_v3": TEXT,
    "deepseek_v3_1": TEXT,
    "deepseek_v4": TEXT,
    "deepseek3": THINKING,
    "deepseekv3_thinking": THINKING,
    "deepseekv3_disable_thinking": TEXT,
    "glm45": TEXT,
    "glm47": THINKING,
    "kimi": TEXT,
    "kimi_k2": TEXT,
    "kimi_k25": THINKING,
    "kimi_k3": THINKING,
    "minimax_m2": THINKING,
    "minimax_append_think": THINKING,
    "minimax_m3": TEXT,
    "mistral": TEXT,
    "nemotron_v3": THINKING,
    "nano_v3": THINKING,
    "olmo3": TEXT,
    "olmo3-think": THINKING,
    "seed_oss": TEXT,
    "step3": THINKING,
    "gpt-oss": HEADER,
    "muse": HEADER,
    "inkling": HEADER,
    "think_tag": TEXT,
    "passthrough": TEXT,
    "auto": TEXT,
    "deepseek_v41": THINKING,
    "deepseekv4_1_disable_thinking": TEXT,
    "deepseekv4_1_preserve_thinking": THINKING,
    "deepseek_v4_max_reasoning": THINKING,
    "gpt_oss_low_reasoning": HEADER,
    "qwen3_8_disable_thinking": TEXT,
    "laguna_xs2": TEXT,
    "laguna_s21": THINKING,
    "gigachat35": THINKING,
}


@pytest.mark.parametrize("peer", PEERS)
def test_every_name_of_a_peer_resolves(peer: str) -> None:
    check_each(_check_resolved, PEERS[peer].split())


def _check_resolved(name: str) -> None:
    assert isinstance(asides.get_format(name), Format)


@pytest.mark.parametrize(("name", "start"), STARTS.items())
def test_where_output_starts(name: str, start: str) -> None:
    assert asides.get_format(name).start == start


@pytest.mark.parametrize("spelled", ["qwen3.5", "Qwen3.5", "QWEN_3_5", "qwen-3.5", "qwen 3 5", "qwen35"])
def test_names_compare_without_case_and_punctuation(spelled: str) -> None:
    assert asides.get_format(spelled) is asides.get_format("qwen3.5")


def test_a_format_is_its_own_name() -> None:
    format = asides.get_format("qwen3")
    assert asides.get_format(format) is format


def test_names_are_canonical_sorted_and_resolve() -> None:
    names = asides.formats()
    assert names == sorted(names)
    assert all(asides.get_format(name).name == name for name in names)


def test_every_family_is_registered_and_says_where_its_facts_come_from() -> None:
    for name in asides.formats():
        assert asides.get_format(name).source, name


def test_no_name_stands_twice() -> None:
    folded = [
        registry.fold(name)
        for canonical in asides.formats()
        for name in (canonical, *asides.get_format(canonical).aliases)
    ]
    assert len(folded) == len(set(folded))


@pytest.mark.parametrize(("one", "other"), [("qwen3", "qwen3_thinking"), ("glm45", "glm47"), ("olmo3", "olmo3_think")])
def test_names_that_start_elsewhere_are_formats_of_their_own(one: str, other: str) -> None:
    first, second = asides.get_format(one), asides.get_format(other)
    assert (first.start, second.start) == (TEXT, THINKING)
    assert first.states == second.states
    assert first.calls == second.calls


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("qwen4", "qwen3"), ("deepseek-r2", "deepseek_r1"), ("harmon", "harmony"), ("gtp-oss", "harmony")],
)
def test_an_unknown_name_is_answered_with_near_ones(typed: str, meant: str) -> None:
    with pytest.raises(UnknownFormatError) as caught:
        asides.get_format(typed)
    assert caught.value.name == typed
    assert meant in caught.value.near
    assert meant in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_an_unknown_name_with_nothing_near_it() -> None:
    with pytest.raises(UnknownFormatError) as caught:
        asides.parse("a", format="zzzzzzzzzzzzzzz")
    assert caught.value.near == ()


@pytest.mark.usefixtures("_clean_registry")
def test_a_pair_of_tags_in_one_line() -> None:
    message = asides.parse("<a>one</a>two", Format.tags("<a>", "</a>"))
    assert (message.thinking, message.text) == ("one", "two")
    asides.register(Format.tags("<a>", "</a>", name="mine", aliases=("my-own",)))
    assert asides.parse("<a>one</a>two", "My Own").thinking == "one"
    assert "mine" in asides.formats()


@pytest.mark.usefixtures("_clean_registry")
def test_a_name_in_use_is_kept_unless_replaced() -> None:
    before = asides.get_format("qwen3")
    mine = Format.tags("<a>", "</a>", name="Qwen-3")
    with pytest.raises(UsageError, match="qwen3"):
        asides.register(mine)
    assert asides.get_format("qwen3") is before
    assert asides.register(mine, replace=True) is mine
    assert asides.get_format("qwen3") is mine


@pytest.mark.usefixtures("_clean_registry")
def test_a_name_taken_over_leaves_the_others() -> None:
    before = asides.get_format("gpt-oss")
    asides.register(Format.tags("<a>", "</a>", name="gpt_oss"), replace=True)
    assert asides.get_format("gpt-oss") is not before
    assert asides.get_format("harmony") is before


class _EntryPoint:
    def __init__(self, value: object) -> None:
        self.value = value

    def load(self) -> object:
        return self.value


@pytest.mark.usefixtures("_clean_registry")
def test_third_parties_add_formats_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    one = Format.tags("<a>", "</a>", name="third_one")
    two = Format.tags("<b>", "</b>", name="third_two")
    three = Format.tags("<c>", "</c>", name="third_three")
    asked: list[str] = []

    def entry_points(*, group: str) -> list[_EntryPoint]:
        asked.append(group)
        return [_EntryPoint(one), _EntryPoint((two, three))]

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    monkeypatch.setattr(registry, "_loaded", False)
    assert asides.get_format("third-one") is one
    assert {"third_one", "third_two", "third_three"} <= set(asides.formats())
    assert asides.parse("<c>a</c>b", "third_three").thinking == "a"
    assert asked == ["asides.formats"]


@pytest.mark.usefixtures("_clean_registry")
def test_an_entry_point_does_not_change_a_known_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    before = asides.get_format("qwen3")
    mine = Format.tags("<a>", "</a>", name="third_one", aliases=("qwen3",))
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: [_EntryPoint(mine)])
    monkeypatch.setattr(registry, "_loaded", False)
    assert "third_one" not in asides.formats()
    assert asides.get_format("qwen3") is before
    assert "third_one" in caplog.text


@pytest.mark.parametrize(("name", "imports"), [("qwen3", "_qwen"), ("gpt-oss", "_harmony")])
def test_families_are_imported_when_a_name_asks_for_them(name: str, imports: str) -> None:
    program = f"""
import sys, asides
assert not [module for module in sys.modules if module.startswith("asides.families._q")]
asides.get_format({name!r})
assert "asides.families.{imports}" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_derived_format_does_not_inherit_names() -> None:
    qwen3 = asides.get_format("qwen3")
    assert qwen3.aliases
    assert qwen3.but(name="other").aliases == ()


def test_the_table_has_a_row_for_every_format() -> None:
    lines = markdown_table().splitlines()
    assert len(lines) == len(asides.formats()) + 2
    assert len({line.replace(r"\|", "").count("|") for line in lines}) == 1
    assert any(line.startswith("| `qwen3` | `qwen`") for line in lines)


def test_the_table_is_put_between_its_comments() -> None:
    switches = "<!-- switches: made by a program -->\n<!-- /switches -->\n"
    before = f"# Title\n<!-- formats: made by a program -->\nold\n<!-- /formats -->\nend\n{switches}"
    after = with_tables(before)
    assert after.startswith("# Title\n<!-- formats: made by a program -->\n\n| format |")
    assert "|\n\n<!-- /formats -->\nend\n<!-- switches" in after
    assert with_tables(after) == after
    with pytest.raises(ValueError, match="no block switches"):
        with_tables(before.removesuffix(switches))


@pytest.mark.parametrize(
    ("opening", "fields", "reason"),
    [
        (" ", {}, "blank"),
        ("<<think>>", {"wrappers": ("think",)}, "stands inside"),
        ("<b >", {"attributes": True}, "whitespace"),
    ],
)
def test_markers_that_cannot_be_told_apart_are_refused(opening: str, fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(asides.UsageError, match=reason):
        Format.tags(opening, "</x>", **fields)
    unchecked = Format(name="odd", states={"text": {"<<think>>": "thinking", "think": "text"}, "thinking": {}})
    with pytest.raises(asides.UsageError, match="stands inside"):
        asides.register(unchecked)


@pytest.mark.parametrize("name", asides.formats())
def test_every_format_can_be_told_apart(name: str) -> None:
    asides.get_format(name).check()


def test_a_name_that_the_package_does_not_have() -> None:
    with pytest.raises(AttributeError, match=r"module 'asides.families' has no attribute 'nothing'"):
        _ = asides.families.nothing


@pytest.mark.usefixtures("_clean_registry")
def test_an_auto_of_ones_own_is_not_made_anew() -> None:
    """What is registered later would be part of ours, and has no part in theirs."""
    asides.register(Format.tags("<a>", "</a>", name="auto"), replace=True)
    asides.register(Format.tags("<b>", "</b>", name="later"))
    assert asides.clean("<a>x</a>y") == "y"
    assert asides.clean("<b>x</b>y") == "<b>x</b>y"
