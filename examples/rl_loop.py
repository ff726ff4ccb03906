"""One step of GRPO with TRL: the reward sees the answer alone, and the loss leaves the thoughts out.

    pip install . torch trl
    python examples/rl_loop.py

`asides.TokenParser` reads the ids that were sampled. Its message has the answer, for the reward, and a role for every
id, for the mask. TRL takes the mask from a rollout function, as `env_mask` (1: this id is trained on).
"""

from tempfile import TemporaryDirectory
from typing import Any

from datasets import Dataset
from tiny_model import make_model, make_tokenizer
from trl import GRPOConfig, GRPOTrainer

import asides


def read(tokenizer: Any, prompt: list[int], ids: list[int]) -> asides.Message:
    """What was sampled behind a prompt."""
    parser = asides.TokenParser(tokenizer, "qwen3", prompt_ids=prompt)
    parser.feed(ids)
    parser.finish()
    return parser.message


def rollout(prompts: list[Any], trainer: GRPOTrainer) -> dict[str, Any]:
    """Sample one reply for each prompt (the trainer repeats them) and read it."""
    tokenizer, model = trainer.processing_class, trainer.accelerator.unwrap_model(trainer.model)
    prompt_ids = [tokenizer.apply_chat_template(prompt, return_dict=False) for prompt in prompts]
    inputs = tokenizer.pad({"input_ids": prompt_ids}, padding_side="left", return_tensors="pt")
    sampled = model.generate(**inputs, max_new_tokens=48, do_sample=True)[:, inputs["input_ids"].shape[1] :].tolist()
    completion_ids = [[id for id in ids if id != tokenizer.pad_token_id] for ids in sampled]
    messages = [read(tokenizer, prompt, ids) for prompt, ids in zip(prompt_ids, completion_ids, strict=True)]
    masks = [[int(role != "thinking") for role in message.token_roles()] for message in messages]
    ids = {"prompt_ids": prompt_ids, "completion_ids": completion_ids, "logprobs": None}
    return {**ids, "env_mask": masks, "answer": [message.text for message in messages]}


def right(answer: list[str], expected: list[str], **others: Any) -> list[float]:
    """1 where the answer is right. A number that stands in a thought alone earns nothing."""
    return [float(given == wanted) for given, wanted in zip(answer, expected, strict=True)]


def make_trainer(model: Any, tokenizer: Any, folder: str) -> GRPOTrainer:
    """A trainer that takes one step, on sums of two digits."""
    sums = [([{"role": "user", "content": f"{a}+{b}"}], str(a + b)) for a in (2, 9) for b in (7, 8)]
    data = Dataset.from_list([{"prompt": prompt, "expected": expected} for prompt, expected in sums])
    size = {"max_steps": 1, "per_device_train_batch_size": 16, "num_generations": 4, "learning_rate": 1e-3}
    cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": "none", "logging_steps": 1}
    settings = GRPOConfig(folder, **size, **cpu, save_strategy="no")
    return GRPOTrainer(model, right, settings, data, processing_class=tokenizer, rollout_func=rollout)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        make_trainer(make_model(make_tokenizer()), make_tokenizer(), folder).train()
