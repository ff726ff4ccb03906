"""The modes of reading, and the one table that says which follows which.

A mode is what the parser is in the middle of; its reader (`Parser` knows which) reads as far as it can and returns an
outcome. The rule: `NEXT` is the only thing that turns an outcome into a mode, and `Parser._run` is the only place
that looks it up. No reader names a mode, so where reading can go from anywhere is this page and nothing else.
docs/explanation/architecture.md draws the table.

What a mode does *not* say is whether prose is text or thinking: that is the table of markers in effect (`markers.py`),
because both are read alike and differ only in which markers act.
"""

from __future__ import annotations

from enum import Enum

from .members import members


class Mode(Enum):
    """What is being read."""

    BEGIN = "where a message may begin inside its header"
    HEADER = "a message's header"
    BARE_HEADER = "a header whose markers the server has left out"
    PROSE = "text or thinking, up to the next marker that acts"
    CALL = "a call, by its own grammar"
    DEAD = "after input that a call's grammar has rejected"
    AFTER_CALLS = "after complete calls that may be drafts"
    AFTER_STOP = "after a stop marker, where another turn may begin"
    BEYOND = "after the end of the turn, where nothing is read"

    __hash__ = object.__hash__  # members are singletons, and Enum's own hash is a Python function


class ReadOutcome(Enum):
    """What reading in a mode came to."""

    WAIT = "more input is needed"
    WAIT_FOR_WORDS = "more input is needed, and whitespace alone decides nothing"
    GO_ON = "something was decided; the mode stays"
    MARKER = "a marker has acted"
    STOPPED = "a stop marker has acted"
    TURN_OVER = "the header of another turn follows"
    TURN_GOES_ON = "no other turn begins here"
    HEADER = "a header begins"
    BARE_HEADER = "a header without markers begins"
    NO_HEADER = "there is no header here"
    MESSAGE = "the header has ended; text or thinking follows"
    CALL = "a call begins"
    CLOSED = "the calls have ended"
    CLOSED_MESSAGE = "the call has ended, and with it the message that it was"
    HELD = "the calls are complete; what follows decides whether they are drafts"
    CUT_OFF = "a call ended unfinished"
    REJECTED = "the grammar does not allow what follows"
    RECOVERED = "the call's closing marker was found, and more calls may follow"
    GIVEN_BACK = "it was no call, and is read again as text or thinking"
    REREAD = "everything is read again with another start"
    EXPIRED = "the limit has decided what the held events are; the mode stays"

    __hash__ = object.__hash__


Outcomes = members(ReadOutcome)

NEXT: dict[tuple[Mode, ReadOutcome], Mode] = {
    (Mode.BEGIN, ReadOutcome.HEADER): Mode.HEADER,
    (Mode.BEGIN, ReadOutcome.BARE_HEADER): Mode.BARE_HEADER,
    (Mode.BEGIN, ReadOutcome.NO_HEADER): Mode.PROSE,
    (Mode.BEGIN, ReadOutcome.EXPIRED): Mode.PROSE,
    (Mode.HEADER, ReadOutcome.BARE_HEADER): Mode.BARE_HEADER,
    (Mode.HEADER, ReadOutcome.NO_HEADER): Mode.PROSE,
    (Mode.HEADER, ReadOutcome.MESSAGE): Mode.PROSE,
    (Mode.HEADER, ReadOutcome.CALL): Mode.CALL,
    (Mode.HEADER, ReadOutcome.CUT_OFF): Mode.PROSE,
    (Mode.HEADER, ReadOutcome.EXPIRED): Mode.HEADER,
    (Mode.BARE_HEADER, ReadOutcome.NO_HEADER): Mode.PROSE,
    (Mode.BARE_HEADER, ReadOutcome.MESSAGE): Mode.PROSE,
    (Mode.BARE_HEADER, ReadOutcome.CALL): Mode.CALL,
    (Mode.BARE_HEADER, ReadOutcome.CUT_OFF): Mode.PROSE,
    (Mode.PROSE, ReadOutcome.MARKER): Mode.PROSE,
    (Mode.PROSE, ReadOutcome.STOPPED): Mode.AFTER_STOP,
    (Mode.PROSE, ReadOutcome.HEADER): Mode.HEADER,
    (Mode.PROSE, ReadOutcome.BARE_HEADER): Mode.BARE_HEADER,
    (Mode.PROSE, ReadOutcome.CALL): Mode.CALL,
    (Mode.PROSE, ReadOutcome.REREAD): Mode.PROSE,
    (Mode.PROSE, ReadOutcome.EXPIRED): Mode.PROSE,
    (Mode.CALL, ReadOutcome.GO_ON): Mode.CALL,
    (Mode.CALL, ReadOutcome.CLOSED): Mode.PROSE,
    (Mode.CALL, ReadOutcome.CLOSED_MESSAGE): Mode.BEGIN,
    (Mode.CALL, ReadOutcome.HELD): Mode.AFTER_CALLS,
    (Mode.CALL, ReadOutcome.CUT_OFF): Mode.PROSE,
    (Mode.CALL, ReadOutcome.REJECTED): Mode.DEAD,
    (Mode.CALL, ReadOutcome.GIVEN_BACK): Mode.PROSE,
    (Mode.CALL, ReadOutcome.EXPIRED): Mode.CALL,
    (Mode.DEAD, ReadOutcome.RECOVERED): Mode.CALL,
    (Mode.DEAD, ReadOutcome.CLOSED): Mode.PROSE,
    (Mode.DEAD, ReadOutcome.GIVEN_BACK): Mode.PROSE,
    (Mode.DEAD, ReadOutcome.EXPIRED): Mode.DEAD,
    (Mode.AFTER_CALLS, ReadOutcome.GO_ON): Mode.AFTER_CALLS,
    (Mode.AFTER_CALLS, ReadOutcome.CALL): Mode.CALL,
    (Mode.AFTER_CALLS, ReadOutcome.CLOSED): Mode.PROSE,
    (Mode.AFTER_CALLS, ReadOutcome.GIVEN_BACK): Mode.PROSE,
    (Mode.AFTER_CALLS, ReadOutcome.EXPIRED): Mode.AFTER_CALLS,
    (Mode.AFTER_STOP, ReadOutcome.TURN_OVER): Mode.BEYOND,
    (Mode.AFTER_STOP, ReadOutcome.TURN_GOES_ON): Mode.PROSE,
}
"""Every step there is. A pair that is missing is a defect; the two that wait are in none, because nothing happened."""
