"""A file beside a plain dict: whatever is kept, kept again, purged and reopened, in any order, they agree."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from asides import _history as history
from asides._history import KeptReply, ReplyFilter
from tests.history.generated import STEADY
from tests.history.samples import START, record

WORDS = st.sampled_from(["alpha", "beta", "gamma", "Alphabet", "质数", "\0", "\ud800", '"', "AND"])
TEXTS = st.one_of(st.lists(WORDS, max_size=4).map(" ".join), st.text(st.characters(exclude_categories=()), max_size=20))
REPLIES = st.builds(
    lambda seconds, model, text, thoughts, asked: record(
        time=START.replace(second=seconds),
        model=model,
        text=text,
        thoughts=[
            {"index": index, "text": thought, "complete": index % 2 == 0} for index, thought in enumerate(thoughts)
        ],
        asked=[{"role": "user", "text": turn} for turn in asked],
    ),
    st.integers(0, 9),
    st.sampled_from(["m", "n"]),
    TEXTS,
    st.lists(TEXTS, max_size=3),
    st.lists(TEXTS, max_size=1),
)


class Keeping(RuleBasedStateMachine):
    """The store against what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="asides-"))
        self.store = history.open(str(self.folder / "h.db"))
        self.held: dict[str, KeptReply] = {}

    def teardown(self) -> None:
        """Nothing is left."""
        problems = [problem for step in self.store.verify() for problem in step.problems]
        self.store.close()
        shutil.rmtree(self.folder)
        assert problems == []

    @rule(replies=st.lists(REPLIES, max_size=4))
    def add(self, replies: list[KeptReply]) -> None:
        """Write a batch, in which some may be there already or come twice."""
        new = {reply.id: reply for reply in replies if reply.id not in self.held}
        assert self.store.add(replies) == len(new)
        self.held |= new

    @rule(model=st.sampled_from(["m", "n", "*", "x"]), pattern=st.sampled_from([None, "a", "\0", "."]))
    def purge(self, model: str, pattern: str | None) -> None:
        """Delete some."""
        compiled = re.compile(pattern) if pattern else None
        steps = list(self.store.purge(ReplyFilter(models=(model,)), compiled))
        gone = {
            id
            for id, reply in self.held.items()
            if model in ("*", reply.reply.model) and (compiled is None or any(map(compiled.search, texts(reply))))
        }
        assert (steps[-1].replies if steps else 0) == len(gone)
        self.held = {id: reply for id, reply in self.held.items() if id not in gone}

    @rule()
    def reopen(self) -> None:
        """Close and open again."""
        self.store.close()
        self.store = history.open(str(self.folder / "h.db"), create=False)

    @rule(word=st.sampled_from(["alpha", "beta", "gamma"]))
    def search(self, word: str) -> None:
        """A whole word is found exactly where it stands."""
        found = {(hit.reply, hit.thought) for hit in self.store.search(f'"{word}"', limit=1000).hits}
        pattern = re.compile(rf"(?<![^\W_]){word}(?![^\W_])", re.IGNORECASE)
        assert found == {
            (id, number)
            for id, reply in self.held.items()
            for number, thought in enumerate(reply.thoughts, 1)
            if pattern.search(thought.text)
        }

    @invariant()
    def the_same(self) -> None:
        """Every reply comes back as it was."""
        assert {reply.id: reply for reply in self.store.replies()} == self.held


def texts(reply: KeptReply) -> list[Any]:
    """Where a purge looks."""
    return [reply.reply.text, *(thought.text for thought in reply.thoughts), *(turn.text for turn in reply.asked)]


TestKeeping = Keeping.TestCase
TestKeeping.settings = settings(STEADY, max_examples=15, stateful_step_count=12)
