"""The runners in Node and Rust, for real: `make test-runners`. A language that is not here is skipped, and says so."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from asides import audit

ROOT = Path(__file__).parents[2]
RUST = ROOT / "runners" / "rust"
BUILT = RUST / "target" / "release"
FAILS = [
    "two blocks",
    "thinking that never closes",
    "a lone close",
    "a lone close after a start in text",
    "the opener twice: an echo",
    "whitespace around markers is theirs",
    "exact whitespace",
    "text before thinking",
    "empty thinking is no part",
    "a second close is left out",
    "a quoted marker is words",
]
"""The cases that a splitter of 20 lines fails, of those for formats with `<think>` tags, and should."""
PASSES = 4
"""How many of these it passes."""


class Runner:
    """A runner, and the splitter in its language."""

    def __init__(self, command: list[str], splitter: list[str], data: Path) -> None:
        self.command, self.splitter, self.data = command, splitter, data

    def run(self, *arguments: str, program: list[str], code: int = 0) -> str:
        """What it writes to its standard output; it must end with this code."""
        command = [*self.command, "--data", str(self.data), *arguments, "--", *program]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=600)
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-2000:]
        return done.stdout + done.stderr


@pytest.fixture(scope="module", params=["node", "rust"])
def runner(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    """The runner of a language, with the data as anybody gets it."""
    data = tmp_path_factory.mktemp("data")
    audit.export_data(data)
    if request.param == "node":
        node = shutil.which("node")
        if node is None:
            pytest.skip("there is no node here")
        folder = ROOT / "runners" / "node"
        return Runner([node, str(folder / "run.mjs")], [node, str(folder / "splitter.mjs")], data)
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("there is no cargo here (Debian: apt-get install rustc cargo)")
    subprocess.run([cargo, "build", "--release", "--offline", "--locked"], cwd=RUST, check=True, timeout=600)
    return Runner([str(BUILT / "run")], [str(BUILT / "splitter")], data)


ASIDES = [sys.executable, "-m", "asides.audit.answer"]


def test_asides_passes_every_case(runner: Runner) -> None:
    cases = sum(len(case["formats"]) for case in audit.cases())
    counted = json.loads(runner.run("--json", program=ASIDES))
    assert counted == {"passed": cases, "failed": 0, "skipped": 0, "failures": []}


def test_a_splitter_of_twenty_lines_fails_the_cases_it_should(runner: Runner) -> None:
    chosen = ("--format", "qwen3", "--case", "formats_think_tags/")
    counted = json.loads(runner.run(*chosen, "--json", program=runner.splitter, code=1))
    assert counted["failures"] == [
        {"id": f"formats_think_tags/{name}", "format": "qwen3", "cut": "characters", "failed": "parts"}
        for name in FAILS
    ]
    assert (counted["passed"], counted["failed"], counted["skipped"]) == (PASSES, len(FAILS), 0)
    table = runner.run(*chosen, "--show", "1", program=runner.splitter, code=1)
    assert table.splitlines()[0].split() == ["format", "passed", "failed", "skipped"]
    assert "failed: formats_think_tags/two blocks" in table
    assert f"{len(FAILS) - 1} more failed" in table


CHANGED = """
import json, sys
from asides.audit import answer_case
for line in sys.stdin:
    answer = answer_case(json.loads(line))
    {change}
    print(json.dumps(answer), flush=True)
"""
CALL = "calls_json/"


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        ("answer = {'events': answer['events']}", ""),
        ("answer['events'] = [piece for event in answer['events'] for piece in cut(event)]", ""),
        ("for part in answer['parts']: part.setdefault('id', 'ours')", ""),
        ("for part in answer['parts']: part.setdefault('complete', True)", ""),
        ("answer['apis']['openai_chat']['id'] = 'chatcmpl-1'", ""),
        ("answer['parts'].append({'text': 'more'})", "parts"),
        ("answer['events'].reverse()", "events"),
        ("answer['events'].append({'text': 'more'})", "events"),
        ("answer['notices'].append('limit')", "notices"),
        ("answer['termination'] = 'never'", "termination"),
        ("answer['beyond'] = 'x'", "beyond"),
        ("answer['apis']['ollama']['done_reason'] = 'tired'", "apis.ollama"),
        ("answer['apis']['anthropic']['content'] = []", "apis.anthropic"),
        ("answer = {}", "the answer has neither parts nor events"),
        ("answer = {'error': 'hm'}", "the program reports an error"),
        ("answer = 5", "the answer is no object"),
    ],
)
def test_what_is_compared(runner: Runner, change: str, failed: str) -> None:
    """Each kind of difference is found, and what is a program's own is none."""
    cut = """
def cut(event):
    for kind in ("thinking", "text", "arguments"):
        if event.get(kind):
            return [{**event, kind: letter} for letter in event[kind]]
    return [event]
"""
    script = cut + CHANGED.format(change=change)
    chosen = ("--case", "formats_mistral/", "--json")
    counted: dict[str, Any] = json.loads(runner.run(*chosen, program=[sys.executable, "-c", script], code=bool(failed)))
    found = {failure["failed"] for failure in counted["failures"]}
    if failed:
        assert failed in found
    else:
        assert counted["passed"] > 20


def test_arguments_compare_as_json(runner: Runner) -> None:
    again = "part.update(arguments=json.dumps(json.loads(part['arguments']), indent=2))"
    again = f"[{again} for part in answer['parts'] if 'call' in part and 'error' not in part]"
    script = CHANGED.format(change=f"{again}; answer = {{'parts': answer['parts']}}")
    counted = json.loads(runner.run("--case", CALL, "--json", program=[sys.executable, "-c", script]))
    assert counted["passed"] > 20


def test_cases_are_selected(runner: Runner) -> None:
    """By what the case says, without asking the program."""
    chosen = [case for case in audit.cases() if "mistral" in case["formats"]]
    calls = [case for case in chosen if any("call" in part for part in case["parts"])]
    policies = [case for case in chosen if "policies" in case]
    assert calls
    assert policies
    for option, left_out in (("--no-calls", calls), ("--plain", policies)):
        counted = json.loads(runner.run("--format", "mistral", option, "--json", program=ASIDES))
        assert counted["passed"] == len(chosen) - len(left_out)


def test_a_program_that_gives_no_answer_fails(runner: Runner) -> None:
    """One that ends, one that says nothing, one that writes no JSON; and none is waited for without end."""
    chosen = ("--format", "qwen3", "--case", "formats_think_tags/two blocks")
    ends, silent = [sys.executable, "-c", ""], [sys.executable, "-c", "import time; time.sleep(600)"]
    assert "no answer" in runner.run(*chosen, program=ends, code=1)
    assert "no answer" in runner.run(*chosen, "--timeout", "0.5", program=silent, code=1)
    words = [sys.executable, "-c", "for line in open(0): print('hm', flush=True)"]
    assert "the answer is no JSON" in runner.run(*chosen, program=words, code=1)


def test_what_cannot_be_run_is_said(runner: Runner) -> None:
    assert "cannot be run" in runner.run(program=["/no/such/program"], code=2)
    assert "nothing was compared" in runner.run("--case", "no such case", program=ASIDES, code=2)
    assert "there is no option --wrong" in runner.run("--wrong", program=ASIDES, code=2)
    skips = [sys.executable, "-c", 'for line in open(0): print(\'{"skip": "no"}\', flush=True)']
    assert "nothing was compared" in runner.run("--format", "qwen3", program=skips, code=2)
