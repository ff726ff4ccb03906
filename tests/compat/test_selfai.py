"""`compat.selfai`: SelfAI's own test cases and examples as behaviour, its streaming loop, its look, its clients."""

from __future__ import annotations

import copy
import io
import json
import pickle
import pty
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

import asides
from asides.compat.selfai import (
    ChatClient,
    MergeMinimaxInterface,
    MinimaxInterface,
    PlanError,
    PlannerMinimaxInterface,
    TerminalUI,
    ThinkBuffer,
    ThinkTags,
    analyze_thinking,
    calculate_thinking_quality,
    parse_think_tags,
    parse_think_tags_streaming,
    read_config,
    show_think_tags,
)
from tests.client.upstream import chat, serve, think
from tests.compat.test_thinking_parser import HARMONY
from tests.compat.texts import chunkings, letters, places, texts
from tests.laws.effort import examples

# The five test cases of its documentation, and the example above them.


@pytest.mark.parametrize(
    ("response", "clean", "thoughts"),
    [
        (
            "Let me <think>analyzing...</think> answer this. <think>considering</think> Done.",
            "Let me answer this. Done.",
            ["analyzing...", "considering"],
        ),
        ("Answer: <think>reasoning</think> Final answer.", "Answer: Final answer.", ["reasoning"]),
        ("<think>A</think> Text <think>B</think> More <think>C</think>", "Text More", ["A", "B", "C"]),
        (
            "\n<think>\nStep 1: Analyze\nStep 2: Plan\n</think>\nFinal output.\n",
            "Final output.\n",
            ["Step 1: Analyze\nStep 2: Plan"],
        ),
        ("Just normal text here.", "Just normal text here.", []),
        ("<Think>A</Think> <THINK>B</THINK> <think>C</think>", "", ["A", "B", "C"]),
    ],
)
def test_its_own_cases(response: str, clean: str, thoughts: list[str]) -> None:
    """Whole, and character by character, they give what its documentation asserts."""
    assert parse_think_tags(response) == (clean, thoughts)
    assert loop(list(response)) == (clean, thoughts)


@pytest.mark.parametrize("name", ["thinking", "reasoning", "internal", "thought"])
def test_other_tags(name: str) -> None:
    """The other spellings that it wished for are read too."""
    assert parse_think_tags(f"<{name}>a</{name}>b") == ("b", ["a"])


def test_spaces_that_no_tag_made_are_kept() -> None:
    """Code keeps its indentation: only the whitespace around a thought is mended."""
    code = "```python\nif a:\n    b()\n\n\n\nc()\n```"
    assert parse_think_tags(f"<think>t</think>\n{code}") == (code, ["t"])


def test_what_it_would_lose() -> None:
    """A thought that was cut off, and one whose opening tag stood in the prompt, are thoughts."""
    assert parse_think_tags("a <think>cut") == ("a", ["cut"])
    assert parse_think_tags("thought</think>answer") == ("answer", ["thought"])
    assert parse_think_tags("a thought</think>answer", start="text") == ("a thoughtanswer", [])


# The streaming loop.


def loop(chunks: list[str], plain: bool = False, **options: Any) -> tuple[str, list[str]]:
    """The loop of its documentation. `plain`: the buffer loses what it carries, every time."""
    shown: list[str] = []
    thoughts: list[str] = []
    buffer = ""
    for chunk in chunks:
        clean_chunk, buffer, thinks = parse_think_tags_streaming(chunk, buffer, **options)
        shown.append(clean_chunk)
        thoughts += thinks
        if plain:
            buffer = str(buffer)
    if buffer:
        final_clean, final_thinks = parse_think_tags(buffer)
        shown.append(final_clean)
        thoughts += final_thinks
    return "".join(shown), thoughts


def test_a_tag_across_two_chunks() -> None:
    """The documented pair of chunks: nothing of a tag is shown, and the thought comes when it has ended."""
    clean, buffer, thoughts = parse_think_tags_streaming("Let me <thi", "")
    assert (clean, buffer, thoughts) == ("Let me", " <thi", [])
    clean, buffer, thoughts = parse_think_tags_streaming("nk>analyzing</think> answer", buffer)
    assert (clean, buffer, thoughts) == (" answer", "", ["analyzing"])


def test_text_flows() -> None:
    """Where nothing could be a tag, nothing is held and the buffer is empty."""
    assert parse_think_tags_streaming("Hello", "") == ("Hello", "", [])


def test_an_open_thought_is_in_the_buffer() -> None:
    """A thought is released whole; until then the buffer is its text, and the closing call gives it."""
    _, buffer, thoughts = parse_think_tags_streaming("a <think>so far", "")
    assert (buffer, thoughts) == (" <think>so far", [])
    assert isinstance(buffer, str)
    assert parse_think_tags(buffer) == ("", ["so far"])


def test_an_old_buffer_is_read_again() -> None:
    """Going back to an earlier buffer, as a retry does, gives what it gave the first time."""
    _, first, _ = parse_think_tags_streaming("a <think>b", "")
    assert parse_think_tags_streaming("c</think> d", first)[0::2] == (" d", ["bc"])
    assert parse_think_tags_streaming("X</think> d", first)[0::2] == (" d", ["bX"])
    _, second, _ = parse_think_tags_streaming("a <think>b", "")
    assert parse_think_tags(second) == parse_think_tags(second) == ("", ["b"])


@pytest.mark.parametrize("length", [10, 40_000])
def test_a_copied_buffer_is_its_text(length: int) -> None:
    """Pickled or copied, a buffer of any length is a plain string that says all."""
    _, buffer, _ = parse_think_tags_streaming("<think>" + "b" * length, "")
    _, buffer, _ = parse_think_tags_streaming("c", buffer)
    for copied in (pickle.loads(pickle.dumps(buffer)), copy.deepcopy(buffer), str(buffer)):
        assert type(copied) is str
        assert copied == "<think>" + "b" * length + "c"
        assert parse_think_tags_streaming("d</think>e", copied)[0::2] == ("e", ["b" * length + "cd"])


def test_a_long_buffer_is_a_string_in_every_respect() -> None:
    """What a long thought's buffer says of itself is what its text says."""
    _, buffer, _ = parse_think_tags_streaming("<think>" + "b" * 40_000, "")
    _, buffer, _ = parse_think_tags_streaming("c", buffer)
    text = "<think>" + "b" * 40_000 + "c"
    assert isinstance(buffer, ThinkBuffer)
    assert (len(buffer), bool(buffer), f"{buffer}", repr(buffer)) == (len(text), True, text, repr(text))
    assert buffer == text
    assert text == buffer
    assert hash(buffer) == hash(text)
    assert (buffer + "d", "d" + buffer, buffer[-2:], buffer.upper()) == (text + "d", "d" + text, "bc", text.upper())
    assert buffer > "<think>" + "b" * 100
    assert "bc" in buffer
    assert buffer.endswith("bc")
    assert list(buffer) == list(text)
    assert [*map(str.strip, [buffer[:7]])] == ["<think>"]


def test_a_long_thought_costs_no_more_per_chunk() -> None:
    """What is copied with a chunk is bounded, however long the thought: the buffer itself stays small."""
    _, buffer, _ = parse_think_tags_streaming("<think>", "")
    for _ in range(50):
        _, buffer, _ = parse_think_tags_streaming("b" * 1000, buffer)
    assert len(buffer) == 50_007
    assert str.__sizeof__(buffer) < 1000
    assert parse_think_tags_streaming("</think>c", buffer)[0::2] == ("c", ["b" * 50_000])


def test_start_and_format_count_from_the_first_chunk() -> None:
    """A model whose prompt opens the thinking streams right from the first word."""
    assert loop(["thou", "ght</think>an", "swer"], start="thinking") == ("answer", ["thought"])
    assert loop(["[THINK]a[/TH", "INK]b"], format="mistral") == ("b", ["a"])


def test_a_call_that_is_a_message_of_its_own_is_written_out() -> None:
    """gpt-oss's calls are no part of any text; they are not lost either, whole or streamed."""
    clean = '<tool_call>{"name": "f", "arguments": {"a":1}}</tool_call>'
    assert parse_think_tags(HARMONY, format="harmony") == (clean, ["hm"])
    assert loop(list(HARMONY), format="harmony") == (clean, ["hm"])


@settings(max_examples=examples(100))
@given(texts, places)
def test_chunking_does_not_matter(text: str, where: list[int]) -> None:
    """Every cut gives what the whole text gives, and no word is lost."""
    expected = parse_think_tags(text, start="text")
    assert letters(expected[0], *expected[1]) == letters(text)
    for chunks in chunkings(text, where):
        assert loop(chunks) == expected


@settings(max_examples=examples(100))
@given(texts, places)
def test_a_plain_buffer_works_too(text: str, where: list[int]) -> None:
    """With a buffer that is only its text no word is lost; without quotes and code blocks, which a buffer cannot tell
    once they were released, thoughts are the same and whitespace alone may differ."""
    clean, thoughts = parse_think_tags(text, start="text")
    for chunks in chunkings(text, where):
        found, found_thoughts = loop(chunks, plain=True)
        assert letters(found, *found_thoughts) == letters(text)
        if "`" not in text and '"' not in text:
            assert ("".join(found.split()), found_thoughts) == ("".join(clean.split()), thoughts)


# The look.

LOOK = """\
💭 [Thinking 1]
  analyzing the requirements...
  checking constraints...

💭 [Thinking 2]
  considering option A vs B

"""
THOUGHTS = ["analyzing the requirements...\nchecking constraints...", "considering option A vs B"]


def test_the_look(capsys: pytest.CaptureFixture[str]) -> None:
    """As its documentation draws it: as a function, and as a method; nothing for no thoughts."""
    show_think_tags(THOUGHTS)
    TerminalUI().show_think_tags(THOUGHTS)
    show_think_tags([])
    assert capsys.readouterr().out == LOOK * 2


def test_one_thought_is_numbered_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Always numbered; an empty line within a thought stays empty."""
    show_think_tags(["a\n\nb"])
    assert capsys.readouterr().out == "💭 [Thinking 1]\n  a\n\n  b\n\n"


def test_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blue heading and cyan text on a terminal, another heading by style, none with NO_COLOR or in a file."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with open(theirs, "w", encoding="utf-8") as terminal, open(ours, "rb", buffering=0) as screen:
        show_think_tags(["a"], file=terminal)
        assert screen.read(200).decode() == "\x1b[34m💭 [Thinking 1]\x1b[0m\r\n\x1b[36m  a\x1b[0m\r\n\r\n"
        show_think_tags(["a"], file=terminal, style="grey")
        assert screen.read(200).decode().startswith("\x1b[90m💭")
        monkeypatch.setenv("NO_COLOR", "1")
        show_think_tags(["a"], file=terminal)
        assert screen.read(200).decode() == "💭 [Thinking 1]\r\n  a\r\n\r\n"


def test_a_thought_cannot_steer_the_terminal() -> None:
    """Control characters of the model are shown as pictures."""
    file = io.StringIO()
    show_think_tags(["\x1b[2Jgone"], file=file)
    assert file.getvalue() == "💭 [Thinking 1]\n  ␛[2Jgone\n\n"


def test_a_terminal_without_the_balloon() -> None:
    """Where the encoding has no such character, the words are shown all the same."""
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    show_think_tags(["caf\u00e9"], file=file)
    assert file.buffer.getvalue() == b"? [Thinking 1]\n  caf?\n\n"


def test_mistakes_in_showing_are_told() -> None:
    """A colour that does not exist, and one string in place of a list."""
    with pytest.raises(asides.UsageError, match="'pinkish' is no colour"):
        TerminalUI(style="pinkish")
    with pytest.raises(asides.UsageError, match="a list of thoughts"):
        show_think_tags("one thought")


# The configuration.


def test_the_configuration() -> None:
    """Its four keys, alone or within a whole configuration, with its defaults."""
    assert read_config(None) == read_config({"other": 1}) == ThinkTags()
    assert ThinkTags() == ThinkTags(enabled=True, display_in_ui=True, save_to_memory=False, display_style="blue")
    chosen: dict[str, Any] = {"enabled": False, "display_in_ui": False, "save_to_memory": True, "display_style": "grey"}
    assert read_config({"think_tags": chosen, "agents": {}}) == read_config(chosen) == ThinkTags(**chosen)


@pytest.mark.parametrize(
    "wrong",
    [{"enabeld": True}, {"enabled": True, "style": "blue"}, {"enabled": "sometimes"}, {"display_style": "pinkish"}],
)
def test_a_wrong_configuration_is_told(wrong: dict[str, Any]) -> None:
    """A key that does not exist and a value that cannot be are errors of ours."""
    with pytest.raises(asides.UsageError):
        read_config({"think_tags": wrong})


# The clients.


class Screen:
    """A UI that keeps what it is shown."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []

    def show_think_tags(self, think_contents: Any) -> None:
        """Keep it."""
        self.shown.append(list(think_contents))


ASYNC = """<think>
Need to explain this clearly.
Should cover:
- Blocking vs non-blocking
</think>

The main difference is how they handle waiting.

<think>
Good start. Now explain blocking.
</think>

Synchronous code blocks execution while waiting."""
CLEAN = "The main difference is how they handle waiting.\n\nSynchronous code blocks execution while waiting."
ASYNC_THOUGHTS = [
    "Need to explain this clearly.\nShould cover:\n- Blocking vs non-blocking",
    "Good start. Now explain blocking.",
]


def test_example_1_a_chat() -> None:
    """Thoughts to the UI, clean text to the caller and to memory."""
    screen = Screen()
    client = MinimaxInterface("", lambda messages, **fields: ASYNC, "m", ui=screen)
    assert client.generate_response("Be brief.", "Explain async") == CLEAN
    assert screen.shown == [ASYNC_THOUGHTS]
    assert client.memory == [{"role": "user", "content": "Explain async"}, {"role": "assistant", "content": CLEAN}]
    assert client.memory_text() == f"---\nUser:\nExplain async\n---\nSelfAI:\n{CLEAN}\n"


PLAN = {"subtasks": [{"id": "S1", "title": "Design API endpoints"}]}


@pytest.mark.parametrize("after", [json.dumps(PLAN, indent=2), f"```json\n{json.dumps(PLAN)}\n```"])
def test_example_2_a_plan(after: str) -> None:
    """The planner's case: JSON after thinking parses, and the thinking is shown."""
    screen = Screen()
    raw = f"<think>\nThis requires multiple components.\n</think>\n\n{after}"
    planner = PlannerMinimaxInterface("", lambda messages: raw, ui=screen)
    assert planner.plan("", "/plan Build a REST API") == PLAN
    assert planner.parse_plan(raw) == PLAN
    assert planner._parse_plan(raw) == PLAN  # its name in SelfAI's document
    assert screen.shown == [["This requires multiple components."]] * 3


def test_a_plan_that_is_none() -> None:
    """An answer that is no JSON is told with its beginning."""
    planner = PlannerMinimaxInterface("", lambda messages: "<think>a</think>I cannot.")
    with pytest.raises(PlanError, match=r"no JSON.*I cannot"):
        planner.plan("", "plan")


def test_example_3_a_merge() -> None:
    """`chat` takes messages and gives the clean synthesis."""
    screen = Screen()
    raw = "<think>\nS1 analyzed\nS2 designed\n</think>\n\nBased on the analysis from S1, we built it."
    merge = MergeMinimaxInterface("", lambda messages: raw, ui=screen)
    messages = [{"role": "user", "content": "Synthesize S1, S2"}]
    assert merge.chat(messages) == "Based on the analysis from S1, we built it."
    assert screen.shown == [["S1 analyzed\nS2 designed"]]
    assert merge.memory == []


def test_over_a_server() -> None:
    """The same over a real socket, whole and streamed; only clean text goes back."""
    with serve(chat("<thi", "nk>hm</think>\n\nIt", " is 4."), key="k") as upstream:
        screen = Screen()
        client = ChatClient("k", upstream.url, "m", screen)
        assert client.generate_response("Be brief.", "2+2?", temperature=0.5) == "It is 4."
        assert "".join(client.stream_generate_response("", "Sure?", history=client.memory)) == "It is 4."
    assert screen.shown == [["hm"], ["hm"]]
    assert upstream.asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}
    assert upstream.asked[0]["temperature"] == 0.5
    assert upstream.asked[1]["messages"] == [
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "It is 4."},
        {"role": "user", "content": "Sure?"},
    ]


def test_a_server_that_splits_by_itself() -> None:
    """Thinking that the server has split off is shown too."""
    screen = Screen()
    with serve(chat(think("hm"), "It is 4.")) as upstream:
        assert ChatClient("", upstream.url, "m", screen).generate_response("", "2+2?") == "It is 4."
    assert screen.shown == [["hm"]]


def test_thoughts_stream_before_the_answer() -> None:
    """A thought is shown when it ends, before the words that follow it are handed out."""
    told: list[str] = []

    class Live:
        def show_think_tags(self, think_contents: Any) -> None:
            told.append(f"thought {think_contents[0]}")

    def model(messages: Any) -> Iterator[str]:
        for piece in ("<think>a", "</think>", "b ", "<think>c</think>", "d"):
            told.append(f"sent {piece}")
            yield piece

    for text in ChatClient("", model, ui=Live()).stream_generate_response("", "q"):
        told.append(f"said {text}")
    assert told.index("thought a") < told.index("sent b ")
    assert [line for line in told if not line.startswith("sent")] == [
        *("thought a", "said b", "thought c", "said  ", "said d")
    ]


def test_the_keys_in_a_client() -> None:
    """`enabled`, `display_in_ui` and `save_to_memory` do what they say."""

    def client(**keys: Any) -> tuple[ChatClient, Screen]:
        screen = Screen()
        return ChatClient("", lambda messages: "<think>a</think>b", ui=screen, config={"think_tags": keys}), screen

    off, screen = client(enabled=False)
    assert (off.generate_response("", "q"), screen.shown) == ("<think>a</think>b", [])
    hidden, screen = client(display_in_ui=False)
    assert (hidden.generate_response("", "q"), screen.shown) == ("b", [])
    keeping, _ = client(save_to_memory=True)
    keeping.generate_response("", "q")
    assert keeping.memory[1] == {"role": "assistant", "content": "b", "thoughts": ["a"]}
    assert keeping.memory_text() == "---\nUser:\nq\n---\nSelfAI:\n<think>a</think>\n\nb\n"


def test_thoughts_in_memory_are_not_sent_back() -> None:
    """Even where memory keeps them, the model gets clean text only."""
    sent: list[Any] = []

    def model(messages: Any) -> str:
        sent.append(messages)
        return "<think>a</think>b"

    client = ChatClient("", model, config=ThinkTags(save_to_memory=True))
    client.generate_response("", "q")
    client.generate_response("", "again", history=client.memory)
    assert sent[1][1] == {"role": "assistant", "content": "b"}


def test_calls_stay_in_the_answer() -> None:
    """SelfAI reads calls further down its pipeline, so they stay as they were written."""
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    assert ChatClient("", lambda messages: f"<think>a</think>b {call}").generate_response("", "q") == f"b {call}"


def test_a_model_whose_prompt_opens_the_thinking() -> None:
    """Whole replies show it by themselves; for streams `start` says it. `format` is for other families."""

    def model(messages: Any) -> list[str]:
        return ["a", "</think>b"]

    assert ChatClient("", model).generate_response("", "q") == "b"
    assert list(ChatClient("", model, start="thinking").stream_generate_response("", "q")) == ["b"]
    assert ChatClient("", lambda messages: "[THINK]a[/THINK]b", format="mistral").generate_response("", "q") == "b"


def test_a_client_needs_to_know_whom_to_ask() -> None:
    """Without an address there is an error, not a request to a stranger."""
    with pytest.raises(asides.UsageError, match="api_base"):
        ChatClient("key")


# Analysis.


def test_analysis() -> None:
    """The four documented figures and the parts of the score; no thoughts are no division by zero."""
    found = analyze_thinking(["Why is it 4?", "Because 2 + 2 = 4."])
    assert found["num_steps"] == 2
    assert found["avg_length"] == 15.0
    assert found["contains_questions"] is True
    assert 0 < found["quality_score"] <= 1
    assert set(found) == {"num_steps", "avg_length", "contains_questions", "quality_score", "quality_parts"}
    assert all(0 <= part <= 1 for part in found["quality_parts"].values())
    nothing = analyze_thinking([])
    assert (nothing["num_steps"], nothing["avg_length"], nothing["quality_score"]) == (0, 0.0, 0.0)
    assert nothing["contains_questions"] is False


def test_the_score_alone() -> None:
    """SelfAI's own function: the document's `analyze_thinking`, written with it, gives the same figures."""
    thoughts = parse_think_tags(ASYNC)[1]
    assert calculate_thinking_quality(thoughts) == analyze_thinking(thoughts)["quality_score"] > 0
    assert calculate_thinking_quality([]) == 0.0
    with pytest.raises(asides.UsageError, match="a list of thoughts is needed"):
        calculate_thinking_quality("one thought")
