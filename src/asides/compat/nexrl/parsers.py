"""NexRL's `create_reasoning_parser` and the parsers that it makes, each around a detector."""

from __future__ import annotations

import msgspec

from ..._engine.format import TEXT, THINKING
from ...errors import UnknownFormatError
from ...families import get_format
from .detectors import DETECTORS, BaseReasoningFormatDetector, Reading, ThinkTagDetector, UnknownParserError


class ReasoningParseResult(msgspec.Struct, frozen=True):
    """What a whole text was made of."""

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

    def parse(self, text: str) -> ReasoningParseResult:
        """Take a whole text apart."""
        reasoning, content = self.detector.detect_and_parse(text)
        return ReasoningParseResult(reasoning or None, content, self.detector.is_complete(text))

    def parse_non_stream(self, text: str) -> Reading:
        """The reasoning and the content of a whole text."""
        return self.detector.detect_and_parse(text)

    def parse_stream_chunk(self, chunk: str) -> Reading:
        """The reasoning and the content that a chunk tells."""
        return self.detector.parse_streaming_increment(chunk)

    def finish(self) -> Reading:
        """The stream is over: the reasoning and the content that were held back."""
        return self.detector.finish()

    def detect_reasoning(self, text: str) -> bool:
        """Whether there is reasoning in a whole text."""
        return self.detector.detect_and_parse(text)[0] is not None

    def extract_reasoning_string(self, text: str) -> str | None:
        """The reasoning of a whole text between its tokens, as a service holder hands it on; None where there is none.

        Where the text ended inside reasoning, the end token is missing here too.
        """
        detector = self.detector
        reasoning = detector.detect_and_parse(text)[0]
        if not reasoning:
            return None
        end = detector.think_end_token if detector.closes_reasoning(text) else ""
        return f"{detector.think_start_token}{reasoning}{end}"

    def parse_reasoning_string(self, text: str) -> ReasoningParseResult:
        """Take apart what a service holder handed on."""
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
