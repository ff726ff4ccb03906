"""NexRL's detectors: one for each way of writing reasoning, `(reasoning, content)` out. Subclass the base for another.

Knows NexRL's names and start states. Calls are words to a detector: the tool parser reads them after it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._api import Parser, parse
from ..._engine.format import Format
from ...errors import Error
from ...families import get_format
from ...message import Message
from ...parts import ToolCall
from ...policies import Start
from ..streaming import TwoTexts

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
        self.think_end_token = think_end_token
        self.stream_reasoning = stream_reasoning
        """Whether reasoning is given as it comes; else each thought is given when it has ended."""
        self.format: Format = get_format(format) if format else Format.tags(think_start_token, think_end_token)
        """How text is read."""
        self.force_reasoning: bool = force_reasoning
        """Whether output begins inside reasoning."""
        if continue_final_message:
            before = Parser(self.format, start=self._start, calls=False, collect=False)
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
        message = parse(text, self.format, start=self.whole_start, calls=False)
        return message.thinking or None, message.text

    def closes_reasoning(self, text: str) -> bool:
        """Whether a whole text did not end inside reasoning."""
        return _closes_reasoning(parse(text, self.format, start=self.whole_start, calls=False))

    def is_complete(self, text: str) -> bool:
        """Whether a whole text ended neither inside reasoning nor inside a call."""
        message = parse(text, self.format, start=self.whole_start, calls=False)
        if not _closes_reasoning(message):
            return False
        # A model may be served with tools in another family's syntax, so the common ones count as well.
        return not any(_ends_in_call(message.text, format) for format in (self.format, "auto"))

    def parse_streaming_increment(self, new_text: str) -> Reading:
        """What a chunk tells."""
        if self._parser is None:
            self._parser = Parser(self.format, start=self._start, calls=False, collect=False)
            self._texts = TwoTexts(whole_thoughts=not self.stream_reasoning)
        reasoning, content = self._texts.take(self._parser.feed(new_text))
        return reasoning or None, content

    def finish(self) -> Reading:
        """The stream is over: what was held back. The next chunk begins another reply."""
        if self._parser is None:
            return None, ""
        reasoning, content = self._texts.take(self._parser.finish())
        self._parser = None
        return reasoning or None, content


def _closes_reasoning(message: Message) -> bool:
    # Also where nothing stands behind the start token, so that there is no part to be incomplete.
    return not any(notice.code == "unclosed_thinking" for notice in message.notices)


def _ends_in_call(content: str, format: str | Format) -> bool:
    parts = parse(content, format, start="text").parts
    return bool(parts) and isinstance(parts[-1], ToolCall) and not parts[-1].complete


class Qwen3Detector(BaseReasoningFormatDetector):
    """`<think>`…`</think>`, written by the model: Qwen3, GLM-4.5 and their like."""

    def __init__(self, stream_reasoning: bool = True, force_reasoning: bool = False, **options: Any) -> None:
        super().__init__("<think>", "</think>", force_reasoning, stream_reasoning, format="qwen3", **options)


class ThinkTagDetector(BaseReasoningFormatDetector):
    """Any of the tags that models are asked for (`<think>`, `<reasoning>`…), in any case."""

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
"""By the name that `create_reasoning_parser` knows. Put your own class here to make it known by a name."""
