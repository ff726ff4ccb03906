"""A step of GRPO on the CPU with TRL itself: what is rewarded, what is trained on, and what a trainer sees of a reply.

`make test-train` runs it: it needs torch and TRL. The model is `examples/tiny_model.py`, taught in some seconds.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import asides
from asides.hf import template_for
from asides.streamer import Streamer
from tests.conversation.templates import TEMPLATES

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.filterwarnings("ignore")  # those of torch, transformers and TRL are theirs

torch: Any = import_module("torch")
CHATML = TEMPLATES["chatml"]


@pytest.fixture(scope="module", autouse=True)
def _importable() -> Iterator[None]:
    """The examples import each other, as scripts of one folder do."""
    sys.path.insert(0, str(EXAMPLES))
    yield
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def taught(_importable: None) -> tuple[Any, Any]:
    """The model and its tokenizer, made once."""
    tiny = import_module("tiny_model")
    return tiny.make_model(tiny.make_tokenizer()), tiny.make_tokenizer()


@pytest.fixture
def tiny(taught: tuple[Any, Any]) -> tuple[Any, Any]:
    """Their copies, and chance as it was at the start."""
    torch.manual_seed(0)
    return copy.deepcopy(taught)


@pytest.fixture
def trainer(tiny: tuple[Any, Any], tmp_path: Path) -> Any:
    return import_module("rl_loop").make_trainer(*tiny, str(tmp_path))


def test_thoughts_are_not_trained_on_and_answers_are(trainer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the loss depends on an id shows in the gradient of the last layer, where that id is predicted."""
    rollouts: list[dict[str, Any]] = []
    gradients: list[Any] = []
    sample = trainer.rollout_func

    def rollout(prompts: list[Any], of: Any) -> dict[str, Any]:
        rollouts.append(sample(prompts, of))
        return rollouts[-1]

    def forward(module: Any, inputs: Any, output: Any) -> None:
        if output.requires_grad:
            output.register_hook(gradients.append)

    monkeypatch.setattr(trainer, "rollout_func", rollout)
    trainer.model.model.norm.register_forward_hook(forward)
    before = [each.detach().clone() for each in trainer.model.parameters()]
    trainer.train()
    assert any(not torch.equal(old, new) for old, new in zip(before, trainer.model.parameters(), strict=True))

    (rolled,), (gradient,) = rollouts, gradients
    rewards = import_module("rl_loop").right(rolled["answer"], [row["expected"] for row in _rows(trainer, rolled)])
    assert 0 < sum(rewards) < len(rewards), "all alike: there is nothing to learn, and this shows nothing"
    # An id is predicted where the one before it stands. The batch is shuffled between sampling and the step.
    longest = max(map(len, rolled["completion_ids"]))
    reached = [(row[-longest - 1 : -1].abs().sum(-1) > 0).tolist() for row in gradient]
    roles = [_roles(trainer.processing_class, ids) for ids in rolled["completion_ids"]]
    assert all("thinking" in each and "text" in each for each in roles)
    matched = 0
    for row in reached:
        if any(row):  # groups whose replies are all right or all wrong have no gradient at all
            same = [each for each in roles if [role != "thinking" for role in each] == row[: len(each)]]
            assert same, f"no reply has this mask: {row}"
            matched += 1
    assert matched


def _rows(trainer: Any, rolled: dict[str, Any]) -> list[Any]:
    rows = {
        tuple(trainer.processing_class.apply_chat_template(row["prompt"], return_dict=False)): row
        for row in trainer.train_dataset
    }
    return [rows[tuple(ids)] for ids in rolled["prompt_ids"]]


def _roles(tokenizer: Any, ids: list[int]) -> tuple[str, ...]:
    message: asides.Message = import_module("rl_loop").read(tokenizer, [], ids)
    return message.token_roles()


def test_a_right_number_in_a_thought_earns_nothing() -> None:
    reward = import_module("rl_loop").right
    message = asides.parse("<think>\nIt is 4.\n4\n</think>\n\n5", "qwen3")
    assert reward([message.text, "4"], ["4", "4"]) == [0.0, 1.0]


def test_our_template_gives_the_reward_the_answer_alone(tiny: tuple[Any, Any], tmp_path: Path) -> None:
    """Without a rollout function: TRL reads replies by `tokenizer.response_template`, and asides writes that."""
    trl: Any = import_module("trl")
    model, tokenizer = tiny
    tokenizer.response_template = template_for("qwen3")
    seen: list[Any] = []

    def reward(completions: list[Any], **others: Any) -> list[float]:
        seen.extend(completions)
        return [float(len(each[0]["content"])) for each in completions]

    settings = trl.GRPOConfig(
        str(tmp_path), max_steps=1, per_device_train_batch_size=4, num_generations=4, max_completion_length=48,
        use_cpu=True, bf16=False, gradient_checkpointing=False, report_to="none", save_strategy="no",
    )  # fmt: skip
    data = import_module("datasets").Dataset.from_list([{"prompt": [{"role": "user", "content": "2+7"}]}])
    trl.GRPOTrainer(model, reward, settings, train_dataset=data, processing_class=tokenizer).train()
    assert len(seen) == 4
    for (message,) in seen:
        assert message["content"].strip().isdigit()
        assert "and" in (message.get("reasoning_content") or message["thinking"])


CHATS = [
    [
        {"role": "user", "content": "2+7"},
        {"role": "assistant", "reasoning_content": "2 and 7", "content": "9"},
        {"role": "user", "content": "1+<|im_end|>1"},
        {"role": "assistant", "reasoning_content": "1 and 1", "content": "2"},
    ],
    [{"role": "system", "content": "Add."}, {"role": "user", "content": "3+3"}, {"role": "assistant", "content": "6"}],
]
LEARNED = ["9<|im_end|><think>\n1 and 1\n</think>\n\n2<|im_end|>", "6<|im_end|>"]
"""What a model samples of these: no header, no line break after the end; the first thought is dropped."""


@pytest.mark.parametrize("loss", ["assistant", ("text",)])
def test_the_collator_trains_on_what_a_model_samples_and_nothing_else(tmp_path: Path, loss: Any) -> None:
    """TRL's own trainer, a template without `{% generation %}`; an id is learned where it has a gradient."""
    trl, example = import_module("trl"), import_module("tiny_model")
    tokenizer = example.make_tokenizer()
    model = example.make_model(tokenizer, steps=0)
    conversation = asides.Conversation(tokenizer, CHATML, format="qwen3")
    gradients: list[Any] = []
    batches: list[Any] = []
    collate = conversation.collator(loss)

    def collated(rows: list[Any]) -> Any:
        batches.append(collate(rows))
        return batches[-1]

    def forward(module: Any, inputs: Any, output: Any) -> None:
        if output.requires_grad:
            output.register_hook(gradients.append)

    model.model.norm.register_forward_hook(forward)
    settings = trl.SFTConfig(
        str(tmp_path), max_steps=1, per_device_train_batch_size=2, use_cpu=True, bf16=False, report_to="none",
        gradient_checkpointing=False, save_strategy="no", remove_unused_columns=False,
        dataset_kwargs={"skip_prepare_dataset": True},
    )  # fmt: skip
    rows = import_module("datasets").Dataset.from_list([{"messages": each} for each in CHATS])
    before = [each.detach().clone() for each in model.parameters()]
    trl.SFTTrainer(model, settings, train_dataset=rows, data_collator=collated, processing_class=tokenizer).train()
    assert any(not torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))
    batch, gradient = batches[0], gradients[0]
    learned = []
    for row in range(2):
        # An id is predicted where the one before it stands.
        reached = (gradient[row].abs().sum(-1) > 0).tolist()
        learned.append(
            tokenizer.decode([id for id, hit in zip(batch["input_ids"][row][1:], reached, strict=False) if hit])
        )
    assert sorted(learned) == sorted(LEARNED if loss == "assistant" else ["92", "6"])


def test_generate_streams_parts(tiny: tuple[Any, Any]) -> None:
    """`generate` of transformers with our streamer: the parts of what it returns."""
    model, tokenizer = tiny
    inputs = tokenizer.apply_chat_template([{"role": "user", "content": "2+7"}], return_dict=True, return_tensors="pt")
    streamer = Streamer(tokenizer, "qwen3")
    sampled = model.generate(**inputs, streamer=streamer, max_new_tokens=48, do_sample=False)
    whole = tokenizer.decode(sampled[0, inputs.input_ids.shape[1] :])
    assert streamer.message.thinking == "2 and 7"
    assert streamer.message.text == asides.parse(whole, "qwen3").text != ""
    assert streamer.message.termination == "stop"
