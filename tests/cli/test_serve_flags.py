"""The flags of `asides serve`, as a real process: what reaches the gateway, what is refused, what is said."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from asides._cli.serve import _flags, _parser
from asides._config.loading import FLAGS
from tests.cli.running import COMMAND, OnScreen, Running, environment, run
from tests.gateway.upstream import json_reply, upstream
from tests.ports import held_port
from tests.waiting import PATIENCE


def serve(folder: Path, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, where it finds no file but the folder's."""
    environ = {name: value for name, value in environment().items() if not name.startswith("ASIDES_")}
    return subprocess.run(
        [*COMMAND, "serve", *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=folder,
        env={**environ, "XDG_CONFIG_HOME": str(folder / "none"), **changes},
    )


def test_help_teaches() -> None:
    """It names every flag, shows examples, and tells what wins."""
    done = run("serve", "--help")
    said = done.stdout.decode()
    assert done.returncode == 0
    assert all(flag in said for flag in (*FLAGS.values(), "--config", "--check"))
    # What a newcomer needs first is an address alone: the format is found.
    assert said.partition("examples:\n")[2].startswith("  asides serve --upstream http://127.0.0.1:8000/v1   ")
    assert "Flags win over variables, variables over the file" in said
    assert max(map(len, said.splitlines())) <= 90


def test_each_flag_stands_for_the_setting_that_the_table_says() -> None:
    """What the documentation's table is made from is what the parser does."""
    values: dict[str, list[str]] = {"--log-json": [], "--log-bodies": [], "--save": []}
    for setting, flag in FLAGS.items():
        given = _flags(_parser().parse_args([flag, *values.get(flag, ["x"])]))
        assert [name for name, value in given.items() if value is not None] == [setting]


def test_mistakes_are_told_together_with_exit_code_2(tmp_path: Path) -> None:
    """Flags, variables and the file: no traceback, one report, nothing on standard output."""
    (tmp_path / "asides.yaml").write_text("listen: {prot: 1}\n")
    done = serve(tmp_path, "--port", "http", "--format", "qwenn3", ASIDES_LOG_LEVEL="loud")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("asides: the configuration has 4 mistakes:\n")
    assert '--port: must be a whole number from 0 to 65535, not "http"' in done.stderr
    assert "did you mean qwen3" in done.stderr
    assert "ASIDES_LOG_LEVEL: must be" in done.stderr
    assert "asides.yaml:1: listen.prot: unknown key; did you mean port?" in done.stderr


def test_an_unknown_flag_is_refused(tmp_path: Path) -> None:
    """With exit code 2 and where to read more; a flag cannot be shortened into another."""
    for flag in ("--prot", "--up"):
        done = serve(tmp_path, flag, "1")
        assert done.returncode == 2
        assert "see `asides serve --help`" in done.stderr


def test_without_the_packages_of_the_gateway_the_extra_is_named(tmp_path: Path) -> None:
    """The error says what to install."""
    script = (
        "import sys\n"
        "sys.modules['uvicorn'] = None\n"
        "from asides._cli import main\n"
        "sys.exit(main(['serve', '--port', '0']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE
    )
    assert done.returncode == 2
    assert "pip install aiohappyeyeballs cryptography 'httptools<0.10'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody listens."""
    with held_port() as port:
        yield port


def test_check_shows_the_configuration_without_secrets(tmp_path: Path, closed_port: int) -> None:
    """Every value with where it came from; an upstream that cannot be reached is told by the exit code."""
    (tmp_path / "asides.yaml").write_text("limits: {connect: 2}\nkeys: [hunter2-file]\n")
    flags = (
        "--check",
        "--upstream",
        f"http://127.0.0.1:{closed_port}/v1",
        "--upstream-key",
        "hunter2-flag",
        "--format",
        "qwen3",
        "--log-json",
        "--log-bodies",
    )
    done = serve(tmp_path, *flags, ASIDES_PORT="5")
    assert done.returncode == 1
    assert "hunter2" not in done.stdout + done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "format: qwen3  # --format" in lines
    assert "port: 5  # ASIDES_PORT" in lines
    assert "connect: 2.0  # asides.yaml:1" in lines
    assert "form: json  # --log-json" in lines
    assert 'key: "(hidden)"  # --upstream-key' in lines
    assert "--upstream-key: other users of this machine can see the key in the list of processes" in done.stderr
    assert "log.bodies is on" in done.stderr
    assert f"http://127.0.0.1:{closed_port}/v1" in done.stdout.partition("upstreams:")[2]
    assert "Traceback" not in done.stderr

    with_user = ("--check", "--upstream", f"http://me:hunter2-url@127.0.0.1:{closed_port}/v1")
    done = serve(tmp_path, *with_user)
    assert done.returncode == 1
    assert "hunter2" not in done.stdout + done.stderr
    done = serve(tmp_path, *with_user, "--upstream-key", "hunter2-flag")
    assert done.returncode == 2
    assert "--upstream-key: upstreams[0].key: the address holds a user already" in done.stderr


def test_a_file_of_the_current_folder_is_named_with_its_addresses(tmp_path: Path, closed_port: int) -> None:
    """On stderr, whatever the file says of logs; the key in the environment stays here."""
    url = f"http://127.0.0.1:{closed_port}/v1"
    (tmp_path / "asides.yaml").write_text(f"upstreams: [{{url: '{url}'}}]\nlog: {{level: error}}\n")
    done = serve(tmp_path, "--check", ASIDES_UPSTREAM_KEY="sk-own")
    assert f"using asides.yaml of the current folder; its requests go to {url}\n" in done.stderr
    assert "ASIDES_UPSTREAM_KEY does not count" in done.stderr
    assert "sk-own" not in done.stdout + done.stderr
    assert "# ASIDES_UPSTREAM_KEY" not in done.stdout
    named = serve(tmp_path, "--check", "--config", "asides.yaml", ASIDES_UPSTREAM_KEY="sk-own")
    assert "of the current folder" not in named.stderr
    assert "# ASIDES_UPSTREAM_KEY" in named.stdout


def first_event(gateway: Running) -> dict[str, Any]:
    """The line that says where the gateway listens."""
    read = gateway.read_until(gateway.stderr, b'"event":"listening"')
    read += gateway.read_until(gateway.stderr, b"\n") if not read.endswith(b"\n") else b""
    lines = [msgspec.json.decode(line) for line in read.splitlines() if line.startswith(b"{")]
    found: dict[str, Any] = next(line for line in lines if line.get("event") == "listening")
    return found


def test_flags_reach_the_gateway_and_ctrl_c_ends_it() -> None:
    """It listens on a free port of the host that was asked for, and ends without a traceback."""
    arguments = ("serve", "--config", os.devnull, "--host", "localhost", "--port", "0", "--log-json")
    with Running(*arguments, "--upstream", "http://127.0.0.1:9") as gateway:
        event = first_event(gateway)
        assert event["url"].rpartition(":")[2] not in ("0", "8777")
        gateway.process.send_signal(signal.SIGINT)
        rest = gateway.read_rest(gateway.stderr)
        assert gateway.wait() in (0, 130)
        assert b"Traceback" not in rest


def started(*arguments: str, until: bytes) -> bytes:
    """What the gateway writes to a terminal when it starts, up to these words and the end of their line."""
    with Running("serve", "--config", os.devnull, "--port", "0", *arguments, terminals="stderr") as gateway:
        said = gateway.read_until(gateway.stderr, until)
        while not said.endswith(b"\n"):
            said += gateway.read_until(gateway.stderr, b"\n")
    return said.replace(b"\r", b"")


def test_on_a_terminal_it_says_whether_the_upstream_answers() -> None:
    """One that listens, one that wants another key, one that fails, and one that is not there."""
    for status, words in (
        (200, rb"info the upstream \S+ answers$"),
        (401, rb"info the upstream \S+ answers, and wants another key \(401\)$"),
        (503, rb"warning the upstream \S+ answers with status 503$"),
    ):
        with upstream() as server:
            if status != 200:
                server.send(json_reply({}, status), "/v1/models")
            said = started("--upstream", server.url, until=b" answers")
        assert re.search(words, b" ".join(said.split()))  # a long line is wrapped
    said = started("--upstream", "http://127.0.0.1:9/v1", until=b"cannot be reached")
    assert b"http://127.0.0.1:9" in said


def test_without_an_upstream_it_names_what_to_try() -> None:
    """The conversation and the page, at an address that works, and one for other machines."""
    for host in ("127.0.0.1", "0.0.0.0"):
        said = started("--host", host, until=b"and others, see").decode()
        found = re.search(r"\n  \S*asides run recorded-qwen3 --url (http://127\.0\.0\.1:\d+)\n", said)
        assert found is not None
        assert "Try it in another terminal, or in a browser:\n" in said
        assert "( • ) asides" in said
        assert f"page  {found[1]}/?token=" in said
        assert f"API   {found[1]}/v1" in said
        assert re.search(rf"\n  {re.escape(found[1])}/\?token=[\w-]{{43}}\n", said)
        assert f"curl -N {found[1]}/v1/chat/completions" in said
        assert (f"from here it is {found[1]}" in " ".join(said.split())) == (host == "0.0.0.0")


def test_ctrl_c_while_it_starts_ends_with_130(tmp_path: Path) -> None:
    """Before the gateway runs, Ctrl-C is the exit code of Ctrl-C and no traceback."""
    fifo = tmp_path / "asides.yaml"
    os.mkfifo(fifo)
    with Running("serve", "--config", fifo) as gateway:
        with fifo.open("wb"):  # opens only once the command reads its configuration, and holds it there
            gateway.process.send_signal(signal.SIGINT)
            assert gateway.wait() == 130
        assert b"Traceback" not in gateway.read_rest(gateway.stderr)


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_start_lines_are_wrapped_between_words(tmp_path: Path, columns: int) -> None:
    """On a terminal. Commands are left as they are, so that they can be copied."""
    with OnScreen(
        "serve", "--port", "0", "--host", "0.0.0.0", columns=columns, rows=60, XDG_CONFIG_HOME=str(tmp_path)
    ) as screen:
        screen.until_shows("/v1/models")
        lines = screen.emulator.lines
    whole = " ".join(line.strip() for line in lines)
    for words in ("set `keys` (or ASIDES_KEYS)", "so this gateway replays recordings: no model is running"):
        assert words in whole
    address = re.search(r"from here it is (\S+)", whole)
    assert address is not None
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+,?", address[1])
    prose = [line for line in lines if line.startswith("20") or line.startswith("No upstream")]
    assert prose
    assert all(len(line) < columns for line in prose)
    if columns >= 80:
        assert all(len(line) < columns for line in lines), "a command is cut"
