"""The conversation of `asides run` on a pseudo-terminal: commands, Ctrl-C, several lines, what the model is sent."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import stat
import struct
import termios
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pexpect  # type: ignore[import-untyped]  # it has none
import pytest
from pexpect import fdpexpect

from asides import _history as history
from asides._cli.run.input import PLACEHOLDER
from tests.cli.running import OnScreen, environment
from tests.client.upstream import Script, Upstream, chat, fails, serve, think
from tests.fork_server import end
from tests.fork_server import start as start_command
from tests.waiting import PATIENCE

ANSWER = chat(think("2+2"), "It is 4.")
TIMES = ("first thought", "first answer", "whole reply")
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>78DM]")


class Terminal:
    """The command at a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str, stderr: Path | str = "", **changes: str) -> None:
        known = {
            name: value
            for name, value in environment().items()
            if not name.startswith(("ASIDES_", "OPENAI_", "OLLAMA_"))
        }
        # The library asks where the cursor is; a terminal that is no terminal does not answer.
        places = {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_DATA_HOME": str(folder / "data"),
            "XDG_CONFIG_HOME": str(folder),
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        # The library draws a prompt again with every key; its placeholder shows that nothing is typed yet.
        self._prompt = ">>> " if changes else PLACEHOLDER
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        with open(theirs, "rb"), open(stderr, "wb") if stderr else nullcontext() as errors:
            streams = [theirs, theirs, errors.fileno() if errors else theirs]
            variables = {**known, **places, "HOME": str(folder), **changes}
            self._process = start_command(["run", *arguments], variables, streams, folder=folder, terminal=True)
        self._child = fdpexpect.fdspawn(ours, encoding="utf-8", timeout=PATIENCE)
        self._close = weakref.finalize(self, os.close, ours)

    def close(self) -> None:
        end(self._process)
        self._close()

    def see(self, wanted: str) -> str:
        """Wait until this is written; what was written before it, without escape codes."""
        self._child.expect_exact(wanted)
        return CODES.sub("", str(self._child.before))

    def ready(self) -> str:
        """Wait for an empty prompt."""
        return self.see(self._prompt)

    def type(self, text: str) -> None:
        self._child.send(text)

    def say(self, text: str) -> str:
        """Say something and wait for the next prompt; what came between."""
        self.type(text + "\r")
        return self.ready()

    def rest(self) -> str:
        """What is written until the command ends."""
        self._child.expect(pexpect.EOF)
        self._process.wait(PATIENCE)
        return CODES.sub("", str(self._child.before))

    def end(self) -> int:
        """The exit code."""
        self._child.expect(pexpect.EOF)
        return self._process.wait(PATIENCE)


Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the command; what is still running at the end is ended."""
    running: list[Terminal] = []

    def begin(upstream: Upstream, *arguments: str, **changes: str) -> Terminal:
        terminal = Terminal(tmp_path, "m", "--url", upstream.url, *arguments, **changes)
        running.append(terminal)
        terminal.ready()
        return terminal

    yield begin
    for terminal in running:
        terminal.close()


def said(upstream: Upstream, number: int = -1) -> list[tuple[str, str]]:
    """Who said what, in a request."""
    return [(message["role"], message["content"]) for message in upstream.asked[number]["messages"]]


def test_thoughts_are_shown_and_not_remembered(start: Start) -> None:
    """A thought appears under its heading; only clean answers go back to the model."""
    with serve(ANSWER, chat("<think>raw thought</think>", "Yes.")) as upstream:
        terminal = start(upstream, "--system", "Be short.")
        shown = terminal.say("What is 2+2?")
        assert re.search(r"Thinking\r\n  2\+2\r\n\r\nIt is 4\.\r\n", shown)
        assert "raw thought" in terminal.say("Sure?")
        terminal.say("Thanks.")
    assert said(upstream) == [
        ("system", "Be short."),
        ("user", "What is 2+2?"),
        ("assistant", "It is 4."),
        ("user", "Sure?"),
        ("assistant", "Yes."),
        ("user", "Thanks."),
    ]
    assert not any("reasoning_content" in message for message in upstream.asked[-1]["messages"])


def test_ctrl_c_stops_the_reply_and_keeps_the_talk(start: Start) -> None:
    """What had come is shown and stays in the talk, the server is left at once, and the talk goes on."""
    with serve(Script(chat(think("hm"), "Half an <ans", end=None), hangs=True), chat("Yes.")) as upstream:
        terminal = start(upstream)
        terminal.type("Go on.\r")
        terminal.see("Half an")
        terminal.type("\x03")
        terminal.see("(stopped)")
        terminal.ready()
        assert upstream.left.wait(PATIENCE)
        terminal.say("And?")
        terminal.type("/bye\r")
        assert terminal.end() == 0
    assert said(upstream) == [("user", "Go on."), ("assistant", "Half an <ans"), ("user", "And?")]


def test_keys_typed_during_a_reply_do_not_stand_in_it(start: Start) -> None:
    """They wait for the next prompt. Ctrl-C leaves no mark either."""
    with serve(Script(chat("Half an ans", end=None), hangs=True), chat("Yes.")) as upstream:
        terminal = start(upstream)
        terminal.type("Go on.\r")
        terminal.see("Half an ans")
        terminal.type("And?\x03")
        shown = terminal.see("(stopped)")
        assert "And" not in shown
        assert "^C" not in shown
        terminal.type("/bye\r")
        terminal.end()


def test_a_question_that_was_stopped_before_its_answer_is_not_lost(start: Start) -> None:
    """Two questions in a row go to the model as one, so that turns change."""
    with serve(Script(chat(think("hmmm"), end=None), hangs=True), chat("Yes.")) as upstream:
        terminal = start(upstream)
        terminal.type("One?\r")
        terminal.see("hmmm")
        terminal.type("\x03")
        terminal.ready()
        terminal.say("Two?")
    assert said(upstream) == [("user", "One?\n\nTwo?")]


def test_ctrl_c_at_the_prompt_ends_nothing(start: Start) -> None:
    """At the prompt it says how to leave; Ctrl-D leaves."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream)
        terminal.type("half a li\x03")
        terminal.see("Ctrl-D or /bye ends the talk")
        terminal.ready()
        assert "It is 4." in terminal.say("What?")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert said(upstream) == [("user", "What?")]


def test_retry_asks_again_without_the_first_answer(start: Start) -> None:
    """The last question is asked again, and the answer that was retried is forgotten."""
    with serve(chat("Wrong."), chat("Right."), chat("Fine.")) as upstream:
        terminal = start(upstream)
        assert "no question" in terminal.say("/retry")
        terminal.say("What?")
        assert "Right." in terminal.say("/retry")
        assert said(upstream) == [("user", "What?")]
        terminal.say("Ok.")
    assert said(upstream) == [("user", "What?"), ("assistant", "Right."), ("user", "Ok.")]


def test_clear_forgets_the_talk_and_keeps_the_system_prompt(start: Start) -> None:
    """After /clear the model knows nothing of what was said."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream, "--system", "Be short.")
        terminal.say("One?")
        terminal.say("/clear")
        terminal.say("Two?")
    assert said(upstream) == [("system", "Be short."), ("user", "Two?")]


def test_thinking_is_switched_as_the_talk_goes(start: Start) -> None:
    """/think, /think LEVEL and /nothink hold for what is asked next; a value that is none is refused."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream, "--think")
        terminal.say("a")
        assert "thinking: high" in terminal.say("/think high")
        terminal.say("b")
        assert "thinking: off" in terminal.say("/nothink")
        terminal.say("c")
        assert "thinking: on" in terminal.say("/think")
        terminal.say("d")
        refusal = 'invalid value for /think: "hard" (must be true, false, high, medium, low, or max)'
        assert refusal in terminal.say("/think hard")
    assert [body["reasoning_effort"] for body in upstream.asked] == ["medium", "high", "none", "medium"]


def test_thoughts_are_hidden_and_shown(start: Start) -> None:
    """/hide and /show hold for the next reply; the model thinks all the same."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream, "--hidethinking")
        assert "2+2" not in terminal.say("a")
        terminal.say("/show")
        assert "Thinking\r\n  2+2" in terminal.say("b")
        terminal.say("/hide")
        shown = terminal.say("c")
        assert "2+2" not in shown
        assert "It is 4." in shown


def test_a_hidden_thought_has_a_spinner(start: Start) -> None:
    """While a thought is hidden, something moves and tells how much was thought."""
    with serve(Script(chat(think("hm" * 50), end=None), hangs=True)) as upstream:
        terminal = start(upstream, "--hidethinking")
        terminal.type("Well?\r")
        terminal.see("100 characters")
        terminal.type("\x03")
        terminal.ready()


def test_a_talk_is_saved_clean(start: Start, tmp_path: Path) -> None:
    """Markdown for readers, JSON for programs, no thoughts in either; someone else's file stays."""
    (tmp_path / "mine.md").write_text("mine", encoding="utf-8")
    with serve(ANSWER) as upstream:
        terminal = start(upstream)
        assert "nothing to save" in terminal.say("/save")
        terminal.say("What is 2+2?")
        assert "saved to talk.md" in terminal.say("/save talk.md")
        assert "saved to talk.json" in terminal.say("/save talk.json")
        assert "already" in terminal.say("/save mine.md")
        assert "No such file" in terminal.say("/save no/where.md")
        assert "saved to talk-" in terminal.say("/save")
        terminal.say("More?")
        assert "saved to talk.md" in terminal.say("/save talk.md")
    assert json.loads((tmp_path / "talk.json").read_bytes())["messages"] == [
        {"role": "user", "content": "What is 2+2?"},
        {"role": "assistant", "content": "It is 4."},
    ]
    text = (tmp_path / "talk.md").read_text(encoding="utf-8")
    assert "## You\n\nMore?\n" in text
    assert "Thinking" not in text
    assert (tmp_path / "mine.md").read_text(encoding="utf-8") == "mine"


def test_several_lines(start: Start) -> None:
    """Between triple quotes Enter begins a new line, as Alt-Enter does anywhere."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream)
        terminal.type('"""one\r')
        terminal.see("...")
        terminal.type('two"""\r')
        terminal.ready()
        terminal.type("three\x1b\rfour\r")
        terminal.see("It is 4.")
        terminal.ready()
    assert [said(upstream, number)[-1][1] for number in (0, 1)] == ["one\ntwo", "three\nfour"]


def test_the_hint_does_not_look_like_something_typed(tmp_path: Path) -> None:
    """It is grey, and gone with the first key."""
    with (
        serve(ANSWER) as upstream,
        OnScreen(
            "run",
            "m",
            "--url",
            upstream.url,
            HOME=str(tmp_path),
            XDG_CONFIG_HOME=str(tmp_path),
            PROMPT_TOOLKIT_NO_CPR="1",
        ) as asides,
    ):
        assert "90" in asides.until_shows(PLACEHOLDER).look_of(PLACEHOLDER).split(";")
        asides.press("w")
        assert "90" not in asides.until_shows(">>> w").look_of("w").split(";")
        assert PLACEHOLDER not in asides.emulator.text


def test_typed_lines_are_kept_for_their_owner_alone(start: Start, tmp_path: Path) -> None:
    """The next talk recalls what was typed; the file is nobody else's to read."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream)
        terminal.say("Remember me.")
        terminal.type("/bye\r")
        terminal.end()
        kept = tmp_path / "state" / "asides" / "run_history"
        assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
        terminal = start(upstream)
        terminal.type("\x1b[A\x1b[A\r")
        terminal.see("It is 4.")
        terminal.ready()
    assert said(upstream) == [("user", "Remember me.")]


def test_commands_that_are_none(start: Start) -> None:
    """An unknown command is not sent; a path is, and so is anything behind a space."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream)
        assert "there is no command /fly" in terminal.say("/fly away")
        told = terminal.say("/?")
        assert "/retry" in told
        assert max(map(len, told.splitlines())) < 80
        terminal.say("/usr/bin/env what is it?")
        terminal.say(" /fly away")
    assert [said(upstream, number)[-1][1] for number in (0, 1)] == ["/usr/bin/env what is it?", "/fly away"]


def test_a_failure_is_told_and_the_talk_goes_on(start: Start) -> None:
    """A refused question is not sent along with the next one, but /retry asks it again."""
    refusal = fails(400, {"error": {"message": "too long"}})
    with serve(refusal, chat("Yes."), refusal, chat("Now.")) as upstream:
        terminal = start(upstream)
        assert "answered 400: too long" in terminal.say("A long one")
        terminal.say("Short.")
        assert said(upstream) == [("user", "Short.")]
        terminal.say("Again long")
        assert "Now." in terminal.say("/retry")
    assert said(upstream)[-1] == ("user", "Again long")


def test_a_reply_that_breaks_off_stays(start: Start) -> None:
    """What had come when the server died is part of the talk."""
    with serve(chat("Half", end=None), chat("Yes.")) as upstream:
        terminal = start(upstream)
        assert "broke off in the middle of the reply" in terminal.say("Go.")
        terminal.say("And?")
    assert said(upstream) == [("user", "Go."), ("assistant", "Half"), ("user", "And?")]


def test_the_person_plays_the_tools(start: Start, tmp_path: Path) -> None:
    """With --tools a call asks for its result; it goes back with the thinking of that turn, as tool turns need it."""
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    (tmp_path / "tools.json").write_text(json.dumps(tools), encoding="utf-8")
    call = {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"city": "Bonn"}'}}
    with serve(chat(think("must look"), {"tool_calls": [call]}), chat("It rains."), chat("Bye.")) as upstream:
        terminal = start(upstream, "--tools", "tools.json")
        terminal.type("Weather?\r")
        assert 'call weather {"city": "Bonn"}' in terminal.see("weather gives>")
        terminal.type("rain\r")
        terminal.see("It rains.")
        terminal.ready()
        terminal.say("/save talk.json")
        terminal.say("Thanks.")
    saved = (tmp_path / "talk.json").read_text(encoding="utf-8")
    assert "rain" in saved
    assert "must look" not in saved
    sent: list[dict[str, Any]] = upstream.asked[-1]["messages"]
    assert upstream.asked[0]["tools"][0]["function"]["name"] == "weather"
    assert sent[1]["reasoning_content"] == "must look"
    assert sent[2] == {"role": "tool", "tool_call_id": "c1", "content": "rain"}
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "assistant", "user"]


def test_a_talk_is_kept_as_one_conversation(start: Start, tmp_path: Path) -> None:
    """With --save each reply is kept with its thoughts; memory holds the questions and the clean answers."""
    with serve(ANSWER, chat("Sure.")) as upstream:
        terminal = start(upstream, "--save", "--system", "S")
        terminal.say("What is 2+2?")
        terminal.say("Sure?")
        terminal.type("/bye\r")
        assert terminal.end() == 0
    with history.open(str(tmp_path / "data" / "asides" / "history.db")) as store:
        second, first = store.newest()
        memory = [(turn.role, turn.text) for turn in store.conversation(first.conversation)]
    assert [thought.text for thought in first.thoughts] == ["2+2"]
    assert second.conversation == first.conversation
    assert memory == [
        ("system", "S"),
        ("user", "What is 2+2?"),
        ("assistant", "It is 4."),
        ("user", "Sure?"),
        ("assistant", "Sure."),
    ]


def test_another_model_another_prompt_other_parameters(start: Start, tmp_path: Path) -> None:
    """/model, /system, /set and -o hold from then on; what cannot be is refused, and nothing is lost."""
    (tmp_path / "asides").mkdir()
    settings = "models: {other: {extra_body: {top_p: 0.5}}}\n"
    (tmp_path / "asides" / "asides.yaml").write_text(settings, encoding="utf-8")
    with serve(ANSWER, models=("m", "other")) as upstream:
        terminal = start(upstream, "-o", "temperature=0.7", "--option", 'stop=["x"]')
        assert re.search(r"\* m\r\n +other", terminal.say("/model"))
        assert "there is no model 'third'" in terminal.say("/model third")
        terminal.say("One.")
        assert "talking with other" in terminal.say("/model other")
        assert "no system prompt" in terminal.say("/system")
        assert "system prompt: Be short." in terminal.say("/system Be short.")
        assert 'top_p 0.5, temperature 0.2, stop ["x"]' in terminal.say("/set temperature 0.2")
        assert "max_tokens must be a whole number" in terminal.say("/set max_tokens many")
        assert "not to be set here" in terminal.say("/set messages []")
        assert "takes a name and a value" in terminal.say("/set top_k")
        assert "stop [" not in terminal.say("/unset stop")
        assert "not set here" in terminal.say("/unset stop")
        assert "thinking: off" in terminal.say("/think off")
        terminal.say("Two.")
        terminal.say("/system none")
        assert "thinking: high" in terminal.say("/think high")
        terminal.say("/clear")
        terminal.say("Three.")
    first, second, third = upstream.asked
    assert (first["model"], first["temperature"], first["stop"], "top_p" in first) == ("m", 0.7, ["x"], False)
    assert (second["model"], second["temperature"], second["top_p"], "stop" in second) == ("other", 0.2, 0.5, False)
    assert second["reasoning_effort"] == "none"
    assert second["messages"][0] == {"role": "system", "content": "Be short."}
    assert third["messages"] == [{"role": "user", "content": "Three."}]
    assert third["reasoning_effort"] == "high"


def test_thoughts_may_go_elsewhere(tmp_path: Path) -> None:
    """Where standard error is a file, Ctrl-T still writes the thought to the screen, and to the screen alone."""
    kept = tmp_path / "stderr"
    with serve(ANSWER) as upstream:
        terminal = Terminal(tmp_path, "m", "--url", upstream.url, "--hidethinking", stderr=kept)
        terminal.ready()
        assert "2+2" not in terminal.say("What?")
        terminal.type("\x14")
        assert "▾ Thought for" in terminal.see("  2+2")
        terminal.ready()
        terminal.type("\x04")
        assert terminal.end() == 0
    assert "2+2" not in kept.read_text(encoding="utf-8")


def test_tokens_and_times(start: Start) -> None:
    """Behind each reply with --verbose, until /verbose turns it off."""
    with serve(ANSWER) as upstream:
        terminal = start(upstream, "-v")
        shown = terminal.say("What?")
        for figure in (
            r"tokens +5 \(about \d of them thinking, 3 in the prompt\)",
            r"format +auto",
            r"begins in +text \(a guess\): nothing is known of the model",
            *(rf"{each} +\d+\.\d\d s" for each in TIMES),
        ):
            assert re.search(figure, shown)
        terminal.say("/verbose")
        assert "tokens" not in terminal.say("What?")


def test_a_talk_goes_on_from_the_history(start: Start, tmp_path: Path) -> None:
    """-c has the turns, model, thoughts and system prompt of the last talk, and keeps what follows there."""
    with serve(ANSWER, chat("Wrong."), chat("Right."), chat(think("three"), "Third."), chat("Once.")) as upstream:
        terminal = start(upstream, "--save", "--system", "S")
        terminal.say("First?")
        terminal.say("Second?")
        terminal.say("/retry")
        terminal.type("/bye\r")
        terminal.end()
        terminal = Terminal(tmp_path, "-c", "--url", upstream.url)
        assert "goes on with a talk of 3 replies" in terminal.ready()
        assert "  2+2" in terminal.say("/thought")
        terminal.say("Third?")
        terminal.type("/view\r")
        assert "First?" in terminal.see("q quit")
        terminal.type("q")
        terminal.ready()
        terminal.type("/bye\r")
        terminal.end()
        once = Terminal(tmp_path, "m", "-c", "Fourth?", "--url", upstream.url)
        assert "Once." in once.rest()
    assert [body["model"] for body in upstream.asked] == ["m"] * 5
    answers = [("user", "First?"), ("assistant", "It is 4."), ("user", "Second?"), ("assistant", "Right.")]
    third = [("user", "Third?"), ("assistant", "Third.")]
    assert said(upstream) == [("system", "S"), *answers, *third, ("user", "Fourth?")]
    with history.open(str(tmp_path / "data" / "asides" / "history.db")) as store:
        assert len({reply.conversation for reply in store.newest()}) == 1


def test_there_must_be_a_talk_to_go_on_with(tmp_path: Path) -> None:
    """Else it is an error in words."""
    terminal = Terminal(tmp_path, "-c")
    assert "asides:" in terminal.rest()
    assert terminal.end() == 2


class UntilOrdered(list[bytes]):
    """Pieces of which those behind the first wait for an order."""

    upstream: Upstream

    def __iter__(self) -> Iterator[bytes]:
        for place, piece in enumerate(super().__iter__()):
            if place:
                assert self.upstream.ordered.wait(PATIENCE)
            yield piece


@pytest.mark.parametrize(
    ("owner", "paths"),
    [
        ("llamacpp", ["/v1/chat/completions/control"]),
        ("gateway", ["/asides/requests/r7/answer-now"]),
        ("nobody", ["/v1/chat/completions/control"]),
    ],
)
def test_answer_now(start: Start, owner: str, paths: list[str]) -> None:
    """Ctrl-N ends the thought at llama.cpp and behind the gateway; another server is said to have no such thing."""
    pieces = UntilOrdered(chat(think("hmm"), "It is 4."))
    headers = [("X-Request-Id", "r7")] if owner == "gateway" else []
    with serve(Script(pieces, headers=headers), owner=owner) as upstream:
        pieces.upstream = upstream
        terminal = start(upstream, "--hidethinking")
        terminal.type("What?\r")
        terminal.see("Ctrl-N answers now" if owner == "llamacpp" else "Ctrl-T shows it")
        terminal.type("\x0e")
        if owner == "nobody":
            assert upstream.url in terminal.see("cannot end a thought")
            upstream.ordered.set()
        assert "It is 4." in terminal.ready()
    assert [path for path, _ in upstream.orders] == paths
    if paths[0].endswith("control"):
        assert upstream.orders[0][1] == {"id": "c1", "action": "reasoning_end"}
    assert upstream.asked[0].get("reasoning_control", False) is (owner == "llamacpp")


def test_what_went_wrong_is_reported_as_what_it_is(start: Start) -> None:
    """A connection that breaks, a server that wants to be left alone for a while, a web page."""
    busy = Script([b'{"error": {"message": "slow down"}}'], 429, "application/json", headers=[("Retry-After", "20")])
    page = Script([b"<html><body>Sign in</body></html>"], 200, "text/html; charset=utf-8")
    gone = Script(chat(think("hm"), "Half", end=None), breaks=True)
    with serve(busy, page, gone, chat("Fine.")) as upstream:
        terminal = start(upstream)
        assert "answered 429: slow down; it may be asked again in 20 s" in plain(terminal.say("a"))
        assert "answered with a web page; is this the address of a model server?" in plain(terminal.say("b"))
        broken = plain(terminal.say("c"))
        assert "Half" in broken
        assert "broke off in the middle of the reply (Connection reset by peer)" in broken
        assert "Fine." in terminal.say("d")


def plain(shown: str) -> str:
    """What was shown, without the line ends at which it was broken."""
    return " ".join(shown.split())


@contextmanager
def without_the_library(folder: Path) -> Iterator[str]:
    """A place for PYTHONPATH where the terminal library cannot be imported."""
    (folder / "shadow").mkdir()
    (folder / "shadow" / "prompt_toolkit.py").write_text("raise ImportError\n", encoding="utf-8")
    yield os.pathsep.join([str(folder / "shadow"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)


@pytest.mark.parametrize("case", ["no library", "dumb"])
def test_a_plain_terminal_will_do(start: Start, tmp_path: Path, case: str) -> None:
    """Without the terminal library, or at a dumb terminal, lines are read plainly; blocks and Ctrl-C work."""
    with without_the_library(tmp_path) as path, serve(ANSWER) as upstream:
        terminal = start(upstream, **({"PYTHONPATH": path} if case == "no library" else {"TERM": "dumb"}))
        terminal.type("\x03")
        assert terminal.see("Ctrl-D or /bye").endswith("\n")
        terminal.ready()
        terminal.type('"""one\r')
        terminal.see("...")
        terminal.type('two"""\r')
        assert "2+2" in terminal.ready()
        terminal.type("\x04")
        assert terminal.rest().endswith("\n")
        assert terminal.end() == 0
        changes = {"PYTHONPATH": path} if case == "no library" else {"TERM": "dumb"}
        refused = Terminal(tmp_path, "m", "--url", upstream.url, "--mouse", **changes)
        assert "--mouse needs prompt_toolkit" in refused.rest()
    assert said(upstream) == [("user", "one\ntwo")]
