"""`asides history` alone before a person: a list on the whole screen, what opens from it, and the search."""

from __future__ import annotations

from pathlib import Path

import pytest

from asides import _history as history
from tests.cli.running import OnScreen, run
from tests.history.samples import asked, reply

pytest.importorskip("prompt_toolkit", reason="prompt_toolkit is not here: pip install prompt-toolkit")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three conversations of two replies, and one reply on its own, where the command looks for them."""
    path = tmp_path / "kept.db"
    monkeypatch.setenv("ASIDES_HISTORY", str(path))
    with history.open(str(path)) as opened:
        opened.add(
            [
                reply(
                    f"Thought {number} of the river. " * (number + 1),
                    *(["A needle\x1b[2J is here."] if number == 2 else []),
                    answer=f"Answer {number} names the haystack.",
                    model=["qwen3", "deepseek-r1-distill-llama-70b"][number % 2],
                    after=number * 60,
                    conversation=f"5ab{number // 2}",
                    asked=asked(f"Question {number}, 长江?"),
                )
                for number in range(6)
            ]
            + [reply("alone", answer="Of the filter.", source="filter", after=400)]
        )
    return path


@pytest.mark.parametrize(
    ("columns", "heads", "first"),
    [
        (40, "DATE QUESTION → ANSWER", "Question 5, 长江? →..."),
        (80, "DATE MODEL LENGTH QUESTION → ANSWER", "deep...llama-70b      143  Question 5, 长江? → Answer"),
        (120, "DATE MODEL LENGTH QUESTION → ANSWER", "Question 5, 长江? → Answer 5 names the haystack."),
    ],
)
def test_the_list_fits(store: Path, columns: int, heads: str, first: str) -> None:
    """Question, model, length and date, the newest first; narrow windows do without some of it."""
    with OnScreen("history", columns=columns, rows=10) as asides:
        screen = asides.until_shows("q quit")
        assert screen.lines[0].split() == heads.split()
        assert first in screen.lines[2]
        assert "→ Of the filter." in screen.lines[1]
        assert "7" in screen.look_of("→ Of")
        assert screen.lines[-1].startswith("replies  1/7 ")
        asides.press("q")
        assert asides.end() == 0
        assert asides.emulator.text == ""


def test_enter_opens_and_q_comes_back(store: Path) -> None:
    """A reply with its question, its thoughts folded; then the list again, where it was. Ctrl-C quits from anywhere."""
    with OnScreen("history", columns=80, rows=12) as asides:
        asides.until_shows("q quit")
        asides.press("jj\r")
        screen = asides.until_shows("Enter show/hide")
        assert screen.lines[:5] == [
            ">>> Question 4, 长江?",
            "",
            "▸ Thinking (119 characters) [show]",
            "",
            "Answer 4 names the haystack.",
        ]
        asides.press("n\r")
        asides.until_shows("Thought 4 of the river.")
        asides.press("q")
        asides.until_shows("replies  3/7")
        asides.click(30, 1)
        asides.until_shows("Of the filter.")
        asides.until_shows("Thinking (5 characters)")
        asides.press("\x03")
        assert asides.end() == 130


def test_conversations_show_thoughts_in_place(store: Path) -> None:
    """`c` lists conversations; one opens with all its questions, and every thought where it was thought."""
    with OnScreen("history", columns=80, rows=20) as asides:
        asides.until_shows("q quit")
        asides.press("c")
        screen = asides.until_shows("conversations  1/3")
        assert screen.lines[0].split() == ["DATE", "MODEL", "REPLIES", "FIRST", "QUESTION"]
        assert [line.split()[-2:] for line in screen.lines[1:4]] == [[f"{n},", "长江?"] for n in (4, 2, 0)]
        asides.press("G\r")
        asides.until_shows("Question 1")
        asides.press("a")
        order = [">>> Question 0", "Thought 0", "Answer 0", ">>> Question 1", "Thought 1", "Answer 1"]
        screen = asides.until(lambda screen: all(words in screen.text for words in order))
        assert [screen.row_of(words) for words in order] == sorted(screen.row_of(words) for words in order)
        asides.press("q")
        asides.until_shows("conversations  3/3")
        asides.press("c")
        asides.until_shows("replies  1/7")
        asides.press("\x1b")
        assert asides.end() == 0


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_search_inside_thoughts(store: Path, columns: int) -> None:
    """Found in a thought that is folded: it opens there, the word marked. Answers come behind; q leads back."""
    with OnScreen("history", columns=columns, rows=12) as asides:
        asides.until_shows("q quit")
        asides.press("/needel")
        asides.until_shows("/needel█")
        asides.press("\x7f\x7fle\r")
        screen = asides.until_shows("found: needle  1/1")
        assert "A needle" in screen.lines[1]
        assert "\x1b[2J is" not in screen.raw
        asides.press("\r")
        screen = asides.until_shows("A needle␛[2J is here.")
        assert "7" in screen.look_of("needle")
        asides.press("q")
        asides.until_shows("found: needle  1/1")
        asides.press("/haystack\r")
        screen = asides.until_shows("found: haystack  1/6")
        assert all("haystack" in line or columns == 40 for line in screen.lines[1:7])
        asides.press("/nothing like it\r")
        asides.until_shows("no thought and no answer has")
        asides.press("\r")  # there is nothing to open
        asides.press("q")
        asides.until_shows("replies  1/7")
        asides.press("?")
        asides.until_shows("search thoughts first")
        asides.press("qq")  # away with the help, then quit
        assert asides.end() == 0


def test_a_long_list_is_read_as_it_is_needed(tmp_path: Path) -> None:
    """A page at a time, to the last of them."""
    path = tmp_path / "long.db"
    with history.open(str(path)) as opened:
        opened.add([reply(answer=f"number {number}", after=number) for number in range(250)])
    with OnScreen("history", "browse", "--store", path, columns=80, rows=12) as asides:
        asides.until_shows("replies  1/100+")
        asides.press("G")
        asides.until_shows("replies  200/250")
        asides.press("G")
        screen = asides.until_shows("replies  250/250 ")
        assert screen.lines[10].endswith("→ number 0")
        asides.press("g")
        asides.until_shows("→ number 249")
        asides.press("\x1b[6~\x1b[B")
        asides.until_shows("replies  11/250")
        asides.resize(40, 6)
        asides.until(
            lambda screen: "replies  11/250" in screen.text and "number 239" in screen.text,
        )
        asides.press("q")
        assert asides.end() == 0


def test_what_was_purged_meanwhile(store: Path) -> None:
    """The list says so, and goes on."""
    with OnScreen("history", columns=120, rows=12) as asides:
        asides.until_shows("q quit")
        assert run("history", "purge", "--source", "filter", "--yes").returncode == 0
        asides.press("\r")
        asides.until_shows("there is no reply")
        asides.press("j\r")
        asides.until_shows(">>> Question 5")


def test_where_there_is_no_terminal(store: Path) -> None:
    """A command has to be named; `browse` says what to use instead. An empty choice says that it is empty."""
    done = run("history")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"COMMAND" in done.stderr
    done = run("history", "browse")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"`asides history list` lists replies" in done.stderr
    with OnScreen("history", TERM="dumb") as asides:
        assert asides.end() == 2
    with OnScreen("history", "browse", "--model", "none", columns=100) as asides:
        asides.until_shows("no replies are kept here")
        asides.press("q")
        assert asides.end() == 0
    with OnScreen("history", "browse", "--store", store.with_name("none.db"), columns=100) as asides:
        assert asides.end() == 2
        assert "--save" in asides.emulator.text
