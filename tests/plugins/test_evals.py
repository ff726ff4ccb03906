"""`answer_of`, which needs no host, and that the module of evaluations imports none."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import asides
from asides.plugins import evals
from asides.plugins._hosts import LEAST
from asides.plugins.evals import answer_of
from tests.plugins.host import ROOT, check_examples
from tests.support import check_each, count_calls
from tests.test_cases import ALL, Case, case_name

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 5}}\n</tool_call>'


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("", ""),
        ("It is 12.", "It is 12."),
        ("  2 < 3 and 5 > 4\n", "  2 < 3 and 5 > 4\n"),
        ("<think>10? No.</think>\n\n12", "12"),
        ("10? No.</think>\n\n12", "12"),
        ("<think>a</think>It is <think>b</think>12.", "It is 12."),
        ("<think>10? No, 1", ""),
        ("It is 12.<think>Or 1", "It is 12."),
        (CALL, ""),
        (f"<think>a</think>Let me add.\n{CALL}", "Let me add."),
        ("Let me add.\n<tool_call>\n{broken\n</tool_call>", "Let me add."),
        ("<|channel|>analysis<|message|>10?<|end|><|start|>assistant<|channel|>final<|message|>12", "12"),
    ],
)
def test_the_answer_is_the_text(output: str, answer: str) -> None:
    assert answer_of(output) == answer


def test_the_name_of_a_model_says_where_it_begins() -> None:
    cut_off = "10? No, 1"
    assert answer_of(cut_off) == cut_off
    assert answer_of(cut_off, model="Qwen/Qwen3-8B") == cut_off
    assert answer_of(cut_off, model="Qwen/Qwen3-4B-Thinking-2507") == ""
    assert answer_of(cut_off, model="Qwen/Qwen3-8B", start="thinking") == ""
    assert answer_of("[THINK]a[/THINK]b", model="mistralai/Magistral-Small-2509") == "b"


def test_what_a_caller_may_choose() -> None:
    assert answer_of(f"<think>a</think>{CALL}", calls=False) == CALL
    assert answer_of("<b>a</b>c", asides.Format.tags("<b>", "</b>", name="own")) == "c"
    assert answer_of("<think>a</think>c", "passthrough") == "<think>a</think>c"
    assert answer_of("<think>a</think>c", policies=asides.Policies(start="text")) == "c"
    with pytest.raises(ValueError, match=r"unknown format 'qwen33'; did you mean qwen3"):
        answer_of("a", "qwen33")


def test_the_texts_of_all_cases_are_the_answers() -> None:
    # Some cases are of streams alone: a whole output is read with an undecided start.
    check_each(_check_case, [case for case in ALL if not case.said.get("stream")], case_name)


def _check_case(case: Case) -> None:
    answer = answer_of("".join(case.chunks), case.format, **case.options)
    if "text" in case.said:
        assert answer == case.said["text"]
        return
    # Between two texts stands whitespace that the case does not spell out.
    for part in case.said["parts"]:
        assert answer.startswith(part.get("text", ""))
        answer = answer[len(part["text"]) :].lstrip() if "text" in part else answer
    assert not answer


def test_a_long_thought_costs_as_much_as_it_is_long() -> None:
    short, long = ("<think>" + "so what " * size + "</think>12" for size in (20_000, 80_000))
    assert count_calls(lambda: answer_of(long)) < 5 * count_calls(lambda: answer_of(short))


def test_it_imports_no_host() -> None:
    hosts = ("inspect_ai", "lighteval", "lm_eval", "torch")
    code = f"import sys\nfrom asides.plugins.evals import *\nprint([m for m in {hosts} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize(("name", "package"), [("AnswerFilter", "lm-eval"), ("AnswerModel", "lighteval")])
def test_a_class_of_a_host_names_what_is_missing(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "version", missing)
    monkeypatch.delitem(sys.modules, f"asides.plugins.{evals._LATER[name]}", raising=False)
    with pytest.raises(
        ImportError, match=f"^{package} .* or newer is needed and not installed: pip install {package}$"
    ):
        getattr(evals, name)
    with pytest.raises(AttributeError, match="no attribute 'AnswerScorer'"):
        evals.AnswerScorer  # noqa: B018


@pytest.mark.parametrize("package", ["inspect-ai", "lighteval", "lm-eval"])
def test_the_page_names_the_release_that_is_asked_for(package: str) -> None:
    page = (ROOT / "docs" / "plugins" / "evals.md").read_text(encoding="utf-8")
    assert f"Tried with {package} {LEAST[package]}" in page


def test_the_example_of_the_page(tmp_path: Path) -> None:
    check_examples("evals", tmp_path, "import answer_of")
