"""The model of lighteval that wraps another: in its pipeline, by its command, under its metrics."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.host import check_examples, require_module, write_files

pytestmark = pytest.mark.filterwarnings("ignore")  # lighteval and what it imports warn of each other
require_module("lighteval")

import lighteval
from datasets import load_dataset
from lighteval.metrics.metrics_sample import AvgAtN, ExactMatches
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.dummy.dummy_model import DummyModel, DummyModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc

import asides
from asides.plugins.evals import AnswerModel, answer_of
from tests.plugins.chat_server import serve
from tests.support import check_each
from tests.test_cases import ALL, Case, case_name

CALL = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'


@pytest.fixture(scope="module", autouse=True)
def _no_download() -> Iterator[None]:
    """Lighteval fetches this file from GitHub whenever it starts, and reads it for other tasks only."""
    path = Path(lighteval.__file__).parent / "tasks" / "tasks" / "tinyBenchmarks.pkl"
    missing = not path.exists()
    path.touch()
    yield
    if missing:
        path.unlink()


class Scripted(DummyModel):
    """Lighteval's model without a model, with responses of its own."""

    def __init__(self, folder: Path, responses: list[ModelResponse], name: str = "some-model") -> None:
        super().__init__(DummyModelConfig(model_name=name, cache_dir=str(folder)))
        self.responses = responses

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        return self.responses


class Async(Scripted):
    is_async = True

    async def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:  # type: ignore[override]
        await asyncio.sleep(0)
        return self.responses


def respond(folder: Path, response: ModelResponse, name: str = "some-model", **options: Any) -> ModelResponse:
    """What a metric gets of a response."""
    [read] = AnswerModel(Scripted(folder, [response], name), **options).greedy_until([Doc("", [], 0)])
    return read


def test_the_pipeline_scores_answers(tmp_path: Path) -> None:
    """The example of the page: lighteval's pipeline, with its own removal of tags and with answers."""
    check_examples("evals", tmp_path, "import ParallelismManager")


def test_the_command_runs_the_file_of_the_page(tmp_path: Path) -> None:
    """The wrapped model is lighteval's own client, of a chat server that leaves thoughts in the text."""
    write_files("evals", tmp_path)
    outputs = {"What is 5 + 7?": "10? No.</think>12", "What is 9 - 4?": "<think>5</think>5", "What is 3 * 3?": "9"}
    rows = [{"question": question, "answer": output[-1:]} for question, output in outputs.items()]
    rows[0]["answer"] = "12"
    (tmp_path / "data" / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))

    def reply(request: dict[str, Any]) -> dict[str, Any]:
        return {"content": outputs[request["messages"][-1]["content"]]}

    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "HOME": str(tmp_path)}
    command = [
        str(Path(sys.executable).parent / "lighteval"),
        "custom",
        "Qwen/Qwen3-4B-Thinking-2507",
        "answers.py",
        "sums",
    ]
    with serve(reply) as address:
        path = tmp_path / "answers.py"
        path.write_text(path.read_text(encoding="utf-8").replace("http://127.0.0.1:8000/v1", address))
        run = subprocess.run(
            [*command, "--custom-tasks", "sums_task.py", "--output-dir", "out", "--save-details"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert run.returncode == 0, run.stderr
    [results] = (tmp_path / "out").rglob("results_*.json")
    # Of a model whose output begins in thinking: two closed their thought, "9" was never more than a thought.
    assert json.loads(results.read_text())["results"]["all"]["em"] == pytest.approx(2 / 3), run.stderr
    [details] = (tmp_path / "out").rglob("details_*.parquet")
    responses = [row["model_response"] for row in load_dataset("parquet", data_files=str(details), split="train")]
    assert {(row["text"][0], row["text_post_processed"][0], row["reasonings"][0]) for row in responses} == {
        ("10? No.</think>12", "12", "10? No."),
        ("5", "5", "5"),  # LiteLLM itself takes one whole pair out of the beginning
        ("9", "", "9"),
    }


def test_metrics_see_answers_and_details_what_was_written(tmp_path: Path) -> None:
    written = ["<think>10?</think>12", "10?</think>12", "<think>12", f"So.\n{CALL}", "12"]
    response = respond(tmp_path, ModelResponse(input="5 + 7", text=list(written)))
    assert response.final_text == ["12", "12", "", "So.", "12"]
    assert response.text == written
    assert response.reasonings == ["10?", "10?", "12", None, None]
    # Lighteval's own removal of tags runs behind the model.
    response.text_post_processed = ["something", "else"]
    assert response.final_text == ["12", "12", "", "So.", "12"]
    record = asdict(response)
    assert (record["text"], record["text_post_processed"]) == (written, response.final_text)
    assert pickle.loads(pickle.dumps(response)).final_text == response.final_text
    exact = ExactMatches()
    assert exact.compute(Doc("5 + 7", ["12"], 0), response[2]) == 0
    assert exact.compute(Doc("5 + 7", ["12"], 0), response[0]) == 1


def test_several_samples_are_scored_by_their_answers(tmp_path: Path) -> None:
    doc, plain = Doc("5 + 7", ["12"], 0), ModelResponse(text=["<think>10?</think>12", "12"])
    metric = AvgAtN(n=2, sample_scoring_function=ExactMatches())
    plain.text_post_processed = ["12", "12"]
    assert metric.compute(doc, plain) == 0.5, "lighteval gives samples without tags now: change the page"
    assert metric.compute(doc, respond(tmp_path, plain)) == 1


def test_what_a_server_has_split_off_is_not_read_again(tmp_path: Path) -> None:
    response = ModelResponse(text=["It has the tag <think>.", "b"], reasonings=["a", None])
    read = respond(tmp_path, response, format="qwen3")
    assert read.final_text == ["It has the tag <think>.", "b"]
    assert read.reasonings == ["a", None]


def test_the_name_of_the_wrapped_model_chooses_the_format(tmp_path: Path) -> None:
    response = ModelResponse(text=["12"])
    name = "Qwen/Qwen3-4B-Thinking-2507"
    assert respond(tmp_path, response).final_text == ["12"]
    assert respond(tmp_path, response, name).final_text == [""]
    assert respond(tmp_path, response, name, start="text").final_text == ["12"]
    assert respond(tmp_path, response, name, model="Qwen/Qwen3-8B").final_text == ["12"]
    assert respond(tmp_path, response, policies=asides.Policies(start="thinking")).final_text == [""]
    with pytest.raises(ValueError, match=r"unknown format 'qwen33'; did you mean qwen3"):
        respond(tmp_path, response, format="qwen33")


def test_a_model_that_runs_asynchronously(tmp_path: Path) -> None:
    model = AnswerModel(Async(tmp_path, [ModelResponse(text=["<think>a</think>b"])]))
    assert model.is_async
    [response] = asyncio.run(model.greedy_until([]))
    assert response.final_text == ["b"]


def test_all_else_is_the_wrapped_model(tmp_path: Path) -> None:
    wrapped = Scripted(tmp_path, [])
    model = AnswerModel(wrapped)
    assert isinstance(model, LightevalModel)
    assert (model.config, model._cache) == (wrapped.config, wrapped._cache)
    assert (model.max_length, model.add_special_tokens) == (wrapped.max_length, wrapped.add_special_tokens)
    assert model.loglikelihood == wrapped.loglikelihood
    assert model.cleanup == wrapped.cleanup


def test_all_cases_come_through(tmp_path: Path) -> None:
    wrapped = Scripted(tmp_path, [])
    check_each(lambda case: _check_case(case, wrapped), ALL, case_name)


def _check_case(case: Case, wrapped: Scripted) -> None:
    text, options = "".join(case.chunks), case.said.get("options", {})
    wrapped.responses = [ModelResponse(text=[text])]
    [response] = AnswerModel(wrapped, format=case.format, **options).greedy_until([])
    assert response.final_text == [answer_of(text, case.format, **options)]
    thoughts = "".join(part.get("thinking", "") for part in case.said["parts"])
    assert "".join((response.reasonings[0] or "").split()) == "".join(thoughts.split())
