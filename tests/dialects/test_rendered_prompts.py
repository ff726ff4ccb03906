"""Questions about prompts: what of a request goes into one, and how answers are read."""

from __future__ import annotations

from typing import Any

import pytest

from asides._engine.vocabulary import read_token_strings
from asides.dialects._rendered_prompts import PROMPT_ENDPOINTS, WORD, PromptQuestion, end_of
from asides.dialects._servers import ENGINES
from asides.families import Switch

USER = {"model": "m", "messages": [{"role": "user", "content": "a secret"}]}


def about(**fields: Any) -> PromptQuestion | None:
    """The question about a request."""
    return PromptQuestion.about(
        {**USER, **fields}, Switch(keyword="thinking_mode", on="deep", off="chat"), ["keep_all"]
    )


@pytest.mark.parametrize(
    ("fields", "question"),
    [
        ({}, PromptQuestion(model="m")),
        ({"temperature": 1, "stream": True, "user": "a secret"}, PromptQuestion(model="m")),
        ({"tools": [{"a": "secret"}]}, PromptQuestion(model="m", tools=True)),
        ({"tools": [{"a": "secret"}], "tool_choice": "none"}, PromptQuestion(model="m")),
        ({"reasoning_effort": "high"}, PromptQuestion(model="m", effort="high")),
        ({"reasoning_effort": "a secret"}, None),
        ({"reasoning_effort": 4}, None),
        (
            {"reasoning": {"enabled": True, "effort": "low", "max_tokens": 8}},
            PromptQuestion(model="m", reasoning=(("effort", "low"), ("enabled", True))),
        ),
        ({"reasoning": {"effort": "a secret"}}, None),
        (
            {"chat_template_kwargs": {"thinking": True, "enable_thinking": None, "keep_all": "a secret"}},
            PromptQuestion(model="m", keywords=(("thinking", True),)),
        ),
        (
            {"chat_template_kwargs": {"thinking_mode": "chat"}},
            PromptQuestion(model="m", keywords=(("thinking_mode", "chat"),)),
        ),
        ({"chat_template_kwargs": {"thinking_mode": "a secret"}}, None),
        ({"chat_template_kwargs": {"thinking_mode": {"a": "secret"}}}, None),
        ({"chat_template_kwargs": {"thinking": 512}}, None),
        ({"chat_template_kwargs": {"other": True}}, None),
        ({"chat_template": "a secret"}, None),
        ({"messages": []}, None),
        ({"messages": "a secret"}, None),
        ({"messages": ["a secret"]}, None),
        ({"messages": [{"role": "assistant", "content": "a secret"}]}, None),
        ({"prompt": "a secret", "messages": None}, None),
    ],
    ids=str,
)
def test_what_of_a_request_is_asked_about(fields: dict[str, Any], question: PromptQuestion | None) -> None:
    """What decides about thinking, and nothing that a client has written."""
    found = about(**fields)
    assert found == question
    if found is not None:
        assert "secret" not in str([endpoint.bodies(found) for endpoint in PROMPT_ENDPOINTS.values()])


def test_every_engine_can_be_asked() -> None:
    assert PROMPT_ENDPOINTS.keys() == ENGINES.keys()
    assert all(engine.prompt_endpoint.path for engine in ENGINES.values())


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["Hi", "Ġthere", "<think>", "Ċ"], "Hi there<think>\n"),
        (
            ["<｜tool▁calls▁begin｜>", "<｜Assistant｜>", "<think>", "Ċ"],
            "<｜tool▁calls▁begin｜><｜Assistant｜><think>\n",
        ),
        (["âĹģ", "think", "âĸ·"], "◁think▷"),
        (["▁Hi", "▁there", "<0x0A>", "[THINK]"], " Hi there\n[THINK]"),
        (["<start_of_turn>", "model", "\n"], "<start_of_turn>model\n"),
        (["<0xZZ>"], "<0xZZ>"),
        ([], ""),
    ],
    ids=str,
)
def test_tokens_as_vocabularies_hold_them(tokens: list[str], text: str) -> None:
    """Of byte-level ones and of SentencePiece; special tokens are as they are."""
    assert read_token_strings(tokens) == text


def test_the_end_of_a_prompt_is_what_follows_the_message() -> None:
    assert end_of(f"say {WORD}: {WORD}<end>") == "<end>"
    assert end_of("<think>") is None
    assert end_of(None) is None
    assert end_of(WORD + "a" * 5000) is None
