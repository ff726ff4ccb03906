"""Judges a reply whose raw text is known: what a script said beside what the server made of it.

Whitespace is not compared: servers differ in how much of it they leave at markers, and nobody is hurt by that. What is
compared is who gets which words: a thought's in the answer are leaked, an answer's in a thought are lost, a call that
is not among the calls is lost, and one that may be run though the model did not make it is the worst of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from .._engine.format import END
from ..families import get_format
from ..parts import Text, Thinking
from ._manifest import ParrotScript
from ._scripts import read_script
from ._verdicts import CODES, GROUPS
from ._wire import Answer, AnsweredCall, decode

WINDOW = 12
"""So many characters of a thought in the answer, or fewer where the thought is shorter, are a leak."""


class Reference(NamedTuple):
    """What must be read from a script."""

    thoughts: tuple[str, ...]
    """Without whitespace, as all texts here."""
    texts: tuple[str, ...]
    calls: tuple[tuple[str, Any], ...]
    """Name and arguments of those that may be run."""
    broken: bool
    """Whether there are others."""


def reference_of(script: ParrotScript) -> Reference:
    """What a script's manifest says."""
    calls = [part for part in script.parts if "call" in part]
    runnable = [part for part in calls if not part.get("error") and part.get("complete", True)]
    return Reference(
        tuple(_squashed(part["thinking"]) for part in script.parts if "thinking" in part),
        tuple(_squashed(part["text"]) for part in script.parts if "text" in part),
        tuple((part["call"], decode(part.get("arguments", ""))) for part in runnable),
        len(runnable) < len(calls),
    )


def judge_script(script: ParrotScript, answer: Answer) -> list[tuple[str, str]]:
    """What is wrong with the reply, the worst first; nothing where it is right.

    One that shows the model was kept from saying the script gives `not_sayable`, one that reads a mention as a marker
    `marker_reading`.
    """
    if not answer.fine and not (answer.arrival.status == 200 and answer.streamed and answer.text):
        return [("server_error", _failure(answer))]
    found = _compare(script, reference_of(script), answer)
    if found and _off_script(script, answer):
        counted = answer.usage.output_tokens if answer.usage else 0
        return [("not_sayable", f"the script has {len(script.ids)} tokens, the server counted {counted}")]
    literal = _as_markers(script) if found else None
    if literal is not None and not _compare(script, literal, _unmarked(script, answer)):
        return [("marker_reading", found[0][1])]
    return sorted(found, key=lambda each: GROUPS.index(CODES[each[0]].group))


def _failure(answer: Answer) -> str:
    failed = answer.failed.message if answer.failed is not None else answer.arrival.error
    return f"status {answer.arrival.status}: {failed}"


def _compare(script: ParrotScript, right: Reference, answer: Answer) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    thinking, text = _squashed(answer.thinking), _squashed(answer.text)
    found += _compare_calls(right, answer.calls)
    added = _without(text, right.texts)
    if added is None:
        swallowed = any(each in thinking and each not in text for each in right.texts)
        found.append(("text_in_thought" if swallowed else "text_missing", f"the answer is {answer.text[:200]!r}"))
        added = ""
        for leaked in right.thoughts:
            added += leaked if leaked in text else ""
    if added and not _explained(script, right, added):
        found.append(_added(script, right, added, answer))
    surplus = _without(thinking, right.thoughts)
    if surplus is None:
        if not any(code == "thought_in_text" for code, _ in found):
            found.append(("thought_missing", f"the thought is {answer.thinking[:200]!r}"))
    elif surplus and not any(code == "text_in_thought" for code, _ in found):
        stop = next((stop for stop in _stops(script) if _squashed(stop) in surplus), "")
        if stop:
            found.append(("stop_in_output", f"{stop} is in the thought"))
        elif not right.broken and not any(code == "call_missing" for code, _ in found):
            found.append(("text_added", f"the thought has {surplus[:200]!r} besides"))
    return found


def _compare_calls(right: Reference, calls: list[AnsweredCall]) -> list[tuple[str, str]]:
    left = [(call.name, decode(call.arguments)) for call in calls if call.runnable]
    missing = []
    for call in right.calls:
        if call in left:
            left.remove(call)
        else:
            missing.append(call)
    found = []
    for name, arguments in missing:
        changed = next((call for call in left if call[0] == name), None)
        if changed is not None:
            left.remove(changed)
            found.append(("call_changed", f"{name} has {changed[1]}, not {arguments}"))
        else:
            found.append(("call_missing", f"{name} with {arguments} is missing"))
    return found + [("call_not_said", f"{name} with {arguments}") for name, arguments in left]


def _explained(script: ParrotScript, right: Reference, added: str) -> bool:
    """Whether what is in the answer besides is the text of a call that may not be run: it may stand there."""
    return right.broken and added in _squashed(script.raw)


def _added(script: ParrotScript, right: Reference, added: str, answer: Answer) -> tuple[str, str]:
    """What the words are that the answer has besides."""
    detail = f"the answer is {answer.text[:200]!r}"
    if any(_shares(added, thought) for thought in right.thoughts):
        return "thought_in_text", detail
    if any(_squashed(stop) in added for stop in _stops(script)):
        return "stop_in_output", detail
    if right.calls and any(str(name) in added for name, _ in right.calls):
        return "call_in_text", detail
    if added in _squashed(script.raw):
        return "marker_in_text", detail
    return "text_added", detail


def _shares(added: str, thought: str) -> bool:
    size = min(WINDOW, len(thought))
    windows = {thought[at : at + size] for at in range(len(thought) - size + 1)}
    return any(added[at : at + size] in windows for at in range(len(added) - size + 1))


def _without(text: str, parts: tuple[str, ...]) -> str | None:
    """A text without these parts of it, which come in this order; None where one is missing."""
    left, at = "", 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return None
        left, at = left + text[at:found], found + len(part)
    return left + text[at:]


def _off_script(script: ParrotScript, answer: Answer) -> bool:
    """Whether the model did not say the script: it wrote more tokens, or was stopped before its end."""
    if answer.usage is None or not answer.usage.output_tokens:
        return False
    return answer.usage.output_tokens not in (len(script.ids), len(script.ids) + 1)


def _as_markers(script: ParrotScript) -> Reference | None:
    """The reading in which every marker acts, quoted or not; None where it is the same."""
    message = read_script(
        script.raw, get_format(script.format), script.start, script.tools, script.ended, mentions="marker"
    )
    runnable = [call for call in message.tool_calls if call.error is None]
    literal = Reference(
        tuple(_squashed(part.text) for part in message.parts if isinstance(part, Thinking)),
        tuple(_squashed(part.text) for part in message.parts if isinstance(part, Text)),
        tuple((call.name, decode(call.arguments)) for call in runnable),
        len(runnable) < len(message.tool_calls),
    )
    return None if literal == reference_of(script) else literal


def _unmarked(script: ParrotScript, answer: Answer) -> Answer:
    """The reply without markers of thoughts that are left in its text: for who reads every marker they are strays."""
    text = answer.text
    for state in get_format(script.format).states.values():
        for marker in state:
            text = text.replace(marker, "")
    return msgspec.structs.replace(answer, text=text)


def _stops(script: ParrotScript) -> set[str]:
    states = get_format(script.format).states.values()
    return {marker for state in states for marker, after in state.items() if after == END}


def _squashed(text: str) -> str:
    return "".join(text.split())
