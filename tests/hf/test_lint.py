"""`lint_template` and `asides probe --lint`: each kind of finding, and nothing where nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from asides import get_format
from asides.hf import lint_template, template_for
from asides.hf._growth import measured_growth
from asides.hf._writing import Target
from tests.cli.running import run
from tests.detect.templates import ECHO
from tests.hf.replies import FAMILIES, SHAPES, replies, shapes

CLEAN = template_for("qwen3").template


def _codes(template: Any, **given: Any) -> set[tuple[str, str]]:
    return {(finding.code, finding.key) for finding in lint_template(template, **given)}


def test_what_we_write_is_clean() -> None:
    """Also with an output that has everything in it."""
    text = '<think>a</think>b\n<tool_call>{"name": "f", "arguments": {}}</tool_call><|im_end|>\n'
    assert lint_template(CLEAN, samples=[text]) == []


@pytest.mark.parametrize(
    ("field", "code", "key"),
    [
        ({"open": "<t>", "close": "</t>"}, "replaces", "fields.thinking"),
        ({"open_pattern": r"(?=[\s\S]*?</t>)", "close": "</t>"}, "cost", "fields.thinking.open_pattern"),
        ({"open_pattern": r"\s*<t>", "close": "</t>"}, "cost", "fields.thinking.open_pattern"),
        ({"open": ["<t>", "<t>x"], "close": "</t>"}, "chunking", "fields.thinking.open"),
        ({"open_pattern": r"\w+>"}, "invalid", "fields.thinking.open_pattern"),
        ({"close": "</t>"}, "lost", "fields.thinking.close"),
    ],
)
def test_what_a_template_shows(field: dict[str, Any], code: str, key: str) -> None:
    """Without reading anything."""
    assert (code, key) in _codes({"start_anchor": "A", "fields": {"thinking": field}})


def test_what_reading_shows() -> None:
    """A call that cannot be read; words that are in no field."""
    assert ("unparsed", "sample 1") in _codes(CLEAN, samples=["<tool_call>{</tool_call>"])
    no_rest = {"start_anchor": "A", "fields": {"content": {"open": "<a>", "close": "</a>"}}}
    assert ("lost", "sample 1") in _codes(no_rest, samples=["words that nobody sees <a>x</a>"])


LOOK_AHEAD = {
    "start_anchor": "<｜Assistant｜><think>\n",
    "fields": {
        "reasoning_content": {"open_pattern": r"(?=[\s\S]*?</think>)", "close_pattern": r"</think>\s*"},
        "content": {"close_pattern": r"<｜end▁of▁sentence｜>\s*|$"},
    },
}
"""As two shipped templates open thinking."""


def test_cost_is_measured() -> None:
    """A pattern that no rule knows is found by its cost alone; what we write costs what the text does."""
    pytest.importorskip("regex")
    assert any(
        finding.code == "cost" and "grows like n^2" in finding.text and finding.key.endswith("content.open_pattern")
        for finding in lint_template(LOOK_AHEAD)
    )
    hidden = measured_growth(r"<(?=(?:[^>]|>)*</think>)")  # begins with a literal, so a look at it shows nothing
    assert hidden is not None
    assert hidden.exponent > 1.5
    assert measured_growth(r"</think>\s*") is None
    assert str(measured_growth(r"(?:<|<)+>")).endswith("a search does not end")


@pytest.mark.parametrize("name", ["qwen3", "gemma4", "granite", "json", "llama4_pythonic", "harmony"])
@pytest.mark.parametrize("target", ["transformers", "vllm"])
def test_what_we_write_costs_what_the_text_does(name: str, target: Target) -> None:
    """Also the openers that stand where an output begins, in front of which whitespace may run on."""
    pytest.importorskip("regex")
    assert not [finding for finding in lint_template(template_for(name, target=target)) if finding.code == "cost"]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_template_loses_is_reported(family: str) -> None:
    """Of a reply that it cannot read as our own format does; and nothing of one that it can."""
    template = template_for(family)
    for shape in shapes(family):
        for reply in replies(family, shape, 1):
            text = reply.prompt.removeprefix(get_format(family).assistant[0]) + reply.text  # with the prompt's opener
            findings = [finding for finding in lint_template(template, samples=[text]) if finding.key == "sample 1"]
            assert bool(findings) == bool(SHAPES[shape].losses), (shape, findings)


def test_the_format_of_the_chat_template_is_compared() -> None:
    """An output that says too little for itself is read by the format of the chat template."""
    pytest.importorskip("jinja2")
    text = "<think>Use `</think>` here.</think>Yes."
    given = {"samples": [text], "chat_template": ECHO}
    assert ("differs", "sample 1") in _codes(CLEAN, **given)
    assert _codes(CLEAN, samples=["<think>a</think>Yes."], chat_template=ECHO) == set()


def test_the_round_trip() -> None:
    """What the chat template writes comes back, or that is a finding."""
    pytest.importorskip("jinja2")
    assert _codes(CLEAN, chat_template=ECHO) == set()
    other = template_for("kimi").template
    assert ("round_trip", "start_anchor") in _codes(other, chat_template=ECHO)
    wrong = {**CLEAN, "fields": {**CLEAN["fields"], "reasoning_content": {"open": "<x>", "close": "</x>"}}}
    assert any(code == "round_trip" for code, _ in _codes(wrong, chat_template=ECHO))


def test_the_command(tmp_path: Path) -> None:
    """Exit code 0, 1 or 2, and a line for each finding."""
    path = tmp_path / "tokenizer_config.json"
    path.write_text(json.dumps({"response_template": CLEAN}), encoding="utf-8")
    done = run("probe", "--lint", path)
    assert (done.returncode, done.stdout) == (0, b"no problem was found\n")
    sample = tmp_path / "output.txt"
    sample.write_text("<tool_call>{</tool_call>", encoding="utf-8")
    done = run("probe", "--lint", path, "--sample", sample)
    assert done.returncode == 1
    assert b"sample 1: tool_calls: the region is no JSON" in done.stdout
    found = run("probe", "--lint", path, "--sample", sample, "--json").stdout
    assert json.loads(found)[0]["code"] == "unparsed"
    assert run("probe", "--lint", tmp_path / "none.json").returncode == 2
    # The former name says so, and does the same.
    former = run("lint-template", path, "--sample", sample, "--json")
    assert (former.returncode, former.stdout) == (1, found)
    assert b"asides probe --lint" in former.stderr
    assert b"--sample can only be used with --lint" in run("probe", path, "--sample", sample).stderr


def test_probe_prints_a_template() -> None:
    """For a name; what is lost goes to standard error."""
    done = run("probe", "--response-template", "Qwen/Qwen3-8B", "--reader", "portable")
    assert done.returncode == 0
    assert json.loads(done.stdout) == template_for("qwen3", target="portable")
    assert b"portable loses: a marker that is quoted" in done.stderr
