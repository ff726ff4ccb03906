"""Turns: what was sampled stays, the next prompt goes on from it or says why not, and examples hold all of it."""

# ruff: noqa: E501 - a line of a template or of an answer is not to be broken

from __future__ import annotations

import inspect
import random
import sys
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import asides
from tests.conversation.support import MARKED, TEXT, answers, conversation, conversations, plainly, rows, tokenizer
from tests.conversation.templates import TEMPLATES

USER = {"role": "user", "content": "What is 2+2?"}
MORE = {"role": "user", "content": "And 3?"}
RESULT = {"role": "tool", "tool_call_id": "c1", "name": "look", "content": "found"}
CALL = '<tool_call>\n{"name": "look", "arguments": {"place":"Ulm"}}\n</tool_call>'


def encode(text: str, kind: str = "bytes") -> list[int]:
    return list(tokenizer(kind).encode(text, add_special_tokens=False).ids)


def test_a_tool_loop_goes_on_from_what_was_sampled() -> None:
    talk = conversation("chatml")
    # Written otherwise than the template would: no line break before the closing marker, JSON without a space.
    first = talk.prompt([USER]).add(encode(f"<think>\nhm</think>\nLet me.{CALL}<|im_end|>"))
    assert [type(part).__name__ for part in first.parts] == ["Thinking", "Text", "ToolCall"]
    assert first.calls[0].arguments == '{"place":"Ulm"}'
    assert first.termination == "stop"
    second = first.next([RESULT])
    assert second.broke is None
    assert second.ids[: len(first.ids)] == first.ids
    assert second.text[len(first.text) :] == (
        "\n<|im_start|>user\n<tool_response>\nfound\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    )
    assert rows(second)[-8:] == [
        (1, "text*", "Let me."),
        (1, "call*", CALL),
        (1, "marker*", "<|im_end|>"),
        (1, "marker", "\n"),
        (2, "header", "<|im_start|>user\n<tool_response>\n"),
        (2, "tool", "found"),
        (2, "marker", "\n</tool_response><|im_end|>\n"),
        (None, "header", "<|im_start|>assistant\n"),
    ]
    owners = {second.owners[owner] for owner in second.owner if owner is not None}
    assert {(1, "reasoning_content"), (1, "content"), (1, "tool_calls.0"), (2, "content")} <= owners


def test_a_thought_that_the_template_drops_breaks_the_prefix() -> None:
    talk = conversation("chatml")
    turn = talk.prompt([USER]).add(encode("<think>\nso\n</think>\n\nFour.<|im_end|>"))
    anew = turn.next([MORE])
    assert anew.broke is not None
    assert (anew.broke.reason, anew.broke.message) == ("thinking dropped", 1)
    assert anew.broke.offset == len(turn.prompt.ids)
    assert anew.broke.lost == len(turn.sampled)
    assert "<think>" not in anew.text
    kept = turn.next([MORE], keep=True)
    assert kept.broke is None
    assert kept.ids[: len(turn.ids)] == turn.ids
    assert kept.text == turn.text + anew.text[anew.text.index("<|im_end|>\n<|im_start|>user\nAnd") + 10 :]


def test_a_thought_of_an_earlier_message_breaks_it_too() -> None:
    talk = conversation("chatml")
    first = talk.prompt([USER]).add(encode(f"<think>\nhm\n</think>\n\n{CALL}<|im_end|>"))
    second = first.next([RESULT]).add(encode("Four.<|im_end|>"))
    anew = second.next([MORE])
    assert anew.broke is not None
    assert (anew.broke.reason, anew.broke.message) == ("thinking dropped", 1)


def test_an_empty_thought_that_the_prompt_wrote_is_dropped_too() -> None:
    talk = conversation("chatml", enable_thinking=False)
    turn = talk.prompt([USER]).add(encode("Four.<|im_end|>"))
    assert [part.text for part in turn.parts] == ["Four."]  # type: ignore[union-attr]
    broke = turn.next([MORE]).broke
    assert broke is not None
    assert (broke.reason, broke.message) == ("thinking dropped", 1)


@pytest.mark.parametrize(
    ("stop", "new", "reason"),
    [
        ("<|user|>", MORE, None),
        ("<|observation|>", MORE, "turn's end written otherwise"),
        ("<|endoftext|>", MORE, "turn's end written otherwise"),
    ],
)
def test_a_stop_that_is_the_next_roles_marker(stop: str, new: Any, reason: str | None) -> None:
    turn = conversation("glm").prompt([USER]).add(encode(f"\n<think>so</think>\nFour.{stop}"))
    following = turn.next([new])
    assert (following.broke.reason if following.broke else None) == reason
    if reason is None:
        assert following.text == turn.text + "\nAnd 3?<|assistant|>"


def test_the_end_of_the_last_answer_is_another_one() -> None:
    talk = conversation("harmony")
    turn = talk.prompt([USER]).add(encode("<|channel|>final<|message|>Four.<|return|>"))
    anew = turn.next([MORE])
    assert anew.broke is not None
    assert (anew.broke.reason, anew.broke.message) == ("turn's end written otherwise", 1)
    assert anew.broke.lost == 1
    kept = turn.next([MORE], keep=True)
    assert kept.text == turn.text + "<|start|>user<|message|>And 3?<|end|><|start|>assistant"


def test_a_template_that_writes_another_prompt() -> None:
    template = "{{ messages | length }}:{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"  # fmt: skip
    talk = asides.Conversation(tokenizer("bytes"), template, format="qwen3")
    turn = talk.prompt([USER]).add(encode("Four.<|im_end|>"))
    assert turn.next([MORE]).broke == ("template rewrites the prompt", None, 0, len(turn.ids))
    shorter = template.replace("{{ messages | length }}:", "").replace(
        "{{ m.content }}", "{{ m.content if loop.revindex < 3 else '…' }}"
    )
    talk = asides.Conversation(tokenizer("bytes"), shorter, format="qwen3")
    broke = talk.prompt([USER]).add(encode("Four.<|im_end|>")).next([MORE]).broke
    assert broke is not None
    assert (broke.reason, broke.message) == ("message changed", 0)


CUT = [
    ("Four, I thi", "Four, I thi<|im_end|>\n"),
    ("<think>\nhm, so", "<think>\nhm, so\n</think>\n\n<|im_end|>\n"),
    ("<think>\nhm\n</think>\n\n", "<think>\nhm\n</think>\n\n<|im_end|>\n"),
    ('Look: <tool_call>\n{"name": "lo', 'Look: <tool_call>\n{"name": "lo<|im_end|>\n'),
    ("", "<|im_end|>\n"),
]


@pytest.mark.parametrize(("sampled", "closed"), CUT)
def test_a_cut_answer_is_closed_by_the_prompt(sampled: str, closed: str) -> None:
    turn = conversation("chatml").prompt([USER]).add(encode(sampled), finish_reason="length")
    following = turn.next([MORE], keep=True)
    assert following.broke is None
    assert following.ids[: len(turn.ids)] == turn.ids
    assert following.text == turn.prompt.text + closed + "<|im_start|>user\nAnd 3?<|im_end|>\n<|im_start|>assistant\n"
    added = following.sampled[len(turn.ids) :]
    assert not any(added)
    assert following.sampled[len(turn.prompt.ids) : len(turn.ids)] == (True,) * len(turn.sampled)


def test_branches_share_what_was_before() -> None:
    prompt = conversation("chatml").prompt([USER])
    one, other = (prompt.add(encode(f"{answer}<|im_end|>")) for answer in ("Four.", "Five."))
    assert one.prompt is other.prompt
    again = [one.next([MORE]), one.next([{"role": "user", "content": "Sure?"}])]
    assert again[0].ids[: len(one.ids)] == again[1].ids[: len(one.ids)] == one.ids
    with pytest.raises(AttributeError):
        prompt.ids = ()  # type: ignore[misc]
    with pytest.raises(AttributeError):
        one.sampled = ()  # type: ignore[misc]


def test_mistakes_are_said_in_words() -> None:
    prompt = conversation("chatml").prompt([USER])
    with pytest.raises(asides.UsageError, match="there are 1 log probabilities for 2 ids"):
        prompt.add([1, 2], [0.5])
    turn = prompt.add(encode("Four.<|im_end|>"))
    with pytest.raises(asides.UsageError, match="at least one new message"):
        turn.next([])
    with pytest.raises(asides.UsageError, match=r"loss must be .* not 'thoughts'"):
        turn.examples(loss=["thoughts"])  # type: ignore[list-item]


def test_examples_of_a_conversation_that_broke() -> None:
    talk = conversation("chatml")
    first = talk.prompt([USER]).add(encode("<think>\nso\n</think>\n\nFour.<|im_end|>"))
    six = encode("Six.<|im_end|>")
    second = first.next([MORE]).add(six, [-0.25] * len(six))
    one, other = second.examples()
    assert one.ids == first.ids
    assert talk.text(id for id in one.labels if id >= 0) == "<think>\nso\n</think>\n\nFour.<|im_end|>"
    assert other.ids == second.ids
    assert talk.text(id for id in other.labels if id >= 0) == "Six.<|im_end|>"
    assert [each for each in other.logprobs if each is not None] == [-0.25] * len(six)
    rows = second.to_trl()
    assert rows[1] == {
        "prompt_ids": list(second.prompt.ids),
        "completion_ids": list(second.sampled),
        "logprobs": [-0.25] * len(six),
        "env_mask": [1] * len(six),
    }
    (kept,) = first.next([MORE], keep=True).add(encode("Six.<|im_end|>")).examples()
    assert talk.text(id for id in kept.labels if id >= 0) == "<think>\nso\n</think>\n\nFour.<|im_end|>Six.<|im_end|>"


def test_what_counts_can_be_chosen() -> None:
    talk = conversation("chatml")
    turn = talk.prompt([USER]).add(encode("<think>\nso\n</think>\n\nFour.<|im_end|>"))

    def learned(loss: Any) -> str:
        return talk.text(id for id in turn.examples(loss)[0].labels if id >= 0)

    assert learned(["text"]) == "Four."
    assert learned(("thinking", "text")) == "soFour."
    assert learned("text") == "Four."
    assert learned(lambda kind, owner: 0.5 if kind == "marker" else 0) == "<think>\n\n</think>\n\n<|im_end|>"
    (example,) = turn.examples(lambda kind, owner: 0.5 if owner == (1, "content") else 0)
    assert sum(example.weights) == 0.5 * len(encode("Four."))


def test_given_conversations_are_examples_as_well() -> None:
    talk = conversation("chatml")
    messages = [USER, {"role": "assistant", "content": "Four."}, MORE, {"role": "assistant", "content": "Six."}]
    (example,) = talk.prompt(messages).examples()
    assert talk.text(id for id in example.labels if id >= 0) == "Four.<|im_end|>Six.<|im_end|>"
    assert talk.text(example.ids) == plainly(TEMPLATES["chatml"], messages)


# Laws.


@st.composite
def sampled(draw: st.DrawFn, name: str, kind: str) -> list[int]:
    """Ids that a model may sample: an answer as it would write it, whole or cut, or any ids at all."""
    if draw(st.booleans()):
        size = tokenizer(kind).get_vocab_size()
        return draw(st.lists(st.integers(0, size - 1), max_size=12))
    answer = draw(answers(st.one_of(TEXT, MARKED)))
    talk = conversation(name, kind)
    try:
        prompt = talk.prompt([USER, answer], protect=())
    except asides.UsageError:
        assume(False)
    ids = [id for id, written in zip(prompt.ids, prompt.sampled, strict=True) if written]
    return ids[: draw(st.integers(0, len(ids)))] if draw(st.booleans()) else ids


@pytest.mark.parametrize("kind", ["bytes", "pieces"])
@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=25, deadline=None)
@given(messages=conversations(TEXT, answered=False), data=st.data())
def test_the_laws_of_turns(name: str, kind: str, messages: list[Any], data: st.DataObject) -> None:
    """Ids go on or a break says why; each sampled id is in one example; kinds are the token parser's."""
    talk = conversation(name, kind)
    try:
        prompt = talk.prompt(messages)
    except asides.UsageError:
        assume(False)
    turns: list[asides.Turn] = []
    keep = data.draw(st.booleans())
    for number in range(data.draw(st.integers(1, 3))):
        ids = data.draw(sampled(name, kind))
        turn = prompt.add(ids, [-float(place) for place in range(len(ids))])
        turns.append(turn)
        assert turn.ids == (*prompt.ids, *ids)
        assert len(turn.kinds) == len(ids)
        result = turn.calls and turn.calls[-1].error is None and data.draw(st.booleans())
        new = [{**RESULT, "content": "found"}] if result else [{"role": "user", "content": data.draw(TEXT)}]
        try:
            prompt = turn.next(new, keep=keep)
        except asides.UsageError:  # some templates want a text where the model wrote none
            break
        assert len(prompt.ids) == len(prompt.owner) == len(prompt.kind) == len(prompt.sampled) == len(prompt.message)
        if prompt.broke is None:
            assert prompt.ids[: len(turn.ids)] == turn.ids
            assert prompt.kind[len(turn.prompt.ids) : len(turn.ids)] == turn.message.roles
            assert prompt.text.startswith(turn.text)
        else:
            same = prompt.broke.offset
            assert prompt.ids[:same] == turn.ids[:same]
            assert prompt.broke.lost == len(turn.ids) - same
            assert prompt.broke.lost
        assert len(prompt.messages) == len(messages) + 2 * (number + 1)
        if prompt.broke is not None or not turn.stop:
            assert prompt.text.endswith(talk.prompt(prompt.messages).text[-8:])
    examples = turns[-1].examples()
    seen = [id for example in examples for id, each in zip(example.ids, example.sampled, strict=True) if each]
    assert seen == [id for turn in turns for id in turn.sampled]
    assert sum(sum(example.weights) for example in examples) == len(seen)
    logprobs = [each for example in examples for each in example.logprobs if each is not None]
    assert logprobs == [each for turn in turns for each in turn.logprobs or ()]
    for row, example in zip(turns[-1].to_trl(), examples, strict=True):
        assert row["prompt_ids"] + row["completion_ids"] == list(example.ids)
        assert len(row["completion_ids"]) == len(row["env_mask"]) == len(row["logprobs"])


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=25, deadline=None)
@given(messages=conversations(TEXT, answered=False), answer=answers(TEXT), new=TEXT)
def test_an_answer_as_the_template_writes_it_gives_the_templates_next_prompt(
    name: str, messages: list[Any], answer: dict[str, Any], new: str
) -> None:
    """If the model writes what the template would, the next prompt is the template's text."""
    talk = conversation(name)
    try:
        written = talk.prompt([*messages, answer, {"role": "user", "content": new}], protect=())
        prompt = talk.prompt(messages, protect=())
    except asides.UsageError:
        assume(False)
    assume(written.text.startswith(prompt.text))
    ids = [
        id
        for id, each, message in zip(written.ids, written.sampled, written.message, strict=True)
        if each and message in (len(messages), len(messages) + 1)
    ]
    turn = prompt.add(ids)
    assume(turn.text == written.text[: len(turn.text)] and turn.stop)
    assume(turn.message.text == answer["content"])
    following = turn.next([{"role": "user", "content": new}])
    if following.broke is None:
        assert following.text == written.text


def test_random_ids_never_raise() -> None:
    chance = random.Random(5)
    for name in TEMPLATES:
        prompt = conversation(name).prompt([USER])
        for _ in range(10):
            turn = prompt.add([chance.randrange(450) for _ in range(30)])
            assert turn.next([MORE], keep=True).ids


@pytest.mark.parametrize("name", ["chatml", "glm", "harmony"])
def test_a_long_loop_is_not_rendered_again_and_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows an answer is the same without the messages before it; once that was seen, these are left out."""
    answers_of = {
        "chatml": CALL + "<|im_end|>",
        "glm": "\n<think></think>\n<tool_call>look\n<arg_key>place</arg_key>\n<arg_value>Ulm</arg_value>\n</tool_call><|observation|>",
        "harmony": '<|channel|>commentary to=functions.look <|constrain|>json<|message|>{"place": "Ulm"}<|call|>',
    }  # fmt: skip
    tools = asides.Conversation(
        tokenizer("bytes"),
        TEMPLATES[name],
        format=conversation(name).reading.format,
        bos_token="",
    )
    sizes: list[int] = []
    render = asides.Conversation._render

    def counted(self: asides.Conversation, messages: Any, generates: bool) -> Any:
        sizes.append(len(messages))
        return render(self, messages, generates)

    monkeypatch.setattr(asides.Conversation, "_render", counted)
    prompt = tools.prompt([{"role": "system", "content": "Be brief."}, USER])
    for number in range(12):
        turn = prompt.add(encode(answers_of[name]))
        assert turn.calls
        assert turn.calls[0].error is None
        sizes.clear()
        prompt = turn.next([{**RESULT, "content": f"found {number}"}])
        assert prompt.broke is None
        assert prompt.ids[: len(turn.ids)] == turn.ids
        whole = render(tools, prompt.messages, True).text
        ours = prompt.text[len(turn.text) :]
        assert whole.endswith(ours)
        assert prompt.message[len(turn.ids) :].count(len(prompt.messages) - 1) > 3
        assert len(prompt.kind) == len(prompt.ids)
    assert max(sizes) <= 4
    assert prompt.losses == tools.prompt(prompt.messages).losses
    # And all of it is there for a question, which shows whether anything before is written otherwise.
    sizes.clear()
    prompt.add(encode(answers_of[name])).next([MORE])
    assert max(sizes) > 24


INLINE = """\
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.role == 'assistant' and messages[-1].role == 'user' and '</think>' in m.content %}
{{- m.content.split('</think>')[-1].strip() }}
{%- else %}{{ m.content }}{% endif %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


@pytest.mark.parametrize("thought", ["in the answer", "before it"])
def test_a_thought_in_the_content_is_missed_after_many_turns_too(thought: str) -> None:
    """That nothing was dropped so far says nothing about the first thought."""
    talk = asides.Conversation(tokenizer("bytes"), INLINE, format="qwen3")
    assert not talk.takes_thinking
    prompt = talk.prompt([USER])
    for number in range(6):
        prompt = prompt.add(encode(f"{number}<|im_end|>")).next([{"role": "user", "content": f"And {number}?"}])
        assert prompt.broke is None
    turn = prompt.add(encode("<think>\nso\n</think>\n\nFour.<|im_end|>"))
    if thought == "before it":
        result = turn.next([{"role": "tool", "content": "found"}])
        assert result.broke is None
        turn = result.add(encode("Five.<|im_end|>"))
    broke = turn.next([MORE]).broke
    assert broke is not None
    assert broke.reason == ("thinking dropped" if thought == "in the answer" else "message changed")


def test_no_recursion_for_each_turn() -> None:
    """An agent may take more turns than Python has frames."""
    prompt = conversation("chatml").prompt([USER])
    for _ in range(60):
        prompt = prompt.add(encode(f"{CALL}<|im_end|>")).next([RESULT])
    turn = prompt.add(encode("So.<|im_end|>"))
    limit, depth = sys.getrecursionlimit(), len(inspect.stack(0))
    sys.setrecursionlimit(depth + 60)
    try:
        assert prompt.differs == 0
        assert len(turn.examples()) == 1
    finally:
        sys.setrecursionlimit(limit)


def test_what_closes_a_cut_answer_differs_from_nothing() -> None:
    turn = conversation("chatml").prompt([USER]).add(encode("<think>\nhm, so"), finish_reason="length")
    following = turn.next([MORE], keep=True)
    assert "</think>" in following.text
    assert following.differs == 0


def test_a_template_that_takes_arguments_as_text() -> None:
    template = TEMPLATES["chatml"].replace(
        "call.function.arguments if call.function.arguments is string else call.function.arguments | tojson",
        "call.function.arguments.strip()",
    )
    talk = asides.Conversation(tokenizer("bytes"), template, format="qwen3")
    following = talk.prompt([USER]).add(encode(f"{CALL}<|im_end|>")).next([RESULT])
    assert following.broke is None
    assert following.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"place":"Ulm"}'


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=25, deadline=None)
@given(messages=conversations(TEXT, answered=False), answer=answers(TEXT), data=st.data())
def test_a_cut_answer_is_closed_as_the_template_closes_it(
    name: str, messages: list[Any], answer: dict[str, Any], data: st.DataObject
) -> None:
    """Wherever sampling was cut: no id is lost, what closes is the prompt's, and is what the template writes there."""
    talk = conversation(name)
    try:
        prompt, whole = talk.prompt(messages, protect=()), talk.prompt([*messages, answer], protect=())
    except asides.UsageError:
        assume(False)
    assume(whole.ids[: len(prompt)] == prompt.ids)
    ids = [id for id, sampled in zip(whole.ids[len(prompt) :], whole.sampled[len(prompt) :], strict=True) if sampled]
    turn = prompt.add(ids[: data.draw(st.integers(0, len(ids)))], finish_reason="length")
    assume(not turn.stop)
    try:
        following = turn.next([MORE], keep=True)
        written = talk.prompt(following.messages, protect=()).text
    except asides.UsageError:  # some templates want a text where the model wrote none
        assume(False)
    if following.broke is not None:
        return
    assert following.ids[: len(turn.ids)] == turn.ids
    assert following.text.startswith(turn.text)
    assert not any(following.sampled[len(turn.ids) :])
    assert following.sampled[len(prompt) : len(turn.ids)] == (True,) * len(turn.sampled)
    (example,) = following.add(encode("x")).examples()
    assert [id for id, weight in zip(example.ids, example.weights, strict=True) if weight][: len(turn.sampled)] == [
        *turn.sampled
    ]
    words = following._whole.last_words(len(messages)) or 0
    if written.startswith(turn.text) and words <= len(turn.text):  # half a header may be read as words
        assert following.text == written
