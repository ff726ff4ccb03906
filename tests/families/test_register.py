"""Families that users register: read by name, by `auto`, found by detection, switched, listed."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import asides
from asides import Format, UnknownFormatError, UsageError
from asides._cli import main
from asides._engine.calls.json_calls import JsonCalls
from asides._engine.format import THINKING
from asides.detect._from_name import find_switch
from asides.families import Family, Model, Switch, family_of, switch_of
from asides.families import _registry as registry

pytestmark = pytest.mark.usefixtures("_clean_registry")

CALLS = JsonCalls(open=("<zed:call>",), close=("</zed:call>",))
ZED = Format.tags(
    "<zed>",
    "</zed>",
    name="zed",
    aliases=("zed_1",),
    source="a test",
    stops=("<|zed_end|>",),
    wrappers=("<zed:answer>", "</zed:answer>", "<b>"),
    calls=(CALLS,),
    assistant=("<|zed|>",),
)
FAMILY = Family(
    name="Zed",
    formats=(ZED, ZED.but(name="zed_thinking", start=THINKING)),
    models=(
        Model(r"zed-?{}.*thinking", "zed_thinking", True, "1.5"),
        Model(r"zed-?{}", "zed", True, "1 1.5"),
        Model(r"zedlet", "qwen3", False, line="Zedlet"),
    ),
    switch={"zed": Switch(keyword="ponder", on="yes", off="no")},
    plain={"<b>": "bold text"},
)
OUTPUT = '<zed>a plan</zed>the <b>answer<zed:call>{"name": "f", "arguments": {}}</zed:call><|zed_end|>'


def test_its_formats_are_read_by_name() -> None:
    assert asides.register(FAMILY) is FAMILY
    message = asides.parse(OUTPUT, "Zed-1")
    assert (message.thinking, message.text, message.tool_calls[0].name) == ("a plan", "the answer", "f")
    assert {"zed", "zed_thinking"} <= set(asides.formats())
    assert family_of("zed") is FAMILY
    assert family_of(ZED) is FAMILY


def test_auto_reads_its_distinctive_markers() -> None:
    """Also an `auto` that was asked for before; what the card calls plain is text."""
    before = asides.parse(OUTPUT)
    assert before.thinking == ""
    asides.register(FAMILY)
    message = asides.parse(OUTPUT)
    assert (message.thinking, message.text, message.termination) == ("a plan", "the <b>answer", "stop")
    assert [(call.name, call.error) for call in message.tool_calls] == [("f", None)]
    assert asides.parse("a plan</zed><zed:answer>the answer").text == "the answer"


def test_auto_reads_the_others_as_before() -> None:
    asides.register(FAMILY)
    for text in ("<think>a</think>b", "[THINK]a[/THINK]b<|im_end|>", "<|channel|>analysis<|message|>a<|end|>"):
        assert asides.parse(text).thinking == "a"
    assert asides.get_format("auto") is asides.get_format("auto")


def test_what_settles_once_settles_on_the_same_format() -> None:
    asides.register(FAMILY)
    auto = asides.get_format("auto")
    assert auto.settle is not None
    assert auto.settle("<zed>") is auto.settle("</zed>")
    assert auto.settle("<|channel|>") is asides.get_format("harmony")


def test_a_decisive_family_settles_everything() -> None:
    asides.register(Family(name="Zed", formats=(ZED,), decisive=ZED))
    auto = asides.get_format("auto")
    assert auto.settle is not None
    assert auto.settle("<zed>") is ZED


def test_a_format_takes_part_too() -> None:
    asides.register(Format.tags("<zed>", "</zed>", name="zed"))
    assert asides.parse("<zed>a</zed>b").thinking == "a"


def test_a_marker_that_is_known_stays_what_it_is() -> None:
    """A family that ends its turns with another's opener is read so by its name alone."""
    odd = Format.tags("<|im_end|>", "</odd>", name="odd", stops=("<think>",), calls=(JsonCalls(open=("</think>",)),))
    asides.register(odd)
    assert asides.parse("<think>a</think>b<|im_end|>").thinking == "a"
    assert asides.parse("<|im_end|>a</odd>b<think>", "odd").thinking == "a"


def test_markers_that_auto_could_not_tell_apart_take_no_part(caplog: pytest.LogCaptureFixture) -> None:
    asides.register(Format.tags("think", "end", name="words"))
    with caplog.at_level(logging.WARNING, "asides"):
        assert asides.parse("<think>a</think>b").thinking == "a"
    assert "words" in caplog.text
    assert asides.parse("think a end b", "words").thinking == "a"


def test_replacing_a_family_replaces_its_part_in_auto() -> None:
    asides.register(FAMILY)
    asides.register(Family(name="zed", formats=(ZED.but(states={"text": {"<zod>": "thinking"}}),)), replace=True)
    assert asides.parse("<zed>a</zed>b").thinking == ""
    assert len(registry.registered()) == 1


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("acme/Zed-1.5-7B", ("zed", True, "text")),
        ("acme/Zed-1.5-7B-Thinking", ("zed_thinking", True, "thinking")),
        ("acme/Zed-2-7B", ("auto", True, "text")),
        ("acme/Zedlet-Llama-3", ("qwen3", False, "text")),
    ],
)
def test_it_is_found_by_the_names_of_its_models(model: str, found: tuple[Any, ...]) -> None:
    assert asides.detect(model="acme/Zedlet-Llama-3").format == "llama3_json"
    asides.register(FAMILY)
    detection = asides.detect(model=model)
    assert (detection.format, detection.thinks, detection.start) == found
    assert "Zed" in detection.reasons[0]


def test_it_is_found_by_its_template() -> None:
    asides.register(FAMILY)
    template = (
        "{%- for message in messages %}{{- '<|' + message.role + '|>' if message.role == 'user' else '<|zed|>' }}"
        "{%- if message.reasoning_content %}{{- '<zed>' + message.reasoning_content + '</zed>' }}{%- endif %}"
        "{{- message.content or '' }}"
        "{%- for call in message.tool_calls or [] %}{{- '<zed:call>' }}"
        "{{- {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}{{- '</zed:call>' }}"
        "{%- endfor %}{{- '<|zed_end|>' }}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|zed|>' }}{%- endif %}"
    )
    assert asides.detect(chat_template=template).format == "zed"


def test_its_thinking_is_switched() -> None:
    asides.register(FAMILY)
    switch = switch_of("zed")
    assert switch is not None
    assert switch.arguments(True) == {"ponder": "yes"}
    assert switch_of("zed_thinking") is None
    assert find_switch("acme/Zed-1.5-7B", "zed") is switch


def test_it_is_listed(capfd: pytest.CaptureFixture[str]) -> None:
    asides.register(FAMILY)
    assert main(["formats"]) == 0
    listed = capfd.readouterr().out
    assert "zed_thinking" in listed
    assert main(["formats", "zed"]) == 0
    shown = capfd.readouterr().out
    assert "Zed" in shown
    assert "ponder: 'yes' thinks, 'no' does not" in shown


def test_a_name_in_use_is_an_error_and_nothing_is_added() -> None:
    taken = Family(name="Zed", formats=(ZED, Format.tags("<y>", "</y>", name="y", aliases=("Qwen-3",))))
    with pytest.raises(UsageError, match="'Qwen-3' belongs to the format 'qwen3'"):
        asides.register(taken)
    with pytest.raises(UnknownFormatError):
        asides.get_format("zed")
    assert asides.parse(OUTPUT).thinking == ""
    asides.register(taken, replace=True)
    assert asides.get_format("qwen3").name == "y"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"models": (Model("zed(", "zed", True),)}, "no pattern"),
        ({"switch": {"zad": Switch()}}, "zad"),
        ({"formats": (Format(name="zed", states={"text": {" ": "thinking"}}),)}, "blank"),
        ({"decisive": Format.tags("<y>", "</y>", name="y")}, "decisive"),
    ],
)
def test_a_card_that_does_not_fit_together_is_an_error(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        asides.register(Family(**{"name": "Zed", "formats": (ZED,), **fields}))
    with pytest.raises(UnknownFormatError):
        asides.register(Family(name="Zed", formats=(ZED,), models=(Model("zed", "zedd", True),)))
    assert "zed" not in asides.formats()


class _EntryPoint:
    def __init__(self, value: object) -> None:
        self.value = value

    def load(self) -> object:
        return self.value


@pytest.mark.parametrize("value", [FAMILY, (FAMILY,)])
def test_third_parties_add_families_by_entry_point(monkeypatch: pytest.MonkeyPatch, value: object) -> None:
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: [_EntryPoint(value)])
    monkeypatch.setattr(registry, "_loaded", False)
    assert asides.get_format("zed") is ZED
    assert asides.parse(OUTPUT).thinking == "a plan"
    assert asides.detect(model="acme/Zed-1.5-7B").format == "zed"


def test_a_name_finds_an_entry_point_that_nobody_has_asked_for_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a name of a model is does not depend on what the process did before."""
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: [_EntryPoint(FAMILY)])
    monkeypatch.setattr(registry, "_loaded", False)
    assert asides.detect(model="acme/Zed-1.5-7B").format == "zed"


def test_auto_finds_the_families_of_installed_packages(tmp_path: Path) -> None:
    """In a fresh process, before any name was asked for."""
    (tmp_path / "zed_package.py").write_text(
        "from asides import Format\nZED = Format.tags('<zed>', '</zed>', name='zed')\n"
    )
    installed = tmp_path / "zed-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: zed\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text("[asides.formats]\nzed = zed_package:ZED\n")
    script = "import asides; print(asides.parse('<zed>a plan</zed>So.').thinking)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert done.stdout == "a plan\n"


def test_what_an_entry_point_names_must_be_a_format_or_a_family(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda *, group: [_EntryPoint("qwen3"), _EntryPoint(FAMILY)]
    )
    monkeypatch.setattr(registry, "_loaded", False)
    assert asides.get_format("zed") is ZED
    assert "is no Format and no Family" in caplog.text


def test_the_records_are_public() -> None:
    assert asides.Family is Family
    assert "Family" in asides.__all__
