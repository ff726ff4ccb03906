"""Lists of replies and conversations page by page, and the search through answers, in both stores."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from asides import parse
from asides._history import History, HistoryError, ReplyFilter, text_turn
from asides._history import listing as listing_module
from asides._history import store as store_module
from tests.history.samples import reply

START = datetime(2026, 1, 1, tzinfo=UTC)


def fill(store: History, count: int = 6) -> list[str]:
    """Replies of two conversations in turn, two at the same moment each."""
    return [
        store.keep(
            parse(f"<think>thought {number}</think>Answer {number}: Café\0 {'x' * number}"),
            model=f"m{number % 3}",
            time=START + timedelta(minutes=number // 2),
            conversation=f"c{number % 2}",
            client=f"k{number % 2}",
            asked=[text_turn("user", f"question {number}"), text_turn("tool", "result")],
        )
        for number in range(count)
    ]


def test_pages_hold_each_reply_once(store: History) -> None:
    """Newest first, also where two are of one moment."""
    ids = fill(store)
    first = store.overview(limit=3)
    rest = store.overview(before=first[-1].place, limit=10)
    assert [reply.id for reply in (*first, *rest)] == ids[::-1]
    newest = first[0]
    assert (newest.question, newest.thoughts, newest.text) == ("question 5", 1, "Answer 5: Café\0 xxxxx")
    assert [reply.id for reply in store.overview(ReplyFilter(client="k1"))] == ids[5::-2]
    assert [reply.id for reply in store.overview_of([ids[3], ids[0], "0" * 32])] == [ids[3], ids[0]]
    assert store.overview_of([ids[3]], ReplyFilter(client="k0")) == []
    assert [reply.id for reply in store.newest(ReplyFilter(id=ids[2]))] == [ids[2]]


def test_latest(store: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole replies, newest first, over several pages."""
    monkeypatch.setattr(store_module, "PAGE", 2)
    ids = fill(store, 7)
    assert [reply.id for reply in store.latest()] == ids[::-1]
    assert [reply.thoughts[0].text for reply in store.latest(ReplyFilter(client="k1"))] == [
        "thought 5",
        "thought 3",
        "thought 1",
    ]


def test_conversations(store: History) -> None:
    """By their last reply, with their first question."""
    fill(store)
    store.keep(parse("alone"), model="m")
    (first,) = store.conversations(limit=1)
    (second,) = store.conversations(before=first.place, limit=5)
    assert (first.id, first.question, first.model, first.replies) == ("c1", "question 1", "m2", 3)
    assert (second.id, second.first, second.last) == ("c0", START, START + timedelta(minutes=2))
    assert store.conversations(before=second.place) == []
    assert [each.id for each in store.conversations(ReplyFilter(client="k0"))] == ["c0"]


def test_labels(store: History) -> None:
    """What there is, and nothing where there is nothing."""
    assert store.labels().replies == 0
    assert store.labels().first is None
    fill(store)
    found = store.labels(ReplyFilter(models=("m0", "m1")))
    assert (found.models, found.clients, found.replies) == (("m0", "m1"), ("k0", "k1"), 4)
    assert (found.first, found.last) == (START, START + timedelta(minutes=2))


def test_answers_are_searched(store: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without case and accents, by prefixes, over more than are read at once, and with a deadline that is reported."""
    monkeypatch.setattr(listing_module, "SEARCHED_AT_ONCE", 2)
    ids = fill(store)
    assert [hit.reply for hit in store.search_answers("cafe answ").hits] == ids[::-1]
    assert [hit.reply for hit in store.search_answers('"answer 3"').hits] == [ids[3]]
    assert [hit.reply for hit in store.search_answers("CAFÉ", ReplyFilter(client="k1"), limit=2).hits] == [
        ids[5],
        ids[3],
    ]
    assert store.search_answers("thought").hits == ()
    assert store.search_answers("fé").hits == ()
    assert store.search_answers("  ").hits == ()
    hit = store.search_answers("café 4").hits
    assert [hit[0].snippet.text[start:end] for start, end in hit[0].snippet.marks] == ["4", "Café"]
    assert store.search_answers("answer 0", seconds=100).whole
    ended = store.search_answers('"answer 0"', seconds=-1)
    assert (ended.hits, ended.whole) == ((), False)


def test_lengths_of_thoughts(store: History) -> None:
    """Summed for each reply that has some."""
    store.add([reply("abc", "defg"), reply(after=1), reply("质数", after=2)])
    listed = store.overview()
    lengths = store.thought_lengths([each.place[1] for each in listed])
    assert [lengths.get(each.place[1], 0) for each in listed] == [2, 0, 7]
    assert store.thought_lengths([]) == {}


def test_a_conversation_by_the_beginning_of_its_id(store: History) -> None:
    """The whole id comes first, whatever begins with it; what no or several ids begin with is an error."""
    store.add(
        [reply(after=place, conversation=id) for place, id in enumerate(("ab", "abc", "abd", "x%_y", "质数", ""))]
    )
    for written, id in (("ab", "ab"), ("abc", "abc"), ("x", "x%_y"), ("质", "质数")):
        assert store.find_conversation(written) == id
    for written, message in (("a", "several conversations"), ("%", "no conversation"), ("", "no conversation")):
        with pytest.raises(HistoryError, match=message):
            store.find_conversation(written)
