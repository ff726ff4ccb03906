"""The report as a page: whole, escaped, without a script. A real browser looks at it in tests/browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import asides
from asides.analysis import analyze
from asides.analysis.report import report
from asides.analysis.summary import Groups

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&amp;</title></svg></style>\x00\x1b[31m\u202eevil\ud800"
)
VOID = {"meta", "link", "img", "br"}


class Reading(HTMLParser):
    """Reads a page and notes what is in it."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.unmatched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unmatched.append(tag)


def read(page: str) -> Reading:
    reading = Reading()
    reading.feed(page)
    assert not reading.open
    assert not reading.unmatched
    return reading


def groups(*names: str) -> Groups:
    found = Groups()
    for number, name in enumerate(names):
        for text in (f"<think>{'Wait, is it so? ' * (number + 1)}</think>Yes.", f"<think>{HOSTILE * 20}"):
            found.add(name, analyze(asides.parse(text)), name, text)
    return found


def test_the_page_is_whole() -> None:
    """Every element is closed, and every chart has its numbers as a table too."""
    page = report(groups("one", "two"), title="4 replies")
    reading = read(page)
    assert page.count("<svg") == page.count("<details>") == 6
    assert "script" not in reading.tags
    assert "style" not in reading.attributes
    assert "one" in page
    assert "two" in page


def test_hostile_words_stay_words() -> None:
    """In names, places, excerpts, the title and the notes."""
    page = report(groups(HOSTILE, "two"), title=HOSTILE, notes=[HOSTILE])
    reading = read(page)
    assert not reading.tags & {"script", "img"}
    assert not {name for name in reading.attributes if name.startswith("on")}
    assert not re.search("[\x00\x1b\u202e]", page)
    page.encode()


def test_nothing_is_fetched() -> None:
    """The page names no address, and its policy allows none."""
    page = report(groups("one"))
    assert "://" not in page
    assert "default-src 'none'" in page
    assert "unsafe" not in page


def test_no_replies_make_a_page_too() -> None:
    """It says that there is nothing."""
    assert "nothing to count" in report(Groups())
    read(report(Groups(), notes=["no JSON: 3 lines"]))


def test_a_single_group_keeps_its_name() -> None:
    """Only what has none is called `all`."""
    assert '<th scope="row">one</th>' in report(groups("one"))
    assert '<th scope="row">all</th>' in report(groups(""))


def test_many_groups_are_all_in_the_table() -> None:
    """The charts show those of the most replies."""
    names = [f"model number {number}" for number in range(40)]
    page = report(groups(*names))
    assert all(f'<th scope="row">{name}</th>' in page for name in names)
    assert "The charts show the 12 groups" in page


def test_every_group_has_one_row_in_every_table_and_one_name_in_every_chart() -> None:
    """None is left out, and none stands there twice."""
    groups = Groups()
    for model in ("first", "second", "third"):
        groups.add(model, analyze(asides.parse("<think>Wait. Let me check it.</think>Yes.")), "place", "Wait.")
    page = report(groups)
    sections = re.findall(r"<section.*?</section>", page, re.S)
    for model in ("first", "second", "third"):
        charts = [section.count(f">{model}</text>") for section in sections if "<svg" in section]
        tables = [section.count(f'<th scope="row">{model}</th>') for section in sections if "<svg" in section]
        # How long it thinks is two charts.
        assert (charts, tables) == ([2, 1, 1, 1, 1], [2, 1, 1, 1, 1])
