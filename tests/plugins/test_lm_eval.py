"""The filter of lm-evaluation-harness, in the harness: its evaluator, its command, its registry, its YAML."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, require_module

require_module("lm_eval")

from lm_eval.api.instance import Instance
from lm_eval.filters import build_filter_ensemble

import asides
from asides.plugins import evals
from tests.plugins.chat_server import serve
from tests.support import check_each, count_calls
from tests.test_cases import ALL, Case, case_name

TASK = """
task: sums
dataset_path: json
dataset_kwargs:
  data_files:
    test: {folder}/sums.jsonl
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
{more}
generation_kwargs:
  until: []
filter_list:
  - name: whole
    filter:
      - function: take_first
  - name: answer
    filter:
      - function: {function}
        {options}
      - function: take_first
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
"""
OUTPUTS = {
    "5 + 7": ("12", "<think>10? No, 11 + 1.</think>\n\n12"),
    "9 - 4": ("5", "Count back from 9.</think>5"),
    "3 * 3": ("9", "<think>9, or did they"),
    "8 / 2": ("4", "4"),
}
CLASS = "!function asides.plugins.evals.AnswerFilter"


def write_task(folder: Path, function: str, options: str = "", more: str = "") -> None:
    """A task in a folder, as a user writes it."""
    (folder / "sums.yaml").write_text(TASK.format(folder=folder, function=function, options=options, more=more))
    lines = [json.dumps({"question": question, "answer": answer}) for question, (answer, _) in OUTPUTS.items()]
    (folder / "sums.jsonl").write_text("\n".join(lines))


def evaluate(folder: Path) -> tuple[dict[str, Any], str]:
    """What the command makes of the task: the results and, if there are none, the errors."""

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        return {"content": OUTPUTS[request["messages"][-1]["content"]][1]}

    with serve(reply) as address:
        model = f"model=Qwen/Qwen3-8B,base_url={address}/chat/completions,num_concurrent=1,tokenized_requests=False"
        command = [sys.executable, "-m", "lm_eval", "run", "--model", "local-chat-completions", "--model_args", model]
        more = ["--tasks", "sums", "--include_path", str(folder), "--apply_chat_template", "--log_samples"]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hub"), "OPENAI_API_KEY": "none"}
        run = subprocess.run(
            [*command, *more, "--output_path", str(folder / "out")],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    written = list((folder / "out").rglob("results_*.json"))
    return json.loads(written[0].read_text()) if written else {}, run.stderr


def filtered(responses: list[list[Any]], **options: Any) -> list[Any]:
    """What the harness has of responses after its own pipeline of this one filter."""
    instances = [
        Instance(request_type="generate_until", doc={}, arguments=("", {}), idx=number, resps=list(samples))
        for number, samples in enumerate(responses)
    ]
    build_filter_ensemble("answer", [(evals.AnswerFilter, options)]).apply(instances)
    return [instance.filtered_resps["answer"] for instance in instances]


def test_the_command_scores_answers(tmp_path: Path) -> None:
    """The harness imports the filter by itself, from a task in YAML, and the score is another one."""
    write_task(tmp_path, CLASS, "model: Qwen/Qwen3-8B")
    results, errors = evaluate(tmp_path)
    assert results, errors
    scores = results["results"]["sums"]
    assert (scores["exact_match,whole"], scores["exact_match,answer"]) == (0.25, 0.75)
    # What the model wrote is still there, and what was configured can be read in the results.
    samples = next((tmp_path / "out").rglob("samples_sums_*.jsonl")).read_text(encoding="utf-8")
    rows = [json.loads(line) for line in samples.splitlines()]
    answers = [row for row in rows if row["filter"] == "answer"]
    assert {row["doc"]["question"]: row["resps"][0][0] for row in answers} == {
        question: output for question, (_, output) in OUTPUTS.items()
    }
    assert [row["filtered_resps"] for row in sorted(answers, key=lambda row: row["doc_id"])] == [
        ["12"],
        ["5"],
        [""],
        ["4"],
    ]
    step = results["configs"]["sums"]["filter_list"][1]["filter"][0]
    assert step["model"] == "Qwen/Qwen3-8B"
    assert "AnswerFilter" in step["function"]
    assert " at 0x" not in step["function"]


def test_the_name_asides_works_once_it_is_imported(tmp_path: Path) -> None:
    write_task(tmp_path, "asides", "start: thinking", "process_docs: !function utils.all_docs")
    (tmp_path / "utils.py").write_text(
        "from asides.plugins.evals import AnswerFilter\n\n\ndef all_docs(docs):\n    return docs\n"
    )
    program = [
        "import lm_eval, lm_eval.tasks, lm_eval.models.dummy",
        "class Scripted(lm_eval.models.dummy.DummyLM):",
        "    def generate_until(self, requests, disable_tqdm=False):",
        f"        return [{OUTPUTS!r}[request.arguments[0]][1] for request in requests]",
        "tasks = lm_eval.tasks.TaskManager(include_path='.', include_defaults=False)",
        "found = lm_eval.simple_evaluate(Scripted(), tasks=['sums'], task_manager=tasks, bootstrap_iters=0)",
        "print(float(found['results']['sums']['exact_match,answer']))",
    ]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(program)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    # All outputs begin in thinking now: two closed their thought and answered.
    assert run.stdout == "0.5\n", run.stderr


def test_samples_keep_their_order() -> None:
    assert filtered([["<think>a</think>b", "c"], ["<think>d"], ["e</think>f<think>g</think>h", "", "i"]]) == [
        ["b", "c"],
        [""],
        ["fh", "", "i"],
    ]
    assert filtered([["x"]], model="Qwen/Qwen3-4B-Thinking-2507") == [[""]]
    assert filtered([["x"]], model="Qwen/Qwen3-4B-Thinking-2507", start="text") == [["x"]]
    call = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert filtered([[call]], format="qwen3") == [[""]]
    assert filtered([[call]], format="qwen3", calls=False) == [[call]]


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ({"format": "qwen33"}, "unknown format 'qwen33'; did you mean qwen3"),
        ({"start": "somewhere"}, "start must be one of 'text', 'thinking', 'undecided', not 'somewhere'"),
        ({"starts": "text"}, "starts"),
    ],
)
def test_what_it_does_not_take(option: dict[str, Any], error: str) -> None:
    with pytest.raises((asides.Error, TypeError), match=re.escape(error)):
        filtered([["x"]], **option)


def test_likelihoods_are_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"output_type is generate_until.* gives tuple"):
        filtered([[(-0.5, False)]])


def test_all_cases_come_through() -> None:
    check_each(_check_case, ALL, case_name)


def _check_case(case: Case) -> None:
    text = "".join(case.chunks)
    options = case.said.get("options", {})
    [[answer]] = filtered([[text]], format=case.format, **options)
    expected = [part["text"] for part in case.said["parts"] if "text" in part]
    assert "".join(answer.split()) == "".join("".join(expected).split())


def test_it_costs_as_much_as_the_responses_are_long() -> None:
    response = "<think>" + "so what " * 500 + "</think>12"
    few, many = (count_calls(lambda count=count: filtered([[response]] * count)) for count in (50, 200))  # type: ignore[misc]
    assert many < 5 * few


def test_the_example_of_the_page(tmp_path: Path) -> None:
    check_examples("evals", tmp_path, "import lm_eval")
