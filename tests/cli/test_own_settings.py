"""The user's own configuration file before the filter, `split` and `view`: it holds where no flag says otherwise."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from asides import _history as history
from asides._config import load
from tests.cli.running import COMMAND, OnScreen, environment, run

REPLY = b"<think>2+2</think>It is 4."
AS_WRITTEN = """\
# config.yaml
think_tags:
  enabled: true          # Enable/disable parsing
  display_in_ui: true    # Show in UI or just remove
  save_to_memory: false  # Optionally save to memory
  display_style: "blue"  # Color: blue, cyan, grey
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "asides").mkdir()
    return tmp_path / "asides" / "asides.yaml"


def test_the_section_as_it_is_written(own: Path) -> None:
    """It changes nothing, and it is no mistake."""
    own.write_text(AS_WRITTEN)
    done = run(given=REPLY)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"It is 4.", b"Thinking\n  2+2\n")
    assert not (own.parents[1] / "data").exists()


def test_not_enabled(own: Path, tmp_path: Path) -> None:
    """Then nothing is split, but a flag may still ask for it."""
    own.write_text("think_tags: {enabled: false}")
    path = tmp_path / "reply.txt"
    path.write_bytes(REPLY)
    assert run(given=REPLY).stdout == REPLY
    assert run(path).stdout == REPLY
    assert REPLY in run("view", path).stdout
    assert run("-f", "qwen3", given=REPLY).stdout == b"It is 4."
    assert load().defaults.format == "none"


def test_not_shown(own: Path) -> None:
    own.write_text("think_tags: {display_in_ui: false}")
    done = run(given=REPLY)
    assert (done.stdout, done.stderr) == (b"It is 4.", b"")
    assert b"Thinking (3" in run("--collapse", given=REPLY).stderr
    assert load().run.hide_thinking


def test_kept(own: Path, tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    own.write_text(f"think_tags: {{save_to_memory: true}}\nhistory: {{store: {store}}}")
    assert run(given=REPLY).returncode == 0
    with history.open(str(store), create=False) as opened:
        assert [kept.reply.thoughts[0].text for kept in opened.replies()] == ["2+2"]
    assert load().history.save


def test_our_own_settings_win(own: Path) -> None:
    own.write_text(
        "think_tags: {enabled: false, display_in_ui: false, save_to_memory: true, display_style: grey}\n"
        "defaults: {format: qwen3}\nrun: {hide_thinking: false}\nhistory: {save: false}\nterminal: {heading: red}\n"
    )
    config = load()
    assert (config.defaults.format, config.run.hide_thinking, config.history.save) == ("qwen3", False, False)
    assert (config.terminal.heading, config.terminal.text) == ("red", "dim")


@pytest.mark.parametrize("command", [[], ["view", "--expand"]])
def test_the_look(own: Path, tmp_path: Path, command: list[str]) -> None:
    """The colour of the heading is the file's, unless a flag or a variable names another."""
    path = tmp_path / "reply.txt"
    path.write_bytes(REPLY)
    own.write_text('think_tags: {display_style: "magenta"}')
    for flags, code in (([], "35"), (["--style", "heading=green"], "32")):
        with OnScreen(*command, path, *flags) as screen:
            assert code in screen.until_shows("Thinking").look_of("Thinking").split(";")
            if command:
                screen.press("q")
            screen.end()


def test_reading(own: Path) -> None:
    """The format, markers of one's own and policies are those of `defaults`."""
    own.write_text('defaults: {tags: {"<a>": "</a>"}, whitespace: exact}')
    assert run("--hide", given=b"<a>x</a>\n4").stdout == b"\n4"
    assert run("--hide", "-f", "qwen3", given=REPLY).stdout == b"It is 4."
    own.write_text("defaults: {format: qwen3, start: thinking}")
    assert run("--hide", given=b"x</think>4").stdout == b"4"
    assert run("--hide", "--start", "text", given=b"4").stdout == b"4"


def test_a_file_that_cannot_be_read_costs_nobody_the_answer(own: Path) -> None:
    own.write_text("think_tags: {enabeld: true}")
    done = run(given=REPLY)
    assert (done.returncode, done.stdout) == (0, b"It is 4.")
    assert b"did you mean enabled" in done.stderr
    assert b"the configuration is ignored" in done.stderr


def test_without_a_file_nothing_is_imported_for_it(own: Path) -> None:
    script = (
        "import sys\nfrom asides._cli import main\nmain([])\n"
        "print('', *(name for name in sys.modules if name.startswith('asides._config.') or name == 'yaml'))\n"
    )
    done = subprocess.run([COMMAND[0], "-c", script], input=REPLY, capture_output=True, env=environment())
    assert done.stdout.split() == [b"It", b"is", b"4."]
