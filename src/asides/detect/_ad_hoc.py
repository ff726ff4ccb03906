"""A format for markers that no registered format has, made from what a template writes around a needle.

Knows how to build one and checks that it reads back what the template wrote; a format that does not is not given out.
"""

from __future__ import annotations

import re

from .._engine.calls.syntax import CallSyntax
from .._engine.format import TEXT, THINKING, Format
from ..errors import UsageError
from ..families._auto_markers import MARKERS
from ._evidence import Evidence
from ._markers import TAG, counterparts
from ._trial import RenderedTurn, header_of, reads

MOST = 80
"""Characters that a marker may have."""


def around(turn: RenderedTurn, prompt: str) -> tuple[str, str]:
    """The markers on both sides of a turn's thought; the first is empty where nothing opens it."""
    before, _, after = turn.written.partition(turn.thought)
    after = after.partition(turn.answer)[0] if turn.answer else after
    tag = re.search(TAG + r"\s*\Z", before)
    header = header_of(before, prompt)
    opener = before[len(header) :].strip()
    if not opener or len(opener) > MOST:
        # The prompt may hold the opener too, and then the header seems to end behind it.
        opener = tag[0].strip() if tag is not None and _closed(tag[0].strip(), after) else ""
    tag = re.match(r"\s*" + TAG, after)
    closer = tag[0].strip() if tag is not None else after.strip().partition("\n")[0].strip()
    return opener, closer if len(closer) <= MOST else ""


def _opens_turn(opener: str, closer: str, turn: RenderedTurn) -> bool:
    """Whether a pair is that of the whole turn, as in `<assistant>` and `</assistant>`, and not that of a thought."""
    before, _, behind = turn.written.partition(turn.answer)
    return closer in behind or (opener in before and closer not in before.rpartition(opener)[2])


def _closed(opener: str, after: str) -> bool:
    return any(counterpart in after for counterpart in counterparts(opener))


def opened(prompt: str, source: str, turns: list[RenderedTurn]) -> tuple[str, str] | None:
    """The pair whose opener ends a prompt and whose closer the template's source names, if there is one."""
    tag = re.search(TAG + r"\s*\Z", prompt)
    if tag is None:
        return None
    opener = tag[0].strip()
    for closer in counterparts(opener):
        if closer in source and not any(_opens_turn(opener, closer, turn) for turn in turns if turn.answer):
            return opener, closer
    return None


def make(opener: str, closer: str, seen: Evidence, calls: tuple[CallSyntax, ...] | None = None) -> Format | None:
    """A format with these markers that reads all that the template writes, or None."""
    if not closer:
        return None
    prompt = seen.prompts[0].written if seen.prompts else ""
    answered = [turn for turn in seen.turns if turn.answer]
    thoughtful = [turn for turn in answered if turn.thought]
    wrappers, stops = _frame(next(iter(thoughtful or answered), None), closer)
    header = _header(opener, answered[0], prompt, seen.user_end) if answered else ""
    try:
        format = Format.tags(
            opener or (),
            closer,
            name=opener or closer,
            source="made by detection from a chat template",
            start=TEXT if opener else THINKING,
            wrappers=wrappers,
            # A template shows the end of a turn, not every stop token of the model.
            stops=(*stops, *(stop for stop in MARKERS.stops if stop not in stops)),
            calls=MARKERS.syntaxes if calls is None else calls,
            assistant=(header,) if header.strip() else (),
        )
    except UsageError:  # markers that cannot be told apart
        return None
    # Made from one turn and tried on all of them: what fits one by chance does not read back the others.
    return format if all(reads(format, turn, prompt) for turn in thoughtful) else None


def _header(opener: str, turn: RenderedTurn, prompt: str, user_end: str) -> str:
    """What opens the assistant's turn: behind the end of the user's, and before the opener."""
    header = header_of(turn.written.partition(turn.answer)[0], prompt)
    if user_end != header and header.startswith(user_end):
        header = header[len(user_end) :]
    return header.rstrip()[: -len(opener)] if opener and header.rstrip().endswith(opener) else header


def _frame(turn: RenderedTurn | None, closer: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What stands around the answer and means nothing, and what ends the turn."""
    if turn is None:
        return (), ()
    before = turn.written.partition(turn.answer)[0].rpartition(closer)[2] if turn.thought else ""
    wrappers = re.findall(TAG, before)
    closing = [counterpart for wrapper in wrappers for counterpart in counterparts(wrapper)]
    behind = re.findall(TAG, turn.written.partition(turn.answer)[2])
    wrappers += [tag for tag in behind if tag in closing]
    ends = [tag for tag in behind if tag not in closing]
    return tuple(dict.fromkeys(wrappers)), tuple(ends[:1])
