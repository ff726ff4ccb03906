"""Thoughts of a conversation folded and unfolded: Ctrl-T, a click, commands, the viewer, and while they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asides._cli.run.input import PLACEHOLDER
from tests.cli.running import OnScreen, run
from tests.cli.test_run_conversation import UntilOrdered
from tests.client.upstream import Script, Upstream, chat, serve, think

LINES = [f"line {number} of the thought" for number in range(1, 61)]
LONG = chat(*(think(f"{line}\n") for line in LINES), "The long answer.")
SHORT = chat(think("A few words."), "Yes.")
PLAIN = chat("No thought.")
TALL = chat(think("Hm."), "\n".join(f"row {number}" for number in range(1, 31)))
SUMMARY = re.compile(r"Thought for \d+\.\d s, ")

Start = Callable[..., OnScreen]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a conversation; it is ended with the test."""
    running: list[OnScreen] = []

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))

    def begin(upstream: Upstream, *arguments: str, columns: int = 80) -> OnScreen:
        running.append(OnScreen("run", "m", "--url", upstream.url, *arguments, columns=columns, rows=24))
        running[-1].until_shows(PLACEHOLDER)
        return running[-1]

    yield begin
    for screen in running:
        screen.__exit__()


def ask(screen: OnScreen, text: str) -> list[str]:
    """Type this, wait for the next prompt; all lines of the screen and those that have left it."""
    screen.press(text)
    screen.until_shows(f">>> {text}")
    screen.press("\r")
    return at_prompt(screen)


def at_prompt(screen: OnScreen, shown: str = "", hidden: str = "\0") -> list[str]:
    """Wait for an empty prompt, with this on the screen, and without that."""
    screen.until(
        lambda emulator: (
            PLACEHOLDER in (emulator.lines or [""])[-1]
            and shown in emulator.text
            and not any(hidden in line for line in emulator.lines)
        )
    )
    return lines(screen)


def lines(screen: OnScreen) -> list[str]:
    return SUMMARY.sub("Thought for 0.0 s, ", screen.emulator.text).split("\n")


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_ctrl_t_unfolds_the_last_thought(start: Start, columns: int) -> None:
    """In place while its line is on the screen, also where it is longer than the screen; else below."""
    with serve(LONG, SHORT, PLAIN, TALL) as upstream:
        screen = start(upstream, "--hidethinking", columns=columns)
        before = ask(screen, "Why?")
        head, prompt = before[: before.index(">>> Why?") + 1], f">>> {PLACEHOLDER}"
        assert before == [*head, "▸ Thought for 0.0 s, 300 words", "", "The long answer.", "", prompt]

        screen.press("\x14")
        at_prompt(screen, "line 60")
        indented = [f"  {line}" for line in LINES]
        unfolded = [*head, "▾ Thought for 0.0 s, 300 words", *indented, "", "The long answer.", ""]
        assert lines(screen) == [*unfolded, prompt]
        screen.press("\x14")  # its line has left the screen, so it cannot be folded there
        at_prompt(screen, "the thought stands above")

        folded = ask(screen, "And?")
        assert folded[-6:] == [">>> And?", "▸ Thought for 0.0 s, 3 words", "", "Yes.", "", prompt]
        screen.press("typed")
        screen.press("\x14")
        screen.until(lambda emulator: "  A few words." in emulator.lines and emulator.lines[-1] == ">>> typed")
        assert lines(screen)[-7:] == [
            ">>> And?", "▾ Thought for 0.0 s, 3 words", "  A few words.", "", "Yes.", "", ">>> typed",
        ]  # fmt: skip
        screen.press("\x14\x15")
        assert at_prompt(screen, hidden="A few words") == folded

        ask(screen, "/show")
        ask(
            screen, "Wirklich größer, 日本?"
        )  # no thought in it: the last is the one before, and what was typed since stays
        screen.press("\x14")
        now = at_prompt(screen, "  A few words.")
        assert now[now.index("  A few words.") :] == [
            "  A few words.", "", "Yes.", "",
            ">>> /show", "thoughts are shown",
            ">>> Wirklich größer, 日本?", "No thought.", "",
            prompt,
        ]  # fmt: skip

        ask(screen, "/collapse")
        tall = ask(screen, "More?")
        screen.press("\x14")  # the answer fills the screen: the thought is written below
        assert at_prompt(screen, "  Hm.") == [*tall[:-1], "▾ Thought for 0.0 s, 1 word", "  Hm.", "", prompt]
        screen.press("\x14")
        assert at_prompt(screen, hidden="  Hm.") == [*tall[:-1], "▸ Thought for 0.0 s, 1 word", "", prompt]


def test_a_click_commands_and_the_viewer(start: Start) -> None:
    """With --mouse a click on the line of any thought acts; /thought writes one; in /view a click acts too."""
    with serve(SHORT, SHORT) as upstream:
        screen = start(upstream, "--mouse", "--collapse")
        ask(screen, "One?")
        both = ask(screen, "Two?")
        assert both.count("▸ Thought for 0.0 s, 3 words [show]") == 2
        row = screen.emulator.row_of(">>> One?") + 1
        screen.click(3, row)
        assert [line.endswith(" [hide]") for line in at_prompt(screen, "  A few words.")[row : row + 2]] == [
            True,
            False,
        ]
        screen.click(3, row)
        assert at_prompt(screen, hidden="  A few words.") == both
        screen.click(3, row + 1)  # no thought there
        assert "thoughts are counted from 1; the last is 2" in ask(screen, "/thought 3")
        now = ask(screen, "/thought 1")
        assert now[now.index(">>> /thought 1") :] == [
            ">>> /thought 1", "▾ Thought for 0.0 s, 3 words [hide]", "  A few words.", "", f">>> {PLACEHOLDER}",
        ]  # fmt: skip
        screen.press("\x14")  # the last of the talk, whose line stands above that
        screen.until(lambda emulator: emulator.text.count("  A few words.") == 2)
        place = now.index(">>> Two?") + 1
        opened = [now[place].replace("▸", "▾").replace("[show]", "[hide]"), "  A few words."]
        assert at_prompt(screen) == [*now[:place], *opened, *now[place + 1 :]]
        screen.press("/view\r")
        viewed = screen.until_shows("q quit").lines
        assert viewed[:5] == [">>> One?", "", "▸ Thinking 1 (12 characters) [show]", "", "Yes."]
        screen.click(3, 2)
        assert screen.until_shows("▾ Thinking 1").lines[3] == "  A few words."
        screen.press("q")
        screen.until(lambda emulator: PLACEHOLDER in (emulator.lines or [""])[-1])
        assert ">>> /view" in screen.emulator.lines
        assert "there is no thought" not in screen.emulator.text


def test_a_thought_is_unfolded_while_it_comes(start: Start) -> None:
    """From there on it is shown; other keys wait for the prompt; a window of another width never garbles the screen."""
    with serve(Script(chat(think("a thought that goes on"), end=None), hangs=True), SHORT) as upstream:
        screen = start(upstream, "--hidethinking")
        screen.press("Go.\r")
        screen.until_shows("(Ctrl-T shows it)")
        screen.press("\x14")
        assert screen.until_shows("  a thought that goes on").lines[-2] == "Thinking"
        screen.press("\x03")
        screen.until_shows("(stopped)")
        ask(screen, "More.")
        screen.resize(60)
        screen.press("\x14")
        assert screen.until_shows("  A few words.").text.count("Thought for") == 2  # below, and the old line stays


def test_the_screens_of_the_documentation(start: Start) -> None:
    """They are what is seen."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "terminal.md").read_text(encoding="utf-8")
    folded, unfolded, viewed = re.findall(r"```text\n(.*?)```", page, re.DOTALL)[1:4]
    question = "The question is about scattering. Short waves are scattered more, and blue ones are short."
    day = chat(think(question), "Because air scatters short waves more than long ones.")
    night = chat(think("No sun, so nothing to scatter."), "There is no light to scatter then.")
    with serve(day, night) as upstream:
        screen = start(upstream, "--mouse", "--hidethinking", columns=60)

        def seen() -> str:
            shown = [SUMMARY.sub("Thought for 9 s, ", line) for line in screen.emulator.lines]
            return "\n".join(line for line in shown[shown.index(">>> Why is the sky blue?") :]) + "\n"

        ask(screen, "Why is the sky blue?")
        assert seen() == folded
        screen.press("\x14")
        at_prompt(screen, "are short.")
        assert seen() == unfolded
        screen.press("\x14")
        at_prompt(screen, hidden="are short.")
        ask(screen, "And at night?")
        screen.press("/view\r")
        screen.until_shows("q quit")
        screen.press("n\r")
        screen.until_shows("No sun")
        assert re.sub(r"\n\n+(?=m  )", "\n\n", seen()) == viewed


def test_what_is_typed_during_a_reply_waits_for_the_prompt(start: Start) -> None:
    """It is not seen in the reply, and then it is as if it were typed there, Enter and Ctrl-T included."""
    pieces = UntilOrdered(chat(think("A few words."), "Yes."))
    with serve(Script(pieces), SHORT) as upstream:
        pieces.upstream = upstream
        screen = start(upstream, "--hidethinking")
        screen.press("Go.\r")
        screen.until_shows("Thinking")
        screen.press("More?\rA half")
        upstream.ordered.set()
        screen.until(lambda emulator: (emulator.lines or [""])[-1] == ">>> A half")
        shown = lines(screen)
        assert shown[shown.index(">>> Go.") :] == [
            ">>> Go.", "▸ Thought for 0.0 s, 3 words", "", "Yes.", "",
            ">>> More?", "▸ Thought for 0.0 s, 3 words", "", "Yes.", "",
            ">>> A half",
        ]  # fmt: skip


def test_once_asked_a_hidden_thought_is_a_line(tmp_path: Path) -> None:
    """On a terminal; a pipe gets nothing with --hidethinking, and the filter's line with --collapse."""
    with serve(SHORT) as upstream:
        with OnScreen("run", "m", "Q", "--hidethinking", "--url", upstream.url, HOME=str(tmp_path)) as screen:
            assert screen.end() == 0
            assert lines(screen) == ["▸ Thought for 0.0 s, 3 words", "", "Yes."]
        done = run("run", "m", "Q", "--collapse", "--url", upstream.url)
        assert (done.stdout, done.stderr) == (b"Yes.", b"Thinking (12 characters)\n")
        both = run("run", "m", "Q", "--collapse", "--hidethinking", "--url", upstream.url)
        assert both.returncode == 2
        assert b"not allowed with" in both.stderr
