"""The ladder of efforts: clamped to what is taken, in whichever field it came, and read off refusals."""

from __future__ import annotations

from typing import Any

import pytest

from asides.dialects import anthropic, ollama, openai_chat, openai_responses
from asides.dialects._base import Dialect
from asides.dialects._efforts import allowed_efforts, with_effort
from asides.families import get_format, switch_of

MESSAGES = {"model": "m", "messages": [{"role": "user", "content": "q"}], "max_tokens": 9}
HARMONY = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("asked", "known", "sent"),
    [
        ("max", HARMONY, "high"),
        ("xhigh", HARMONY, "high"),
        ("minimal", HARMONY, "low"),
        ("none", HARMONY, "low"),
        ("none", ("none", *HARMONY), "none"),
        ("minimal", ("none", "high"), "high"),
        ("low", ("high", "max"), "high"),
        ("medium", ("low", "high"), "high"),
        ("ultra", HARMONY, "high"),
        ("medium", HARMONY, "medium"),
        ("max", (), "max"),
        ("sideways", HARMONY, "sideways"),
        ("high", ("none", "default"), None),
    ],
)
def test_the_ladder(asked: str, known: tuple[str, ...], sent: str | None) -> None:
    """The nearest that is taken; the stronger of two; none only where it was asked for."""
    request = with_effort(openai_chat.read_request({**MESSAGES, "reasoning_effort": asked}), known)
    assert request.thinking.effort == sent
    assert openai_chat.write_request(request).get("reasoning_effort") == sent


@pytest.mark.parametrize(
    ("dialect", "body", "sent"),
    [
        (openai_chat, {"reasoning_effort": "max"}, {"reasoning_effort": "high"}),
        (openai_chat, {"reasoning": {"effort": "max", "x": 1}}, {"reasoning": {"effort": "high", "x": 1}}),
        (openai_chat, {"think": "max"}, {"think": "high"}),
        (
            openai_chat,
            {"chat_template_kwargs": {"reasoning_effort": "max", "x": 1}},
            {"chat_template_kwargs": {"reasoning_effort": "high", "x": 1}},
        ),
        (openai_responses, {"input": "q", "reasoning": {"effort": "max"}}, {"reasoning_effort": "high"}),
        (anthropic, {"output_config": {"effort": "max"}}, {"reasoning_effort": "high"}),
        (ollama, {"think": "max"}, {"reasoning_effort": "high"}),
    ],
)
def test_every_field_of_every_dialect(dialect: Dialect, body: dict[str, Any], sent: dict[str, Any]) -> None:
    """What a chat server gets."""
    base = {"model": "m"} if "input" in body else MESSAGES
    written = openai_chat.write_request(with_effort(dialect.read_request({**base, **body}), HARMONY))
    assert {name: written.get(name) for name in sent} == sent


def test_the_same_object_where_nothing_changes() -> None:
    request = openai_chat.read_request({**MESSAGES, "reasoning_effort": "low"})
    assert with_effort(request, HARMONY) is request
    assert with_effort(request, ()) is request


@pytest.mark.parametrize(
    ("error", "asked", "known"),
    [
        (
            "[{'type': 'literal_error', 'loc': ('body', 'reasoning_effort'), 'msg': \"Input should be 'low', 'medium' "
            "or 'high'\", 'input': 'max', 'ctx': {'expected': \"'low', 'medium' or 'high'\"}}]",
            "max",
            HARMONY,
        ),
        (
            "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model. "
            "Supported values are: 'low', 'medium', and 'high'.",
            "minimal",
            HARMONY,
        ),
        ('invalid think value: "xhigh" (must be "high", "medium", "low", "max", true, or false)', "xhigh", None),
        ("`reasoning_effort` must be one of `none` or `default`", "high", ("none", "default")),
        ("Invalid reasoning effort max. Allowed: high", "max", ("high",)),
        ("The effort of this request must be checked: it takes max tokens", "high", ()),
        ("max_tokens must be at most 4096, not low", "max", ()),
        ("reasoning_effort is not supported", "max", ()),
        ("the model is thinking; high load, expected until low", "max", ()),
        ("", "max", ()),
    ],
)
def test_what_a_refusal_names(error: str, asked: str, known: tuple[str, ...] | None) -> None:
    """Only where it is about the effort and lists others."""
    assert allowed_efforts(error, asked) == (("high", "medium", "low", "max") if known is None else known)


@pytest.mark.parametrize(
    ("format", "known"),
    [
        ("harmony", ("low", "medium", "high")),
        ("deepseek_v4", ("none", "high", "max")),
        ("mistral", ("none", "high")),
        ("solar_open", ("none", "medium", "high")),
        ("qwen3", ()),
        ("cohere", ()),
        ("seed_oss", ()),
    ],
)
def test_what_a_family_takes(format: str, known: tuple[str, ...]) -> None:
    """By its card; `none` where its template can be asked not to think; nothing where it reads no effort."""
    assert get_format(format)
    switch = switch_of(format)
    assert switch is not None
    assert switch.requestable == known


def test_what_nothing_turns_off_is_kept_short() -> None:
    """Without a value for off the weakest effort is asked for."""
    switch = switch_of("harmony")
    assert switch is not None
    assert switch.arguments(False) == {"reasoning_effort": "low"}
    assert switch.arguments(False, "none") == {"reasoning_effort": "low"}
