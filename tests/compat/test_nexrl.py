"""`compat.nexrl`: NexRL's names, defaults and shapes, its documented examples, and what ours does better."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import asides
from asides._config import load
from asides._config.schema import Config, InferenceService
from asides.client._client import UpstreamError
from asides.compat import nexrl
from asides.compat.nexrl import (
    DETECTORS,
    BaseReasoningFormatDetector,
    InferenceServiceClient,
    ReasoningParser,
    ReasoningParseResult,
    create_reasoning_parser,
    create_tool_parser,
    parser_from_config,
    split_output,
)
from tests.client.upstream import chat, fails, serve, think
from tests.compat.texts import chunkings, letters, places, texts
from tests.laws.effort import examples

NAMES = ("think_tag", "qwen3", "deepseek_r1", "kimi", "step3", "nano_v3", "minimax_append_think")
QUESTION = [{"role": "user", "content": "What's 2+2?"}]
ANSWER = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "The answer is 4.",
                "reasoning_content": "Let me calculate: 2 + 2 = 4",
            }
        }
    ]
}
RAW = "<think>Let me calculate: 2 + 2 = 4</think>The answer is 4."
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


def stream(chunks: list[str], *names: Any, **options: Any) -> tuple[str | None, str]:
    """All reasoning and all content of a stream."""
    parser = create_reasoning_parser(*names, **options)
    told = [*map(parser.parse_stream_chunk, chunks), parser.finish()]
    return "".join(reasoning or "" for reasoning, _ in told) or None, "".join(content for _, content in told)


# Whole texts.


def test_the_documented_use() -> None:
    """A result has the three fields, and the tuple has reasoning first."""
    parser = create_reasoning_parser("qwen3")
    assert parser.parse(RAW) == ReasoningParseResult("Let me calculate: 2 + 2 = 4", "The answer is 4.", True)
    assert parser.parse_non_stream(RAW) == ("Let me calculate: 2 + 2 = 4", "The answer is 4.")


@pytest.mark.parametrize("name", NAMES)
def test_every_detector_is_there(name: str) -> None:
    """All seven names make a parser, however they are spelled."""
    spelled = name.upper().replace("_", "-")
    assert create_reasoning_parser(spelled).parse("<think>").cleaned_content is not None
    assert type(create_reasoning_parser(name).detector) is type(create_reasoning_parser(spelled).detector)


def test_the_defaults() -> None:
    """Without a name it is `think_tag`; without `stream_reasoning` reasoning is not streamed, but detectors do."""
    assert isinstance(create_reasoning_parser(), nexrl.ThinkTagReasoningParser)
    forced = create_reasoning_parser("think", force_reasoning=True)
    assert isinstance(forced, nexrl.ThinkTagReasoningParser)
    assert forced.parse_non_stream("why") == ("why", "")
    assert isinstance(create_reasoning_parser("think", stream_reasoning=True), nexrl.ReasoningParser)
    assert create_reasoning_parser("default").detector.stream_reasoning is False
    assert nexrl.Qwen3Detector().stream_reasoning is True
    assert isinstance(create_reasoning_parser("default").detector, nexrl.Qwen3Detector)


def test_an_unknown_name_lists_the_names() -> None:
    """A ValueError says what there is."""
    assert issubclass(nexrl.UnknownParserError, asides.Error)
    with pytest.raises(ValueError, match=r"unknown reasoning parser 'qwen33'.*think_tag.*minimax_append_think"):
        create_reasoning_parser("qwen33")


def test_any_format_of_two_markers_is_a_detector() -> None:
    """Names beyond NexRL's seven are formats; one without two markers says how to read it."""
    assert create_reasoning_parser("mistral").parse_non_stream("[THINK]a[/THINK]b") == ("a", "b")
    for name in ("gpt-oss", "auto"):
        with pytest.raises(ValueError, match="puts no thinking between two markers"):
            create_reasoning_parser(name)


TABLE = [
    # text, think_tag and qwen3, deepseek_r1
    ("<think>\nabc\n</think>\n\nAns", ("abc", "Ans"), ("abc", "Ans")),
    ("abc</think>Ans", ("abc", "Ans"), ("abc", "Ans")),
    ("Just an answer", (None, "Just an answer"), ("Just an answer", "")),
    ("<think>abc", ("abc", ""), ("abc", "")),
    ("Hi <think>abc</think>Ans", ("abc", "Hi Ans"), ("Hi <think>abc", "Ans")),
    ("<think>a</think>X<think>b</think>Y", ("a\n\nb", "XY"), ("a\n\nb", "XY")),
    ("<think></think>Ans", (None, "Ans"), (None, "Ans")),
    ("<think>a<think>b</think>c</think>d", ("a<think>b", "cd"), ("a<think>b", "cd")),
    ("Ans <", (None, "Ans <"), ("Ans <", "")),
]


@pytest.mark.parametrize(("text", "open_start", "forced"), TABLE)
def test_the_table_of_texts(text: str, open_start: tuple[str | None, str], forced: tuple[str | None, str]) -> None:
    """Texts on which NexRL's detectors differ by chunking: ours give one result each."""
    for name in ("think_tag", "think", "default", "qwen3", "nano_v3"):
        assert create_reasoning_parser(name).parse_non_stream(text) == open_start
    for name in ("deepseek_r1", "step3"):
        assert create_reasoning_parser(name).parse_non_stream(text) == forced
        for chunks in ([text], list(text)):
            assert stream(chunks, name, stream_reasoning=True) == forced


@pytest.mark.parametrize(
    ("name", "forced", "expected"),
    [
        ("qwen3", True, ("abc", "")),
        ("nano_v3", True, ("abc", "")),
        ("step3", False, (None, "abc")),
        ("deepseek_r1", False, ("abc", "")),
        ("kimi", True, (None, "abc")),
    ],
)
def test_forced_reasoning(name: str, forced: bool, expected: tuple[str | None, str]) -> None:
    """`force_reasoning` is honoured where NexRL honours it, and ignored where NexRL ignores it."""
    parser = create_reasoning_parser(name, force_reasoning=forced)
    assert parser.parse_non_stream("abc") == expected
    assert stream(["a", "bc"], name, force_reasoning=forced) == expected


def test_kimi_has_markers_of_its_own() -> None:
    """Kimi's triangles are markers there, and `<think>` is not."""
    parser = create_reasoning_parser("kimi")
    assert parser.parse_non_stream("◁think▷a◁/think▷b") == ("a", "b")
    assert parser.parse_non_stream("<think>a</think>b") == (None, "<think>a</think>b")


def test_minimax_prepends_the_tag() -> None:
    """`minimax_append_think` extracts nothing: the tag comes before the text, and before the first chunk only."""
    parser = create_reasoning_parser("minimax_append_think", stream_reasoning=True)
    assert parser.parse_non_stream("a</think>b") == (None, "<think>a</think>b")
    assert [parser.parse_stream_chunk(chunk) for chunk in ("", "a", "b")] == [
        (None, "<think>"),
        (None, "a"),
        (None, "b"),
    ]
    assert parser.finish() == (None, "")
    assert parser.parse_stream_chunk("c") == (None, "<think>c")


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        (RAW, True),
        ("plain", True),
        ("", True),
        ("<think>abc", False),
        ("<think>", False),
        ("<think>a</think>x<think>\n", False),
        (f"<think>a</think>{CALL}", True),
        (f"<think>a</think>x{CALL[:20]}", False),
    ],
)
@pytest.mark.parametrize("name", ["think_tag", "qwen3", "nano_v3"])
def test_validity(name: str, text: str, valid: bool) -> None:
    """A text that ended inside thinking or inside a call is not valid."""
    assert create_reasoning_parser(name).parse(text).is_valid is valid


def test_calls_stay_in_the_content() -> None:
    """A reasoning parser leaves calls for the tool parser."""
    assert create_reasoning_parser("qwen3").parse(f"<think>a</think>b{CALL}").cleaned_content == f"b{CALL}"


def test_the_reasoning_string() -> None:
    """What a holder hands on gives the same reasoning again, and stays open where the text was cut off."""
    parser = create_reasoning_parser()
    assert parser.detect_reasoning(RAW)
    assert not parser.detect_reasoning("plain")
    assert parser.extract_reasoning_string("abc</think>d") == "<think>abc</think>"
    assert parser.extract_reasoning_string("<think>abc") == "<think>abc"
    assert parser.extract_reasoning_string("plain") is None
    assert parser.parse_reasoning_string("<think>abc</think>") == ReasoningParseResult("abc", "", True)


# Streams.


def test_reasoning_is_streamed_or_whole() -> None:
    """With `stream_reasoning` deltas come at once; without it a thought comes when it has ended."""
    chunks = ["<think>a", "b", "</think>c"]
    live = create_reasoning_parser("qwen3", stream_reasoning=True)
    assert [live.parse_stream_chunk(chunk) for chunk in chunks] == [("a", ""), ("b", ""), (None, "c")]
    whole = create_reasoning_parser("qwen3")
    assert [whole.parse_stream_chunk(chunk) for chunk in chunks] == [(None, ""), (None, ""), ("ab", "c")]


def test_a_cut_off_thought_comes_with_finish() -> None:
    """Without `stream_reasoning`, `finish` gives the thought that never ended."""
    parser = create_reasoning_parser("qwen3")
    assert parser.parse_stream_chunk("<think>ab") == (None, "")
    assert parser.finish() == ("ab", "")
    assert parser.finish() == (None, "")


def test_a_parser_may_be_used_again() -> None:
    """After `finish` the next chunk begins another reply; whole texts in between change nothing."""
    parser = create_reasoning_parser("qwen3", stream_reasoning=True)
    parser.parse_stream_chunk("<think>a")
    assert parser.parse_non_stream("plain") == (None, "plain")
    assert parser.parse_stream_chunk("b</think>c") == ("b", "c")
    parser.finish()
    assert parser.parse_stream_chunk("d") == (None, "d")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("live", [True, False])
def test_chunking_does_not_matter(name: str, live: bool) -> None:
    """Every cut gives the same; with reasoning forced it is what the whole text gives; no word is lost."""

    @settings(max_examples=examples(40))
    @given(texts, places)
    def law(text: str, where: list[int]) -> None:
        ways = chunkings(text, where)
        found = {stream(chunks, name, stream_reasoning=live) for chunks in ways}
        assert len(found) == 1
        reasoning, content = found.pop()
        assert letters(reasoning or "", content) == letters(text)
        if name != "kimi":  # which ignores that reasoning is forced
            whole = create_reasoning_parser(name, force_reasoning=True).parse_non_stream(text)
            assert {stream(chunks, name, live, True) for chunks in ways} == {whole}

    law()


# A detector of one's own.


class CustomDetector(BaseReasoningFormatDetector):
    """As the documentation of NexRL writes one."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__(
            think_start_token="<custom>",
            think_end_token="</custom>",
            force_reasoning=force_reasoning,
            stream_reasoning=stream_reasoning,
            **options,
        )


class ShoutingDetector(BaseReasoningFormatDetector):
    """One that reads by itself: lines in capitals are reasoning."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False) -> None:
        super().__init__("<r>", "</r>", force_reasoning, stream_reasoning)

    def detect_and_parse(self, text: str) -> tuple[str | None, str]:
        """Lines in capitals, and the others."""
        lines = text.split("\n")
        shouted = [line for line in lines if line.isupper()]
        return "\n".join(shouted) or None, "\n".join(line for line in lines if not line.isupper())


def test_a_custom_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subclass that names two tokens reads whole texts and streams, and may be known by a name."""
    parser = ReasoningParser(CustomDetector())
    assert parser.parse("<custom>a</custom>b") == ReasoningParseResult("a", "b", True)
    assert [parser.parse_stream_chunk(chunk) for chunk in ("<cus", "tom>a</custom>", "b")] == [
        (None, ""),
        ("a", ""),
        (None, "b"),
    ]
    monkeypatch.setitem(DETECTORS, "custom", CustomDetector)
    assert create_reasoning_parser("custom", force_reasoning=True).parse_non_stream("a</custom>b") == ("a", "b")


def test_a_detector_that_reads_by_itself() -> None:
    """What a subclass overrides is what every step uses, the client too."""
    parser = ReasoningParser(ShoutingDetector())
    assert parser.parse("WHY\nbecause") == ReasoningParseResult("WHY", "because", True)
    assert split_output("WHY\nbecause", parser) == ("<r>WHY</r>", "because")


def test_a_message_that_is_continued() -> None:
    """What was said before decides where the text begins, by its order."""

    def read(before: str, text: str) -> tuple[str | None, str]:
        options: dict[str, Any] = {"continue_final_message": True, "previous_content": before}
        detector = nexrl.Qwen3Detector(**options)
        streamed = [detector.parse_streaming_increment(text), detector.finish()]
        whole = detector.detect_and_parse(text)
        assert "".join(reasoning or "" for reasoning, _ in streamed) == (whole[0] or "")
        return whole

    assert read("<think>so far", " on</think>done") == ("on", "done")
    assert read("<think>a</think>so", " far") == (None, " far")
    assert read("<think>a</think>x<think>again", "b</think>c") == ("b", "c")


# The steps around it.


def test_the_holders_step() -> None:
    """Raw output in, the reasoning string and the cleaned content out."""
    assert split_output(RAW) == ("<think>Let me calculate: 2 + 2 = 4</think>", "The answer is 4.")
    assert split_output("plain") == (None, "plain")
    assert split_output(f"<think>a</think>b{CALL}", "qwen3") == ("<think>a</think>", f"b{CALL}")


def test_a_call_that_forgot_to_close_its_thinking_is_not_lost() -> None:
    """The holder's step ends thinking before a call on which the output ends."""
    assert split_output(f"<think>I need f.\n{CALL}", "qwen3") == ("<think>I need f.</think>", CALL)
    stopped = f"<think>I need f.\n{CALL}<|im_end|>more<think>b</think>c"
    assert split_output(stopped, "qwen3") == ("<think>I need f.\n\nb</think>", f"{CALL}morec")


@settings(max_examples=examples(60))
@given(texts)
def test_the_holders_step_loses_nothing(text: str) -> None:
    """Every word is in the reasoning string or in the content."""
    for name in ("think_tag", "deepseek_r1"):
        held = split_output(text, name)
        assert letters(held.reasoning_string or "", held.content) == letters(text)


def test_the_tool_parser() -> None:
    """Calls come out in OpenAI's shape; what is left is content; a broken call is told."""
    found = create_tool_parser("qwen3").parse(f"actual response{CALL}")
    assert found.is_valid
    assert found.cleaned_content == "actual response"
    assert found.tool_calls is not None
    assert found.tool_calls[0].function == {"name": "f", "arguments": '{"a": 1}'}
    assert found.tool_calls[0].type == "function"
    broken = create_tool_parser("qwen25").parse('x<tool_call>{"name": "f", "arguments": [1]}</tool_call>')
    assert (broken.tool_calls, broken.is_valid, broken.cleaned_content) == (None, False, "x")
    assert broken.unparsed[0]["raw"].startswith("<tool_call>")
    assert create_tool_parser("qwen3").parse("plain").tool_calls is None


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("qwen", "qwen3"),
        ("qwen25", "qwen3"),
        ("qwen3_coder", "qwen3_coder"),
        ("deepseekv31", "deepseek_v31"),
        ("deepseek", "deepseek_v31"),
        ("gpt_oss", "harmony"),
    ],
)
def test_names_of_tool_parsers(name: str, format: str) -> None:
    """NexRL's names mean the formats of these families."""
    assert create_tool_parser(name).format is asides.get_format(format)


def test_an_unknown_tool_parser() -> None:
    """A ValueError says what might be meant."""
    with pytest.raises(ValueError, match="unknown tool parser 'qwen3_codr'; did you mean qwen3_coder"):
        create_tool_parser("qwen3_codr")


def test_the_configuration_names_the_parser() -> None:
    """`inference_service.reasoning_parser` in a dictionary or in the project's own configuration."""
    assert isinstance(parser_from_config(None), nexrl.ThinkTagReasoningParser)
    assert isinstance(parser_from_config({"inference_service": {"model": "m"}}), nexrl.ThinkTagReasoningParser)
    named = {"inference_service": {"reasoning_parser": "kimi"}}
    assert isinstance(parser_from_config(named).detector, nexrl.KimiDetector)
    own = Config(inference_service=InferenceService(reasoning_parser="deepseek-r1"))
    assert isinstance(parser_from_config(own).detector, nexrl.DeepSeekR1Detector)


def test_a_configuration_file_names_the_parser(tmp_path: Path) -> None:
    """NexRL's key in the project's own file, beside what is not ours."""
    file = tmp_path / "asides.yaml"
    file.write_text("inference_service:\n  reasoning_parser: step3\n  model: m\n")
    config = load(str(file), environ={})
    assert isinstance(parser_from_config(config).detector, nexrl.Step3Detector)


def test_ids_of_calls_differ_between_replies() -> None:
    """Two replies of a conversation name their calls differently."""
    client = InferenceServiceClient(lambda messages: f"<think>r</think>{CALL}")
    ids = {client.generate(QUESTION)["choices"][0]["message"]["tool_calls"][0]["id"] for _ in range(2)}
    assert len(ids) == 2


def test_the_configuration_names_the_tool_parser() -> None:
    """Thinking as one family writes it, calls as another."""
    config = {"inference_service": {"reasoning_parser": "deepseek_r1", "tool_parser": "qwen3"}}
    client = InferenceServiceClient(lambda messages: f"r</think>{CALL}", config)
    message = client.generate(QUESTION)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "f"
    assert message["reasoning_content"] == "r"


# The client.


def test_the_client_over_a_callable() -> None:
    """The documented question gives the documented dictionary."""
    asked: list[Any] = []

    def model(messages: Any, **fields: Any) -> str:
        asked.append((messages, fields))
        return RAW

    assert InferenceServiceClient(model, model="m").generate(QUESTION, temperature=0) == ANSWER
    assert asked == [(QUESTION, {"model": "m", "temperature": 0})]


def test_the_client_over_a_server() -> None:
    """The same over a real socket, with the key and the model's name."""
    with serve(chat("<thi", "nk>Let me calculate: 2 + 2", " = 4</think>The answer", " is 4."), key="k") as upstream:
        client = InferenceServiceClient(
            f"{upstream.url}/v1", {"inference_service": {"reasoning_parser": "qwen3"}}, model="m", key="k"
        )
        assert client.generate(QUESTION) == ANSWER
        whole = client.complete(QUESTION)
    assert whole["choices"][0]["finish_reason"] == "stop"
    assert whole["usage"]["completion_tokens"] == 5
    assert upstream.asked[0]["messages"] == QUESTION
    assert upstream.asked[0]["model"] == "m"


def test_the_client_gives_three_fields() -> None:
    """Content, reasoning and calls each stand in their field."""
    client = InferenceServiceClient(lambda messages: f"<think>r</think>actual response{CALL}")
    message = client.generate(QUESTION)["choices"][0]["message"]
    assert (message["content"], message["reasoning_content"]) == ("actual response", "r")
    assert message["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a": 1}'}


def test_the_client_without_reasoning() -> None:
    """No reasoning, no field."""
    client = InferenceServiceClient(lambda messages: "plain")
    assert client.generate(QUESTION) == {"choices": [{"message": {"role": "assistant", "content": "plain"}}]}


def test_a_server_that_splits_by_itself() -> None:
    """What the server has split off stays so, though the parser would begin inside reasoning."""
    with serve(chat(think("because"), "It is 4.")) as upstream:
        client = InferenceServiceClient(upstream.url, model="m", reasoning_parser="deepseek_r1")
        message = client.generate(QUESTION)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "It is 4.", "reasoning_content": "because"}


def test_several_choices() -> None:
    """Each choice of a reply in OpenAI's shape is read."""
    body = {"choices": [{"index": at, "message": {"content": f"<think>{at}</think>a{at}"}} for at in range(2)]}
    found = InferenceServiceClient(lambda messages: body).generate(QUESTION)["choices"]
    assert [choice["message"]["content"] for choice in found] == ["a0", "a1"]
    assert [choice["message"]["reasoning_content"] for choice in found] == ["0", "1"]


def test_minimax_in_the_client_loses_nothing() -> None:
    """The prepended tag is read again before the answer is handed on."""
    client = InferenceServiceClient(lambda messages: "a</think>b", reasoning_parser="minimax_append_think")
    assert client.generate(QUESTION)["choices"][0]["message"] == {
        "role": "assistant",
        "content": "b",
        "reasoning_content": "a",
    }


def test_a_server_that_refuses() -> None:
    """A refusal is an error of ours with the server's words."""
    with serve(fails(400, {"error": {"message": "no such model"}})) as upstream:
        client = InferenceServiceClient(upstream.url, model="m")
        with pytest.raises(UpstreamError, match="no such model"):
            client.generate(QUESTION)
    broken = InferenceServiceClient(lambda messages: {"error": {"message": "out of memory"}})
    with pytest.raises(asides.Error, match="out of memory"):
        broken.generate(QUESTION)
