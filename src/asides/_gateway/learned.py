"""What replies have shown of where a model's output begins, for requests to come. `asides.reading` has the rules.

Kept by upstream, model and thinking asked for. A reply shows nothing that is read as somebody chose, that goes on with
a prompt or with a turn that the client began, or that a grammar holds to a form: its start is not the model's own.
With several workers, what one has learned is told to the others.

What is more than a guess (a start or a format that somebody chose, a prompt, a template, an exact name) is not
overruled by replies. One that contradicts it is reported in the log, once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from ..dialects._request import Request
from ..events import Notice, PartStart
from ..policies import Start
from ..reading import Reading, Seen, SeenReplies, Shown, shown_by
from ..reply._fold import Fold
from .bounded import BoundedDict
from .model_profile import MOST_MODELS

log = logging.getLogger("asides.gateway")

Key = tuple[str, str, bool | None]
"""Upstream, model, and whether thinking was asked for."""
_GRAMMARS = frozenset(
    {"grammar", "guided_json", "guided_regex", "guided_choice", "guided_grammar", "structured_outputs"}
)
"""Fields of requests that hold a reply to a form."""
_THINK = {None: "", False: "off", True: "on"}
_ASKED = {None: "", False: " without thinking", True: " with thinking"}
_GUESSES = frozenset({"name", "seen", "near", "format"})
"""Evidence that what replies show may count more than."""


class Learned:
    """The memory of one gateway."""

    def __init__(self, on_change: Callable[[Key, Seen], None] = lambda key, seen: None) -> None:
        self._seen = SeenReplies()
        self._contradicted: BoundedDict[Key, bool] = BoundedDict(MOST_MODELS)
        self._on_change = on_change

    def get(self, upstream: str, model: str, think: bool | None) -> Seen | None:
        """What was seen; None where nothing was."""
        return self._seen.get((upstream, model, think))

    def add(self, upstream: str, request: Request, reading: Reading, fold: Fold, source: str) -> None:
        """Take what a reply shows. `source`: who sent it; two of one are not believed against what was seen."""
        key = (upstream, reading.model, request.thinking.think)
        if not _is_free(request):
            return
        shown = shown_by(fold, reading.begins.start)
        learned: Seen | None = None
        if not _is_guess(request, reading):
            self._contradict(key, reading, shown)
        elif request.prompt is None:
            learned = self._seen.add(key, shown, source)
        if request.prompt is None and reading.format_evidence == "name" and reading.format.header is None:
            learned = self._seen.add_foreign(key, _foreign_family(fold), source) or learned
        if learned is not None:
            words = _in_words(learned)
            log.info("learned from replies of %r at %s%s: %s", key[1][:200], upstream, _ASKED[key[2]], words)
            self._on_change(key, learned)

    def _contradict(self, key: Key, reading: Reading, shown: Shown | None) -> None:
        """Report a reply that began otherwise than something says that is not overruled."""
        began = reading.begins.start
        if (began, shown) not in _CONTRADICTIONS or key in self._contradicted:
            return
        self._contradicted[key] = True
        name, found = key[1][:200], _CONTRADICTIONS[began, shown]
        reason = f"a reply{_ASKED[key[2]]} was read from {began} on, because {reading.reason[:200]}; but {found}"
        log.warning("%r at %s: %s. See `start` and `format` in its settings", name, key[0], reason)

    def forget(self, upstream: str, model: str) -> None:
        """Forget what was seen of a model, where the server has changed."""
        for think in _THINK:
            self._seen.forget((upstream, model, think))

    def load(self, upstream: str, model: str, think: str, start: str, foreign: str) -> None:
        """Take over what another worker has learned, as `as_texts` gives it."""
        asked = next(value for value, name in _THINK.items() if name == think)
        begins: Start | None = "thinking" if start == "thinking" else "text" if start == "text" else None
        self._seen.load((upstream, model, asked), Seen(start=begins, replies=1, foreign=bool(foreign)))


def as_texts(key: Key, seen: Seen) -> tuple[str, str, str, str, str]:
    """What was learned, for another worker."""
    return key[0], key[1], _THINK[key[2]], seen.start or "", "1" if seen.foreign else ""


_CONTRADICTIONS: dict[tuple[Start | None, Shown | None], str] = {
    ("text", "thinking"): "it closed a thought that it had not opened",
    ("thinking", "silent"): "it ended without closing its thought, as an answer alone does",
}
"""Where a reply was read from, what it showed, and that in words."""


def _is_free(request: Request) -> bool:
    """Whether the model itself decided where its reply begins."""
    continued = bool(request.turns) and request.turns[-1].role == "assistant"
    held = request.response_format is not None or not _GRAMMARS.isdisjoint(request.extra)
    return not continued and not held


def _is_guess(request: Request, reading: Reading) -> bool:
    """Whether what replies show may say it better. An exact name is no guess, but who asks for no thinking may be
    thought for all the same."""
    if reading.format_evidence == "option" or reading.evidence not in _GUESSES:
        return False
    return not reading.sure or request.thinking.think is False


def _foreign_family(fold: Fold) -> str:
    """The foreign marker of a reply that holds none of its own, as the notice words it; empty where there is none."""
    if any(isinstance(event, PartStart) and event.kind == "thinking" for event in fold.head):
        return ""
    found = (event.message for event in fold.head if isinstance(event, Notice) and event.code == "foreign_marker")
    return next(found, "")


def _in_words(seen: Seen) -> str:
    words = []
    if seen.start is not None:
        words.append(f"output begins in {'a thought' if seen.start == 'thinking' else 'text'}")
    if seen.foreign:
        words.append("its markers are not those of its name, so they are found while reading")
    return "; ".join(words)
