"""`asides completion`: what real shells complete with its scripts."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pexpect  # type: ignore[import-untyped]
import pytest

from asides._cli import COMMANDS
from asides._cli.completion import completed_commands
from tests.cli.running import environment, run
from tests.waiting import PATIENCE

CASES = [
    ("asides spl", {"split"}),
    ("asides --colla", {"--collapse"}),
    ("asides --start ", {"text", "thinking", "undecided"}),
    ("asides split -f mist", {"mistral"}),
    ("asides split --tools repl", {"reply.txt"}),
    ("asides view repl", {"reply.txt"}),
    ("asides repl", {"reply.txt"}),
    ("asides formats mist", {"mistral"}),
    ("asides history sea", {"search"}),
    ("asides history list --mode", {"--model"}),
    ("asides completion ", {"bash", "zsh", "fish"}),
    ("asides run --hid", {"--hidethinking"}),
]
FAMILY = ("asides formats erni", {"ernie45", "ernie"})
"""A family is a name there too. Not for zsh, which types what both begin with before it lists them."""
JOINED = [("asides run --think=hi", {"--think=high"}), ("asides --start=te", {"--start=text"})]
"""A value after `=`; for `--think` there is no other."""
AFTER_EQUALS = [
    ("asides --start =te", {"text"}),
    ("asides run --think =hi", {"high"}),
    ("asides run --think =", {"true", "false", "low", "medium", "high", "max"}),
    ("asides run --think hi", set()),
]
"""As bash parts them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a script for each shell, and a file."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "reply.txt").touch()
    for shell in ("bash", "zsh", "fish"):
        done = run("completion", shell)
        assert (done.returncode, done.stderr) == (0, b"")
        (folder / f"script.{shell}").write_bytes(done.stdout)
    return folder


def _shell(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here")
    return found


def _output(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, env=environment(HOME=str(folder)), timeout=PATIENCE)
    assert done.stderr == b""
    return done.stdout.decode()


@pytest.mark.parametrize(("typed", "expected"), [*CASES, FAMILY, *AFTER_EQUALS])
def test_bash(folder: Path, typed: str, expected: set[str]) -> None:
    """Called as the shell calls it: with the words that it made of the line."""
    script = 'source script.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _asides; printf "%s\\n" "${COMPREPLY[@]}"'
    words = re.sub("=(?=.)", "= ", typed).split(" ")
    assert set(_output(folder, _shell("bash"), "--norc", "-c", script, "x", *words).split()) == expected


@pytest.mark.parametrize(("typed", "expected"), [*CASES, FAMILY, *JOINED])
def test_fish(folder: Path, typed: str, expected: set[str]) -> None:
    script = f"source script.fish; complete -C '{typed}'"
    lines = _output(folder, _shell("fish"), "--no-config", "-c", script).splitlines()
    assert {line.split("\t")[0] for line in lines} == expected


def test_zsh(folder: Path) -> None:
    """At its prompt, with the key: one word is completed, of several a list is shown."""
    shell = pexpect.spawn(
        _shell("zsh"), ["-f"], cwd=str(folder), env=environment(HOME=str(folder), TERM="dumb"), encoding="utf-8",
        timeout=PATIENCE, dimensions=(40, 120),
    )  # fmt: skip
    shell.sendline("PROMPT='ready> '; autoload -U compinit; compinit -u; source script.zsh; echo lo''aded")
    shell.expect("loaded")
    for typed, expected in [*CASES, *JOINED]:
        shell.expect("ready> ")
        shell.send(f"{typed}\t")
        if len(expected) > 1:
            for _ in expected:
                shell.expect("|".join(expected))
        # The line as it is now is printed by the shell itself: to its beginning, a command there, Enter.
        shell.send("\x01print -r -- DONE \r")
        shell.expect(r"\nDONE ([^\r]*)\r")
        assert shell.match is not None
        line = shell.match[1].strip()
        assert line == (f"{typed.rpartition(' ')[0]} {next(iter(expected))}" if len(expected) == 1 else typed.strip())
    shell.close(force=True)


def test_every_command_is_there() -> None:
    """With its flags, and without what it keeps to itself."""
    commands = {command.name: command for command in completed_commands()}
    assert set(COMMANDS) < set(commands)
    for name, command in commands.items():
        flags = [flag for each in command.flags for flag in each.names]
        assert "--help" in flags
        assert all(flag.about for flag in command.flags), name


def test_a_shell_that_is_not_known() -> None:
    done = run("completion", "tcsh")
    assert (done.returncode, done.stdout) == (2, b"")
