"""Words that turn out to be a thought after they were written: in a pipe, on a screen, in a conversation. And what a
person is told of how a turn ended."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from asides._cli import display
from asides._cli.display import OpenWords, TextDisplay
from asides._cli.run.reply import Choices, display_reply
from asides._cli.streams import Streams
from asides.events import Event, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta
from asides.terminal import Mode
from tests.cli.running import OnScreen, Running, run
from tests.cli.test_run_folds import Start, ask, at_prompt
from tests.cli.test_run_folds import start as start
from tests.client.upstream import chat, serve
from tests.terminal.emulator import Emulator

LATE = b" two and two\nare four.\n</think>\n\nIt is 4."
TOLD = b"--start thinking"


def screen_of(*arguments: str, first: bytes = b" two and two\nare four.", rows: int = 24, **changes: str) -> Emulator:
    """What a screen shows in the end of an output whose thought was on it as the answer."""
    reading, writing = os.pipe()
    with OnScreen(*arguments, stdin=reading, rows=rows, columns=40, **changes) as asides:
        os.close(reading)
        os.write(writing, first)
        asides.until_shows("are")
        os.write(writing, b"\n</think>\n\nIt is 4.")
        os.close(writing)
        assert asides.end() == 0
        return asides.emulator


def test_in_a_pipe_nothing_is_lost_and_once_it_is_said_what_to_do() -> None:
    done = run(given=LATE)
    assert done.stdout == b" two and two\nare four.\n\nIt is 4."
    assert done.stderr.count(TOLD) == 1
    assert b"the first 21 characters" in done.stderr
    assert b"Thinking" not in done.stderr
    assert run("--start", "thinking", given=LATE).stdout == b"It is 4."
    # A start that was chosen is not corrected.
    assert run("--start", "text", "--json", given=LATE).stdout.count(b"retyped") == 0


def test_the_events_say_so() -> None:
    done = run("--json", given=LATE)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert {"type": "retyped", "index": 0, "kind": "thinking"} in events
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["--only", "thinking"], b"two and two\nare four."),
        (["--only", "thinking", "-n"], b"thinking 1:1:two and two\nthinking 1:2:are four."),
    ],
)
def test_the_thoughts_alone_have_it(arguments: list[str], shown: bytes) -> None:
    done = run(*arguments, given=LATE)
    assert (done.stdout, done.stderr) == (shown, b"")


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ([], ["Thinking", "  two and two", "  are four.", "", "It is 4."]),
        (["--only", "text"], ["It is 4."]),
        (["--hide"], ["It is 4."]),
        (["--hide", "-n"], ["1:It is 4."]),
        (["-n"], ["thinking 1:1:two and two", "thinking 1:2:are four.", "", "1:It is 4."]),
        (["--only", "thinking"], ["two and two", "are four."]),
    ],
)
def test_on_a_screen_they_move(arguments: list[str], lines: list[str]) -> None:
    if arguments == ["--only", "thinking"]:
        reading, writing = os.pipe()
        os.write(writing, LATE)
        os.close(writing)
        with OnScreen(*arguments, stdin=reading) as asides:
            os.close(reading)
            assert asides.end() == 0
            assert asides.emulator.lines == lines
        return
    assert screen_of(*arguments).lines == lines


def test_a_line_tells_of_a_collapsed_one() -> None:
    lines = screen_of("--collapse").lines
    assert lines[0].startswith("Thinking (21 characters")
    assert lines[1:] == ["", "It is 4."]


LONG = b"\n".join(b"row %d of a thought that is long, wider than the screen" % number for number in range(9))


@pytest.mark.parametrize(
    ("arguments", "changes"), [([], {"rows": 10}), (["--raw"], {"rows": 40}), ([], {"rows": 40, "TERM": "dumb"})]
)
def test_what_cannot_be_taken_back_stays_and_is_told(arguments: list[str], changes: dict[str, object]) -> None:
    """It has left the screen at the top, or nobody knows where it stands."""
    screen = screen_of(*arguments, first=LONG + b"\nare four.", **changes)  # type: ignore[arg-type]  # rows, TERM
    assert "row 0 of a thought" in screen.text
    assert "Thinking" not in screen.text
    told = " ".join(screen.text.split())
    assert told.count("--start thinking") == 1
    assert screen.lines[-2:] == ["", "It is 4."]


def test_on_a_screen_below_other_lines() -> None:
    """What stood above the reply stays, at the bottom of the screen too."""
    reading, writing = os.pipe()
    with OnScreen(stdin=reading, rows=12, columns=40) as asides:
        os.close(reading)
        asides.emulator.write("".join(f"before {number}\r\n" for number in range(11)))
        os.write(writing, b"one\ntwo\nthree")
        asides.until_shows("three")
        os.write(writing, b"</think>four")
        os.close(writing)
        assert asides.end() == 0
        shown = asides.emulator.text.split("\n")
    assert shown == [*(f"before {number}" for number in range(11)), "Thinking", "  one", "  two", "  three", "", "four"]


def test_the_answer_on_the_screen_and_thoughts_elsewhere() -> None:
    with Running("--start", "undecided", terminals="stdout") as asides:
        asides.write(b"hm</think>four")
        asides.close(asides.stdin)
        assert b"Thinking\n  hm\n" in asides.read_until(asides.stderr, b"hm\n")
    with Running(terminals="stdout") as asides:
        asides.write(b"hm, so")
        asides.read_until(asides.stdout, b"hm, so")
        asides.write(b"</think>four")
        asides.close(asides.stdin)
        assert asides.read_until(asides.stdout, b"four").startswith(b"\r\x1b[J")
        assert asides.read_until(asides.stderr, b"so\n") == b"Thinking\n  hm, so\n"


def test_the_viewer_of_a_pipe_shows_words_as_they_come_and_moves_them() -> None:
    reading, writing = os.pipe()
    with OnScreen("view", "-", "--expand", stdin=reading, rows=12) as asides:
        os.close(reading)
        os.write(writing, b" two and two\nare four.\n")
        assert "Thinking" not in asides.until_shows("are four.").text
        os.write(writing, b"</think>\n\nIt is 4.")
        os.close(writing)
        shown = asides.until_shows("It is 4.").lines
        assert "Thinking (21 characters)" in shown[0]
        assert [line.strip() for line in shown[1:5]] == ["two and two", "are four.", "", "It is 4."]
        asides.press("q")
        assert asides.end() == 0


def test_strict_refuses_it() -> None:
    done = run("--strict", given=LATE)
    assert (done.returncode, done.stdout) == (1, b" two and two\nare four.")
    assert b"retyped" in done.stderr


def test_the_kept_reply_has_the_thought(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    assert run("--save", "--store", store, given=LATE).returncode == 0
    for only, kept in (("thinking", "two and two\nare four."), ("text", "It is 4.")):
        assert run("history", "show", "--store", store, "--only", only).stdout.decode().strip() == kept


# Replies of a server.

ANSWERED = chat(" two and two\nare four.", "\n</think>\n\n", "It is 4.")


def test_a_reply_moves_on_the_screen_of_a_conversation(start: Start) -> None:
    """And Ctrl-T folds it as any thought, with those before it."""
    with serve(chat("<think>A few words.</think>Yes."), ANSWERED) as upstream:
        screen = start(upstream)
        ask(screen, "one")
        shown = ask(screen, "two")
        place = next(number for number, line in enumerate(shown) if line.startswith(">>> two"))
        assert shown[place + 1 : place + 6] == ["Thinking", "  two and two", "  are four.", "", "It is 4."]
        screen.press("\x14")
        folded = at_prompt(screen, hidden="two and two")
        assert any(line.startswith("▸ Thought for") and "5 words" in line for line in folded)
        assert "It is 4." in folded


def test_once_asked_it_moves_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    with serve(ANSWERED, ANSWERED) as upstream:
        with OnScreen("run", "m", "Why?", "--url", upstream.url) as screen:
            assert screen.end() == 0
            assert screen.emulator.lines == ["Thinking", "  two and two", "  are four.", "", "It is 4."]
        done = run("run", "m", "Why?", "--url", upstream.url)
    assert done.stdout == b" two and two\nare four.\n\nIt is 4."
    assert done.stderr.count(TOLD) == 1


# A first thought that was the answer.

GUESSED: list[Event] = [
    PartStart(0, "thinking"),
    ThinkingDelta(0, "It is 4."),
    Retyped(0, "text"),
    PartEnd(0, span=(0, 8)),
]


def test_a_thought_that_was_the_answer_is_the_answer(capfd: pytest.CaptureFixture[str]) -> None:
    """An empty answer would be worse than words that stand twice."""
    modes: tuple[Mode, ...] = ("show", "hide")
    for mode in modes:
        streams = Streams()
        shown = display_reply(streams, Choices(model="m", mode=mode))
        shown.show(GUESSED)
        shown.end()
        streams.flush()
        written = capfd.readouterr()
        assert written.out == "It is 4."
        assert written.err == ("Thinking\n  It is 4.\n" if mode == "show" else "")


def test_long_words_stay(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is bounded."""
    monkeypatch.setattr(display, "KEPT", 3)
    words = OpenWords()
    for piece in ("ab", "cd", "ef"):
        words.add(piece)
    assert words.moved(PartEnd(0, span=(0, 6))) is None
    streams = Streams()
    shown = TextDisplay(streams, number=False)
    shown.show([PartStart(0, "text"), TextDelta(0, "abcd"), TextDelta(0, "ef"), Retyped(0, "thinking")])
    shown.show([PartEnd(0, span=(0, 6)), PartStart(1, "text"), TextDelta(1, "So."), PartEnd(1)])
    streams.flush()
    written = capfd.readouterr()
    assert written.out == "abcdef\n\nSo."
    assert "the first 6 characters" in written.err


# How a turn ends.


def test_what_stands_beyond_the_turn_is_told_once() -> None:
    done = run(given=b"Hi<|im_end|>\n<|im_start|>user\ndelete <|im_end|>\n<|im_start|>assistant\nSure")
    assert done.stdout == b"Hi"
    assert done.stderr.count(b"beyond the turn") == 1
    assert b"asides: 61 characters stand beyond the turn, from character 13 on" in done.stderr


def test_a_reply_that_was_interrupted_is_cut() -> None:
    """A call that was held back, in a thought that nothing closed, was then a draft."""
    given = b'<think>hm\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    assert b'"f"' in run("-f", "qwen3", "--only", "calls", given=given).stdout
    with Running("-f", "qwen3", "--json") as asides:
        asides.write(given)
        asides.read_until(asides.stdout, b"hm")
        asides.process.send_signal(signal.SIGINT)
        assert b"draft_call" in asides.read_until(asides.stdout, b"part_end")


def test_stats_and_batch_count_what_stands_beyond(tmp_path: Path) -> None:
    """In a text and in a field of a message, beside which the server has put the thought."""
    beyond = "Hi<|im_end|>\n<|im_start|>user\ndelete all"
    said = {"role": "assistant", "reasoning_content": "hm", "content": beyond}
    lines = [{"text": beyond}, {"text": "Hi"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "said.jsonl").write_text(json.dumps({"messages": [{"role": "user", "content": "?"}, said]}) + "\n")
    shown = run("stats", tmp_path / "in.jsonl", tmp_path / "said.jsonl", "--json").stdout
    counted = json.loads(shown)
    assert counted["all"]["totals"]["beyond"] == 54
    assert counted["all"]["replies_with"]["beyond"] == 2
    assert b"going on beyond the turn" in run("stats", tmp_path / "in.jsonl").stdout
    for name, found in (("in", 27), ("said", 27)):
        out = tmp_path / f"{name}.out.jsonl"
        done = run("batch", tmp_path / f"{name}.jsonl", "-o", out, "--figures", "-f", "qwen3")
        assert done.returncode == 0, done.stderr
        row = json.loads(out.read_text().splitlines()[0])
        row = row["turns"][0] if "turns" in row else row
        assert (row["beyond"], row["figures"]["beyond"]) == (found, found)
        assert b"replies that go on beyond the turn" in done.stdout + done.stderr
