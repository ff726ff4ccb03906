"""Against `renderers`: whose each token is, and which the model samples, for every family whose template is at hand.

Ids are compared first: where theirs are not the template's (`real_transformers.py` shows that ours are), there is
nothing to compare. Every token for which the owner or the mask differs has one of the reasons below, or the test fails.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module
from typing import Any

import pytest

from tests.hf.figures import check
from tests.oracles.comparing import PAGE, Answers, Ours
from tests.oracles.conversations import corpus, finished
from tests.oracles.peer_renderers import FAMILIES, NOT_COMPARED, family

pytestmark = pytest.mark.filterwarnings("ignore")  # those of transformers are theirs

TOOLS = "owner: definitions of tools and the words around them belong to no message here, there to the system's"
BEGIN = "owner: the token that begins a text belongs to no message here"
EMPTY = "owner: a system message without text is nobody's"
KEYWORD = "owner: a keyword of the template belongs to no message here, there to the system's"
FRAME = "owner: what the template says by itself before the first words is that message's header here, there nobody's"
NEXT = "owner: the marker of a result is the result's here, there the answer's, which stops at it"
SHARED = "owner: the end of a turn that two answers share is the one's with the last words here, there the empty one's"
NEXT_SAMPLED = "mask: the marker of a result is the result's here, there the answer's, which stops at it"
SUPPLIED = "mask: the prompt supplies it, so no model samples it"
NOT_SUPPLIED = "mask: the prompt does not supply it, so the model writes it"
WE_REFUSE = "bridge: only they go on"
THEY_REFUSE = "bridge: only we go on"
OTHER_BRIDGE = "bridge: other ids"
UNEXPLAINED = "unexplained"


@cache
def compared(name: str) -> Counter[str]:
    """How conversations and tokens of a family came out."""
    theirs, tokenizer, checkpoint = family(name)
    ours = Ours(tokenizer, protect=(), **FAMILIES[name].options)
    found: Counter[str] = Counter()
    for messages, tools in corpus(checkpoint.thinking, count=20):
        if any(isinstance(message["content"], list) for message in messages):
            continue
        prompt = ours.prompt(messages, tools)
        if prompt is None:
            continue
        asks = messages[-1]["role"] != "assistant"
        try:
            rendered = theirs.render(messages, tools=tools, add_generation_prompt=asks)
        except Exception:  # whatever a renderer raises for what its template writes
            found["they refuse"] += 1
            continue
        found["conversations"] += 1
        if list(prompt.ids) != list(rendered.token_ids):
            continue
        found["same ids"] += 1
        answers = Answers(ours, prompt, messages, tools)
        for at in range(len(prompt.ids)):
            found["tokens"] += 1
            owner, their_owner = prompt.message[at], rendered.message_indices[at]
            if (owner is None and their_owner == -1) or owner == their_owner:
                found["same owner"] += 1
            else:
                found[owner_reason(prompt, answers, tokenizer, messages, at, their_owner)] += 1
            if rendered.sampled_mask and prompt.sampled[at] == rendered.sampled_mask[at]:
                found["same mask"] += 1
            elif rendered.sampled_mask:
                found[mask_reason(prompt, answers, at)] += 1
    return found


def owner_reason(prompt: Any, answers: Answers, tokenizer: Any, messages: Any, at: int, theirs: int) -> str:
    if prompt.kind[at] == "tools" or (prompt.message[at] is None and prompt.conversation.tools):
        return TOOLS
    if at == 0 and prompt.ids[0] == tokenizer.bos_token_id:
        return BEGIN
    if prompt.message[at] is None and theirs == 0 and messages[0] == {"role": "system", "content": ""}:
        return EMPTY
    if prompt.message[at] is None and prompt.kind[at] == "system":
        return KEYWORD
    if prompt.message[at] == 0 and theirs == -1 and prompt.kind[at] in ("header", "marker"):
        return FRAME
    if theirs >= 0 and prompt.message[at] == theirs + 1 and prompt.kind[at] == "header" and answers.is_marker(at):
        return NEXT
    owners = [prompt.owners[each] for each in prompt.owner if each is not None]
    says = {owner.message for owner in owners if owner.part}
    if answers.is_marker(at) and prompt.sampled[at] and theirs not in says and messages[theirs]["role"] == "assistant":
        return SHARED
    return UNEXPLAINED


def mask_reason(prompt: Any, answers: Answers, at: int) -> str:
    owner = prompt.message[at]
    if owner is None:
        return UNEXPLAINED
    supplied = answers.is_supplied(at, owner)
    if supplied and not prompt.sampled[at]:
        return SUPPLIED
    if prompt.sampled[at] and not supplied:
        return NOT_SUPPLIED
    return NEXT_SAMPLED if prompt.kind[at] == "header" and answers.is_marker(at) else UNEXPLAINED


@cache
def bridged(name: str) -> Counter[str]:
    """The next prompt after an answer that was sampled, by both: extended with the same ids, or refused."""
    theirs, tokenizer, checkpoint = family(name)
    ours = Ours(tokenizer, protect=(), **FAMILIES[name].options)
    found: Counter[str] = Counter()
    for messages, tools in finished(checkpoint.thinking):
        answers = [at for at, message in enumerate(messages) if message["role"] == "assistant"]
        if len(answers) < 2 or any(isinstance(message["content"], list) for message in messages):
            continue
        first, second = answers[:2]
        prompt = ours.prompt(messages[:first], tools)
        whole = ours.prompt(messages[: first + 1], tools)
        if prompt is None or whole is None or whole.ids[: len(prompt)] != prompt.ids:
            continue
        sampled = [id for id, by_model in zip(whole.ids, whole.sampled, strict=True) if by_model][
            -len(whole) + len(prompt) :
        ]
        new = messages[first + 1 : second]
        extended = prompt.add(sampled).next(new)
        bridge = theirs.bridge_to_next_turn(list(prompt.ids), sampled, new, tools=tools)
        if bridge is None or extended.broke is not None:
            same = bridge is None and extended.broke is not None
            found["both refuse" if same else WE_REFUSE if bridge is not None else THEY_REFUSE] += 1
        else:
            same = list(bridge.token_ids) == list(extended.ids)
            found["same bridge" if same else OTHER_BRIDGE] += 1
    return found


OTHER_TEXT = {
    "laguna-xs-2.1": "it has a system message of its own, which the template at hand has not",
    "gpt-oss": "it opens the channel of thinking in the prompt, which the template does not",
}
"""Families whose ids are never the template's, so that owners cannot be compared."""


@pytest.mark.parametrize("name", FAMILIES)
def test_owners_and_masks(name: str) -> None:
    found = compared(name) + bridged(name)
    print(f"\n{name}: {dict(found)}")
    assert (found["same ids"] > 0) == (name not in OTHER_TEXT)
    assert not found[UNEXPLAINED]


def test_every_family_of_theirs_is_here_or_has_a_reason() -> None:
    base = import_module("renderers.base")
    base._populate_registry()
    assert set(base.RENDERER_REGISTRY) == {*FAMILIES, *NOT_COMPARED}


def rows(counted: dict[str, Counter[str]]) -> list[list[str | int]]:
    """The table of the page."""
    head: list[str | int] = ["family", "conversations", "same ids", "tokens", "same owner", "same mask"]
    head += ["same bridge", "both refuse", "only we", "only they", "other ids"]
    keys = ["conversations", "same ids", "tokens", "same owner", "same mask"]
    keys += ["same bridge", "both refuse", THEY_REFUSE, WE_REFUSE, OTHER_BRIDGE]
    lines: list[list[str | int]] = [head]
    for name, found in counted.items():
        lines.append([f"`{name}`", *(found[key] for key in keys)])
    return lines


def test_the_page_has_what_was_counted() -> None:
    counted = {name: compared(name) + bridged(name) for name in FAMILIES}
    check("renderers", ("transformers", "renderers"), rows(counted), PAGE)
