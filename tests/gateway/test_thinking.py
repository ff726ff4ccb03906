"""How thinking is asked for and handed on: the field, where output begins, switches, what is merged into a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

from tests.gateway.clients import DIALECTS, PATHS, Dialect, ask, body_of, chat_deltas, events, post
from tests.gateway.running import Gateway, gateway
from tests.gateway.upstream import Reply, Upstream, json_reply, upstream
from tests.waiting import eventually

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n"
    "{% else %}<think>\n{% endif %}"
    "{% endif %}"
)
"""A template that opens the thought in the prompt, so that output begins inside it."""


class Servers(NamedTuple):
    """A gateway before an upstream that shows no template, and one that does."""

    gateway: Gateway
    plain: Upstream
    telling: Upstream
    ollama: Upstream

    def chat(self, raw: str, *, stream: bool = False, headers: dict[str, str] | None = None, **fields: Any) -> Any:
        """The message, or the joined deltas, that a chat client gets when the model says this."""
        for each in (self.plain, self.telling, self.ollama):
            each.say(raw)
        body = body_of("chat", stream=stream, **fields)
        reply = post(self.gateway.url, "/v1/chat/completions", body, headers=headers)
        assert reply.status_code == 200, reply.text
        if not stream:
            return reply.json()["choices"][0]["message"]
        found = events(reply.content)
        return {name: chat_deltas(found, name) for name in ("content", "reasoning_content", "reasoning", "thinking")}


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    """One for all tests of this file."""
    with upstream() as plain, upstream(models=["mystery"], owner="llamacpp") as telling, upstream("ollama") as ollama:
        telling.send(json_reply({"chat_template": TEMPLATE}), "/props")
        config = {
            "upstreams": [
                {"url": plain.url, "name": "plain", "models": ["*"], "skip_special_tokens": True},
                {"url": telling.url + "/v1", "name": "telling", "models": ["mystery"]},
                {"url": ollama.url, "name": "ollama", "kind": "ollama", "models": ["native"]},
            ],
            "models": {
                "qwen": {"format": "qwen3"},
                "r1": {"format": "deepseek_r1"},
                "oss": {"format": "harmony"},
                "begun": {"format": "qwen3", "start": "thinking"},
                "textual": {"format": "deepseek_r1", "start": "text"},
                "waiting": {"format": "qwen3", "start": "undecided"},
                "field": {"format": "qwen3", "reasoning": "reasoning"},
                "forgetful": {"format": "qwen3", "keep_thinking": "tool_turns"},
                "dropped": {"format": "qwen3", "reasoning": "drop"},
                "vouched": {"format": "qwen3", "reasoning": "drop", "pass_reply_fields": ["x_trace", "token_ids"]},
                "merged": {"format": "qwen3", "extra_body": {"grammar": "root ::= x", "temperature": 0.5}},
                "promoted": {"format": "qwen3", "empty_answer": "thinking"},
                "renamed": {"format": "qwen3", "name": "Qwen/Qwen3-8B"},
                "switched": {"format": "qwen3", "switch": "thinking"},
                "budgeted": {"format": "qwen3", "budget": "thinking_token_budget"},
                "untouched": {"format": "none"},
                "native": {"format": "qwen3", "upstream": "ollama"},
                "mystery": {"upstream": "telling"},
            },
        }
        with gateway(config) as running:
            yield Servers(running, plain, telling, ollama)


RAW = "<think>\nWhy.\n</think>\n\nSo."


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("reasoning_content", {"reasoning_content"}),
        ("reasoning", {"reasoning"}),
        ("thinking", {"thinking"}),
        ("both", {"reasoning_content", "reasoning"}),
        ("drop", set()),
    ],
)
def test_the_header_chooses_the_field(servers: Servers, choice: str, names: set[str], stream: bool) -> None:
    """`X-Asides-Reasoning` says under which name this request gets its thinking."""
    found = servers.chat(RAW, stream=stream, model="qwen", headers={"X-Asides-Reasoning": choice})
    assert found["content"] == "So."
    for name in ("reasoning_content", "reasoning", "thinking"):
        assert (found.get(name) or "") == ("Why." if name in names else "")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_tags(servers: Servers, stream: bool) -> None:
    """A client that reads only tags gets tags, and the same ones whatever the model's own markers are."""
    raw = "<|channel|>analysis<|message|>Why.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>"
    for model, said in (("qwen", RAW), ("oss", raw)):
        found = servers.chat(said, stream=stream, model=model, headers={"X-Asides-Reasoning": "tags"})
        assert found["content"] == "<think>Why.</think>\n\nSo."


def test_details(servers: Servers) -> None:
    """OpenRouter's `reasoning_details`."""
    found = servers.chat(RAW, model="qwen", headers={"X-Asides-Reasoning": "details"})
    assert [(each["type"], each["text"]) for each in found["reasoning_details"]] == [("reasoning.text", "Why.")]


def test_a_wrong_choice_is_refused(servers: Servers) -> None:
    """A header that says nothing known is a 400 that names it and the choices; nothing is asked of the model."""
    wrong = {
        "X-Asides-Reasoning": "loudly",
        "X-Asides-Start": "sideways",
        "X-Asides-Reasonning": "drop",
        "X-Asides-Z": "",
    }
    for name, value in wrong.items():
        reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="qwen"), headers={name: value})
        assert reply.status_code == 400
        assert name.lower() in reply.text.lower()
        assert ("did you mean x-asides-reasoning" in reply.text) == (name == "X-Asides-Reasonning")
    assert not servers.plain.questions


def test_the_models_own_field(servers: Servers) -> None:
    """The model's configuration chooses the field, and the header beats it."""
    assert servers.chat(RAW, model="field")["reasoning"] == "Why."
    found = servers.chat(RAW, model="field", headers={"X-Asides-Reasoning": "reasoning_content"})
    assert found["reasoning_content"] == "Why."
    assert "reasoning" not in found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("choice", ["raw", "summary", "both", "drop", None])
@pytest.mark.parametrize("dialect", ["chat", "responses", "messages", "ollama_chat"])
def test_every_dialect_has_the_same_choices(
    servers: Servers, dialect: Dialect, choice: str | None, stream: bool
) -> None:
    """The SDK of each sees thinking unless it is dropped; those with one place for it have it there."""
    servers.plain.say(RAW)
    headers = {} if choice is None else {"X-Asides-Reasoning": choice}
    seen = ask(dialect, servers.gateway.url, stream=stream, model="qwen", headers=headers)
    assert seen.text == "So."
    if dialect != "responses":
        assert seen.thinking == ("" if choice == "drop" else "Why.")
    else:
        reply = seen.raw[-1].response if stream else seen.raw
        shown = [item for item in reply.output if item.type == "reasoning"]
        places = [[part.text for part in item.content or item.summary] for item in shown]
        assert places == ([] if choice == "drop" else [["Why."]])
        both = [(bool(item.content), bool(item.summary)) for item in shown]
        assert both == ([] if choice == "drop" else [(choice in ("raw", "both"), choice != "raw")])


def test_dropped_by_the_configuration(servers: Servers) -> None:
    """It holds for every dialect; a header beats it."""
    servers.plain.say(RAW)
    for dialect in DIALECTS:
        assert ask(dialect, servers.gateway.url, model="dropped").thinking == ""
        assert ask(dialect, servers.gateway.url, model="dropped", headers={"X-Asides-Reasoning": "raw"}).thinking


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("qwen", {"x_trace", "x_other", "signature", "extra_content"}),
        ("dropped", {"extra_content"}),
        ("vouched", {"x_trace", "token_ids", "extra_content"}),
    ],
)
def test_fields_of_replies(servers: Servers, model: str, found: set[str], stream: bool) -> None:
    """They pass as `reasoning` says; where thinking is dropped, those of `pass_reply_fields` and of calls alone."""
    call = {
        "index": 0,
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "g"}},
    }
    said = {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Why.",
        "reasoning_details": [{"type": "reasoning.text", "text": "Why.", "signature": "s"}],
        "x_trace": "t",
        "x_other": "o",
        "tool_calls": [call],
    }
    choice = {"index": 0, "token_ids": [1, 2], "finish_reason": "tool_calls"}
    frame = {"id": "1", "model": model, "created": 1, "choices": [{**choice, "delta" if stream else "message": said}]}
    if stream:
        servers.plain.send(Reply([f"data: {json.dumps(frame)}\n\ndata: [DONE]\n\n".encode()]), PATHS["chat"])
    else:
        servers.plain.send(json_reply(frame), PATHS["chat"])
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    reply = post(servers.gateway.url, PATHS["chat"], body_of("chat", model=model, stream=stream, tools=tools)).text
    names = ("x_trace", "x_other", "token_ids", "signature", "extra_content")
    assert {name for name in names if f'"{name}"' in reply} == found, reply
    assert reply.count("Why.") == (1 if model == "qwen" else 0)


@pytest.mark.parametrize("dialect", ["responses", "messages", "ollama_chat"])
def test_a_field_of_chat_is_no_choice_elsewhere(servers: Servers, dialect: Dialect) -> None:
    """The error names the choices that there are."""
    headers = {"X-Asides-Reasoning": "reasoning_content"}
    reply = post(servers.gateway.url, PATHS[dialect], body_of(dialect, model="qwen"), headers=headers)
    assert reply.status_code == 400
    assert "raw, summary, both, drop" in reply.text
    assert not servers.plain.questions


# Which earlier thinking the model sees.


def thoughts_sent(server: Upstream) -> list[str]:
    """What the upstream was sent of earlier thinking, for each of the assistant's messages."""
    messages = server.question().body["messages"]
    return [message.get("reasoning_content", "") for message in messages if message["role"] == "assistant"]


@pytest.mark.parametrize(
    ("keep", "kept"), [(1, ["", "", "3", "4"]), (2, ["", "2", "3", "4"]), (9, None), ("all", None)]
)
def test_anthropics_edit_clears_thinking(servers: Servers, keep: int | str, kept: list[str] | None) -> None:
    """Its SDK keeps the thinking of so many turns; calls and their results belong to one."""

    def said(number: int, call: bool = False) -> dict[str, Any]:
        text = {"type": "text", "text": f"Answer {number}."}
        thought = {"type": "thinking", "thinking": str(number), "signature": "s"}
        calls = [{"type": "tool_use", "id": f"t{number}", "name": "find", "input": {}}] if call else []
        return {"role": "assistant", "content": [thought, text, *calls]}

    result = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t3", "content": "found"}]}
    user = {"role": "user", "content": "?"}
    messages: Any = [user, said(1), user, said(2), user, said(3, call=True), result, said(4), user]
    edit: Any = {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": keep} if isinstance(keep, int) else keep,
    }
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="k", max_retries=0) as sdk:
        asked: Any = {"model": "qwen", "max_tokens": 99, "messages": messages}
        beta = sdk.beta.messages
        beta.create(**asked, betas=["context-management-2025-06-27"], context_management={"edits": [edit]})
        assert thoughts_sent(servers.plain) == (kept or ["1", "2", "3", "4"])
        with pytest.raises(anthropic.BadRequestError, match="clear_tool_uses_20250919"):
            beta.create(**asked, context_management={"edits": [{"type": "clear_tool_uses_20250919"}]})


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("behavior", ["drop_block", "error", None])
def test_anthropics_bound_blocks(servers: Servers, behavior: Any, stream: bool) -> None:
    """Its SDK asks for bound thinking: a foreign block reaches the model, and the reply says that none was left out.

    Where the operator leaves earlier thoughts out the reply does not say so.
    """
    block: Any = {"type": "thinking", "thinking": "Elsewhere.", "signature": "of another conversation"}
    user: Any = {"role": "user", "content": "?"}
    said: Any = {"role": "assistant", "content": [block, {"type": "text", "text": "Yes."}]}
    binding: Any = {} if behavior is None else {"prefix_mismatch_behavior": behavior}
    servers.plain.say(RAW)
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="k", max_retries=0) as sdk:

        def transformations(model: str, **thinking: Any) -> Any:
            asked: Any = {
                "model": model,
                "max_tokens": 99,
                "messages": [user, said, user],
                "thinking": {"type": "adaptive", **thinking},
                "betas": ["thinking-binding-controls-2026-08-01"],
            }
            if not stream:
                return sdk.beta.messages.create(**asked).input_transformations
            with sdk.beta.messages.stream(**asked) as events:
                return events.get_final_message().input_transformations

        assert transformations("qwen", block_binding=binding) == []
        assert thoughts_sent(servers.plain) == ["Elsewhere."]
        assert transformations("qwen") is None
        assert transformations("forgetful", block_binding=binding) is None
        assert thoughts_sent(servers.plain) == [""]


def test_an_unknown_binding_is_refused(servers: Servers) -> None:
    """By name: whoever asks for something else than is known must not believe that it is done."""
    with anthropic.Anthropic(base_url=servers.gateway.url, api_key="k", max_retries=0) as sdk:
        for wrong in ({"prefix_mismatch_behavior": "ignore"}, {"scope": "x"}):
            thinking: Any = {"type": "adaptive", "block_binding": wrong}
            messages: Any = [{"role": "user", "content": "?"}]
            with pytest.raises(anthropic.BadRequestError, match=rf"block_binding\.{next(iter(wrong))}"):
                sdk.beta.messages.create(model="qwen", max_tokens=9, messages=messages, thinking=thinking)


@pytest.mark.parametrize(
    ("model", "context", "effective"),
    [
        ("qwen", "current_turn", "current_turn"),
        ("qwen", "all_turns", "all_turns"),
        ("qwen", "auto", "all_turns"),
        ("forgetful", "all_turns", "current_turn"),
    ],
)
def test_the_context_of_reasoning(servers: Servers, model: str, context: Any, effective: str) -> None:
    """OpenAI's SDK chooses, the reply repeats what holds, and what the operator leaves out stays out."""
    with openai.OpenAI(base_url=f"{servers.gateway.url}/v1", api_key="k", max_retries=0) as sdk:
        servers.plain.say(RAW)
        first = sdk.responses.create(model=model, input="?")
        items: Any = [
            {"role": "user", "content": "?"},
            *(item.model_dump(exclude_none=True) for item in first.output),
            {"role": "user", "content": "And?"},
        ]
        reply = sdk.responses.create(model=model, input=items, reasoning={"context": context})
        assert reply.reasoning is not None
        assert reply.reasoning.context == effective
        assert thoughts_sent(servers.plain) == (["Why."] if effective == "all_turns" else [""])
        with pytest.raises(openai.BadRequestError, match=r"reasoning\.mode"):
            sdk.responses.create(model=model, input="?", reasoning={"mode": "pro"})
        strange: Any = {"depth": "deep"}
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(model=model, input="?", reasoning=strange)
        assert caught.value.param == "reasoning.depth"
        with pytest.raises(openai.BadRequestError) as caught:
            sdk.responses.create(model=model, input="?", context_management=[{"type": "compaction"}])
        assert caught.value.param == "context_management"


# Where output begins.


def test_the_format_says_where_output_begins(servers: Servers) -> None:
    """Last of all the format: deepseek_r1 begins in thought, qwen3 in text."""
    assert servers.chat("Why.</think>So.", stream=True, model="r1")["reasoning_content"] == "Why."
    assert servers.chat("Why, so.", stream=True, model="qwen")["content"] == "Why, so."


def test_the_template_beats_the_format(servers: Servers) -> None:
    """A server that shows a template whose prompt opens the thought: output begins inside it."""

    def begins_inside() -> bool:
        found = servers.chat("Why.\n</think>\n\nSo.", stream=True, model="mystery")
        return (found["reasoning_content"], found["content"]) == ("Why.", "So.")

    # The first request waits for the template, but for some seconds only (`test_upstreams.py`).
    eventually(begins_inside, "the template says nothing")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("model", ["begun", "r1", "mystery"])
def test_what_the_server_has_split_off_is_behind_the_beginning(servers: Servers, model: str, stream: bool) -> None:
    """A server that reads thoughts itself sends the answer as text, wherever raw output would begin."""
    server = servers.telling if model == "mystery" else servers.plain
    server.say("So.", thought="Why.")
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model=model, stream=stream))
    found = reply.json()["choices"][0]["message"] if not stream else None
    if found is None:
        found = {name: chat_deltas(events(reply.content), name) for name in ("content", "reasoning_content")}
    assert (found["reasoning_content"], found["content"]) == ("Why.", "So.")


def test_a_refusal_beats_the_template(servers: Servers) -> None:
    """A request that turns thinking off begins in text, by whatever field it says so."""
    for fields in (
        {"chat_template_kwargs": {"enable_thinking": False}},
        {"reasoning_effort": "none"},
        {"think": False},
        {"reasoning": {"enabled": False}},
    ):
        for model in ("mystery", "r1"):
            found = servers.chat("So it is.", stream=True, model=model, **fields)
            assert (found["reasoning_content"], found["content"]) == ("", "So it is."), (model, fields)


def test_the_configuration_beats_a_refusal(servers: Servers) -> None:
    """A start that the file gives a model holds even if the request refuses thinking: what comes is not shown."""
    assert servers.chat("Why.</think>So.", stream=True, model="begun")["reasoning_content"] == "Why."
    found = servers.chat("Why.</think>So.", stream=True, model="begun", reasoning_effort="none")
    assert (found["reasoning_content"], found["content"]) == ("", "So.")
    assert servers.chat("So it is.", stream=True, model="textual")["content"] == "So it is."


def test_the_header_beats_everything(servers: Servers) -> None:
    """`X-Asides-Start` is the first to be heard."""
    found = servers.chat("Why, so.", stream=True, model="begun", headers={"X-Asides-Start": "text"})
    assert (found["reasoning_content"], found["content"]) == ("", "Why, so.")
    found = servers.chat("Why.</think>So.", stream=True, model="textual", headers={"X-Asides-Start": "thinking"})
    assert (found["reasoning_content"], found["content"]) == ("Why.", "So.")


def test_a_stream_waits_only_if_told_to(servers: Servers) -> None:
    """A lone close in a stream makes a thought of what stood before only where the file says `undecided`."""
    found = servers.chat("Why.</think>So.", stream=True, model="waiting")
    assert (found["reasoning_content"], found["content"]) == ("Why.", "So.")
    assert servers.chat("Why.</think>So.", stream=True, model="qwen")["content"].startswith("Why.")


def test_a_lone_close_in_a_whole_reply(servers: Servers) -> None:
    """A whole reply honours a lone close only where nothing told where it begins."""
    found = servers.chat("Why.</think>\n\nSo.", model="qwen")
    assert (found["reasoning_content"], found["content"]) == ("Why.", "So.")
    told = servers.chat("Why.</think>So.", model="qwen", headers={"X-Asides-Start": "text"})
    assert told["content"].startswith("Why.")
    assert not told.get("reasoning_content")


# How thinking is asked for.


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"reasoning_effort": "none"}, False),
        ({"reasoning_effort": "high"}, True),
        ({"think": True}, True),
        ({"think": False}, False),
        ({"chat_template_kwargs": {"enable_thinking": False}}, False),
    ],
)
def test_wishes_become_the_templates_keyword(servers: Servers, fields: dict[str, Any], wanted: bool) -> None:
    """However a chat client says it, the upstream gets the keyword that this model's template knows."""
    servers.chat(RAW, model="qwen", **fields)
    assert servers.plain.question().body["chat_template_kwargs"]["enable_thinking"] is wanted
    servers.chat(RAW, model="switched", **fields)
    assert servers.plain.question().body["chat_template_kwargs"]["thinking"] is wanted


def test_nothing_is_made_up(servers: Servers) -> None:
    """A request that says nothing of thinking tells the upstream nothing of it."""
    servers.chat(RAW, model="qwen")
    body = servers.plain.question().body
    assert not {"chat_template_kwargs", "reasoning_effort", "think", "reasoning", "thinking"} & body.keys()


def test_wishes_of_other_dialects(servers: Servers) -> None:
    """Anthropic's, Responses' and Ollama's own words reach the upstream too."""
    url = servers.gateway.url
    servers.plain.say(RAW)
    seen = ask("messages", url, model="qwen", thinking={"type": "disabled"})
    assert (seen.thinking, seen.text) == ("", "So.")
    assert servers.plain.question().body["chat_template_kwargs"]["enable_thinking"] is False
    ask("messages", url, model="budgeted", max_tokens=4000, thinking={"type": "enabled", "budget_tokens": 2000})
    body = servers.plain.question().body
    assert body["chat_template_kwargs"]["enable_thinking"] is True
    assert body["thinking_token_budget"] == 2000
    ask("responses", url, model="qwen", reasoning={"effort": "none"})
    assert servers.plain.question().body["chat_template_kwargs"]["enable_thinking"] is False
    ask("ollama_chat", url, model="qwen", think=False)
    assert servers.plain.question().body["chat_template_kwargs"]["enable_thinking"] is False


def test_wishes_to_ollama(servers: Servers) -> None:
    """For an Ollama upstream every thinking option becomes `think`."""
    servers.ollama.say(RAW)
    url = servers.gateway.url
    for effort, think in (("none", False), ("low", "low"), ("high", "high"), ("minimal", "low"), ("xhigh", "max")):
        ask("chat", url, model="native", reasoning_effort=effort)
        assert servers.ollama.question().body["think"] == think
    ask("messages", url, model="native", thinking={"type": "disabled"})
    assert servers.ollama.question().body["think"] is False
    ask("ollama_chat", url, model="native", think="medium")
    assert servers.ollama.question().body["think"] == "medium"


def test_effort_passes(servers: Servers) -> None:
    """A model whose template knows efforts gets the effort itself."""
    raw = "<|channel|>final<|message|>So.<|return|>"
    assert servers.chat(raw, model="oss", reasoning_effort="high")["content"] == "So."
    assert servers.plain.question().body["reasoning_effort"] == "high"


def test_other_fields_pass(servers: Servers) -> None:
    """Within the dialect a field that nobody here knows reaches the upstream as it is."""
    servers.chat(RAW, model="qwen", guided_regex="a+", top_k=3, vendor={"x": [1, None]}, seed=7)
    body = servers.plain.question().body
    assert (body["guided_regex"], body["top_k"], body["vendor"], body["seed"]) == ("a+", 3, {"x": [1, None]}, 7)


def test_extra_body(servers: Servers) -> None:
    """`extra_body` is merged into every request for the model, whatever the dialect, and wins."""
    servers.chat(RAW, model="merged", temperature=1.0)
    body = servers.plain.question().body
    assert (body["grammar"], body["temperature"]) == ("root ::= x", 0.5)
    ask("messages", servers.gateway.url, model="merged")
    assert servers.plain.question().body["grammar"] == "root ::= x"
    ask("completions", servers.gateway.url, model="merged")
    assert servers.plain.question().body["grammar"] == "root ::= x"


def test_the_upstreams_own_name(servers: Servers) -> None:
    """A model may have another name at its upstream."""
    assert servers.chat(RAW, model="renamed")["content"] == "So."
    assert servers.plain.question().body["model"] == "Qwen/Qwen3-8B"


def test_special_tokens(servers: Servers) -> None:
    """Where markers are special tokens, an upstream that knows the field is told to leave them in."""
    servers.chat("<|channel|>final<|message|>So.<|return|>", model="oss")
    assert servers.plain.question().body["skip_special_tokens"] is False
    servers.chat(RAW, model="qwen")
    assert "skip_special_tokens" not in servers.plain.question().body
    servers.chat(RAW, model="mystery")
    assert "skip_special_tokens" not in servers.telling.question().body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_that_never_came(servers: Servers, stream: bool) -> None:
    """A thought that never closed leaves the answer empty, unless the model is told to put it there."""
    left = servers.chat("<think>Why, why", stream=stream, model="qwen")
    assert (left["reasoning_content"], left["content"]) == ("Why, why", "")
    promoted = servers.chat("<think>Why, why", stream=stream, model="promoted")
    assert promoted["content"] == "Why, why"
    refused = servers.chat("<think>Why, why", stream=stream, model="promoted", reasoning_effort="none")
    assert not refused["content"]
    closed = servers.chat(RAW, stream=stream, model="promoted")
    assert (closed["reasoning_content"], closed["content"]) == ("Why.", "So.")


def test_an_answer_that_never_came_in_other_dialects(servers: Servers) -> None:
    """The same for the other dialects."""
    servers.plain.say("<think>Why, why")
    for dialect in ("messages", "responses", "ollama_chat"):
        for stream in (False, True):
            assert ask(dialect, servers.gateway.url, stream=stream, model="promoted").text == "Why, why"


# Nothing is touched.


def test_none_passes_bytes(servers: Servers) -> None:
    """With `format: none` both ways are byte for byte, whatever stands in them."""
    frames = b': hello\r\n\r\ndata: {"choices":[{"index":0,"delta":{"content":"<think>x"}}],"odd" : 1}\r\n\r\n'
    frames += b"data: junk\r\n\r\ndata: [DONE]\r\n\r\n"
    servers.plain.send(Reply([frames[:40], frames[40:]]))
    sent = b'{"model" : "untouched",  "messages":[{"role":"user","content":"\\u00e4?"}], "stream":true, "zz": 1e3}'
    reply = post(servers.gateway.url, "/v1/chat/completions", sent)
    assert reply.content == frames
    assert servers.plain.question().raw == sent


def test_none_passes_whole_bytes(servers: Servers) -> None:
    """Whole replies and errors too."""
    body = b'{ "choices": [ {"message": {"content": "<think>a</think>b"}} ], "x": 1.50 }'
    servers.plain.send(Reply([body], headers={"Content-Type": "application/json", "X-Vendor": "1"}, whole=True))
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="untouched"))
    assert reply.content == body
    error = b'{"error": {"message": "busy", "odd": true} }'
    servers.plain.send(Reply([error], status=503, headers={"Content-Type": "application/json"}, whole=True))
    reply = post(servers.gateway.url, "/v1/chat/completions", body_of("chat", model="untouched"))
    assert (reply.status_code, reply.content) == (503, error)


def test_none_between_dialects(servers: Servers) -> None:
    """Between two dialects `none` translates, and leaves markers where they are."""
    servers.plain.say(RAW)
    seen = ask("messages", servers.gateway.url, model="untouched")
    assert (seen.thinking, seen.text) == ("", RAW)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_logprobs(servers: Servers, stream: bool) -> None:
    """Log probabilities beside `content` are those of `content`; the others stand elsewhere."""
    tokens = ["<think>", "Why", ".", "</think>", "\n\n", "So", "."]
    probs = [{"token": token, "logprob": -0.5, "bytes": list(token.encode()), "top_logprobs": []} for token in tokens]
    base = {"id": "1", "created": 1, "model": "qwen"}
    if stream:
        choices: list[dict[str, Any]] = [
            {"index": 0, "delta": {"content": token}, "logprobs": {"content": [prob]}}
            for token, prob in zip(tokens, probs, strict=True)
        ]
        choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        frames = [{**base, "object": "chat.completion.chunk", "choices": [choice]} for choice in choices]
        data = b"".join(b"data: " + json.dumps(frame).encode() + b"\n\n" for frame in frames) + b"data: [DONE]\n\n"
        servers.plain.send(Reply([data]))
    else:
        message = {"role": "assistant", "content": "".join(tokens)}
        choice = {"index": 0, "message": message, "logprobs": {"content": probs}, "finish_reason": "stop"}
        servers.plain.send(json_reply({**base, "object": "chat.completion", "choices": [choice]}))
    reply = post(
        servers.gateway.url, "/v1/chat/completions", body_of("chat", model="qwen", stream=stream, logprobs=True)
    )
    if stream:
        found = [choice for frame in events(reply.content) if frame != "[DONE]" for choice in frame["choices"]]
    else:
        found = reply.json()["choices"]
    shown = [entry["token"] for choice in found for entry in ((choice.get("logprobs") or {}).get("content") or ())]
    assert "".join(shown) == "So."
    assert servers.plain.question().body["logprobs"] is True
