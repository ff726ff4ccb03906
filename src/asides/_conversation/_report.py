"""A report on a chat template: what it writes, what it leaves out, whether prompts extend, what a model samples.

A sample conversation is written by `Conversation`, so the report says of a template what the library does with it. What
the template makes of fields is tried in `_report_fields`, a training template compared in `_report_twin`. Where the
template is from, and the process that this runs in, is for others (`_report_process`).

    report = study(conversation, characters=False, counted="ids by tokenizer.json", twin=None)
    report.conversation[0]    # OriginStretch(text="<|im_start|>system\\n", origin="template", ...)
    report.next_prompts[1]    # NextPrompt(case="a new question", extends=False, reason="thinking dropped", ...)
"""

from __future__ import annotations

import msgspec

from .._engine.format import thinking_pair
from ..errors import UsageError
from ._conversation import Conversation
from ._layout import Kind
from ._prompt import Prompt
from ._report_fields import find_fields
from ._report_subject import (
    RESULT,
    SECOND,
    Message,
    NextPrompt,
    Origin,
    OriginStretch,
    Subject,
    TemplateReport,
    make_answer,
    token_spans,
)
from ._report_twin import compare_twin


def study(
    conversation: Conversation, *, characters: bool, counted: str, twin: tuple[str, str] | None
) -> TemplateReport:
    """The report on a conversation's template. `twin`: the name and source of a training template."""
    subject = Subject(conversation, characters)
    thinks = any(thinking_pair(conversation.reading.format)) or conversation.reading.thinks is not False
    field = subject.field if thinks else ""
    conversation = subject.plain
    prompt = _sample(subject, field)
    sampled = [(text, own) for text, own in zip(_texts(prompt), prompt.sampled, strict=True) if own]
    words = "".join(text for text, _ in sampled)
    return TemplateReport(
        unit="character" if characters else "token",
        counted=counted,
        template=len(conversation.template),
        format=conversation.reading.format.name,
        messages=[dict(message) for message in prompt.messages],
        tools=prompt.conversation.tools is not None,
        conversation=stretches(prompt),
        findings=find_fields(subject),
        next_prompts=_next_prompts(subject, field),
        asks=conversation._ask(subject.lead, ()).own,
        stops=list(conversation.stops),
        after_stop=_after_stop(prompt),
        total=subject.size(prompt.text, prompt.ids),
        sampled=len(words) if characters else len(sampled),
        twin=compare_twin(subject, *twin, field) if twin is not None else None,
    )


# The conversation.


def _sample(subject: Subject, field: str) -> Prompt:
    """The conversation that is shown: as much of it as the template takes."""
    lead, answered = subject.lead, [make_answer(field), SECOND]
    if subject.takes_calls:
        with_calls = [*lead, subject.call(field), RESULT, *answered]
        if not subject.error(with_calls, tools=True):
            return subject.write(with_calls, tools=True)
    messages = [*lead, *answered]
    return subject.write(lead if subject.error(messages) else messages)


def _texts(prompt: Prompt) -> list[str]:
    return [prompt.text[start:stop] for start, stop in token_spans(prompt)]


def _origin(kind: Kind, sampled: bool) -> Origin:
    if kind == "header" or kind == "marker":
        return "marker" if sampled else "template"
    return kind


def stretches(prompt: Prompt) -> list[OriginStretch]:
    """A written conversation, one entry for neighbours of the same origin."""
    found: list[OriginStretch] = []
    owners = (prompt.owners[each] if each is not None else None for each in prompt.owner)
    for text, owner, kind, sampled in zip(_texts(prompt), owners, prompt.kind, prompt.sampled, strict=True):
        origin = _origin(kind, sampled)
        words = origin not in ("marker", "template")
        message = owner.message if owner is not None and (words or sampled) else None
        # Of definitions of tools and of calls only that they are some, not which leaf of them.
        part = owner.part if owner is not None and words else ""
        part = part.partition(".")[0] if origin in ("tools", "call") else part
        last = found[-1] if found else None
        if len(found) > 1 and _is_between(found[-2], found[-1], origin, message, sampled):
            first, between = found[-2], found.pop()
            last = found[-1] = msgspec.structs.replace(first, text=first.text + between.text)
        if last is not None and (last.origin, last.message, last.sampled) == (origin, message, sampled):
            found[-1] = msgspec.structs.replace(last, text=last.text + text, part=last.part or part)
        else:
            found.append(OriginStretch(text=text, origin=origin, message=message, part=part, sampled=sampled))
    return found


def _is_between(
    first: OriginStretch, between: OriginStretch, origin: Origin, message: int | None, sampled: bool
) -> bool:
    """Whether a stretch is what a template writes inside of words that go on after it: punctuation of JSON, or what
    stands between the words of a tool's definition."""
    same = (first.origin, first.message, first.sampled) == (origin, message, sampled)
    inside = origin == "tools" or (len(between.text) < 8 and not any(map(str.isalnum, between.text)))
    return same and between.origin == "template" and inside


def _after_stop(prompt: Prompt) -> str:
    """What the template writes of an answer's message after what the model samples of it."""
    texts = _texts(prompt)
    for at in range(1, len(texts)):
        owner = prompt.message[at]
        if prompt.sampled[at - 1] and not prompt.sampled[at] and owner == prompt.message[at - 1] is not None:
            end = at
            while end < len(texts) and prompt.message[end] == owner and not prompt.sampled[end]:
                end += 1
            rest = "".join(texts[at:end])
            if texts[at - 1] in prompt.conversation.stops or rest.strip() in prompt.conversation._vocabulary.added:
                return rest
    return ""


# The next prompt.


def _next_prompts(subject: Subject, field: str) -> list[NextPrompt]:
    """What becomes of the ids so far when a result comes, when a question comes, and with thinking off."""
    lead, plain, tooled = subject.lead, subject.plain, subject.tooled
    found: list[NextPrompt | None] = []
    if subject.takes_calls:
        call = subject.call(field)
        found.append(_next(subject, tooled, "a tool's result", lead, call, [RESULT]))
    found.append(_next(subject, plain, "a new question", lead, make_answer(field), [SECOND]))
    if subject.takes_calls:
        before = [*lead, subject.call(field), RESULT]
        found.append(_next(subject, tooled, "a new question after calls", before, make_answer(field), [SECOND]))
    switch = subject.plain.reading.switch
    if switch is not None and switch.keyword and switch.off is not None and switch.keyword in plain.template:
        off = plain.but(**{switch.keyword: switch.off})
        case = f"a new question, {switch.keyword}={switch.off}"
        found.append(_next(subject, off, case, lead, make_answer(""), [SECOND]))
    return [each for each in found if each is not None]


def _next(
    subject: Subject, conversation: Conversation, case: str, before: list[Message], answer: Message, new: list[Message]
) -> NextPrompt | None:
    try:
        answer, new = subject.shaped(answer), [*map(subject.shaped, new)]
        prompt = conversation.prompt([*map(subject.shaped, before)])
        turn = prompt.add(_sampled_ids(conversation, prompt, answer))
        following = turn.next(new)
    except UsageError:
        return None  # refused; the findings say so
    if following.broke is None:
        return NextPrompt(case=case, extends=True)
    reason, message, offset, _ = following.broke
    same = subject.size(conversation.text(turn.ids[:offset]), turn.ids[:offset])
    return NextPrompt(
        case=case,
        extends=False,
        reason=reason,
        message=message,
        whose=_whose(following, message, len(before)),
        offset=same,
        lost=subject.size(turn.text, turn.ids) - same,
    )


def _whose(prompt: Prompt, message: int | None, answer: int) -> str:
    if message is None:
        return ""
    role = str(prompt.messages[message]["role"])
    names = {"assistant": "an earlier answer", "tool": "a result", "user": "a question", "system": "the system text"}
    return "that answer" if message == answer else names.get(role, f"a message of {role}")


def _sampled_ids(conversation: Conversation, prompt: Prompt, answer: Message) -> list[int]:
    """What a model would have sampled for an answer: as the template writes it as the last message."""
    written = conversation.prompt([*prompt.messages, answer], add_generation_prompt=False)
    index = len(prompt.messages)
    rows = zip(written.ids, written.message, written.sampled, strict=True)
    ids = [id for id, message, sampled in rows if sampled and message == index]
    thought = next((answer[name] for name in ("reasoning_content", "reasoning") if name in answer), "")
    opener, closer = thinking_pair(conversation.reading.format)
    if not thought or not closer or thought in conversation.text(ids):
        return ids
    # The template leaves the thought out even here; the model thinks all the same.
    opened = prompt.text.rstrip().endswith(opener)
    text = f"{'' if opened else opener}\n{thought}\n{closer}\n\n"
    return [*conversation._encoder.encode(text, (), conversation._lead).ids, *ids]
