"""`asides demo`: every recording plays, and shows what it says it shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import asides
from asides._cli.demo.command import chunks, scenes
from asides._cli.demo.gateway import CLIENTS
from asides._cli.demo.panes import Panes, PaneText
from asides._recordings.replies import recordings as replies
from tests.cli.running import OnScreen, environment, run
from tests.waiting import PATIENCE


def parts(title: str) -> list[type]:
    recording = next(recording for recording in scenes() if title in recording.title)
    parser = asides.Parser(recording.format, start=recording.start)
    for chunk in chunks(recording.output):
        parser.feed(chunk)
    parser.finish()
    return [type(part) for part in parser.message.parts]


@pytest.fixture(scope="module")
def shown() -> str:
    """What it writes to a pipe."""
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def test_it_says_what_it_is_and_shows_every_recording(shown: str) -> None:
    assert shown.startswith("This is a recording")
    for recording in scenes():
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


def test_two_panes_show_raw_output_and_its_parts() -> None:
    """Whatever has come: what is in no part is a marker, and a part grows beside it."""
    recording = next(recording for recording in scenes() if recording.title == "A thought, an answer")
    panes = Panes(asides.Parser(recording.format), 100)
    for chunk in chunks(recording.output):
        panes.feed(chunk)
        left = "".join(text for row, _ in panes.rows() for text, _ in row)
        assert recording.output.replace("\n", "").startswith(left)
    panes.finish()
    rows = panes.rows()
    assert rows[0] == ((PaneText("<think>", "marker"),), (PaneText("thinking", "label"),))
    assert rows[-1][0] == (PaneText("17 × 23 is 391.", "text"), PaneText("<|im_end|>", "marker"))
    assert [row[0].text for _, row in rows if row][-2:] == ["answer", "17 × 23 is 391."]


def test_chunks_lose_nothing() -> None:
    for recording in scenes():
        assert "".join(chunks(recording.output)) == recording.output


def test_on_a_terminal_words_stay_beside_their_label() -> None:
    """Lines that are too long go on beside the label, not below it; what the model wrote is not touched."""
    with OnScreen("demo", "--fast", columns=70) as asides:
        assert asides.end() == 0
        lines = asides.emulator.text.splitlines()
    beside = next(number for number, line in enumerate(lines) if line.startswith("  thinking | Explain the tag."))
    assert lines[beside : beside + 3] == [
        "  thinking | Explain the tag. I must quote it: `</think>` would end",
        "           | my thought here.",
        "  answer   | The model closes its thoughts with `</think>`:",
    ]
    fields = next(number for number, line in enumerate(lines) if line.startswith("  message.thinking | A haiku"))
    assert all(line[19:20] == "|" for line in lines[fields : fields + 6])


def test_every_kind_of_client_is_shown_the_gateway(shown: str) -> None:
    """Each kind of client asks a real gateway, and its thinking stands beside the name of its own field."""
    for client in CLIENTS:
        assert client.name in shown
        thinking, answer = (".".join(field) for field in (client.thinking, client.answer))
        assert f"  {thinking:<{max(len(thinking), len(answer))}} | " in shown
        assert f"  {answer:<{max(len(thinking), len(answer))}} | " in shown
    known = replies().recording
    assert all(known[number].thinking.splitlines()[-1] in shown for number in range(len(CLIENTS)))
    for line in (
        "asides serve",
        "asides run recorded-qwen3",
        "curl -N http://127.0.0.1:8777/",
        "openai.OpenAI(",
        "anthropic.Anthropic(",
        "ollama.Client(",
    ):
        assert line in shown


def test_what_it_prints_can_be_typed(tmp_path: Path) -> None:
    """Where the shell does not find `asides`, by the path of the one that runs; where it does, by its name."""
    script = Path(sys.executable).with_name("asides")
    for path, folder, command in (
        (os.defpath, script.parents[2], os.path.join(script.parents[1].name, "bin", "asides")),
        (os.defpath, tmp_path, str(script)),
        (f"{script.parent}:{os.defpath}", tmp_path, "asides"),
    ):
        environ = {**environment(), "PATH": path}
        done = subprocess.run(
            [sys.executable, "-m", "asides", "demo", "--fast"], cwd=folder, env=environ, capture_output=True,
            timeout=PATIENCE, check=True,
        )  # fmt: skip
        shown = done.stdout.decode()
        assert f"\n  {command} serve\n" in shown
        assert f"\n  {command} run recorded-qwen3\n" in shown
        version = subprocess.run([command, "--version"], cwd=folder, env=environ, timeout=PATIENCE, check=True)
        assert version.returncode == 0


def test_without_the_extra_it_says_how_to_get_it() -> None:
    """Where the gateway's packages are missing the rest plays all the same."""
    program = "import sys; sys.modules['httptools'] = None; from asides._cli import main; sys.exit(main(['demo']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, b"")
    shown = done.stdout.decode()
    assert "pip install aiohappyeyeballs" in shown
    assert CLIENTS[0].name not in shown
