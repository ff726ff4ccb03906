"""The filter as a user meets it: what goes where, option by option."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

import asides
from asides import _history as history
from asides.reply._reply import Times
from tests.cli.running import COMMAND, Running, environment, run

REPLY = b"<think>2+2\nis 4</think>\n\nIt is 4.<think>sure?</think>\nYes."
CALLING = b'<think>hm</think>Look:\n<tool_call>{"name": "find", "arguments": {"q": "x"}}</tool_call>'
BROKEN = b'Look: <tool_call>{"name": "find", "arguments": {"q": </tool_call> so'


def test_answer_to_stdout_thoughts_to_stderr() -> None:
    done = run("-f", "qwen3", given=REPLY)
    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        b"It is 4.\nYes.",
        b"Thinking\n  2+2\n  is 4\n\nThinking 2\n  sure?\n",
    )


def test_a_plan_in_json_is_ready_to_be_read() -> None:
    """`plan=$(model | asides)` holds the answer and nothing else, whatever was thought around it."""
    plan = b'{"subtasks": [{"id": "S1", "title": "Design"}]}'
    script = 'plan=$(printf %s "$REPLY" | "$@" 2>/dev/null); printf %s "$plan"'
    reply = "<think>\nTwo parts: {not json}\n</think>\n\n" + plan.decode() + "\n<think>done</think>"
    for arguments in ([], ["--collapse"], ["--hide"]):
        done = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND, *arguments], capture_output=True, env=environment(REPLY=reply)
        )
        assert json.loads(done.stdout) == json.loads(plan)


def test_stdout_is_exactly_the_text_of_the_message() -> None:
    text = "  leading <think>a</think>\n\n\nmiddle \n<think>b</think>   end \n\n"
    expected = asides.parse(text, "qwen3", start="text").text
    assert run("-f", "qwen3", given=text.encode()).stdout.decode() == expected


def test_default_format_is_auto() -> None:
    assert run(given=REPLY).stdout == b"It is 4.\nYes."
    harmony = b"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi.<|return|>"
    done = run(given=harmony)
    assert (done.stdout, done.stderr) == (b"Hi.", b"Thinking\n  hm\n")


@pytest.mark.parametrize("tag", ["Think", "THINKING", "Reasoning", "internal", 'think id="1"'])
def test_thoughts_in_tags_of_any_spelling_are_no_answer(tag: str) -> None:
    done = run(given=f"<{tag}>so it is 4</{tag.split()[0]}>\n\nIt is 4.".encode())
    assert (done.stdout, done.stderr) == (b"It is 4.", b"Thinking\n  so it is 4\n")


@pytest.mark.parametrize("format", ["qwen3", "auto"])
def test_lone_close_is_explained_once(format: str) -> None:
    done = run("-f", format, "--start", "text", given=b"so it is 4</think>It is 4.</think>Really.")
    assert done.stdout == b"so it is 4It is 4.Really."
    assert done.stderr.count(b"--start thinking") == 1
    assert done.stderr.startswith(b"asides: </think> ")


@pytest.mark.parametrize("arguments", [["--start", "thinking"], ["--start", "undecided"]])
def test_lone_close_with_the_right_start(arguments: list[str]) -> None:
    done = run("-f", "qwen3", *arguments, given=b"so it is 4</think>It is 4.")
    assert (done.stdout, done.stderr) == (b"It is 4.", b"Thinking\n  so it is 4\n")


@pytest.mark.parametrize("given", [b"<think>a</think>b</think>c", b"a</tool_call>b"])
def test_other_stray_closes_are_no_lone_close(given: bytes) -> None:
    assert b"--start" not in run("-f", "qwen3", given=given).stderr


def test_format_starts_as_it_says() -> None:
    done = run("-f", "qwen3_thinking", given=b"so it is 4</think>It is 4.")
    assert (done.stdout, done.stderr) == (b"It is 4.", b"Thinking\n  so it is 4\n")


def test_only_thinking() -> None:
    done = run("-f", "qwen3", "--only", "thinking", given=REPLY)
    assert (done.stdout, done.stderr) == (b"2+2\nis 4\n\nsure?", b"")


@pytest.mark.parametrize("word", ["text", "answer"])
def test_only_text(word: str) -> None:
    """People call it the answer."""
    done = run("-f", "qwen3", "--only", word, given=REPLY)
    assert (done.stdout, done.stderr) == (b"It is 4.\nYes.", b"")


def test_hide() -> None:
    done = run("-f", "qwen3", "--hide", given=REPLY + CALLING)
    assert done.stderr == b""


def test_only_calls_is_a_json_line_per_call() -> None:
    done = run("-f", "qwen3", "--only", "calls", given=CALLING + CALLING)
    first, second = map(json.loads, done.stdout.splitlines())
    assert set(first) == {"name", "arguments", "id", "error"}
    assert (first["name"], json.loads(first["arguments"]), first["error"]) == ("find", {"q": "x"}, None)
    assert first["id"] != second["id"]
    assert done.stderr == b""


def test_only_calls_tells_of_broken_ones() -> None:
    done = run("-f", "qwen3", "--only", "calls", given=BROKEN)
    assert json.loads(done.stdout)["error"] is not None


def test_calls_are_shown_beside_the_thoughts() -> None:
    done = run("-f", "qwen3", given=CALLING)
    assert (done.stdout, done.stderr) == (b"Look:", b'Thinking\n  hm\n\ncall find {"q": "x"}\n')


def test_a_broken_call_is_marked_as_such() -> None:
    done = run("-f", "qwen3", given=BROKEN)
    assert done.stdout == b"Look: so"
    assert b"call find" in done.stderr
    assert b"not to be run" in done.stderr


def test_no_calls_reads_them_as_text() -> None:
    assert run("-f", "qwen3", "--no-calls", given=CALLING).stdout == CALLING.partition(b"</think>")[2]


def test_json_is_the_events() -> None:
    done = run("-f", "qwen3", "--json", given=REPLY)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0] == {"type": "part_start", "index": 0, "kind": "thinking", "gap": "", "name": "", "id": ""}
    assert [event["text"] for event in events if event["type"] == "text_delta"] == ["It is 4.", "Yes."]
    assert done.stderr == b""


def test_numbers() -> None:
    given = b"<think>a\nb</think>one\n\nthree<think>c</think>four\n<think>d</think>five"
    done = run("-f", "qwen3", "-n", given=given)
    assert done.stdout == b"1:one\n2:\n3:threefour\n4:five"
    assert done.stderr == b"thinking 1:1:a\nthinking 1:2:b\nthinking 2:1:c\nthinking 3:1:d\n"


def test_numbers_of_thoughts_alone() -> None:
    done = run("-f", "qwen3", "-n", "--only", "thinking", given=REPLY)
    assert done.stdout == b"thinking 1:1:2+2\nthinking 1:2:is 4\nthinking 2:1:sure?"


def test_lines_end_at_newlines_only() -> None:
    assert run("-f", "qwen3", "-n", given="a\x0bb\u2028c\rd\ne".encode()).stdout == "1:a\x0bb\u2028c\rd\n2:e".encode()


def test_exact_keeps_whitespace() -> None:
    assert run("-f", "qwen3", "--exact", given=b"<think> a </think>\n\nb").stdout == b"\n\nb"


def test_strict_ends_with_1_and_keeps_what_was_said() -> None:
    done = run("-f", "qwen3", "--strict", given=b"so</think>It is 4.")
    assert (done.returncode, done.stdout) == (1, b"so")
    assert b"retyped" in done.stderr


def test_calls_in_thinking() -> None:
    draft = b'<think>maybe <tool_call>{"name": "f", "arguments": {}}</tool_call> no</think>done'
    assert run("-f", "qwen3", "--only", "calls", given=draft).stdout == b""
    done = run("-f", "qwen3", "--only", "calls", "--calls-in-thinking", "always", given=draft)
    assert json.loads(done.stdout)["name"] == "f"


def test_mentions() -> None:
    given = b"close with `</think>` here"
    assert run("-f", "qwen3", given=given).stdout == given
    assert b"</think>" not in run("-f", "qwen3", "--mentions", "marker", given=given).stdout


def test_tools_are_read(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text('[{"type": "function", "function": {"name": "find", "parameters": {}}}]')
    assert run("-f", "qwen3", "--tools", tools, given=CALLING).returncode == 0


@pytest.mark.parametrize("content", ["{", '{"name": "find"}', "[1]"])
def test_bad_tools_are_refused(tmp_path: Path, content: str) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(content)
    done = run("-f", "qwen3", "--tools", tools, given=CALLING)
    assert done.returncode == 2
    assert str(tools).encode() in done.stderr


def test_missing_tools_are_refused(tmp_path: Path) -> None:
    assert run("--tools", tmp_path / "none.json").returncode == 2


def test_verbose_tells_transitions_and_notices() -> None:
    done = run("-f", "qwen3", "-v", given=REPLY + b"</think>")
    assert b"asides: <think> at 0" in done.stderr
    assert b"asides: stray_close at character" in done.stderr
    assert done.stdout == b"It is 4.\nYes."


def test_version() -> None:
    done = run("--version")
    assert done.returncode == 0
    assert done.stdout.decode() == f"asides {asides.__version__}\n"


def test_help_teaches() -> None:
    for command in ([], ["split"], ["view"], ["run"], ["demo"]):
        done = run(*command, "--help")
        assert done.returncode == 0
        text = done.stdout.decode()
        for code in ("0", "2", "130", "141"):
            assert f"\n  {code} " in text
        # 1 is for --strict alone.
        assert ("\n  1 " in text) == ("  --strict " in text)
        assert max(map(len, text.splitlines())) < 80
    overview = run("--help").stdout.decode()
    for word in ("examples:", "asides split", "asides formats", "asides demo", "asides view", "--start thinking"):
        assert word in overview


def test_unknown_format_names_near_ones() -> None:
    done = run("-f", "qwne3")
    assert done.returncode == 2
    assert b"qwen3" in done.stderr.partition(b"mean")[2]


def test_nothing_like_it() -> None:
    done = run("-f", "%%%%")
    assert done.returncode == 2
    assert b"asides formats" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["reply.txt"], b"neither a command nor a file"),
        (["-n", "split", "reply.txt"], b"the command comes first"),
        (["--only", "words"], b"--only"),
        (["--json", "--only", "text"], b"not allowed"),
        (["-n", "--json"], b"-n"),
        (["-n", "--only", "calls"], b"-n"),
        (["--hide", "--collapse"], b"not allowed"),
        (["--collapse", "--only", "text"], b"--collapse"),
        (["--style", "head=blue"], b"heading=bold,text=dim"),
        (["--sta", "text"], b"--sta"),
        (["--agent", "planner"], b"--save"),
        (["--store", "kept.db"], b"--save"),
    ],
)
def test_wrong_usage(arguments: list[str], told: bytes) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, b"")
    assert told in done.stderr


def test_nothing_in_nothing_out() -> None:
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the history is, for this test alone."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("ASIDES_HISTORY", str(tmp_path / "kept" / "history.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "kept" / "history.db"


def test_nothing_is_kept_unless_asked(store: Path) -> None:
    """Without --save nothing is written anywhere; with it nothing is kept of nothing."""
    run("-f", "qwen3", given=REPLY)
    assert not store.exists()
    done = run("--save")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert not store.exists() or list(history.open(str(store)).replies()) == []


def test_a_reply_is_kept_with_its_names(store: Path) -> None:
    """--save keeps the clean text with the thoughts beside it, --model and --agent say whose; it shows the same."""
    plain = run("-f", "qwen3", given=REPLY)
    done = run("-f", "qwen3", "--save", "--model", "qwen3:8b", "--agent", "planner", given=REPLY)
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, plain.stderr)
    with history.open(str(store), create=False) as opened:
        (kept,) = opened.replies()
    assert (kept.reply.text, [thought.text for thought in kept.thoughts]) == ("It is 4.\nYes.", ["2+2\nis 4", "sure?"])
    assert (kept.source, kept.format, kept.reply.model, kept.agent) == ("filter", "qwen3", "qwen3:8b", "planner")


@pytest.mark.parametrize("arguments", [[], ["--hide"], ["--only", "thinking"], ["--json"]])
def test_whatever_is_shown_the_whole_reply_is_kept(store: Path, arguments: list[str]) -> None:
    """What to show says nothing of what to keep."""
    assert run("-f", "qwen3", "--save", *arguments, given=REPLY).returncode == 0
    with history.open(str(store), create=False) as opened:
        (kept,) = opened.replies()
    assert (kept.reply.text, len(kept.thoughts)) == ("It is 4.\nYes.", 2)


def test_each_file_is_a_reply(store: Path, tmp_path: Path) -> None:
    """`asides split --save` keeps them one by one."""
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"<think>hm</think>" + name.encode())
    assert run("split", "--save", "--model", "m", tmp_path / "a", tmp_path / "b").returncode == 0
    with history.open(str(store), create=False) as opened:
        assert sorted((kept.reply.text, kept.reply.model) for kept in opened.replies()) == [("a", "m"), ("b", "m")]


@pytest.mark.parametrize("command", [[], ["split"]])
def test_where_it_is_kept(store: Path, tmp_path: Path, command: list[str]) -> None:
    """--store names another place than the usual one."""
    assert run(*command, "--save", "--store", tmp_path / "other.db", given=REPLY).returncode == 0
    assert not store.exists()
    with history.open(str(tmp_path / "other.db"), create=False) as opened:
        assert opened.count().replies == 1


def test_a_store_that_fails_costs_one_line_and_no_answer(store: Path) -> None:
    """The answer reaches standard output all the same; exit code 2 and one line say what went wrong."""
    plain = run("-f", "qwen3", given=REPLY)
    store.parent.touch()  # a file where the folder should be
    done = run("-f", "qwen3", "--save", given=REPLY)
    assert (done.returncode, done.stdout) == (2, plain.stdout)
    assert done.stderr.startswith(plain.stderr + b"asides: this reply was not saved: ")
    assert done.stderr.count(b"\n") == plain.stderr.count(b"\n") + 1


def test_save_keeps_how_long_each_thought_took(tmp_path: Path) -> None:
    """Of a model that writes as it goes; of a thought that came in one piece, and of a file, nobody knows."""
    store = tmp_path / "kept.db"
    with Running("-f", "qwen3", "--hide", "--save", "--store", store) as process:
        process.write(b"<think>one</think>a<think>two")
        process.read_until(process.stdout, b"a")
        time.sleep(0.2)
        process.write(b" and more</think>b")
        process.close(process.stdin)
        assert process.wait() == 0
    (tmp_path / "reply").write_bytes(b"<think>from a file</think>c")
    with open(tmp_path / "reply", "rb") as file:
        subprocess.run([*COMMAND, "-f", "qwen3", "--save", "--store", store], stdin=file, env=environment(), check=True)
    with history.open(str(store), create=False) as kept:
        streamed, read = kept.replies()
    first, second = streamed.reply.times.thoughts
    assert first is None
    assert second is not None
    assert 0.2 <= second <= (streamed.reply.times.seconds or 0)
    assert read.reply.times == Times()
    found = json.loads(run("stats", f"--history={store}", "--json").stdout)
    assert found["all"]["distributions"]["seconds"]["count"] == 1


def test_a_file_is_read(tmp_path: Path) -> None:
    """As by `split`: also a thought that only closes is one."""
    path = tmp_path / "reply.txt"
    path.write_bytes(b"hm</think>Hi")
    done = run("--hide", path)
    assert (done.returncode, done.stdout) == (0, b"Hi")
    assert run("--only", "thinking", path, path).stdout == b"hm\nhm"
    assert run("--hide", "-", given=b"<think>x</think>Ho").stdout == b"Ho"


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        (["spilt"], "asides split"),
        (["spilt", "reply.txt"], "asides split"),
        (["--hied"], "--hide"),
        (["--colapse=yes"], "--collapse"),
        (["split", "--only=text", "--verbos"], "--verbose"),
        (["formats", "--jsn"], "--json"),
    ],
)
def test_what_was_meant(wrong: list[str], meant: str) -> None:
    done = run(*wrong)
    assert done.returncode == 2
    assert f"; did you mean {meant}?" in done.stderr.decode()


def test_what_nobody_could_have_meant() -> None:
    done = run("no-such-file.txt")
    assert done.returncode == 2
    assert b"neither a command nor a file that exists\n" in done.stderr
    assert b"did you mean" not in run("--xyzzy-quux").stderr


OWN_TAGS = ("--tags", "<a>", "</a>", "--tags", "[[", "]]")


def test_markers_of_ones_own(tmp_path: Path) -> None:
    """They alone are markers, in every command that reads; calls are read beside them."""
    reply = b'<a>x y</a>[[z]]<think>no</think>4<tool_call>{"name": "find", "arguments": {}}</tool_call>'
    path = tmp_path / "reply.txt"
    path.write_bytes(reply)
    assert run(*OWN_TAGS, "--hide", given=reply).stdout == b"<think>no</think>4"
    assert run("split", *OWN_TAGS, "--only", "thinking", path).stdout == b"x y\n\nz"
    assert json.loads(run(path, *OWN_TAGS, "--only", "calls").stdout)["name"] == "find"
    assert b"x y" in run("view", path, *OWN_TAGS, "--expand").stdout
    traces = tmp_path / "traces.jsonl"
    traces.write_text(json.dumps({"output": reply.decode()}) + "\n")
    for jobs in ("1", "2"):
        figures = json.loads(run("stats", traces, "--json", "--jobs", jobs, *OWN_TAGS).stdout)
        assert figures["all"]["totals"]["thinking_words"] == 3


def test_markers_of_ones_own_are_kept_by_name(tmp_path: Path) -> None:
    store = tmp_path / "kept.db"
    assert run(*OWN_TAGS, "--save", "--store", store, given=b"<a>x</a>4").returncode == 0
    with history.open(str(store), create=False) as kept:
        assert [reply.format for reply in kept.replies()] == ["<a>"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--tags", "<a>"], b"expected 2 arguments"),
        (["--tags", "<a>", " "], b"cannot be a marker: it is blank"),
        (["--tags", "<a>", "</a>", "-f", "qwen3"], b"not allowed with argument --tags"),
    ],
)
def test_markers_that_cannot_be(wrong: list[str], message: bytes) -> None:
    done = run(*wrong)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr
