"""`asides probe`: what a model speaks, told to a person and to a program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import asides
from asides._cli.probe_output import find_tags
from tests.cli.running import OnScreen, environment, run
from tests.conversation.templates import TEMPLATES
from tests.conversation.test_report import PLAIN as CONVERSATION
from tests.conversation.test_report import TRAINED
from tests.detect.templates import ECHO, MENTIONED, UNKNOWN_PAIR
from tests.detect.test_tokenizer import QWEN, tokenizer_json, write
from tests.waiting import PATIENCE

Command = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder as it is downloaded."""
    folder = tmp_path / "a-model"
    folder.mkdir()
    write(folder / "tokenizer.json", tokenizer_json(QWEN))
    write(folder / "tokenizer_config.json", {"chat_template": ECHO})
    return folder


def test_a_folder(folder: Path, here: Command) -> None:
    done = here("probe", folder)
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "format    qwen3" in shown
    assert "yes, between <think> and </think>" in shown
    assert "<think> 11" in shown
    assert "enable_thinking: true starts in text; false starts in text" in shown
    assert "- chat template: writes reasoning_content of a message" in shown


def test_a_start_in_a_header(here: Command) -> None:
    assert b"starts    in a header" in here("probe", "openai/gpt-oss-20b").stdout
    assert json.loads(here("probe", "--json", "openai/gpt-oss-20b").stdout)["start"] is None


def test_candidates(tmp_path: Path, here: Command) -> None:
    path = tmp_path / "some.jinja"
    path.write_text(MENTIONED, encoding="utf-8")
    assert b"format    auto (found by the first marker; it may be qwen3, " in here("probe", path).stdout


def test_as_json(folder: Path, here: Command) -> None:
    found = json.loads(here("probe", "--json", folder).stdout)
    assert (found["format"], found["thinks"], found["open_id"], found["switch"]) == (
        "qwen3",
        True,
        11,
        "enable_thinking",
    )
    assert found["reasons"]


def test_a_template_and_a_tokenizer_alone(folder: Path, tmp_path: Path, here: Command) -> None:
    assert b"is token 11" in here("probe", folder / "tokenizer.json").stdout
    template = tmp_path / "x.jinja"
    template.write_text(UNKNOWN_PAIR, encoding="utf-8")
    shown = here("probe", template).stdout.decode()
    assert "one made for these markers" in shown
    assert "between <ponder> and </ponder>" in shown


def test_a_name(here: Command) -> None:
    done = here("probe", "openai/gpt-oss-20b")
    assert done.returncode == 0
    assert b"harmony" in done.stdout


def test_nothing_known(here: Command) -> None:
    done = here("probe", "somebody/unheard-of-7b")
    assert done.returncode == 1
    assert b"not known" in done.stdout


def test_a_prompt(folder: Path, tmp_path: Path, here: Command) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("<|im_start|>assistant\n<think>\n", encoding="utf-8")
    assert json.loads(here("probe", "--json", folder, "--prompt", prompt).stdout)["start"] == "thinking"


@pytest.mark.parametrize("target", ["no/such/folder/here", "nothing.gguf", "./nothing", "a.jinja"])
def test_what_is_not_there(target: str, here: Command) -> None:
    done = here("probe", target)
    assert done.returncode == 2
    assert b"no such file" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_broken_file(tmp_path: Path, here: Command) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(b'{"added_tokens": [')
    done = here("probe", path)
    assert done.returncode == 2
    assert b"not valid JSON" in done.stderr


def test_wrong_usage() -> None:
    assert run("probe").returncode == 2
    done = run("probe", "qwen3", "--model", "qwen3")
    assert done.returncode == 2
    assert b"--model already names" in done.stderr


def test_a_missing_package_is_named_with_the_command_that_installs_it(folder: Path) -> None:
    hide = "import sys; sys.modules['jinja2'] = None; import asides._cli; sys.exit(asides._cli.main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", hide, "probe", str(folder)], capture_output=True, timeout=PATIENCE, env=environment()
    )
    assert done.returncode == 2
    assert b"pip install jinja2" in done.stderr
    assert b"Traceback" not in done.stderr


def test_it_is_listed() -> None:
    assert b"asides probe" in run("--help").stdout


HARMONY = "<|channel|>analysis<|message|>Why.<|end|><|start|>assistant<|channel|>final<|message|>So.<|return|>"


@pytest.mark.parametrize(
    ("output", "flags", "streaming", "format"),
    [
        ("<think>2+2</think>It is 4.", [], [], "qwen3"),
        ("2+2</think>It is 4.", [], ["--start", "thinking"], "deepseek_r1"),
        (HARMONY, [], [], "harmony"),
        ("[THINK]2+2[/THINK]It is 4.", [], [], "mistral"),
        ("<reflection>2+2</reflection>It is 4.", ["-f", "think_tag"], ["-f", "think_tag"], "think_tag"),
    ],
)
def test_an_output(
    output: str, flags: list[str], streaming: list[str], format: str, tmp_path: Path, here: Command
) -> None:
    """The flags that it names read the output as it shows, from the file and from a pipe."""
    path = tmp_path / "reply.txt"
    path.write_text(output, encoding="utf-8")
    found = json.loads(here("probe", "--json", path).stdout)
    assert (found["split"], found["flags"], found["streaming_flags"]) == (True, flags, streaming)
    best = found["readings"][0]
    assert format in best["formats"]
    assert run(path, *flags, "--hide").stdout.decode() == best["text"]
    assert run(*streaming, "--hide", given=output.encode()).stdout.decode() == best["text"]
    everywhere = sorted(name for reading in found["readings"] for name in reading["formats"])
    assert everywhere == [name for name in asides.formats() if name not in ("auto", "passthrough")]
    assert run("probe", "--output", "-", "--json", given=output.encode()).returncode == 0


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_an_output_on_the_screen(columns: int, tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    path.write_text("2+2</think>It is 4.", encoding="utf-8")
    with OnScreen("probe", path, columns=columns, rows=80) as screen:
        assert screen.end() == 0
        lines = screen.emulator.lines
    assert max(map(len, lines)) <= columns
    text = " ".join(" ".join(lines).split())
    assert "1 thought, an answer of 3 words" in text
    assert "model | asides --start thinking" in text
    assert "thought 2+2 answer It is 4." in text


def test_an_output_that_no_format_splits(tmp_path: Path, here: Command) -> None:
    """A pair of tags in it is offered, and works."""
    path = tmp_path / "own.txt"
    path.write_text("<plan>x</plan>Hi", encoding="utf-8")
    done = here("probe", path)
    assert done.returncode == 1
    assert f"asides --tags '<plan>' '</plan>' {path}" in " ".join(done.stdout.decode().split())
    assert run("--hide", "--tags", "<plan>", "</plan>", path).stdout == b"Hi"
    path.write_text("plain", encoding="utf-8")
    assert here("probe", path).returncode == 1


@pytest.mark.parametrize(
    ("output", "tags", "answer"),
    [
        ("[PLAN]x[/PLAN]Hi", ["[PLAN]", "[/PLAN]"], "Hi"),
        ("[[PLAN]]x[[/PLAN]]Hi", ["[[PLAN]]", "[[/PLAN]]"], "Hi"),
        ("<<plan>>x<</plan>>Hi", ["<<plan>>", "<</plan>>"], "Hi"),
        ("[note] [[PLAN]]x [1] [[/PLAN]]Hi", ["[[PLAN]]", "[[/PLAN]]"], "[note] Hi"),
        ("Use [PLAN]. [[PLAN]]x[[/PLAN]]Hi", ["[[PLAN]]", "[[/PLAN]]"], "Use [PLAN]. Hi"),
        ("<plan><b>x</b></plan>Hi", ["<plan>", "</plan>"], "Hi"),
        ("</b><br>a <plan>x</plan>Hi", ["<plan>", "</plan>"], "</b><br>a Hi"),
        ("([PLAN]x[/PLAN]]Hi", ["[PLAN]", "[/PLAN]"], "(]Hi"),
        ("[[PLAN]x[/PLAN]]Hi", ["[PLAN]", "[/PLAN]"], "[]Hi"),
    ],
)
def test_the_tags_that_are_offered_are_whole(output: str, tags: list[str], answer: str, tmp_path: Path) -> None:
    """With all brackets that opener and closer have in common, so that none of them is left in the answer."""
    path = tmp_path / "own.txt"
    path.write_text(output, encoding="utf-8")
    found = json.loads(run("probe", path, "--json").stdout)
    assert found["flags"] == ["--tags", *tags]
    assert run("--hide", *found["flags"], path).stdout.decode() == answer


def test_tags_that_never_close() -> None:
    """Many of them take one pass, not one for each, which would be hours."""
    assert find_tags("[[a]] <b> " * 200_000) is None


def test_a_template_is_no_output(tmp_path: Path, here: Command) -> None:
    """Also under a name that says nothing."""
    path = tmp_path / "template"
    path.write_text(UNKNOWN_PAIR, encoding="utf-8")
    assert b"one made for these markers" in here("probe", path).stdout


@pytest.mark.parametrize("wrong", [["--output", "x", "y"], ["--output", "-", "--model", "m"], ["--output", "no-file"]])
def test_wrong_outputs(wrong: list[str]) -> None:
    done = run("probe", *wrong)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr


def test_an_output_that_is_too_long(tmp_path: Path) -> None:
    """It is refused, not cut."""
    path = tmp_path / "long.txt"
    path.write_bytes(b"x" * (4 * 1024 * 1024 + 1))
    for done in (run("probe", path), run("probe", "--output", "-", given=path.read_bytes())):
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"at most 4,194,304" in done.stderr or b"longer than 4,194,304 bytes" in done.stderr


def test_an_address_is_a_name(here: Command) -> None:
    named = here("probe", "Qwen/Qwen3-8B").stdout.splitlines()[1:]
    for address in ("https://huggingface.co/Qwen/Qwen3-8B", "https://hf.co/Qwen/Qwen3-8B/tree/main?x=1"):
        assert here("probe", address).stdout.splitlines()[1:] == named
    done = here("probe", "https://example.com/Qwen/Qwen3-8B")
    assert done.returncode == 2
    assert b"nothing is downloaded" in done.stderr


# A report on a chat template.


def test_a_report_on_a_template(tmp_path: Path) -> None:
    """In lines, each with whose words it has; without colour where there is no terminal."""
    path = tmp_path / "chat_template.jinja"
    path.write_text(TEMPLATES["chatml"], encoding="utf-8")
    done = run("probe", path, "--conversation")
    shown = done.stdout.decode()
    assert done.returncode == 0
    assert "\x1b" not in shown
    assert "no ids, because there is no tokenizer.json: characters are counted" in shown
    lines = shown.splitlines()
    assert "  1 user       Is it warm in Rome?" in lines
    assert "  4 marker   * <|im_end|>" in lines
    assert "  - a tool's result: yes" in lines
    assert "  - a new question: no, thinking dropped (that answer); the first" in shown
    found = json.loads(run("probe", path, "--conversation", "--json").stdout)
    assert (found["unit"], found["asks"]) == ("character", "<|im_start|>assistant\n")
    assert "".join(stretch["text"] for stretch in found["conversation"]).endswith("<|im_start|>assistant\n")


def test_a_report_with_a_training_template(tmp_path: Path) -> None:
    path, twin = tmp_path / "a.jinja", tmp_path / "b.jinja"
    path.write_text(CONVERSATION, encoding="utf-8")
    twin.write_text(TRAINED, encoding="utf-8")
    shown = " ".join(run("probe", path, "--conversation", "--twin", twin).stdout.decode().split())
    assert "trained: “<|im_start|>assistant↵”, 2 times: the prompt supplies it" in shown


def test_a_report_on_a_terminal_has_colours(tmp_path: Path) -> None:
    path = tmp_path / "chat_template.jinja"
    path.write_text(CONVERSATION, encoding="utf-8")
    with OnScreen("probe", path, "--conversation", columns=60, rows=80) as screen:
        assert screen.end() == 0
        assert "\x1b[32muser" in screen.emulator.raw
        assert max(map(len, screen.emulator.lines)) <= 60


def test_no_report(tmp_path: Path, folder: Path) -> None:
    """A name, an output and a template that acts on terminals."""
    assert b"nothing is downloaded" in run("probe", "Qwen/Qwen3-8B", "--conversation").stderr
    output = tmp_path / "reply.txt"
    output.write_text("<think>a</think>b", encoding="utf-8")
    assert b"the output of a model" in run("probe", output, "--conversation").stderr
    assert b"only be used with --conversation" in run("probe", folder, "--twin", output).stderr
    path = tmp_path / "evil.jinja"
    path.write_text("\x1b[2J\x1b]0;x\x07" + CONVERSATION, encoding="utf-8")
    done = run("probe", path, "--conversation")
    assert (done.returncode, b"\x1b" in done.stdout, b"\x07" in done.stdout) == (0, False, False)
