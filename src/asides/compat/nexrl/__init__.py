"""NexRL's reasoning parser, its tool parser, its service holder's step and its inference client, over the engine."""

from __future__ import annotations

from ._reasoning import (
    DETECTORS,
    BaseReasoningFormatDetector,
    BaseReasoningParser,
    DeepSeekR1Detector,
    KimiDetector,
    MiniMaxAppendThinkDetector,
    NanoV3Detector,
    Qwen3Detector,
    ReasoningParser,
    ReasoningParseResult,
    Step3Detector,
    ThinkTagDetector,
    ThinkTagReasoningParser,
    UnknownParserError,
    create_reasoning_parser,
)
from ._service import HolderOutput, InferenceServiceClient, parser_from_config, split_output
from ._tools import BaseToolParser, ParseResult, ToolCallItem, ToolParser, create_tool_parser

__all__ = [
    "DETECTORS",
    "BaseReasoningFormatDetector",
    "BaseReasoningParser",
    "BaseToolParser",
    "DeepSeekR1Detector",
    "HolderOutput",
    "InferenceServiceClient",
    "KimiDetector",
    "MiniMaxAppendThinkDetector",
    "NanoV3Detector",
    "ParseResult",
    "Qwen3Detector",
    "ReasoningParseResult",
    "ReasoningParser",
    "Step3Detector",
    "ThinkTagDetector",
    "ThinkTagReasoningParser",
    "ToolCallItem",
    "ToolParser",
    "UnknownParserError",
    "create_reasoning_parser",
    "create_tool_parser",
    "parser_from_config",
    "split_output",
]
