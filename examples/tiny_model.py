"""A model of 200,000 weights that thinks before it answers, made in some seconds on a CPU: for trying training loops.

It learns sums of two digits from made-up traces in Qwen3's format, byte by byte, and nothing else. Its thoughts end and
its answers are sometimes right, which is what a training loop needs to be tried without a download.
"""

from __future__ import annotations

import itertools
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

MARKERS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{{ '<|im_start|>assistant\n' }}"
)


def make_tokenizer() -> Any:
    """Bytes, and Qwen3's markers as tokens of their own."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: id for id, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in MARKERS])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>", chat_template=TEMPLATE
    )


def make_model(tokenizer: Any, steps: int = 250) -> Any:
    """A Qwen3 of two layers, taught some hundred traces."""
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(tokenizer), hidden_size=96, intermediate_size=192, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=24, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    model: Any = Qwen3ForCausalLM(config)
    traces = [
        f"{tokenizer.apply_chat_template([{'role': 'user', 'content': f'{a}+{b}'}], tokenize=False)}"
        f"<think>\n{a} and {b}\n</think>\n\n{a + b}<|im_end|>"
        for a, b in itertools.product(range(10), repeat=2)
    ]
    batch = tokenizer(traces, return_tensors="pt", padding=True, padding_side="right")
    labels = batch.input_ids.masked_fill(batch.attention_mask == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        picked = torch.randint(len(traces), (24,))
        loss = model(batch.input_ids[picked], attention_mask=batch.attention_mask[picked], labels=labels[picked]).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return model
