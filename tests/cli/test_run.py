"""`asides run` asked once, as a real process: which server, which model, what goes where, exit codes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from asides import _history as history
from asides._cli import main
from asides._cli.run.server import ollama_url
from tests.cli.running import COMMAND, OnScreen, Running, environment, unmeasured
from tests.client.upstream import Script, chat, fails, lines, serve, think
from tests.ports import held_port
from tests.waiting import PATIENCE

ANSWER = chat(think("2+2"), "It is ", "4.")
UNSET = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OLLAMA_HOST")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No configuration and no server of the person who runs the tests."""
    for name in [*UNSET, *(name for name in os.environ if name.startswith("ASIDES_"))]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


class Done(NamedTuple):
    """What a command has done."""

    stdout: bytes
    stderr: bytes
    returncode: int


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """The command in this process, which is fast; its standard streams are real files."""

    def here(*arguments: str, given: bytes = b"", **changes: str) -> Done:
        (tmp_path / "given").write_bytes(given)
        own = os.dup(0)
        capfdbinary.readouterr()
        try:
            with monkeypatch.context() as patch, open(tmp_path / "given", "rb") as file:
                for name, value in changes.items():
                    patch.setenv(name, value)
                os.dup2(file.fileno(), 0)
                code = main(["run", *arguments])
        finally:
            os.dup2(own, 0)
            os.close(own)
        return Done(*capfdbinary.readouterr(), code)

    return here


def own_config(tmp_path: Path) -> Path:
    """The file in the user's own configuration folder."""
    folder = tmp_path / "asides"  # XDG_CONFIG_HOME is tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "asides.yaml"


# What goes where.


def test_standard_output_is_exactly_the_answer() -> None:
    """On a pipe the answer has nothing beside it, not even a newline; thoughts are on standard error."""
    with serve(ANSWER) as upstream:
        command = [*COMMAND, "run", "m", "What is", "2+2?", "--url", upstream.url]
        done = subprocess.run(command, input=b"", capture_output=True, timeout=PATIENCE, env=environment())
    assert (done.stdout, done.returncode) == (b"It is 4.", 0)
    assert done.stderr == b"Thinking\n  2+2\n"
    assert upstream.asked[0]["messages"] == [{"role": "user", "content": "What is 2+2?"}]


def test_a_terminal_gets_a_last_newline() -> None:
    """For a person the shell's prompt begins on a line of its own."""
    with (
        serve(ANSWER) as upstream,
        Running("run", "m", "What?", "--url", upstream.url, terminals="stdin stdout") as asides,
    ):
        assert asides.read_rest(asides.stdout) == b"It is 4.\r\n"


def test_colours_are_for_terminals() -> None:
    """Thoughts are coloured on a terminal, and not where NO_COLOR is set."""
    with serve(ANSWER) as upstream:
        for changes, coloured in (({}, True), ({"NO_COLOR": "1"}, False)):
            with Running("run", "m", "What?", "--url", upstream.url, terminals="stderr", **changes) as asides:
                asides.close(asides.stdin)
                shown = asides.read_rest(asides.stderr)
            assert b"2+2" in shown
            assert (b"\x1b[2m" in shown) is coloured


def test_hidden_thoughts_are_not_written(run: Run) -> None:
    """`--hidethinking` leaves standard error empty on a pipe; the model is not told to stop thinking."""
    with serve(ANSWER) as upstream:
        done = run("m", "--hidethinking", "What?", "--url", upstream.url)
    assert (done.stdout, done.stderr) == (b"It is 4.", b"")
    assert "reasoning_effort" not in upstream.asked[0]


def test_standard_input_comes_before_the_prompt(run: Run) -> None:
    """As `ollama run` joins them: what is piped in, a space, the words."""
    with serve(ANSWER) as upstream:
        run("m", "Translate", "this.", "--url", upstream.url, given=b"Hallo\n")
        run("m", "--url", upstream.url, given="Größe?".encode())
    assert [body["messages"][0]["content"] for body in upstream.asked] == ["Hallo\n Translate this.", "Größe?"]


def test_nothing_asked_is_an_error(run: Run) -> None:
    """Neither a prompt nor anything on standard input."""
    with serve(ANSWER) as upstream:
        done = run("m", "--url", upstream.url)
    assert done.returncode == 2
    assert b"there is no question" in done.stderr
    # `asides run "Why?"` is meant as a prompt, and names a model.
    assert b"('m' is the MODEL; the PROMPT comes after it)" in done.stderr


def test_a_closed_standard_input_is_no_prompt() -> None:
    """With a prompt it is nothing; without one it is an error in words."""
    with serve(ANSWER) as upstream:
        closed = [sys.executable, "-c", "import os, sys; os.close(0); os.execv(sys.argv[1], sys.argv[1:])", *COMMAND]
        asked = [*closed, "run", "m", "--url", upstream.url]
        assert (
            subprocess.run([*asked, "hi"], capture_output=True, timeout=PATIENCE, env=unmeasured()).stdout
            == b"It is 4."
        )
        done = subprocess.run(asked, capture_output=True, timeout=PATIENCE, env=unmeasured())
    assert (done.returncode, done.stderr) == (2, b"asides: standard input: Bad file descriptor\n")


def test_a_system_prompt(run: Run) -> None:
    """`--system` is the first message."""
    with serve(ANSWER) as upstream:
        run("m", "What?", "--system", "Be short.", "--url", upstream.url)
    assert upstream.asked[0]["messages"][0] == {"role": "system", "content": "Be short."}


def test_a_format_and_a_start_may_be_told(run: Run) -> None:
    """Raw markers are split by what the flags say."""
    with serve(chat("hm</think>Hi")) as upstream:
        done = run("m", "What?", "-f", "qwen3", "--start", "thinking", "--url", upstream.url)
        assert done.stdout == b"Hi"
        hint = run("m", "What?", "--url", upstream.url)
        assert b"--start thinking" in hint.stderr
        unknown = run("m", "What?", "-f", "qwenn3", "--url", upstream.url)
    assert unknown.returncode == 2
    assert b"there is no format 'qwenn3'; did you mean" in unknown.stderr


def test_markers_of_ones_own(run: Run, tmp_path: Path) -> None:
    """From the flag, or from the model's settings."""
    with serve(chat("<a>hm</a>Hi")) as upstream:
        done = run("m", "What?", "--tags", "<a>", "</a>", "--url", upstream.url)
        assert (done.stdout, b"hm" in done.stderr) == (b"Hi", True)
        own_config(tmp_path).write_text('models: {m: {tags: {"<a>": "</a>"}}}')
        assert run("m", "What?", "--url", upstream.url).stdout == b"Hi"
        assert run("m", "What?", "-f", "qwen3", "--url", upstream.url).stdout == b"<a>hm</a>Hi"


def test_calls_are_told_on_standard_error(run: Run) -> None:
    """A call is no part of the answer."""
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    other = {"index": 1, "id": "c2", "function": {"name": "g", "arguments": '{"a": 1}'}}
    with serve(chat("Wait.", {"tool_calls": [call]}, {"tool_calls": [other]})) as upstream:
        done = run("m", "What?", "--url", upstream.url)
    assert (done.stdout, done.stderr) == (b"Wait.", b'call f {}\ncall g {"a": 1}\n')


def test_a_call_that_is_the_first_to_come_stands_on_the_first_line() -> None:
    """What turned while the server was waited for leaves no blank line."""
    call = {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}}
    with serve(chat({"tool_calls": [call]})) as upstream, OnScreen("run", "m", "What?", "--url", upstream.url) as shown:
        assert shown.end() == 0
        assert shown.emulator.text == "call f {}"


def test_a_reply_at_its_limit_and_one_without_an_answer(run: Run) -> None:
    """Whoever gets half an answer, or none, is told so."""
    with serve(chat("Half", end="length"), chat(think("hm")), chat("")) as upstream:
        assert b"cut off" in run("m", "What?", "--url", upstream.url).stderr
        assert b"thought, but gave no answer" in run("m", "What?", "--url", upstream.url).stderr
        assert run("m", "What?", "--url", upstream.url).stderr == b"asides: the model gave no answer\n"


def test_replies_are_kept_only_when_asked(run: Run, tmp_path: Path) -> None:
    """`--save` keeps thought and answer apart in the history, with what was asked; without it nothing is written."""
    with serve(ANSWER) as upstream:
        run("m", "What?", "--url", upstream.url, XDG_DATA_HOME=str(tmp_path))
        assert not (tmp_path / "asides").exists()
        done = run("m", "What?", "--system", "S", "--save", "--url", upstream.url, XDG_DATA_HOME=str(tmp_path))
        assert (done.stdout, done.returncode) == (b"It is 4.", 0)
        other = str(tmp_path / "other.db")
        for more, code in (((), 2), (("--save",), 0)):  # where to keep what is not kept
            done = run("m", "What?", *more, "--store", other, "--url", upstream.url)
            assert (done.returncode, os.path.exists(other)) == (code, code == 0)
        blocked = run("m", "What?", "--save", "--url", upstream.url, XDG_DATA_HOME=os.devnull)
    assert (blocked.stdout, blocked.returncode) == (b"It is 4.", 2)
    with history.open(str(tmp_path / "asides" / "history.db")) as store:
        (kept,) = store.newest()
    assert (kept.reply.text, kept.reply.thinking, kept.reply.model) == ("It is 4.", "2+2", "m")
    assert [(turn.role, turn.text) for turn in kept.asked] == [("system", "S"), ("user", "What?")]


# How to think.


@pytest.mark.parametrize(
    ("model", "flag", "sent"),
    [
        ("granite-3.3-8b-instruct", "--think", {"thinking": True}),
        ("Qwen/Qwen3-8B", "--think=false", {"enable_thinking": False}),
        ("gpt-oss-20b", "--think=low", {"reasoning_effort": "low"}),
        ("tencent/Hy3", "--think=false", {"reasoning_effort": "no_think"}),
    ],
)
def test_think_is_the_keyword_of_the_models_own_template(run: Run, model: str, flag: str, sent: dict[str, Any]) -> None:
    with serve(ANSWER) as upstream:
        assert run(model, flag, "What?", "--url", upstream.url).returncode == 0
    assert upstream.asked[0]["chat_template_kwargs"] == sent


@pytest.mark.parametrize(
    ("flag", "sent"),
    [
        ("--think", True),
        ("--think=true", True),
        ("--think=false", False),
        ("--think=low", "low"),
        ("--think=max", "max"),
        ("--hidethinking", None),
    ],
)
def test_think_takes_a_value_only_behind_an_equals_sign(run: Run, flag: str, sent: bool | str | None) -> None:
    """A bare `--think` is true, and the word behind it is the prompt."""
    with serve(lines({"thinking": "hm"}, "Hi"), kind="ollama") as upstream:
        done = run("m", flag, "high", "--url", upstream.url)
    assert done.stdout == b"Hi"
    assert upstream.asked[0].get("think") == sent
    assert upstream.asked[0]["messages"][0]["content"] == "high"


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("Hi", "--think", "off"), b'"off" is taken as part of the prompt; a value needs "=": --think=false'),
        (("--think", "low"), b'"low" is taken as part of the prompt; a value needs "=": --think=low'),
        (("--think", "Hi", "low"), b""),
        (("--think=high", "low"), b""),
        (("Hi", "--", "--think", "off"), b""),
    ],
)
def test_a_value_without_an_equals_sign_is_not_silent(run: Run, words: tuple[str, ...], hint: bytes) -> None:
    """It belongs to the prompt, as Ollama has it; who meant it as the value is told how to write it."""
    with serve(lines("Hi"), kind="ollama") as upstream:
        done = run("m", "--url", upstream.url, *words)
    assert (done.returncode, done.stdout) == (0, b"Hi")
    assert done.stderr == (b"asides: " + hint + b"\n" if hint else b"")


def test_a_bad_value_gets_ollamas_words(run: Run) -> None:
    """The message of Ollama's own command, before any server is asked."""
    done = run("m", "hi", "--think=hard")
    assert done.returncode == 2
    words = b'invalid value for --think: "hard" (must be true, false, high, medium, low, or max)'
    assert done.stderr == b"asides: " + words + b"\n"


def test_a_model_that_cannot_think(run: Run) -> None:
    """The server's refusal is told."""
    refusal = fails(400, {"error": '"m" does not support thinking'})
    with serve(refusal, kind="ollama") as upstream:
        done = run("m", "hi", "--think", "--url", upstream.url)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b'"m" does not support thinking' in done.stderr


# Which server, which model.


def test_the_first_that_is_set_is_the_server(run: Run, tmp_path: Path) -> None:
    """The flag, then the configuration, OPENAI_BASE_URL, OLLAMA_HOST; each with its own key."""
    with (
        serve(chat("flag")) as flag,
        serve(chat("config")) as config,
        serve(chat("openai")) as openai,
        serve(lines("ollama"), kind="ollama") as ollama,
    ):
        own_config(tmp_path).write_text(f"run: {{url: '{config.url}', key: own}}\n", encoding="utf-8")
        changes: Any = {
            "OPENAI_BASE_URL": f"{openai.url}/v1",
            "OPENAI_API_KEY": "secret",
            "OLLAMA_HOST": ollama.url[7:],
        }
        assert run("m", "hi", "--url", flag.url, **changes).stdout == b"flag"
        assert run("m", "hi", **changes).stdout == b"config"
        own_config(tmp_path).unlink()
        assert run("m", "hi", **changes).stdout == b"openai"
        del changes["OPENAI_BASE_URL"]
        assert run("m", "hi", **changes).stdout == b"ollama"
    assert flag.keys == openai.keys == ["Bearer secret"]
    assert config.keys == ["Bearer own"]
    assert ollama.keys == [""]


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("gpu", "http://gpu:11434"),
        ("gpu:8080", "http://gpu:8080"),
        ("0.0.0.0", "http://127.0.0.1:11434"),
        (":9999", "http://127.0.0.1:9999"),
        ("https://gpu", "https://gpu:443"),
        ("http://gpu/ollama", "http://gpu:80/ollama"),
        ("[::1]:8080", "http://[::1]:8080"),
        ("[::]", "http://127.0.0.1:11434"),
    ],
)
def test_what_ollama_host_means(host: str, url: str) -> None:
    """Everything that Ollama itself takes."""
    assert ollama_url(host) == url


def test_a_named_server_that_is_down_is_not_replaced_by_another(run: Run) -> None:
    """What was tried is told, with the way to the demo gateway; the prompt goes nowhere else."""
    with held_port() as port, serve(ANSWER) as other:
        dead = f"http://127.0.0.1:{port}"
        for url in (dead, f"{dead}/v1"):
            done = run("m", "hi", "--url", url, OPENAI_BASE_URL=other.url)
            assert (done.returncode, done.stdout) == (2, b"")
            assert f"--url: nothing listens at {url} (connection refused)".encode() in done.stderr
            assert b"asides serve" in done.stderr
            assert b"asides run recorded-qwen3 --url http://127.0.0.1:8777" in done.stderr
    assert other.asked == []


def test_a_file_in_the_current_folder_gets_neither_the_question_nor_the_key(run: Run, tmp_path: Path) -> None:
    """A folder may be anybody's: what lies in it does not say where the user's words go, nor where they are kept."""
    with serve(chat("theirs")) as theirs, serve(chat("mine")) as mine:
        hostile = (
            f"run: {{url: '{theirs.url}', key: $OPENAI_API_KEY}}\nhistory: {{save: true, store: {tmp_path}/s.db}}\n"
        )
        (tmp_path / "asides.yaml").write_text(hostile, encoding="utf-8")
        mine_alone: Any = {"OPENAI_BASE_URL": f"{mine.url}/v1", "OPENAI_API_KEY": "secret"}
        assert run("m", "private", **mine_alone).stdout == b"mine"
        assert (theirs.asked, theirs.keys) == ([], [])
        assert not (tmp_path / "s.db").exists()
        assert run("m", "hi", "--config", str(tmp_path / "asides.yaml"), **mine_alone).stdout == b"theirs"


def test_the_usual_places(run: Run, tmp_path: Path) -> None:
    """Without any setting: Ollama's address, then the gateway's here; both are named when neither answers."""
    with held_port() as port:
        own_config(tmp_path).write_text(f"listen: {{port: {port}}}\n", encoding="utf-8")
        done = run("m", "hi")
    if b"127.0.0.1:11434 (connection refused)" not in done.stderr:
        pytest.skip("something listens at Ollama's usual address here")
    assert f"this machine's gateway: nothing listens at http://127.0.0.1:{port}".encode() in done.stderr


def test_a_model_may_be_left_out(run: Run, tmp_path: Path) -> None:
    """The configuration's, or the server's only one; several are listed."""
    with serve(ANSWER, models=["only"]) as one, serve(ANSWER, models=["a", "b"]) as two:
        run("--url", one.url, given=b"hi")
        assert one.asked[0]["model"] == "only"
        done = run("--url", two.url, given=b"hi")
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"name a model: asides run MODEL" in done.stderr
        assert b"a, b" in done.stderr
        own_config(tmp_path).write_text("run: {model: b}\n", encoding="utf-8")
        run("--url", two.url, given=b"hi")
    assert two.asked[0]["model"] == "b"


def test_a_question_needs_no_model(run: Run, tmp_path: Path) -> None:
    """A first word with a space in it is no model's name; with `-m` no word is."""
    with serve(*[ANSWER] * 5, models=["only"]) as one:
        for words in (
            ("hello there",),
            ("hello there", "friend"),
            ("-m", "qwen3", "hello"),
            ("qwen3", "hello", "there"),
        ):
            assert run("--url", one.url, *words).stdout == b"It is 4."
        asked = [(each["model"], each["messages"][-1]["content"]) for each in one.asked]
        assert asked == [
            ("only", "hello there"), ("only", "hello there friend"), ("qwen3", "hello"), ("qwen3", "hello there"),
        ]  # fmt: skip
        own_config(tmp_path).write_text("run: {model: chosen}\n", encoding="utf-8")
        run("--url", one.url, "hello there")
    assert one.asked[-1]["model"] == "chosen"


def test_the_configuration_says_how_a_model_is_read(run: Run, tmp_path: Path) -> None:
    """`run.think`, `run.hide_thinking` and a model's own format, start and fields hold here too."""
    own_config(tmp_path).write_text(
        "run: {think: low, hide_thinking: true}\n"
        "models: {'mine-*': {format: qwen3, start: thinking, extra_body: {temperature: 0}}}\n",
        encoding="utf-8",
    )
    with serve(chat("hm</think>Hi")) as upstream:
        done = run("mine-1", "What?", "--url", upstream.url)
    assert (done.stdout, done.stderr) == (b"Hi", b"")
    assert (upstream.asked[0]["reasoning_effort"], upstream.asked[0]["temperature"]) == ("low", 0)


def test_a_wrong_key_says_where_keys_come_from(run: Run) -> None:
    """401 names the variable."""
    with serve(ANSWER, key="right") as upstream:
        done = run("m", "hi", "--url", upstream.url)
    assert done.returncode == 2
    assert b"wants a key (401)" in done.stderr
    assert b"OPENAI_API_KEY" in done.stderr


# Ends.


def test_ctrl_c_writes_what_had_come() -> None:
    """Even what was held back; the server is left, and the exit code says why."""
    with (
        serve(Script(chat("Half <th", end=None), hangs=True)) as upstream,
        Running("run", "m", "hi", "--url", upstream.url) as asides,
    ):
        asides.close(asides.stdin)
        assert asides.read_until(asides.stdout, b"Half") == b"Half"
        asides.process.send_signal(signal.SIGINT)
        assert asides.read_rest(asides.stdout) == b" <th"
        assert asides.wait() == 130
        assert upstream.left.wait(PATIENCE)
        assert b"Traceback" not in asides.read_rest(asides.stderr)


def test_ctrl_c_before_anything_has_come() -> None:
    """A server that has not answered yet does not keep anyone."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with Running("run", "m", "hi", "--url", address) as asides:
            asides.close(asides.stdin)
            connection, _ = silent.accept()
            with connection:
                assert connection.recv(4) == b"GET "  # what runs there is asked first
                asides.process.send_signal(signal.SIGINT)
                assert asides.wait() == 130
            assert asides.read_rest(asides.stderr) == b""


def test_a_closed_pipe_ends_it() -> None:
    """When the reader of the answer has gone, the server is left too."""
    with (
        serve(Script(chat("a" * 9, end=None) * 50_000, hangs=True)) as upstream,
        Running("run", "m", "hi", "--url", upstream.url) as asides,
    ):
        asides.close(asides.stdin)
        asides.read_until(asides.stdout, b"a")
        asides.close(asides.stdout)
        assert asides.wait() == 141
        assert asides.read_rest(asides.stderr) == b""


def test_a_reply_that_dies_is_written_and_told(run: Run) -> None:
    """What had come is on standard output; the exit code says that it is not whole."""
    with serve(chat("Half <th", end=None)) as upstream:
        done = run("m", "hi", "--url", upstream.url)
    assert (done.stdout, done.returncode) == (b"Half <th", 2)
    assert b"broke off in the middle of the reply (it closed the connection)" in done.stderr


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (
            Script([b"Backend is \nstarting\n"], type="text/plain"),
            "answered with text/plain that is no reply: 'Backend is starting'",
        ),
        (
            Script([b'{"error": "loading"}'], type="text/plain"),
            """answered with text/plain that is no reply: '{"error": "loading"}'""",
        ),
        (Script([]), "broke off before it had sent any of the reply (it sent nothing)"),
        (Script([], breaks=True), "broke off before it had sent any of the reply (Connection reset by peer)"),
        (Script(ANSWER[:2], breaks=True), "broke off in the middle of the reply (Connection reset by peer)"),
    ],
)
def test_what_is_no_reply_is_named(run: Run, script: Script, told: str) -> None:
    """What the server sent instead, or that it broke off, and when."""
    with serve(script) as upstream:
        done = run("m", "hi", "--url", upstream.url)
    assert done.returncode == 2
    assert f"{upstream.url} {told}" in done.stderr.decode()


def test_a_stream_of_another_type_is_read(run: Run) -> None:
    """Some servers call a stream of events plain text."""
    with serve(Script(ANSWER, type="text/plain")) as upstream:
        assert run("m", "hi", "--url", upstream.url).stdout == b"It is 4."


def test_the_help_needs_no_client() -> None:
    """What talks to servers and terminals is imported only once there is something to talk about."""
    heavy = "{'http.client', 'prompt_toolkit', 'ssl'}"
    script = f"import sys, asides._cli.run.command; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], timeout=PATIENCE, check=True, capture_output=True)
    assert done.stdout == b"[]\n"
