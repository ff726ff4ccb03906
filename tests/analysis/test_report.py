"""The report as a page: whole, escaped, without a script. A real browser looks at it in tests/browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from random import Random

import pytest

import asides
from asides.analysis import analyze, quality
from asides.analysis._chart_figures import chart_figures
from asides.analysis._report import report
from asides.analysis._summary import Groups

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


def groups_of_one() -> Groups:
    found = Groups()
    found.add("one", analyze(asides.parse("<think>Yes, it is.</think>Yes.")), "place", "Yes")
    return found


def test_the_page_is_whole() -> None:
    """Every element is closed, and every chart has its numbers as a table too."""
    page = report(groups("one", "two"), title="4 replies")
    reading = read(page)
    assert page.count('<div class="chart') == page.count("<details>") == 6
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
        drawings = [
            {drawing.count(f">{model}</text>") for drawing in chart.split("<svg height")[1:]}
            for section in sections
            for chart in section.split('<div class="chart')[1:]
        ]
        tables = [section.count(f'<th scope="row">{model}</th>') for section in sections if "<svg" in section]
        # Lengths, spread of words, spread of share, turns, oddities, form. A histogram is of one group alone.
        assert drawings == [{1}, {0, 1}, {0, 1}, {1}, {1}, {1}]
        # How long it thinks is two charts.
        assert tables == [2, 1, 1, 1, 1]


def test_what_is_not_known_is_a_dash() -> None:
    """Of one model nobody measured the time, and another does not think: neither is zero seconds or zero words."""
    groups = Groups()
    groups.add("timed", analyze(asides.parse("<think>Yes, it is.</think>Yes."), seconds=2.5))
    groups.add("untimed", analyze(asides.parse("<think>Yes, it is.</think>Yes.")))
    groups.add("thoughtless", analyze(asides.parse("Yes.")))
    page = report(groups)
    glance = page[page.index("Every group in a row") : page.index("</table>")]
    heads = re.findall(r'<th scope="col">(.*?)</th>', glance)
    cells = {
        name: dict(zip(heads, re.findall("<td>(.*?)</td>", row), strict=True))
        for name, row in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', glance)
    }
    assert [cells[name]["seconds, median"] for name in ("timed", "untimed", "thoughtless")] == ["2.5", "–", "–"]
    assert [cells[name]["words, median"] for name in ("timed", "thoughtless")] == ["3", "–"]
    assert "does not think" in page


def test_one_reply_is_one_reply() -> None:
    """In the tiles and beside every histogram."""
    page = report(groups_of_one())
    assert "<strong>1</strong><span>reply</span>" in page
    assert ">1 reply</text>" in page
    assert not re.search(r"\b1 replies", re.sub("<[^>]*>", " ", page))


def test_the_form_of_thoughts_is_no_headline() -> None:
    """It stands in neither the tiles nor the table, only under its own name, which promises nothing."""
    page = report(groups("one", "two"))
    tiles, table = page[page.index("<ul") : page.index("</ul>")], page[page.index("<table") : page.index("</table>")]
    assert "quality" not in page
    assert "form" not in tiles + table
    section = page[page.index('<section id="form-of-the-thoughts">') :]
    assert "words drawn at random can get 1.00" in section


def test_random_words_have_good_form() -> None:
    """What the report says of it is true."""
    chosen = Random(1)
    names = ["sum", "river", "blue", "tree", "house", "walk", "green", "seven", "light", "stone", "wind", "cloud"]
    paragraphs = [" ".join(chosen.choices(names, k=60)) + "?" for _ in range(8)]
    assert quality(["\n\n".join(paragraphs)]).score == 1.0


def test_charts_need_no_style_of_their_own() -> None:
    """Widths are in percent, so that a drawing fits wherever it stands, and no policy has to allow inline styles."""
    for chart in chart_figures(groups("one", "two"), {"2026-11-14": groups("one"), "2026-11-16": groups("two")}):
        assert "style" not in read(chart.svg).attributes
        assert "viewBox" not in chart.svg
        wide = re.findall(r'<rect class="[^"]*" x="([^"]*)" y="[^"]*" width="([^"]*)"', chart.svg)
        assert wide
        assert all(x.endswith("%") and width.endswith("%") for x, width in wide)
        assert all(float(x[:-1]) + float(width[:-1]) <= 100.01 for x, width in wide)


@pytest.mark.parametrize(
    ("last", "unit", "columns"), [("2026-01-03", "day", 3), ("2026-03-30", "week", 14), ("2027-12-01", "month", 24)]
)
def test_figures_over_time(last: str, unit: str, columns: int) -> None:
    """By day, week or month, whichever can be drawn; a group without a reply there has a dash."""
    charts = chart_figures(groups("one", "two"), {"2026-01-01": groups("one"), last: groups("one", "two")})
    over_time = [chart for chart in charts if chart.section == "Over time"]
    assert [chart.title for chart in over_time] == [
        f"{what} by {unit}" for what in ("Words of thinking", "Share of thinking", "Looping", "Never closed")
    ]
    one, two = over_time[0].rows
    assert len(over_time[0].heads) == columns
    assert one[1] != "–" != one[-1]
    assert two[1] == "–" != two[-1]
    assert set(one[2:-1]) == {"–"}


def test_one_day_is_not_over_time() -> None:
    """Nor is none."""
    sections = [chart.section for chart in chart_figures(groups("one"), {"2026-01-01": groups("one")})]
    assert "Over time" not in sections
    assert chart_figures(Groups()) == []
