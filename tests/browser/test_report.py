"""The report in a real browser: it draws, prints, has a dark side, asks nobody for anything, and bears hostile words.

Run by `make test-browser`, which sets ASIDES_BROWSER=1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import asides
from asides.analysis import analyze
from asides.analysis._report import report
from asides.analysis._summary import Groups
from tests.browser.chromium import Browser, find

pytestmark = pytest.mark.skipif(
    os.environ.get("ASIDES_BROWSER") != "1", reason="needs a real browser: make test-browser runs it"
)

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "</title></svg></style></table><style>body{display:none}</style><a href=javascript:alert(1)>x</a>"
    "\x00\x1b[31m\u202e &lt;script&gt; <iframe src=//example.invalid></iframe>"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of three groups, one of them hostile wherever it can be."""
    groups = Groups()
    for name in ("calm", "restless", HOSTILE):
        for number in range(1, 12):
            text = f"<think>{'Wait, is it so? Let me check the sum. ' * number}{HOSTILE}</think>Yes, it is."
            groups.add(name, analyze(asides.parse(text)), f"{HOSTILE}:{number}", text)
        groups.add(name, analyze(asides.parse("<think>" + f"again and again {HOSTILE} " * 30)), name, HOSTILE)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(report(groups, title=HOSTILE, notes=[HOSTILE]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for all."""
    if find() is None:
        pytest.fail("no chromium here, so nothing was looked at; on Debian: apt-get install chromium")
    with Browser(tmp_path_factory.mktemp("profile")) as running:
        running.size(1100, 900)
        yield running


@pytest.fixture
def opened(browser: Browser, page: Path) -> Browser:
    """The report, opened afresh and light."""
    browser.size(1100, 900)
    browser.dark(False)
    browser.open(page)
    return browser


def test_it_opens_without_a_complaint_and_without_asking_anyone(opened: Browser, page: Path) -> None:
    """Nothing on the console, and the page itself is the only thing that is fetched."""
    assert opened.complaints() == []
    assert [address for address in opened.requests() if not address.startswith("data:")] == [page.as_uri()]


def test_charts_are_drawn(opened: Browser) -> None:
    """Every chart has bars that can be seen, and a title."""
    charts = opened.value(
        "[...document.querySelectorAll('figure .chart')].map(chart => ({"
        " title: chart.ariaLabel, titles: [...chart.querySelectorAll('svg > title')].map(title => title.textContent),"
        " drawings: chart.querySelectorAll(':scope > svg').length, width: chart.getBoundingClientRect().width,"
        " bars: [...chart.querySelectorAll('rect')].filter(bar => bar.getBoundingClientRect().width > 1).length,"
        " colour: getComputedStyle(chart.querySelector('.c0')).fill }))"
    )
    assert len(charts) == 6
    for chart in charts:
        assert chart["title"]
        assert len(chart["titles"]) == chart["drawings"] > 0
        assert all(chart["titles"])
        assert chart["width"] > 600
        assert chart["bars"] >= 3, chart["title"]
        assert chart["colour"] not in ("rgb(0, 0, 0)", "none"), "the style was not applied"


def test_every_chart_has_a_table(opened: Browser) -> None:
    """For those who do not see charts: headed rows and columns, in the same figure."""
    tables = "[...document.querySelectorAll('figure')].every(figure => figure.querySelector('details table caption'))"
    assert opened.value(tables) is True
    heads = "[...document.querySelectorAll('th')].every(head => ['row', 'col'].includes(head.scope))"
    assert opened.value(heads) is True


def test_hostile_words_are_inert(opened: Browser) -> None:
    """They are text: no element was made of them, nothing ran, and they can be read."""
    assert opened.value("document.title") == "asides: how it thinks"
    assert opened.value("document.querySelectorAll('script, img, iframe, a, object, [onerror]').length") == 0
    assert opened.value("document.querySelectorAll('style').length") == 1
    assert opened.value("getComputedStyle(document.body).display") == "block"
    assert "<script>document.title='owned'</script>" in opened.value("document.body.innerText")


def test_a_script_would_not_run(opened: Browser) -> None:
    """Even one that got into the page: its policy forbids it."""
    opened.value(
        "(() => { const bad = document.createElement('script'); bad.textContent = 'window.ran = true';"
        " document.head.append(bad); })()"
    )
    assert opened.value("window.ran === undefined") is True


def test_dark_mode_differs_and_can_be_read(opened: Browser) -> None:
    """Another picture, light words on a dark ground."""
    light = opened.photograph()
    opened.dark(True)
    assert opened.photograph() != light
    shades = (
        "['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name].match(/\\d+/g).map(Number))"
    )
    ink, ground = opened.value(shades)
    assert min(ink) > 180
    assert max(ground) < 60


def test_it_prints(opened: Browser) -> None:
    """As a PDF of some pages, dark on white whatever the screen prefers."""
    opened.dark(True)
    printed = opened.print()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 2
    opened.ask("Emulation.setEmulatedMedia", media="print")
    assert opened.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.ask("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [360, 390, 768, 1600])
def test_charts_are_whole_at_every_width(opened: Browser, width: int) -> None:
    """No part of a drawing stands outside its section, nothing of a chart scrolls, and its text keeps its size."""
    opened.size(width, 900)
    cut_off = opened.value(
        "[...document.querySelectorAll('.chart text, .chart rect')].filter(part => {"
        " const place = part.getBoundingClientRect(), section = part.closest('section').getBoundingClientRect();"
        " return place.left < section.left || place.right > section.right; }).map(part => part.textContent)"
    )
    assert cut_off == []
    sizes = opened.value(
        "[...new Set([...document.querySelectorAll('.chart text')].map(one => getComputedStyle(one).fontSize))].sort()"
    )
    assert sizes == ["12px", "13px"]
    scaled = "[...document.querySelectorAll('.chart text')].some(text => text.getScreenCTM().a !== 1)"
    assert opened.value(scaled) is False
    assert opened.value("[...document.querySelectorAll('figure')].every(one => one.scrollWidth <= one.clientWidth)")


@pytest.mark.parametrize("width", [360, 390, 768, 1600])
def test_nothing_sticks_out(opened: Browser, width: int) -> None:
    """On a telephone as on a wide screen the page does not scroll sideways; wide tables do so by themselves."""
    opened.size(width, 900)
    assert opened.value("document.documentElement.scrollWidth") <= width


def test_it_can_be_read_without_a_mouse(opened: Browser) -> None:
    """What scrolls and what unfolds can be reached by the keyboard."""
    reach = "[...document.querySelectorAll('.scroll')].every(part => part.tabIndex === 0 && part.ariaLabel)"
    assert opened.value(reach) is True
    assert opened.value("document.documentElement.lang") == "en"
