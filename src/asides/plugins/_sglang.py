"""The detectors that `asides.plugins.sglang` registers. SGLang is imported here.

SGLang makes both for every request, of the classes that it looked up: a reasoning detector, which takes thoughts out of
the text, and, for requests with tools, a tool detector, which takes calls out of what the other left. Each gets text
alone, whole or in increments. `_halves.py` reads in these two stages; here its pieces become SGLang's types.

`ThoughtDetector` derives from the detector of response templates for what SGLang's server does with those by their
class: it renders their special tokens as text (others lose `[THINK]` before they see it), gives them the prompt, from
which the engine reads where the reply begins, and says whether the answer is held to a JSON schema. Nothing of that
class's reading is used.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Literal
from weakref import WeakKeyDictionary

from sglang.srt.environ import envs
from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult as CallResult
from sglang.srt.function_call.core_types import ToolCallItem
from sglang.srt.parser.reasoning_parser import StreamingParseResult as ThoughtResult
from sglang.srt.parser.response_template import GRAMMAR_FROM_START, ResponseTemplateReasoningDetector
from xgrammar import StructuralTag

from .._engine.format import HEADER, THINKING, Format, thinking_pair
from .._engine.vocabulary import added_tokens
from ..detect import detect
from ..errors import Error, UsageError
from ..events import Notice
from ..families import get_format
from ..families._registry import switch_of
from ..policies import DEFAULTS, Start
from ..reading import Reading
from ._halves import CallHalf, CallsTaken, ThoughtHalf, ThoughtsTaken

logger = logging.getLogger("asides.plugins.sglang")

_SWITCHES = ("enable_thinking", "thinking")
"""The keywords of chat templates that SGLang knows."""
_detected: WeakKeyDictionary[Any, Format] = WeakKeyDictionary()
"""What was found for a tokenizer: a server has one, and detectors are made for every request."""


def find_format(name: str, tokenizer: Any) -> Format:
    """The format of a detector: the one it is named after, else what the tokenizer and its chat template show."""
    found = get_format(name)
    if tokenizer is None:
        return found
    if name != "auto":
        return found if found.suffixed is None else found.for_tokens(added_tokens(tokenizer))
    try:
        known = _detected.get(tokenizer)
    except TypeError:  # of a class that cannot be a key
        return found
    if known is None:
        try:
            known = get_format(detect(tokenizer=tokenizer).format)
            logger.info("the tokenizer shows the format %s", known.name)
        except Error as error:
            known = found
            logger.warning("the tokenizer does not show its format, which is found while reading: %s", error)
        _detected[tokenizer] = known
    return known


class ThoughtDetector(ResponseTemplateReasoningDetector):
    """Takes thoughts out of a reply; calls go on as the model wrote them."""

    format_name: ClassVar[str] = "auto"

    def __init__(
        self,
        stream_reasoning: bool = True,
        force_reasoning: bool | None = None,
        continue_final_message: bool = False,
        previous_content: Any = "",
        force_nonempty_content: bool = False,
        tokenizer: Any = None,
        prefix: str = "",
        grammar_start: str | None = None,
        tools: Sequence[Any] | None = None,
        constrained: bool = False,
    ) -> None:
        # Not the base's: that one reads a template.
        format = self._format = find_format(self.format_name, tokenizer)
        self.think_start_token, self.think_end_token = thinking_pair(format)
        self.think_start_self_label = ""
        self.think_excluded_tokens = None
        self.message_start_think_openers: list[str] = []
        self.answer_started = False
        self.reasoning_default = _default_mode(format)
        self.stream_reasoning = stream_reasoning
        self._force_nonempty_content = force_nonempty_content
        policies = DEFAULTS.but(tools=_definitions(tools))
        if grammar_start == GRAMMAR_FROM_START:
            policies = policies.but(start="text")
        elif not prefix and force_reasoning and format.start != HEADER:
            policies = policies.but(start="thinking")
        # A "no" counts only where the format has a switch: SGLang finds thoughts that nothing turns off in few
        # templates.
        think = False if force_reasoning is False else None
        reading = Reading.of(format=format, prompt=prefix or None, think=think, policies=policies)
        if continue_final_message and isinstance(previous_content, str) and not prefix and grammar_start is None:
            reading = _reading_after(previous_content, reading)
        self._reading = reading
        self._is_json = grammar_start is not None
        self._half = self._new_half(reading)
        self._waiting = ""
        """Thoughts that wait for their end, where they are not streamed."""
        self._thought: list[str] = []
        """All thoughts, where they become the answer if there is no other."""
        self._answered = False

    def _new_half(self, reading: Reading) -> ThoughtHalf:
        return ThoughtHalf(reading, answer_verbatim=self._is_json)

    def get_think_end_token_ids(self, tokenizer: Any) -> list[int]:
        """The ids that end a thought; none where no marker of its own does (harmony), or none is known yet."""
        return _ids(tokenizer, self.think_end_token)

    def get_self_opened_think_start_token_ids(self, tokenizer: Any) -> list[int] | None:
        """The ids with which a model opens a thought that the prompt did not open."""
        return _ids(tokenizer, self.think_start_token) or None

    def starts_message(self, prefix: str) -> bool:
        """Whether a grammar would have to begin with the message: there is none for whole messages."""
        return False

    def answer_opener(self, prefix: str) -> str:
        """What stands before an answer: nothing."""
        return ""

    def json_output_started(self, text: str) -> bool:
        """Whether an output has come to the answer that a JSON schema holds."""
        half = self._new_half(self._reading)
        half.feed(text)
        return half.verbatim

    def detect_and_parse(self, text: str) -> ThoughtResult:
        """Read a whole reply."""
        half = self._new_half(self._reading.as_whole())
        first, last = half.feed(text), half.finish()
        _log(half.notices)
        thinking, rest = first.thinking + last.thinking, first.rest + last.rest
        if self._force_nonempty_content and not rest:
            thinking, rest = "", thinking
        return ThoughtResult(normal_text=rest, reasoning_text=thinking)

    def parse_streaming_increment(self, new_text: str) -> ThoughtResult:
        """Read more of a reply."""
        half = self._half
        # Whether a thought is open matters only to one that waits for its end.
        return self._result(half.feed(new_text), not self.stream_reasoning and half.is_thinking)

    def finish(self) -> ThoughtResult:
        """The reply is over: what was held back."""
        result = self._result(self._half.finish(), False)
        _log(self._half.notices)
        if self._force_nonempty_content and not self._answered:
            result = ThoughtResult(normal_text="".join(self._thought))
            self._thought.clear()
        return result

    def _result(self, piece: ThoughtsTaken, is_thinking: bool) -> ThoughtResult:
        thinking = piece.thinking
        if self._force_nonempty_content:
            self._answered = self._answered or bool(piece.rest)
            self._thought.append(thinking)
        if not self.stream_reasoning:
            self._waiting += thinking
            thinking = "" if is_thinking else self._waiting
            if not is_thinking:
                self._waiting = ""
        return ThoughtResult(normal_text=piece.rest, reasoning_text=thinking)


class CallDetector(BaseFormatDetector):
    """Takes calls out of a reply; all else stays as it is, thoughts too if no reasoning parser took them out."""

    format_name: ClassVar[str] = "auto"

    def __init__(self, tokenizer: Any = None) -> None:
        super().__init__()
        self._format = find_format(self.format_name, tokenizer)
        self._half: CallHalf | None = None

    @property
    def incomplete_tool_call_indices(self) -> set[int]:
        """The calls that may not be run: SGLang does not end a turn with `tool_calls` for them."""
        return self._half.unfinished if self._half is not None else set()

    def has_tool_call(self, text: str) -> bool:
        """Whether a reply may have calls. The tools are not given here, so it is also true of broken and unknown ones.

        Where that turns out wrong, SGLang writes a line in its log; where it is false, it does not read for calls.
        """
        bare = (start for syntax in self._format.calls if syntax.bare for start in syntax.bare_starts)
        if any(start in text for start in bare):
            return True
        half = self._new_half(None)
        return bool(half.read_whole(text).calls or half.left)

    def detect_and_parse(self, text: str, tools: list[Any]) -> CallResult:
        """Read a whole reply."""
        half = self._new_half(tools)
        return _call_result(half, half.read_whole(text))

    def parse_streaming_increment(self, new_text: str, tools: list[Any]) -> CallResult:
        """Read more of a reply."""
        half = self._half
        if half is None:
            half = self._half = self._new_half(tools)
        return _call_result(half, half.feed(new_text))

    def finish(self, tools: list[Any]) -> CallResult:
        """The reply is over: what was held back."""
        return CallResult() if self._half is None else _call_result(self._half, self._half.finish())

    def get_structural_tag(
        self,
        tools: list[Any] | None = None,
        tool_choice: Any = "auto",
        thinking_mode: bool = False,
        parallel_tool_calls: bool = True,
    ) -> StructuralTag | None:
        """The grammar of a reply for strict tools, of which the model may call any; None where there is none.

        `thinking_mode`: nobody else lets the thought pass that the prompt has perhaps opened.
        """
        if tool_choice != "auto":
            return None
        start: Literal["text", "thinking"] = "thinking" if thinking_mode and self._format.start == THINKING else "text"
        try:
            return StructuralTag.model_validate(self._format.structural_tag(_definitions(tools) or [], start=start))
        except UsageError as error:
            logger.warning("strict tools are not enforced: %s", error)
            return None

    def supports_structural_tag(self) -> bool:
        """No: a required call is held to SGLang's JSON schema instead."""
        return False

    def structure_info(self) -> Any:
        """There is none."""
        raise NotImplementedError("asides has no tags of this kind")

    def _new_half(self, tools: list[Any] | None) -> CallHalf:
        # A format of messages begins with a header, and the reasoning detector leaves those of calls where they are.
        start: Start | None = None if self._format.start == HEADER else "text"
        names = None
        if tools is not None and not envs.SGLANG_FORWARD_UNKNOWN_TOOLS.get():
            names = frozenset(tool.function.name for tool in tools)
        policies = DEFAULTS.but(start=start, tools=_definitions(tools))
        return CallHalf(Reading.of(format=self._format, policies=policies), names)


def _call_result(half: CallHalf, piece: CallsTaken) -> CallResult:
    if half.notices:
        _log(half.notices)
    if half.left:
        for name in half.left:
            logger.warning("a call of %r, which is no tool of the request or cannot be read, is left in the text", name)
        half.left.clear()
    text, calls = piece
    items = [ToolCallItem(tool_index=call.number, name=call.name or None, parameters=call.arguments) for call in calls]
    return CallResult(normal_text=text, calls=items)


def _log(notices: list[Notice]) -> None:
    for notice in notices:
        logger.debug("%s at %d", notice.code, notice.offset)
    notices.clear()


def _ids(tokenizer: Any, marker: str) -> list[int]:
    ids: list[int] = tokenizer.encode(marker, add_special_tokens=False) if marker else []
    return ids


def _definitions(tools: Sequence[Any] | None) -> list[Any] | None:
    """The tools of a request as plain data; None where there are none."""
    return [tool if isinstance(tool, dict) else tool.model_dump() for tool in tools] if tools else None


def _default_mode(format: Format) -> str:
    """When a request asks for thinking, in SGLang's terms, where the chat template does not show it."""
    switch = switch_of(format)
    keyword = switch.keyword if switch is not None and switch.keyword in _SWITCHES else ""
    if format.start == THINKING:
        return keyword or "always"
    return f"explicit_{keyword or _SWITCHES[0]}"


def _reading_after(content: str, reading: Reading) -> Reading:
    """How a reply is read that goes on with a message."""
    parser = reading.parser()
    parser.feed(content)
    return reading.but(start="thinking" if parser.state == "thinking" else "text", retype=False)
