"""NexRL's reasoning detectors and parsers: text in, `(reasoning, content)` out, whole and streamed.

A detector knows one way of writing reasoning: NexRL's tokens and start state, read by one of our formats. A parser is
a detector with the methods that NexRL calls; `create_reasoning_parser` makes one by name. Calls are content here: the
tool parser reads them afterwards. For another way, subclass `BaseReasoningFormatDetector` and add it to `DETECTORS`.

    parser = create_reasoning_parser("qwen3")
    parser.parse("<think>2+2</think>4").reasoning_content        # '2+2'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..._api import Parser, parse
from ..._engine.format import TEXT, THINKING, Format
from ...errors import Error, UnknownFormatError
from ...families import get_format
from ...message import Message
from ...parts import ToolCall
from ...policies import Start
from .._streaming import TwoTexts

Reading = tuple[str | None, str]
"""Reasoning (None where there is none), then content."""


class UnknownParserError(Error, ValueError):
    """No reasoning or tool parser has this name."""


class BaseReasoningFormatDetector:
    """Finds reasoning between two tokens, in whole texts and in streams."""

    def __init__(
        self,
        think_start_token: str,
        think_end_token: str,
        force_reasoning: bool = False,
        stream_reasoning: bool = True,
        continue_final_message: bool = False,
        previous_content: str = "",
        *,
        format: str | Format | None = None,
    ) -> None:
        self.think_start_token = think_start_token
        """The text that opens reasoning, as in `<think>`."""
        self.think_end_token = think_end_token
        """The text that closes reasoning, as in `</think>`."""
        self.stream_reasoning = stream_reasoning
        """Whether reasoning is returned chunk by chunk; else each thought when it has ended."""
        self.format: Format = get_format(format) if format else Format.tags(think_start_token, think_end_token)
        """The format by which text is read."""
        self.force_reasoning: bool = force_reasoning
        """Whether output begins inside reasoning."""
        if continue_final_message:
            before = Parser(self.format, start=self._start, retype=False, calls=False, collect=False)
            before.feed(previous_content)
            self.force_reasoning = before.state == "thinking"
        self._continues = continue_final_message and bool(previous_content)
        self._parser: Parser | None = None
        self._texts = TwoTexts()

    @property
    def _start(self) -> Start:
        return "thinking" if self.force_reasoning else "text"

    @property
    def whole_start(self) -> Start:
        """Where a whole text begins: without `force_reasoning`, a lone end token still ends reasoning."""
        if self.force_reasoning:
            return "thinking"
        return "text" if self._continues else "undecided"

    def detect_and_parse(self, text: str) -> Reading:
        """The reasoning and the content of a whole text."""
        message = self._parse(text)
        return message.thinking or None, message.text

    def closes_reasoning(self, text: str) -> bool:
        """Whether a whole text did not end inside reasoning."""
        return _closes_reasoning(self._parse(text))

    def is_complete(self, text: str) -> bool:
        """Whether a whole text ended neither inside reasoning nor inside a call."""
        message = self._parse(text)
        if not _closes_reasoning(message):
            return False
        # A model may be served with tools in another family's syntax, so the common ones count as well.
        return not any(_ends_in_call(message.text, format) for format in (self.format, "auto"))

    def _parse(self, text: str) -> Message:
        return parse(text, self.format, start=self.whole_start, calls=False)

    def parse_streaming_increment(self, new_text: str) -> Reading:
        """The reasoning and the content that a chunk adds."""
        if self._parser is None:
            self._parser = Parser(self.format, start=self._start, retype=False, calls=False, collect=False)
            self._texts = TwoTexts(whole_thoughts=not self.stream_reasoning)
        reasoning, content = self._texts.take(self._parser.feed(new_text))
        return reasoning or None, content

    def finish(self) -> Reading:
        """Release what was held back at the end of a stream. The next chunk begins another reply."""
        if self._parser is None:
            return None, ""
        reasoning, content = self._texts.take(self._parser.finish())
        self._parser = None
        return reasoning or None, content


def _closes_reasoning(message: Message) -> bool:
    # By the notice, because a start token with nothing behind it makes no part that could be incomplete.
    return not any(notice.code == "unclosed_thinking" for notice in message.notices)


def _ends_in_call(content: str, format: str | Format) -> bool:
    parts = parse(content, format, start="text").parts
    return bool(parts) and isinstance(parts[-1], ToolCall) and not parts[-1].complete


class Qwen3Detector(BaseReasoningFormatDetector):
    """`<think>`…`</think>`, written by the model: Qwen3, GLM-4.5 and their like."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__("<think>", "</think>", force_reasoning, stream_reasoning, format="qwen3", **options)


class ThinkTagDetector(BaseReasoningFormatDetector):
    """Any of the tags that prompts ask for (`<think>`, `<reasoning>`…), in any case."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__("<think>", "</think>", force_reasoning, stream_reasoning, format="think_tag", **options)


class DeepSeekR1Detector(BaseReasoningFormatDetector):
    """Output that always begins inside reasoning; `force_reasoning` changes nothing, as in NexRL."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = True, **options: Any) -> None:
        super().__init__("<think>", "</think>", True, stream_reasoning, format="deepseek_r1", **options)


class KimiDetector(BaseReasoningFormatDetector):
    """`◁think▷`…`◁/think▷`; `force_reasoning` changes nothing, as in NexRL."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__("◁think▷", "◁/think▷", False, stream_reasoning, format="kimi", **options)


class Step3Detector(BaseReasoningFormatDetector):
    """Step-3: output begins inside reasoning unless `force_reasoning` is False."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = True, **options: Any) -> None:
        super().__init__("<think>", "</think>", force_reasoning, stream_reasoning, format="step3", **options)


class NanoV3Detector(BaseReasoningFormatDetector):
    """Nemotron 3 Nano, which NexRL starts outside of reasoning unless `force_reasoning` is True."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__("<think>", "</think>", force_reasoning, stream_reasoning, format="nemotron_v3", **options)


class MiniMaxAppendThinkDetector(BaseReasoningFormatDetector):
    """Finds no reasoning: puts the `<think>` that the prompt held before the output, all of which is content."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = True, **options: Any) -> None:
        super().__init__("<think>", "</think>", True, stream_reasoning, format="minimax_m2", **options)
        self._begun = False

    def detect_and_parse(self, text: str) -> Reading:
        """The whole text with the tag before it."""
        return None, self.think_start_token + text

    def parse_streaming_increment(self, new_text: str) -> Reading:
        """The chunk; the tag before the first."""
        tag = "" if self._begun else self.think_start_token
        self._begun = True
        return None, tag + new_text

    def finish(self) -> Reading:
        """Nothing was held back. The next chunk begins another reply."""
        self._begun = False
        return None, ""


DETECTORS: dict[str, Callable[..., BaseReasoningFormatDetector]] = {
    "think_tag": ThinkTagDetector,
    "think": ThinkTagDetector,
    "default": Qwen3Detector,
    "qwen3": Qwen3Detector,
    "deepseek_r1": DeepSeekR1Detector,
    "kimi": KimiDetector,
    "step3": Step3Detector,
    "nano_v3": NanoV3Detector,
    "minimax_append_think": MiniMaxAppendThinkDetector,
}
"""Detectors by their names for `create_reasoning_parser`; add your own class here."""


class ReasoningParseResult(msgspec.Struct, frozen=True):
    """A whole text, split."""

    reasoning_content: str | None
    """The reasoning, several thoughts joined; None where there is none."""
    cleaned_content: str
    """The content. Calls stand in it as they were written, for the tool parser."""
    is_valid: bool = True
    """False when the text ended inside reasoning or inside a call."""


class BaseReasoningParser:
    """A parser around a detector: whole texts, and streams."""

    def __init__(self, detector: BaseReasoningFormatDetector) -> None:
        self.detector = detector
        """The detector that does the splitting; it holds the state of a stream."""

    def parse(self, text: str) -> ReasoningParseResult:
        """Split a whole text."""
        reasoning, content = self.detector.detect_and_parse(text)
        return ReasoningParseResult(reasoning or None, content, self.detector.is_complete(text))

    def parse_non_stream(self, text: str) -> Reading:
        """The reasoning and the content of a whole text."""
        return self.detector.detect_and_parse(text)

    def parse_stream_chunk(self, chunk: str) -> Reading:
        """The reasoning and the content that a chunk adds."""
        return self.detector.parse_streaming_increment(chunk)

    def finish(self) -> Reading:
        """Release the reasoning and the content that were held back at the end of a stream."""
        return self.detector.finish()

    def detect_reasoning(self, text: str) -> bool:
        """Whether there is reasoning in a whole text."""
        return self.detector.detect_and_parse(text)[0] is not None

    def extract_reasoning_string(self, text: str) -> str | None:
        """The reasoning of a whole text between its tokens, as a service holder returns it; None where there is none.

        Where the text ended inside reasoning, the end token is missing here too.
        """
        detector = self.detector
        reasoning = detector.detect_and_parse(text)[0]
        if not reasoning:
            return None
        end = detector.think_end_token if detector.closes_reasoning(text) else ""
        return f"{detector.think_start_token}{reasoning}{end}"

    def parse_reasoning_string(self, text: str) -> ReasoningParseResult:
        """Split what a service holder returned."""
        return self.parse(text)


class ReasoningParser(BaseReasoningParser):
    """The parser around any detector."""


class ThinkTagReasoningParser(BaseReasoningParser):
    """NexRL's default, for tags of any spelling."""

    def __init__(self, force_reasoning: bool = False) -> None:
        super().__init__(ThinkTagDetector(stream_reasoning=False, force_reasoning=force_reasoning))


def create_reasoning_parser(
    parser_type: str = "think_tag", stream_reasoning: bool = False, force_reasoning: bool | None = None
) -> BaseReasoningParser:
    """A parser by name: a detector's, or that of any format that puts thinking between two markers.

    `force_reasoning` None is the detector's own default.
    """
    name = parser_type.lower().replace("-", "_")
    if name in ("think_tag", "think") and not stream_reasoning:
        return ThinkTagReasoningParser(bool(force_reasoning))
    forced = {} if force_reasoning is None else {"force_reasoning": force_reasoning}
    if name in DETECTORS:
        return ReasoningParser(DETECTORS[name](stream_reasoning=stream_reasoning, **forced))
    return ReasoningParser(_detector_of_format(name, stream_reasoning, force_reasoning))


def _detector_of_format(name: str, stream_reasoning: bool, forced: bool | None) -> BaseReasoningFormatDetector:
    try:
        format = get_format(name)
    except UnknownFormatError as error:
        near = f"did you mean {', '.join(error.near)}? " if error.near else ""
        names = ", ".join(DETECTORS)
        raise UnknownParserError(f"unknown reasoning parser {name!r}; {near}there are {names}") from error
    opener = next((marker for marker, state in format.states.get(TEXT, {}).items() if state == THINKING), None)
    closer = next((marker for marker, state in format.states.get(THINKING, {}).items() if state == TEXT), None)
    if opener is None or closer is None or format.settle is not None or format.header is not None:
        raise UnknownParserError(
            f"{name} puts no thinking between two markers; read it with asides.parse(text, {name!r})"
        )
    force = format.start == THINKING if forced is None else forced
    return BaseReasoningFormatDetector(opener, closer, force, stream_reasoning, format=format)
