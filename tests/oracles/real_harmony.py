"""Against openai-harmony: what gpt-oss's template writes, and what is read from ids that were sampled."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import asides
from tests.oracles.conversations import texts
from tests.oracles.material import checkpoints, tokenizer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # those of transformers are theirs
PROMPT = [{"role": "user", "content": "2+2?"}]


@cache
def encoding() -> Any:
    harmony = import_module("openai_harmony")
    return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)


@cache
def conversation() -> asides.Conversation:
    return asides.Conversation(tokenizer_of(checkpoints()["trl gptoss"]))


words = texts(least=1).filter(str.strip)
messages = st.lists(st.tuples(st.sampled_from(["analysis", "commentary", "call"]), words), max_size=3)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(messages, words)
def test_what_was_sampled_is_read_alike(before: list[tuple[str, str]], final: str) -> None:
    """Every message of harmony's is a part of ours, in their order, with the same words."""
    said: list[tuple[str, str]] = []
    written: list[str] = []
    for channel, text in before:
        if channel == "call":
            written.append(' to=functions.f<|channel|>commentary <|constrain|>json<|message|>{"a": 1}<|call|>')
            said.append(("tool_call", '{"a": 1}'))
            break  # sampling stops there
        written.append(f"<|channel|>{channel}<|message|>{text}<|end|>")
        said.append(("thinking" if channel == "analysis" else "text", text))
    if not said or said[-1][0] != "tool_call":
        written.append(f"<|channel|>final<|message|>{final}<|return|>")
        said.append(("text", final))
    ids = encoding().encode("<|start|>assistant".join(written), allowed_special="all")
    theirs = [
        ("tool_call" if each.recipient else "thinking" if each.channel == "analysis" else "text", each.content[0].text)
        for each in encoding().parse_messages_from_completion_tokens(
            ids, import_module("openai_harmony").Role.ASSISTANT
        )
    ]
    turn = conversation().prompt(PROMPT).add(ids)
    ours = [
        ("tool_call", part.arguments)
        if isinstance(part, asides.ToolCall)
        else ("thinking" if isinstance(part, asides.Thinking) else "text", part.text.strip())
        for part in turn.parts
    ]
    assert theirs == said
    assert ours == [(kind, text.strip()) for kind, text in theirs]
    assert turn.ids[-len(ids) :] == tuple(ids)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts(least=1), texts(least=1), texts(least=1))
def test_what_is_written_is_what_harmony_writes(instructions: str, question: str, more: str) -> None:
    """The developer's, the user's and the assistant's messages, after the system's, which names a date."""
    harmony = import_module("openai_harmony")
    chat = [
        {"role": "developer", "content": instructions},
        {"role": "user", "content": question},
        {"role": "assistant", "content": "Four."},
        {"role": "user", "content": more},
    ]
    theirs = harmony.Conversation.from_messages(
        [
            harmony.Message.from_role_and_content(
                harmony.Role.DEVELOPER, harmony.DeveloperContent.new().with_instructions(instructions)
            ),
            harmony.Message.from_role_and_content(harmony.Role.USER, question),
            harmony.Message.from_role_and_content(harmony.Role.ASSISTANT, "Four.").with_channel("final"),
            harmony.Message.from_role_and_content(harmony.Role.USER, more),
        ]
    )
    expected = encoding().render_conversation_for_completion(theirs, harmony.Role.ASSISTANT)
    ours = conversation().prompt(chat).text.partition("<|end|>")[2]
    # The template ends its instructions with an empty line.
    assert ours.replace(f"{instructions}\n\n<|end|>", f"{instructions}<|end|>", 1) == encoding().decode(expected)
