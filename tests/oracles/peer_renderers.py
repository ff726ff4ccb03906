"""The families of `renderers`, each with the template of its checkpoint and its tokenizer, or a stand-in.

A stand-in has every token that a renderer asks for when it is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from tests.oracles.material import Checkpoint, checkpoints, real_tokenizer, stand_in


class PeerFamily(NamedTuple):
    """One of their hand-written classes, and the checkpoint that it is for."""

    config: str
    template: str
    stop: str = "<|im_end|>"
    bos: str = "<|bos|>"
    tokenizer: str = ""
    options: Mapping[str, Any] = MappingProxyType({})
    """Keywords of the template, which are fields of their configuration too."""


DEEPSEEK = ("<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>")
FAMILIES = {
    "qwen3": PeerFamily("Qwen3RendererConfig", "npm qwen3"),
    "qwen3-vl": PeerFamily("Qwen3VLRendererConfig", "trl qwen3_vl"),
    "qwen3.5": PeerFamily("Qwen35RendererConfig", "trl qwen3_5_think"),
    "qwen3.6": PeerFamily("Qwen36RendererConfig", "trl qwen3_6"),
    "qwen3.8": PeerFamily("Qwen38RendererConfig", "trl qwen3_8"),
    "gemma4": PeerFamily("Gemma4RendererConfig", "trl gemma4_v5", "<turn|>", "<bos>"),
    "glm-4.5": PeerFamily("GLM45RendererConfig", "trl glm4moe", "<|endoftext|>"),
    "glm-5": PeerFamily("GLM5RendererConfig", "llama.cpp GLM-4.7-Flash", "<|endoftext|>"),
    "minimax-m2": PeerFamily(
        "MiniMaxM2RendererConfig",
        "llama.cpp MiniMax-M2",
        "[e~[",
        "]~!b[",
        options={"model_identity": "You are a helpful assistant."},
    ),
    "deepseek-v3": PeerFamily("DeepSeekV3RendererConfig", "npm deepseek_v3", *DEEPSEEK),
    "deepseek-r1": PeerFamily(
        "DeepSeekR1RendererConfig", "trl deepseek_r1_distill", *DEEPSEEK, tokenizer="deepseek_v3"
    ),
    "deepseek-v4": PeerFamily(
        "DeepSeekV4RendererConfig", "llama.cpp deepseek-ai-DeepSeek-V4-Flash-0731", *DEEPSEEK, tokenizer="deepseek_v4"
    ),
    "hy3": PeerFamily("Hy3RendererConfig", "llama.cpp tencent-Hy3", "<｜hy_eos:opensource｜>"),
    "kimi-k2": PeerFamily("KimiK2RendererConfig", "llama.cpp Kimi-K2-Instruct"),
    "laguna-xs.2": PeerFamily("LagunaXS2RendererConfig", "llama.cpp poolside-Laguna-XS.2", "〈|EOS|〉"),
    "laguna-xs-2.1": PeerFamily("LagunaXS21RendererConfig", "llama.cpp poolside-Laguna-XS-2.1", "〈|EOS|〉"),
    "laguna-s-2.1": PeerFamily("LagunaS21RendererConfig", "llama.cpp poolside-Laguna-S-2.1", "〈|EOS|〉"),
    "llama-3": PeerFamily("Llama3RendererConfig", "npm llama3_2", "<|eot_id|>", options={"date_string": "26 Jul 2024"}),
    "nemotron-3": PeerFamily("Nemotron3RendererConfig", "trl nemotron_3_nano"),
    "nemotron-3-ultra": PeerFamily("Nemotron3UltraRendererConfig", "trl nemotron_3_ultra"),
    "nemotron-3.5": PeerFamily("Nemotron35RendererConfig", "trl nemotron_3_5_lightning"),
    "gpt-oss": PeerFamily("GptOssRendererConfig", "trl gptoss", "<|return|>"),
}
"""Those whose template a package carries."""
NOT_COMPARED = {
    "default": "no hand-written family: it runs the template and owns nothing",
    **dict.fromkeys(
        ("prime-qwen3", "glm-5.1", "glm-5.3", "kimi-k2.5", "laguna-m.1", "inkling"),
        "no package carries the template of its checkpoint",
    ),
}


@cache
def family(name: str) -> tuple[Any, Any, Checkpoint]:
    """A renderer of theirs, its tokenizer and its checkpoint."""
    renderers = import_module("renderers")
    wanted = FAMILIES[name]
    checkpoint = checkpoints()[wanted.template]
    if checkpoint.tokenizer or wanted.tokenizer:
        tokenizer = real_tokenizer(wanted.tokenizer or checkpoint.tokenizer)
    else:
        tokenizer = stand_in([wanted.stop, wanted.bos], wanted.stop, wanted.bos)
        known = tokenizer.convert_tokens_to_ids
        added = import_module("tokenizers").AddedToken

        def convert(token: Any) -> Any:
            """A renderer looks up its markers when it is made; what is not there yet is added."""
            if isinstance(token, str) and token not in tokenizer.get_vocab():
                tokenizer.add_tokens([added(token, special=False, normalized=False)])
            return known(token)

        tokenizer.convert_tokens_to_ids = convert
    tokenizer.chat_template = checkpoint.template
    made = renderers.create_renderer(tokenizer, getattr(renderers, wanted.config)(**wanted.options))
    vars(tokenizer).pop("convert_tokens_to_ids", None)
    return made, tokenizer, checkpoint
