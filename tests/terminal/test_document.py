"""The viewer's rows: walking, hiding, searching, clicking, in small and large replies. No terminal is needed."""

from __future__ import annotations

import asides
from asides.events import PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta
from asides.terminal._document import Document
from asides.terminal._viewer import Viewer

REPLY = (
    "<think>one two three four five six</think>Some answer."
    '<think>second\nthought</think>More.<tool_call>{"name": "find", "arguments": {"q": 1}}</tool_call>'
)


def document_of(text: str, *, shown: bool = False) -> Document:
    document = Document(shown=shown)
    parser = asides.Parser("qwen3", collect=False)
    document.feed(parser.feed(text))
    document.feed(parser.finish())
    return document


def seen(viewer: Viewer, width: int = 40, height: int = 20) -> list[str]:
    return ["".join(fragment[1] for fragment in row).rstrip() for row in viewer.draw(width, height)]


def test_thoughts_are_lines_that_open() -> None:
    """Enter acts on the selected thought; `a` on all."""
    viewer = Viewer(document_of(REPLY), name="x")
    closed = [
        "▸ Thinking 1 (27 characters) [show]",
        "",
        "Some answer.",
        "",
        "▸ Thinking 2 (14 characters) [show]",
        "",
        "More.",
        "",
        'call find {"q": 1}',
    ]
    assert seen(viewer) == closed
    viewer.step(1)
    viewer.toggle()
    assert seen(viewer)[4:8] == ["▾ Thinking 2 (14 characters) [hide]", "  second", "  thought", ""]
    viewer.toggle_all()
    assert seen(viewer, width=20)[:4] == [
        "▾ Thinking 1 (27 characters) [hide]",
        "  one two three four",
        "  five six",
        "",
    ]
    viewer.toggle_all()
    assert seen(viewer) == closed


def test_a_click_on_a_heading_opens_it() -> None:
    """A click elsewhere does nothing."""
    viewer = Viewer(document_of(REPLY), name="x")
    before = seen(viewer)
    viewer.click(2)
    viewer.click(400)
    assert seen(viewer) == before
    viewer.click(4)
    assert "  thought" in seen(viewer)


def test_every_row_is_reached_going_down_and_up() -> None:
    """Walking row by row passes the same rows in both directions."""
    document = document_of(REPLY, shown=True)
    place = document.start()
    places = [place]
    while (place := document.walk(place, 1, 12)) != places[-1]:
        places.append(place)
    assert places[-1] == document.end(12)
    assert places == sorted(places)
    for index, start in enumerate(places):
        assert document.walk(start, -index, 12) == places[0]
        assert document.walk(places[0], index, 12) == start


def test_scrolling_stops_at_the_ends() -> None:
    """The last screen is full, and the first begins with the first row."""
    viewer = Viewer(document_of(REPLY, shown=True), name="x")
    rows = seen(viewer, height=50)
    seen(viewer, height=5)
    viewer.end()
    assert seen(viewer, height=5) == rows[-5:]
    viewer.scroll(3)
    assert seen(viewer, height=5) == rows[-5:]
    viewer.page(-100)
    assert seen(viewer, height=5) == rows[:5]


def test_what_enter_acts_on_is_on_the_screen() -> None:
    """After scrolling away the selected thought is one that can be seen."""
    viewer = Viewer(document_of(REPLY), name="x")
    seen(viewer, height=3)
    viewer.scroll(4)
    assert seen(viewer, height=3)[0].startswith("▸ Thinking 2")
    viewer.toggle()
    assert seen(viewer, height=3) == ["▾ Thinking 2 (14 characters) [hide]", "  second", "  thought"]


def test_search_opens_what_it_finds() -> None:
    """Small letters find both, capitals only themselves; again goes on; what is not there is told."""
    viewer = Viewer(document_of(REPLY), name="x")
    seen(viewer, height=3)
    viewer.typed = "THOUGHT"
    viewer.search()
    assert "not found: THOUGHT" in viewer.status()[0][1]
    viewer.typed = "thought"
    viewer.search()
    assert seen(viewer, height=3)[0] == "  thought"
    viewer.typed = "o"
    viewer.search()
    found = [seen(viewer, height=1)[0]]
    for _ in range(3):
        viewer.typed = ""
        viewer.search()
        found += seen(viewer, height=1)
    assert found == ["  thought", "More.", "  one two three four five six", "Some answer."]


def test_the_selection_survives_a_narrow_screen_and_nothing_at_all() -> None:
    """Any size draws something, also of an empty reply."""
    for width in (1, 2, 3, 10):
        viewer = Viewer(document_of(REPLY, shown=True), name="x")
        for _ in range(30):
            assert len(seen(viewer, width, 1)) == 1
            viewer.scroll(1)
    empty = Viewer(document_of(""), name="x")
    assert seen(empty) == ["nothing in it"]
    for act in (empty.toggle, empty.toggle_all, empty.end, empty.home, empty.search, lambda: empty.step(1)):
        act()
    assert seen(empty) == ["nothing in it"]


def test_plain_text_of_what_is_to_be_seen() -> None:
    """Collapsed or whole, wrapped or as written."""
    assert list(document_of("<think>a b</think>c").plain(None)) == ["Thinking (3 characters)", "", "c"]
    shown = document_of("<think>a\n\nb</think>c", shown=True)
    assert list(shown.plain(None)) == ["Thinking (4 characters)", "  a", "", "  b", "", "c"]
    assert list(document_of("one two three").plain(8)) == ["one two", "three"]


def test_a_broken_call_and_a_cut_thought_say_so() -> None:
    """Nothing looks better than it is."""
    assert list(document_of('<tool_call>{"name": "f", "argu').plain(None)) == ["call f [incomplete: not to be run]"]
    assert list(document_of("<think>half").plain(None)) == ["Thinking (4 characters, cut off)"]


def test_a_line_without_end_is_cut_not_lost() -> None:
    """Long lines become several, so that each is wrapped quickly."""
    text = "word " * 10_000
    document = document_of(text)
    assert "".join(document.blocks[0].lines) == text
    assert max(map(len, document.blocks[0].lines)) <= 4000


def test_words_that_turn_out_to_be_of_the_other_kind() -> None:
    """A thought among thoughts then, hidden as they are; or an answer."""
    document = Document()
    document.feed([PartStart(0, "text"), TextDelta(0, "\n two and\ntwo"), Retyped(0, "thinking")])
    document.feed([PartEnd(0), PartStart(1, "text"), TextDelta(1, "4"), PartEnd(1)])
    assert list(document.plain(None)) == ["Thinking (11 characters)", "", "4"]
    document.toggle(0)
    assert list(document.plain(None)) == ["Thinking (11 characters)", "  two and", "  two", "", "4"]
    document = Document()
    document.feed([PartStart(0, "thinking"), ThinkingDelta(0, "It is 4."), Retyped(0, "text"), PartEnd(0)])
    assert list(document.plain(None)) == ["It is 4."]
    assert document.thoughts == []
