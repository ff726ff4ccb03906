"""Experiments with fields of messages: what a template drops, changes or refuses, each as one finding in words.

Every experiment writes a small conversation twice, once as templates like it and once with the field in question
another way, and compares. Nothing is read off the source of the template but whether it asks for the date.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._engine.format import thinking_pair
from ..detect._markers import TAG
from ..errors import UsageError
from ._prompt import Prompt
from ._report_subject import (
    ARGUMENTS,
    ARGUMENTS_TEXT,
    QUESTION,
    RESULT,
    SECOND,
    THOUGHT,
    WORDS,
    FieldFinding,
    Message,
    Subject,
    make_answer,
)
from ._template import common_length

ROLE_NAMES = {"system": "system texts", "user": "questions", "assistant": "answers", "tool": "results"}


def find_fields(subject: Subject) -> list[FieldFinding]:
    """Everything that was found, what is lost first."""
    found = [
        *_thoughts(subject),
        *_system(subject),
        *_parts(subject),
        *_whitespace(subject),
        *_calls(subject),
        *_questions(subject),
        *_unknown(subject),
    ]
    return sorted(found, key=lambda finding: not finding.lossy)


def listed(words: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def shown(text: str, most: int = 60) -> str:
    """A text of a template in a sentence."""
    text = text.replace("\n", "↵")
    return f"“{text}”" if len(text) <= most else f"“{text[: most - 12]}…{text[-11:]}”"


# Thoughts.


def _thoughts(subject: Subject) -> Iterator[FieldFinding]:
    field, lead = subject.field, subject.lead
    at = len(lead)
    cases = {
        "the last answer": subject.keeps([*lead, make_answer(field)], at, field),
        "answers before a new question": subject.keeps([*lead, make_answer(field), SECOND], at, field),
    }
    if subject.takes_calls:
        loop = [*lead, subject.call(), RESULT]
        cases["calls whose result comes next"] = subject.keeps(loop, at, field, tools=True)
        later = [*loop, make_answer(field), SECOND]
        cases["calls before a new question"] = subject.keeps(later, at, field, tools=True)
    kept = [case for case, written in cases.items() if written]
    dropped = [case for case, written in cases.items() if written is False]
    name = f"thoughts ({field})"
    if not kept and subject.plain.reading.thinks is False:
        return
    if not kept:
        says = f"Thoughts in a field of their own ({field}) are never written.{_inline(subject)}"
        yield FieldFinding(about=name, lossy=True, says=says)
    elif dropped:
        says = (
            f"Thoughts ({field}) are left out of {_turns(dropped, 'of')}; they are written for {_turns(kept, 'for')}."
        )
        yield FieldFinding(about=name, lossy=True, says=says)
    else:
        yield FieldFinding(about=name, lossy=False, says=f"Thoughts ({field}) are written for every turn.")


def _turns(cases: list[str], word: str) -> str:
    both = [f"{kind} before a new question" for kind in ("answers", "calls")]
    if all(each in cases for each in both):
        cases = [*(case for case in cases if case not in both), "answers and calls before a new question"]
    return listed([case if not at else f"{word} {case}" for at, case in enumerate(cases)])


def _inline(subject: Subject) -> str:
    """What becomes of a thought inside the content."""
    opener, closer = thinking_pair(subject.plain.reading.format)
    if not closer:
        return ""
    answer = make_answer("", f"{opener}\n{THOUGHT}\n{closer}\n\n{WORDS}")
    try:
        last, earlier = (
            THOUGHT in subject.write([*subject.lead, answer, *more]).text for more in ((), (SECOND,))
        )  # fmt: skip
    except UsageError:
        return ""
    inside = f" Inside the content, between {opener} and {closer}, they are"
    if last and earlier:
        return f"{inside} kept."
    if last:
        return f"{inside} kept in the last answer and cut out of earlier ones."
    return f"{inside} cut out of every answer."


# The system.


def _system(subject: Subject) -> Iterator[FieldFinding]:
    none = subject.empty_prompt
    own = _own_text(none, QUESTION["content"])
    if own:
        always = subject.takes_system and own.splitlines()[0] in subject.write(subject.lead).text
        when = "Before the conversation" if always else "Without a system text"
        what = "a text" if always else "one"
        yield FieldFinding(
            about="own text", lossy=False, says=f"{when} the template writes {what} of its own: {shown(own)}."
        )
        own = "" if always else own
    if "strftime_now" in subject.plain.template:
        says = "The template asks for the current date, so a prompt may change from one day to the next."
        yield FieldFinding(about="date", lossy=True, says=says)
    if not subject.takes_system:
        error = subject.error([{"role": "system", "content": "Be kind."}, QUESTION])
        yield FieldFinding(about="system text", lossy=True, says=f"A system text is refused: {error}")
        return
    if subject.keeps([{"role": "system", "content": "Be kind."}, QUESTION], 0, "content") is False:
        yield FieldFinding(about="system text", lossy=True, says="A system text is left out.")
        return
    empty: list[Message] = [{"role": "system", "content": ""}, QUESTION]
    if error := subject.error(empty):
        yield FieldFinding(about="empty system text", lossy=True, says=f"An empty system text is refused: {error}")
        return
    text = subject.write(empty).text
    if text == none.text:
        as_none = "counts as none: the template's own text is written" if own else "is left out, as if there were none"
        yield FieldFinding(about="empty system text", lossy=True, says=f"An empty system text {as_none}.")
    elif own and own not in text:
        says = "An empty system text takes the place of the template's own."
        yield FieldFinding(about="empty system text", lossy=False, says=says)
    else:
        says = f"For an empty system text the template still writes {shown(_inserted(none.text, text))}."
        yield FieldFinding(about="empty system text", lossy=False, says=says)


def _inserted(short: str, long: str) -> str:
    """What a text has that another has not, at one place."""
    start = common_length(short, long)
    rest = common_length(short[start:][::-1], long[start:][::-1])
    stop = len(long) - rest
    # The same letters may stand before and at the end of it; a marker is whole where it begins.
    while start and stop > start and long[start - 1] == long[stop - 1]:
        start, stop = start - 1, stop - 1
    return long[start:stop]


def _own_text(prompt: Prompt, question: str) -> str:
    """The words that a template writes by itself before the first question, without markers and roles."""
    before = prompt.text.partition(question)[0]
    for stop in prompt.conversation.stops:
        before = before.replace(stop, "\n")
    lines = [line.strip() for line in re.sub(TAG, "\n", before).splitlines()]
    words = [line for line in lines if re.search(r"\w{2}", line) and len(line.split()) > 1]
    return "\n".join(words)


# Content.


def _variants(subject: Subject, change: Any) -> Iterator[tuple[str, str, list[Message], bool, int]]:
    """For each role a conversation in which the content of one message of it is changed."""
    lead, at = subject.lead, len(subject.lead)
    places: list[tuple[str, list[Message], int, bool]] = [
        ("user", [*lead], at - 1, False),
        ("assistant", [*lead, make_answer(""), SECOND], at, False),
    ]
    if subject.takes_system:
        places.insert(0, ("system", [*lead], 0, False))
    if subject.takes_calls:
        places.append(("tool", [*lead, subject.call(""), RESULT], at + 1, True))
    for role, messages, index, tools in places:
        words = str(messages[index]["content"])
        changed = [*messages]
        changed[index] = {**messages[index], "content": change(words)}
        yield role, words, changed, tools, index


def _parts(subject: Subject) -> Iterator[FieldFinding]:
    if subject.plain.takes_only_parts:
        says = "Content has to be a list of parts, [{'type': 'text', …}]; a text alone is left out or refused."
        yield FieldFinding(about="content as parts", lossy=True, says=says)
        return
    outcomes: dict[str, list[str]] = {}
    for role, words, messages, tools, index in _variants(subject, lambda words: [{"type": "text", "text": words}]):
        outcome = "taken"
        try:
            text = subject.write(messages, tools=tools).text
            plain = [*messages]
            plain[index] = {**messages[index], "content": words}
            if text != subject.write(plain, tools=tools).text:
                outcome = "written otherwise than the same text alone"
                if "'type': 'text'" in text:
                    outcome = "printed in Python's notation ([{'type': 'text', …}])"
                elif '"type": "text"' in text or '"type":"text"' in text:
                    outcome = "printed as JSON"
                elif words not in text:
                    outcome = "dropped"
        except UsageError:
            outcome = "refused"
        outcomes.setdefault(outcome, []).append(ROLE_NAMES[role])
    taken = outcomes.pop("taken", [])
    lost = [f"{outcome} for {listed(roles)}" for outcome, roles in outcomes.items()]
    said = [*lost, *([f"taken for {listed(taken)}"] if taken else [])]
    yield FieldFinding(
        about="content as parts",
        lossy=bool(lost),
        says=f"Content given as a list of text parts is {'; '.join(said)}.",
    )


def _whitespace(subject: Subject) -> Iterator[FieldFinding]:
    trimmed: list[str] = []
    for role, words, messages, tools, _ in _variants(subject, lambda words: f"\n  {words}  \n"):
        try:
            text = subject.write(messages, tools=tools).text
        except UsageError:
            continue
        # As it is, or as JSON writes it.
        if f"\n  {words}  \n" not in text and f"\\n  {words}  \\n" not in text and words in text:
            trimmed.append(ROLE_NAMES[role])
    if trimmed:
        says = f"Whitespace at the edges of {listed(trimmed)} is cut off."
        yield FieldFinding(about="whitespace", lossy=True, says=says)


# Calls.


def _calls(subject: Subject) -> Iterator[FieldFinding]:
    at = len(subject.lead)
    if subject.needs_tools:
        says = f"Without tools every conversation is refused: {subject.needs_tools}"
        yield FieldFinding(about="no tools", lossy=True, says=says)
    if not subject.takes_calls:
        if subject.call_error:
            says = f"A call and its result are refused: {subject.call_error}"
        else:
            messages = [*subject.lead, subject.call(""), RESULT]
            written = {
                "calls": subject.keeps(messages, at, "tool_calls.0.function.name", tools=True),
                "results of tools": subject.keeps(messages, at + 1, "content", tools=True),
            }
            missing = listed([name for name, is_written in written.items() if not is_written])
            says = f"{missing.capitalize()} are left out, without an error."
        yield FieldFinding(about="calls", lossy=True, says=says)
        return
    yield from _definitions(subject)
    yield from _arguments(subject)
    words = "I look it up."
    messages = [*subject.lead, subject.call("", content=words), RESULT]
    if subject.keeps(messages, at, "tool_calls.0.function.name", tools=True) is False:
        says = "A call beside text is left out; it is written only where the content is null or empty."
        yield FieldFinding(about="text beside a call", lossy=True, says=says)
    elif subject.keeps(messages, at, "content", tools=True) is False:
        yield FieldFinding(about="text beside a call", lossy=True, says="The text of an answer that calls is left out.")
    if subject.beside_call is None:
        says = "A call is written only where the content is null; beside an empty text it is left out."
        yield FieldFinding(about="null content", lossy=True, says=says)
    null = [*subject.lead, subject.call("", content=None), RESULT]
    error = subject.error(null, tools=True)
    if error:
        says = f"A call whose content is null is refused (null counts as absent, as in transformers): {error}"
        yield FieldFinding(about="null content", lossy=True, says=says)
    elif re.search(r"\bNone\b", subject.write(null, tools=True).text):
        says = "A call whose content is null is written with the word None; give an empty text."
        yield FieldFinding(about="null content", lossy=True, says=says)
    fields = (
        (at, "tool_calls.0.id", "ids of calls"),
        (at + 1, "tool_call_id", "ids of results"),
        (at + 1, "name", "names of results"),
    )
    left = [name for index, part, name in fields if subject.keeps(messages, index, part, tools=True) is False]
    if left:
        order = ": only their order shows which result is whose" if len(left) == len(fields) else ""
        yield FieldFinding(about="ids and names", lossy=False, says=f"Not written: {listed(left)}{order}.")


def _definitions(subject: Subject) -> Iterator[FieldFinding]:
    prompt = subject.write(subject.lead, tools=True)
    lost = {loss.owner.part for loss in prompt.losses if loss.owner.message is None and loss.reason == "not written"}
    if "tools.0.function.name" in lost:
        says = "Definitions of tools are not written, though calls are."
        yield FieldFinding(about="tools", lossy=True, says=says)
        return
    names = {
        "tools.0.function.description": "its description",
        "tools.0.function.parameters.properties.city.description": "the descriptions of its parameters",
    }
    left = [name for part, name in names.items() if part in lost]
    if left:
        says = f"Of a tool's definition {listed(left)} {'is' if left == ['its description'] else 'are'} not written."
        yield FieldFinding(about="tools", lossy=True, says=says)


def _arguments(subject: Subject) -> Iterator[FieldFinding]:
    name = "arguments of calls"
    written: dict[str, str] = {}
    for kind, arguments in (("object", ARGUMENTS), ("text", ARGUMENTS_TEXT)):
        try:
            messages = [*subject.lead, subject.call("", arguments=arguments), RESULT]
            written[kind] = subject.write(messages, tools=True).text
        except UsageError:
            continue
    escaped = '{\\"city\\"'
    if "{'city'" in written.get("object", ""):
        says = "Arguments of calls that are an object are printed in Python's notation; give JSON text."
    elif "text" not in written:
        says = "Arguments of calls have to be an object; JSON text is refused."
    elif "object" not in written:
        says = "Arguments of calls have to be JSON text; an object is refused."
    elif written["object"] == written["text"]:
        yield FieldFinding(about=name, lossy=False, says="Arguments of calls may be an object or JSON text.")
        return
    elif escaped in written["text"] and escaped not in written["object"]:
        says = "Arguments of calls have to be an object: JSON text is put in quotes a second time."
    elif "Rome" not in written["text"]:
        says = "Arguments of calls have to be an object: JSON text is left out."
    else:
        says = "Arguments of calls given as an object and as JSON text are written differently."
    yield FieldFinding(about=name, lossy=True, says=says)


# Order, and what cannot be known.


def _questions(subject: Subject) -> Iterator[FieldFinding]:
    if error := subject.error([*subject.lead, SECOND]):
        yield FieldFinding(about="two questions", lossy=True, says=f"Two questions in a row are refused: {error}")


def _unknown(subject: Subject) -> Iterator[FieldFinding]:
    """Texts that are there, and of which a filter has lost whose they are."""
    try:
        tools = subject.takes_calls
        loop = [subject.call(), RESULT] if tools else []
        prompt = subject.write([*subject.lead, *loop, make_answer(subject.field), SECOND], tools=tools)
    except UsageError:
        return
    for loss in prompt.losses:
        if loss.reason not in ("not written", "written in part"):
            whose = f"message {loss.owner.message}" if loss.owner.message is not None else "the tools"
            says = f"Of {loss.owner.part} of {whose} it is not known where it is written: {loss.reason}."
            yield FieldFinding(about="origin", lossy=True, says=says)
            return
