"""asides inside SGLang: `--reasoning-parser asides --tool-call-parser asides`, or `asides_<format>` for any format.

SGLang calls `register` in each of its processes, because the package names it as an entry point of the group
`sglang.srt.plugins`. It writes into the two registries that the command line and the server look names up in, and
changes nothing else. SGLang is imported when it is called, not with this module. docs/plugins/sglang.md has the rest.
"""

from __future__ import annotations

from ..families import formats
from ._hosts import require_host

NAME = "asides"
"""The parser that finds the format by itself; `asides_<format>` are the others."""


def register() -> None:
    """Add the detectors to SGLang's registries. A second call adds the formats that were registered since."""
    require_host("sglang")
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    from ._sglang import CallDetector, ThoughtDetector

    for format in formats():
        # In lower case: SGLang looks the names of reasoning parsers up so, however they were written.
        name = NAME if format == "auto" else f"{NAME}_{format.lower()}"
        fields = {"format_name": format, "__doc__": f"`{name}`, as SGLang calls it."}
        ReasoningParser.DetectorMap[name] = type("ThoughtDetector", (ThoughtDetector,), fields)
        FunctionCallParser.ToolCallParserEnum[name] = type("CallDetector", (CallDetector,), fields)
