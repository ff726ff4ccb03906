"""`asides demo`: every recording plays, and shows what it says it shows."""

from __future__ import annotations

import asides
from asides.cli.demo import chunks, recordings
from tests.cli.running import run


def parts(title: str) -> list[type]:
    recording = next(recording for recording in recordings() if title in recording.title)
    parser = asides.Parser(recording.format, start=recording.start)
    for chunk in chunks(recording.output):
        parser.feed(chunk)
    parser.finish()
    return [type(part) for part in parser.message.parts]


def test_it_says_what_it_is_and_shows_every_recording() -> None:
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    assert shown.startswith("This is a recording")
    for recording in recordings():
        assert recording.title in shown
    assert "\x1b" not in shown


def test_the_recordings_show_what_they_say() -> None:
    assert parts("A thought, an answer") == [asides.Thinking, asides.Text]
    assert parts("A lone close") == [asides.Thinking, asides.Text]
    assert parts("only a draft") == [asides.Thinking, asides.Text, asides.ToolCall]
    assert parts("Channels") == [asides.Thinking, asides.Text]
    assert parts("A call by its header") == [asides.Thinking, asides.Text, asides.ToolCall]
    assert parts("only talked about") == [asides.Thinking, asides.Text]
    assert parts("the end comes too soon") == [asides.Thinking, asides.Text, asides.Thinking]


def test_chunks_lose_nothing() -> None:
    for recording in recordings():
        assert "".join(chunks(recording.output)) == recording.output
