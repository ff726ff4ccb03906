"""Thoughts shown live: headings, blank lines, colours, the spinner, from real events of the engine."""

from __future__ import annotations

import prompt_toolkit.styles
import pytest

import asides
from asides.terminal import Mode, Style, Thoughts, describe, render
from asides.terminal._style import sheet
from tests.terminal.emulator import Emulator

TWO = "<think>first\nthought</think>One<think>second</think>\nTwo"


class Watched:
    """A reply played to an emulator, thoughts and answer on one screen."""

    def __init__(self, *, mode: Mode = "show", colour: bool = False, cursor: bool = True, columns: int = 40) -> None:
        self.now = 0.0
        self.emulator = Emulator(columns, 20)
        self.thoughts = Thoughts(
            self.write,
            width=lambda: columns,
            colour=colour,
            cursor=cursor,
            mode=mode,
            shared=True,
            clock=lambda: self.now,
        )
        self.parser = asides.Parser("qwen3", collect=False)

    def write(self, text: str) -> None:
        self.emulator.write(text.replace("\n", "\r\n"))

    def feed(self, text: str) -> None:
        self.show(self.parser.feed(text))

    def finish(self) -> None:
        self.show(self.parser.finish())
        self.thoughts.finish()

    def show(self, events: list[asides.events.Event]) -> None:
        for event in events:
            self.thoughts.show(event)
            if isinstance(event, asides.PartStart) and event.kind == "text":
                self.write(event.gap)
            elif isinstance(event, asides.TextDelta):
                self.write(event.text)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_headed_indented_and_parted(size: int) -> None:
    """The first is `Thinking`, the next `Thinking 2`; blank lines part thoughts from the answer."""
    watched = Watched()
    for at in range(0, len(TWO), size):
        watched.feed(TWO[at : at + size])
    watched.finish()
    assert watched.emulator.text == "Thinking\n  first\n  thought\n\nOne\n\nThinking 2\n  second\n\nTwo"


def test_words_are_seen_while_they_come() -> None:
    """A word shows before it is whole, and moves to the next line when it outgrows its own."""
    watched = Watched(columns=16)
    watched.feed("<think>some more wor")
    assert watched.emulator.lines == ["Thinking", "  some more wor"]
    watched.feed("ds no")
    assert watched.emulator.lines == ["Thinking", "  some more", "  words no"]
    watched.feed("netheless")
    assert watched.emulator.lines == ["Thinking", "  some more", "  words", "  nonetheless"]


def test_without_a_cursor_a_word_waits_until_it_is_whole() -> None:
    """A dumb terminal gets no escape code and the same lines."""
    watched = Watched(columns=16, cursor=False)
    watched.feed("<think>some more wor")
    assert watched.emulator.lines == ["Thinking", "  some more"]
    watched.feed("ds nonetheless")
    watched.finish()
    assert watched.emulator.lines == ["Thinking", "  some more", "  words", "  nonetheless", "  (cut off)"]
    assert "\x1b" not in watched.emulator.raw


def test_a_thought_that_was_cut_off_says_so() -> None:
    """Thinking that never ended ends with a word about it, also when the caller stops in the middle."""
    watched = Watched()
    watched.feed("<think>half a thou")
    watched.thoughts.finish()
    assert watched.emulator.lines == ["Thinking", "  half a thou", "  (cut off)"]


def test_colours() -> None:
    """A bold heading, dim text, and nothing of it in the answer."""
    watched = Watched(colour=True)
    watched.feed(TWO)
    watched.finish()
    assert watched.emulator.look_of("Thinking 2") == "1"
    assert watched.emulator.look_of("second") == "2"
    assert watched.emulator.look_of("Two") == ""


def test_what_a_model_writes_cannot_act() -> None:
    """Escape sequences of the model are seen, not obeyed."""
    watched = Watched(colour=True)
    watched.feed("<think>\x1b[2J\x1b]0;title\x07\x9b31m\rgone?</think>")
    assert "␛[2J␛]0;title␇\ufffd31m␍gone?" in watched.emulator.text
    assert "\x1b[2J" not in watched.emulator.raw


def test_collapsed_is_a_line_for_each() -> None:
    """With its length, and with its time where it took a second or more."""
    watched = Watched(mode="collapse")
    watched.feed("<think>first")
    watched.now = 65.0
    watched.feed("\nthought</think>One<think>second</think>\nTwo<think>cut")
    watched.finish()
    assert watched.emulator.text == (
        "Thinking (13 characters, 1 min 05 s)\n\nOne\n\nThinking 2 (6 characters)\n\nTwo\n\n"
        "Thinking 3 (3 characters, cut off)"
    )


@pytest.mark.parametrize("mode", ["hide", "collapse"])
def test_a_hidden_thought_spins(mode: Mode) -> None:
    """The spinner tells time and length, moves with `tick`, and is gone when the answer begins."""
    watched = Watched(mode=mode)
    watched.feed("<think>twelve signs")
    assert watched.emulator.lines == []
    assert watched.thoughts.spinning
    watched.now = 2.0
    watched.thoughts.tick()
    first = watched.emulator.lines[0]
    assert first.endswith("Thinking 2 s, 12 characters")
    watched.now = 3.5
    watched.thoughts.tick()
    assert watched.emulator.lines[0].endswith("Thinking 3 s, 12 characters")
    assert watched.emulator.lines[0][0] != first[0]
    watched.feed("</think>Hi")
    assert not watched.thoughts.spinning
    shown = ["Hi"] if mode == "hide" else ["Thinking (12 characters, 3 s)", "", "Hi"]
    assert watched.emulator.lines == shown


@pytest.mark.parametrize("above", [0, 19])
def test_a_spinner_below_an_open_line_leaves_no_trace(above: int) -> None:
    """The answer goes on in its line after a hidden thought, also on the last row of the screen."""
    watched = Watched(mode="hide")
    watched.feed("line\n" * above + "One")
    watched.feed("<think>hm")
    watched.now = 1.0
    watched.thoughts.tick()
    assert watched.emulator.lines[-1].endswith("Thinking 1 s, 2 characters")
    watched.feed("</think> more")
    watched.finish()
    assert watched.emulator.text == "line\n" * above + "One more"


def test_a_spinner_fits_a_narrow_screen() -> None:
    """It is cut rather than wrapped, or it could not be taken away."""
    watched = Watched(mode="hide", columns=8)
    watched.feed("<think>hm")
    watched.now = 1.0
    watched.thoughts.tick()
    assert [len(line) for line in watched.emulator.lines] == [7]
    watched.feed("</think>Hi")
    watched.finish()
    assert watched.emulator.text == "Hi"


def test_waiting_spins_until_something_comes() -> None:
    """Before the first event there may be a spinner too."""
    watched = Watched(mode="show")
    watched.thoughts.wait()
    watched.now = 4.0
    watched.thoughts.tick()
    assert watched.emulator.lines[0].endswith("Waiting 4 s")
    watched.feed("Hi")
    assert watched.emulator.lines == ["Hi"]


def test_lines_of_others_come_between() -> None:
    """`pause` ends the line; the thought goes on behind its indent."""
    watched = Watched()
    watched.feed("<think>one")
    watched.thoughts.pause()
    watched.write("a notice\n")
    watched.thoughts.wrote_line()
    watched.feed("two</think>Hi")
    watched.finish()
    assert watched.emulator.text == "Thinking\n  one\na notice\n  two\n\nHi"


def test_parts_that_overlap_lose_nothing() -> None:
    """A server that has split the reply itself may end a thought late, or go on with it."""
    written: list[str] = []
    thoughts = Thoughts(written.append)
    thoughts.feed(
        [
            asides.PartStart(0, "thinking"),
            asides.ThinkingDelta(0, "one"),
            asides.PartStart(1, "text"),
            asides.TextDelta(1, "Hi"),
            asides.ThinkingDelta(0, "two"),
            asides.PartEnd(1),
            asides.ThinkingDelta(0, " three"),
            asides.PartEnd(0),
        ]
    )
    assert "".join(written) == "Thinking\n  one\n\nThinking 2\n  two three\n"


def test_a_call_is_parted_from_the_thought_before_it() -> None:
    """On a pipe too: a blank line, then what the caller writes of the call."""
    written: list[str] = []
    thoughts = Thoughts(written.append)
    thoughts.feed(asides.Parser("qwen3").feed('<think>hm</think><tool_call>{"name": "f", "arguments": {}}</tool_call>'))
    assert "".join(written) == "Thinking\n  hm\n\n"


def test_replies_are_counted_anew_and_may_have_a_name() -> None:
    """`begin` starts again with the first thought."""
    written: list[str] = []
    thoughts = Thoughts(written.append)
    thoughts.feed(asides.Parser("qwen3").feed("<think>a</think>b"))
    thoughts.begin("second.txt")
    thoughts.feed(asides.Parser("qwen3").feed("<think>a</think>b"))
    assert "".join(written) == "Thinking\n  a\n\nsecond.txt: Thinking\n  a\n"


def test_whole_thoughts_are_numbered_when_there_are_several() -> None:
    """`render` knows how many there are."""
    assert render(["alone"]) == "Thinking\n  alone\n"
    assert render(["a b c", "d\x1b"], width=12) == "Thinking 1\n  a b c\n\nThinking 2\n  d␛\n"
    assert render(["abc", "d"], collapse=True) == "Thinking 1 (3 characters)\nThinking 2 (1 character)\n"
    assert render([]) == ""
    coloured = render(["hm"], colour=True, style=Style(heading="bold+red", text="plain"))
    assert coloured == "\x1b[1;31mThinking\x1b[0m\n  hm\n"


def test_lengths_in_words() -> None:
    """Thousands are parted; a time below a second is not told."""
    assert describe(1204) == "1,204 characters"
    assert describe(1, 0.9) == "1 character"


@pytest.mark.parametrize(
    ("words", "style"),
    [
        ("default", Style("bold", "dim")),
        ("grey", Style("grey", "grey")),
        ("heading=bold+blue, text=#8899aa", Style("bold+blue", "#8899aa")),
        ("text=208", Style("bold", "208")),
    ],
)
def test_styles_are_read(words: str, style: Style) -> None:
    """One look for both, or one for each."""
    assert Style.parse(words) == style


@pytest.mark.parametrize(
    "words", ["", "purpel", "heading=", "text", "text=cyan,text=red", "head=blue", "256", "#12345g"]
)
def test_styles_that_are_none_are_refused(words: str) -> None:
    """A style that cannot be read is an error that says how to write one."""
    with pytest.raises(asides.UsageError, match=r"heading=bold|is no colour"):
        Style.parse(words)


@pytest.mark.parametrize(
    ("look", "code"),
    [("bright-blue", "94"), ("dim", "2"), ("bold+208", "1;38;5;208"), ("#8899aa", "38;2;136;153;170"), ("gray", "90")],
)
def test_looks_are_escape_codes(look: str, code: str) -> None:
    """What each word of a look stands for."""
    assert render(["x"], colour=True, style=Style(look, "plain")).startswith(f"\x1b[{code}mThinking\x1b[0m")


@pytest.mark.parametrize(
    ("look", "words"),
    [
        ("bold+bright-red", "bold ansibrightred"),
        ("white", "ansigray"),
        ("bright-white", "ansiwhite"),
        ("208", "#ff8700"),
        ("244", "#808080"),
        ("9", "#ff0000"),
        ("#8899aa", "#8899aa"),
        ("dim", "dim"),
        ("italic+underline", "italic underline"),
        ("plain", ""),
    ],
)
def test_looks_are_what_the_viewer_understands(look: str, words: str) -> None:
    """The same looks in the words of prompt_toolkit, which takes them."""
    made = sheet(Style(look, look), dim=True)
    assert made["heading"] == made["thought"] == words
    prompt_toolkit.styles.Style.from_dict(made)
    assert sheet(Style(look, look), dim=False)["thought"] == words.replace("dim", "")


@pytest.mark.parametrize("before", ["", "An answer. "])
def test_a_window_that_narrows_leaves_no_ghost(before: str) -> None:
    """Whether the spinner stands alone or below a line of the answer, nothing of it is left."""
    watched = Watched(mode="hide", columns=40)
    columns = 40
    watched.thoughts._width = lambda: columns
    watched.feed(f"{before}<think>twelve signs")
    watched.now = 2.0
    watched.thoughts.tick()
    assert "Thinking 2 s, 12 characters" in watched.emulator.text
    columns = 16
    watched.emulator.narrow(columns)
    assert watched.emulator.lines[-1].endswith("racters")
    for watched.now in (3.0, 4.0):
        watched.thoughts.tick()
        assert watched.emulator.lines[1 if before else 0 :][0][1:] == f" Thinking {watched.now:.0f} s,"
        assert len(watched.emulator.lines) == (2 if before else 1)
    watched.feed("</think>Hi")
    assert watched.emulator.lines == ([before.rstrip(), " Hi"] if before else ["Hi"])


class Remembered:
    """Folds that note what they are given."""

    action = " [show]"

    def __init__(self) -> None:
        self.noted: list[tuple[str, ...]] = []

    def begin(self) -> None:
        self.noted.append(("begin",))

    def end(self, text: str, summary: str, *, opened: bool) -> None:
        self.noted.append((text, summary, "opened" if opened else "folded"))

    def add(self, text: str, summary: str) -> None:
        self.noted.append((text, summary))


def test_thoughts_that_can_be_folded() -> None:
    """A hidden one is a line with its time and its words; one that is unfolded is shown from there on."""
    watched = Watched(mode="hide", columns=41)
    folds = watched.thoughts._folds = Remembered()
    watched.feed("<think>one two")
    watched.now = 65.0
    watched.feed(
        " three</think>Hi\n<think>\u65e5\u672c\u8a9e\u306e\u8003\u3048\u3092\u3053\u3053\u306b\u66f8\u304f</think>"
    )
    watched.feed("<think>first ")
    assert watched.thoughts.unfold()
    watched.feed("second")
    assert not watched.thoughts.unfold()
    watched.feed("</think>")
    assert not watched.thoughts.unfold()
    assert watched.emulator.lines == [
        "▸ Thought for 1 min 05 s, 3 words [show]",
        "",
        "Hi",
        "",
        "▸ Thought for 0.0 s, 12 characters",  # no space for more
        "Thinking 3",
        "  first second",
    ]
    assert folds.noted == [
        ("begin",),
        ("one two three", "Thought for 1 min 05 s, 3 words", "folded"),
        ("begin",),
        ("日本語の考えをここに書く", "Thought for 0.0 s, 12 characters", "folded"),
        ("begin",),
        ("first second", "Thought for 0.0 s, 2 words", "opened"),
    ]
