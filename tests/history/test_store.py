"""What every store does, the file and the server alike."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import msgspec
import pytest

import asides
from asides import _history as history
from asides._history import History, HistoryError, ReplyFilter, chat_message, text_turn
from asides._history.records import ThoughtRow, calls_of
from asides.parts import Part
from asides.reply._items import Usage
from asides.reply._reply import Reply, Times
from tests.history.samples import HOSTILE, QUERIES, START, asked, parsed, record, reply


def without_spans(reply: Reply) -> tuple[Part, ...]:
    """The parts as they are kept: the raw text is not, so where they stood in it means nothing."""
    return tuple(msgspec.structs.replace(part, span=(0, 0)) for part in reply.parts)


def test_a_message_comes_back_whole(store: History) -> None:
    """Everything that is known of a reply is there again, the thoughts beside the clean text."""
    whole = parsed(times=Times(0.5, 1.5, 2.5, (1.25,)), reason="stop", usage=Usage(3, 4, 2), id="chatcmpl-1")
    kept = store.keep(
        whole,
        model="Qwen3-8B",
        source="filter",
        agent="helper",
        conversation="talk",
        format="qwen3",
        time=START,
        asked=asked("Which?"),
    )
    found = store.reply(kept)
    assert found.reply.text == "It is 7."
    assert found.thoughts == [ThoughtRow(0, "First thought.\nIs it a prime?", True, 1.25)]
    assert [(call.name, call.arguments) for call in found.reply.tool_calls] == [("find", '{"q": "seven"}')]
    assert (found.reply.model, found.source, found.agent) == ("Qwen3-8B", "filter", "helper")
    assert (found.time, found.conversation, found.format, found.asked) == (START, "talk", "qwen3", asked("Which?"))
    assert found.reply == msgspec.structs.replace(whole, parts=without_spans(whole), model="Qwen3-8B")
    assert found.id == kept == found.named().id


def test_oddities_are_kept(store: History) -> None:
    """Notices and a thought that was cut off are told again."""
    odd = parsed("<think>a</think>b</think>c<think>cut")
    found = store.reply(store.keep(odd))
    assert found.reply.notices == odd.notices
    assert found.reply.termination == "cut"
    assert [thought.complete for thought in found.thoughts] == [True, False]


@pytest.mark.parametrize(
    "raw",
    [
        "plain",
        "<think>a</think>b<|im_end|>",
        "<think>a</think>b <think>c</think> d</think>e",
        'b<tool_call>{"name": "f", "arguments": {}}</tool_call>c<think>d</think>e',
        '<think>a</think>b<tool_call>{"name": "f", "arguments": [}</tool_call>c',
        '<tool_call>{"name": "f", "arguments": {"x"',
        "a<think>b</think>a<think>b</think>a",
        "",
    ],
)
@pytest.mark.parametrize("whitespace", ["tidy", "exact"])
def test_a_reply_is_kept_as_it_is(store: History, raw: str, whitespace: Any) -> None:
    """Parts in their order, broken calls with what was written, notices, joined texts, how it ended."""
    whole = Reply.of(asides.parse(raw, format="qwen3", whitespace=whitespace))
    found = store.reply(store.keep(whole))
    assert found.reply == msgspec.structs.replace(whole, parts=without_spans(whole))
    assert found.named() == found


def test_writing_twice_changes_nothing(store: History) -> None:
    """The hash of the content is the key."""
    one, two = reply("thought"), reply("thought", after=1)
    assert store.add([one, two, one]) == 2
    assert store.add([two, one]) == 0
    assert store.count() == history.StoreCounts(2, 2)


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text[:12]))
def test_any_text_comes_back(store: History, text: str) -> None:
    """No text is refused or changed, wherever it stands; the store stays sound and can be purged."""
    wanted = record(
        text=text,
        thoughts=[{"index": 0, "text": text}, {"index": 1, "text": "plain words"}],
        asked=[{"role": "user", "text": text}],
        notices=[{"code": "odd", "message": text[:50], "offset": 3}],
        calls=[{"name": text[:50], "arguments": text}],
    )
    store.add([wanted])
    assert store.reply(wanted.id) == wanted
    assert not [problem for step in store.verify() for problem in step.problems]
    assert store.search("plain").hits[0].thought == 2
    assert [step.replies for step in store.purge()] == [1]
    assert not store.search("plain").hits
    assert not [problem for step in store.verify() for problem in step.problems]


def test_any_label_can_be_kept(store: History) -> None:
    """A model's name is not ours either."""
    for text in (text[:100] for text in HOSTILE):
        kept = store.keep(parsed(), model=text, agent=text, conversation=text, format=text)
        assert store.reply(kept).id == kept
    assert not [problem for step in store.verify() for problem in step.problems]


def test_the_memory_of_a_conversation_is_clean(store: History) -> None:
    """Turns come in the order of time, with clean text, calls that may be run, and not one thought."""
    store.add([reply("secret two", answer="Second.", after=60, conversation="talk", asked=asked("More?"))])
    store.add([reply("secret other", answer="Other.", conversation="other")])
    store.keep(parsed(), conversation="talk", time=START, asked=asked("Which?"))
    turns = store.conversation("talk")
    assert [(turn.role, turn.text) for turn in turns] == [
        ("user", "Which?"),
        ("assistant", "It is 7."),
        ("user", "More?"),
        ("assistant", "Second."),
    ]
    assert "secret" not in str(turns)
    assert "thought" not in str(turns)
    assert chat_message(turns[1])["tool_calls"][0]["function"] == {"name": "find", "arguments": '{"q": "seven"}'}
    assert store.conversation("nobody") == []


def test_a_broken_call_is_kept_but_not_remembered(store: History) -> None:
    """What may not be run does not go back to a model."""
    cut = parsed('<tool_call>\n{"name": "find", "argum')
    found = store.reply(store.keep(cut, conversation="talk"))
    assert found.reply.tool_calls[0].error == "incomplete"
    assert calls_of(store.conversation("talk")[0]) == []


def test_what_the_model_said_comes_from_its_message(store: History) -> None:
    """An assistant's turn cannot be smuggled in, thoughts and all."""
    with pytest.raises(asides.UsageError, match="own replies"):
        store.keep(parsed(), asked=(text_turn("assistant", "<think>x</think>y"),))


def test_choosing(store: History) -> None:
    """Replies are chosen by time, model, source, agent and conversation; models without case and with wildcards."""
    store.add(
        [
            reply("one", model="Qwen3-8B", source="run", agent="a"),
            reply("two", model="qwen3_8b", source="filter", after=60),
            reply("three", model="r1", source="gateway", after=120, conversation="c"),
        ]
    )

    def chosen(**fields: object) -> list[str]:
        return [found.thoughts[0].text for found in store.replies(ReplyFilter(**fields))]  # type: ignore[arg-type]  # any field

    minute = timedelta(minutes=1)
    assert chosen() == ["one", "two", "three"]
    assert chosen(since=START + minute) == ["two", "three"]
    assert chosen(until=START + minute) == ["one"]
    assert chosen(since=START + minute, until=START + 2 * minute) == ["two"]
    assert chosen(models=("QWEN*",)) == ["one", "two"]
    assert chosen(models=("qwen3_8b",)) == ["two"]
    assert chosen(models=("r?", "qwen3-8b")) == ["one", "three"]
    assert chosen(sources=("run", "gateway")) == ["one", "three"]
    assert chosen(agent="A") == ["one"]
    assert chosen(conversation="c") == ["three"]
    assert chosen(models=("%",)) == []
    assert [found.thoughts[0].text for found in store.newest(limit=2)] == ["three", "two"]
    assert store.count(ReplyFilter(models=("qwen*",))) == history.StoreCounts(2, 2)
    assert [hit.model for hit in store.search("two", ReplyFilter(sources=("filter",))).hits] == ["qwen3_8b"]
    assert [hit.model for hit in store.search("three", ReplyFilter(since=START + minute)).hits] == ["r1"]
    assert not store.search("three", ReplyFilter(until=START + minute)).hits
    assert not store.search("three", ReplyFilter(since=START + 9 * minute)).hits


def test_finding_by_words(store: History) -> None:
    """Whole words, beginnings, several words, phrases, accents, and languages without spaces."""
    store.add(
        [
            reply("Plants need photosynthesis to grow."),
            reply("The café is closed; this word is whole: photo.", after=1),
            reply("这个数是质数吗？我想是的。", after=2),
            reply("nothing", "a second thought of\nphotons", after=3),
        ]
    )

    def found(query: str) -> list[tuple[int, str]]:
        return [(hit.thought, hit.snippet.text) for hit in store.search(query).hits]

    assert [text for _, text in found("photosyn")] == ["Plants need photosynthesis to grow."]
    # A whole word comes before words that only begin so.
    assert found("PHOTO")[0][1].startswith("The café")
    assert len(found("photo")) == 3
    assert len(found("cafe")) == len(found("CAFÉ")) == 1
    assert len(found("质数")) == 1
    assert not found("数质")
    assert len(found('"word is whole"')) == 1
    assert not found('"whole is word"')
    assert not found('"photosyn"')
    assert len(found("grow plants")) == 1
    assert not found("grow café")
    assert found("photons") == [(2, "a second thought of photons")]
    hit = store.search("photons").hits[0]
    assert hit.snippet.line == 2
    assert [hit.snippet.text[start:end] for start, end in hit.snippet.marks] == ["photons"]


def test_no_query_is_an_error(store: History) -> None:
    """What means something to a database means nothing here."""
    store.add([reply("don't panic: 3.14, a@b.c, http://a.b/c?d=e and __a__")])
    for query in QUERIES:
        store.search(query)
        store.search(query, ReplyFilter(since=START, models=("*",)))


def test_what_stands_there_is_found(store: History) -> None:
    """A piece copied from a thought finds it, signs and all."""
    store.add([reply("don't panic: 3.14, a@b.c, http://a.b/c?d=e and __a__")])
    for query in ("don't", "3.14", "a@b.c", "http://a.b/c?d=e", "__a__", "PANIC:", "d=e"):
        assert len(store.search(query).hits) == 1, query


def test_very_many_hits_come_newest_first(store: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that is everywhere is not ranked, and the result says so."""
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"asides._history.{module}.MOST_RANKED", 3)
    store.add([reply(f"common {number}", after=number) for number in range(10)])
    found = store.search("common", limit=2)
    assert not found.ranked
    assert [hit.snippet.text for hit in found.hits] == ["common 9", "common 8"]
    assert store.search("7").ranked


def test_a_reply_by_the_beginning_of_its_id(store: History) -> None:
    """An id may be cut short; what names none, or several, is an error in words."""
    replies = [reply("x", after=number) for number in range(20)]
    store.add(replies)
    assert store.reply(replies[3].id[:12].upper()) == replies[3]
    with pytest.raises(HistoryError, match="there is no reply"):
        store.reply("0" * 32)
    with pytest.raises(HistoryError, match="is no id"):
        store.reply("x'; --")
    first = {found.id[0] for found in replies}
    twice = next(letter for letter in first if sum(found.id.startswith(letter) for found in replies) > 1)
    with pytest.raises(HistoryError, match="several"):
        store.reply(twice)


def test_many_replies_are_read_in_pages(store: History) -> None:
    """More than a page comes in the order of writing, and reading can go on after any reply."""
    replies = [reply(f"thought {number}", after=number) for number in range(450)]
    store.add(replies)
    assert [found.id for found in store.replies()] == [made.id for made in replies]
    rest = [found.id for found in store.replies(after=replies[300].id)]
    assert rest == [made.id for made in replies[301:]]
    assert sum(1 for _ in store.verify()) == 4


def test_accents_are_no_hindrance(store: History) -> None:
    """Written in one character, in two or not at all, in the query as in the thought."""
    store.add([reply("Wir prüfen das im Cafe\u0301.")])
    for query in ("prufen", "prüfen", "pru\u0308fen", "PRU\u0308F", "café", "cafe", "cafe\u0301"):
        (hit,) = store.search(query).hits
        assert [hit.snippet.text[start:end].lower()[:2] for start, end in hit.snippet.marks] == [query.lower()[:2]]


def test_purging(store: History) -> None:
    """What matches goes with its thoughts and its words; a dry run only counts; the rest stays sound."""
    store.add(
        [reply("my password is hunter2"), reply("harmless", answer="hunter2 it is", after=1), reply("stays", after=2)]
    )
    pattern = re.compile("hunter2")
    assert list(store.purge(match=pattern, dry_run=True))[-1] == history.PurgeProgress(3, 2, 2)
    assert store.count().replies == 3
    assert list(store.purge(match=pattern))[-1] == history.PurgeProgress(3, 2, 2)
    store.compact()
    assert [found.thoughts[0].text for found in store.replies()] == ["stays"]
    assert not store.search("hunter2").hits
    assert not [problem for step in store.verify() for problem in step.problems]
    assert list(store.purge(ReplyFilter(until=START))) == []


def test_a_secret_goes_wherever_it_stands(store: History) -> None:
    """What a user asked, a tool answered or a call was given is kept too, and purged by the same pattern."""
    store.add(
        [
            reply("a", asked=asked("My password is hunter2.")),
            reply(
                "b", after=1, answer='<tool_call>\n{"name": "log_in", "arguments": {"word": "hunter2"}}\n</tool_call>'
            ),
            reply("c", after=2, asked=[text_turn("tool", "It is hunter2.", call_id="1")]),
            reply("d", after=3, asked=asked("Nothing secret.")),
        ]
    )
    assert list(store.purge(match=re.compile("hunter2")))[-1].replies == 3
    assert [found.thoughts[0].text for found in store.replies()] == ["d"]


def test_what_was_purged_can_be_kept_again(store: History) -> None:
    """Deleting leaves nothing that stands in the way."""
    store.add([reply("again")])
    assert list(store.purge())[-1].replies == 1
    assert store.add([reply("again")]) == 1
    assert len(store.search("again").hits) == 1


def test_figures(store: History) -> None:
    """Counts by model and source."""
    store.add([reply("abc", "de", model="m"), reply(model="m", after=5), reply("x", model="n", source="filter")])
    shares = store.stats()
    assert [(share.model, share.source, share.replies, share.thoughts, share.characters) for share in shares] == [
        ("m", "run", 2, 2, 5),
        ("n", "filter", 1, 1, 1),
    ]
    assert (shares[0].first, shares[0].last) == (START, START + timedelta(seconds=5))
    assert store.size() > 0


def test_all_or_none(store: History) -> None:
    """A batch that cannot be written leaves nothing of itself."""
    broken = msgspec.structs.replace(reply("bad", after=1), source=object())
    with pytest.raises(HistoryError):
        store.add([reply("good"), broken])
    assert store.count().replies == 0
    assert store.add([reply("good")]) == 1


def test_a_store_that_is_not_there(address: str) -> None:
    """Who only reads makes nothing, and is told where nothing was."""
    with pytest.raises(HistoryError, match="there is no history"):
        history.open(address, create=False)
    with history.open(address) as made:
        made.add([reply("x")])
    with history.open(address, create=False) as opened:
        assert opened.count().replies == 1
