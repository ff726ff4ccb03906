"""What the plug-ins share: from which release of a host on each works, and which format a model's name asks for."""

from __future__ import annotations

from .._engine.format import Format
from .._extras import require
from ..detect import detect
from ..detect.result import begin_of, start_of
from ..families import get_format
from ..policies import Policies

LEAST = {
    "ag-ui-protocol": "1.0",
    "agent-client-protocol": "0.12.1",
    "inspect-ai": "0.3.285",
    "langchain-core": "1.6",
    "lighteval": "0.13",
    "litellm": "1.106",
    "lm-eval": "0.4.13",
    "opentelemetry-api": "1.30",
    "pydantic-ai-slim": "2.63",
    "sglang": "0.5.23",
    "vllm": "0.32",
}
"""The oldest release of each host, by its name in a package index, that the tests of its plug-in were run with."""


def require_host(package: str) -> None:
    """Raise an `ImportError` of one line if the host is missing or too old."""
    require(package, LEAST[package])


def choose_format(format: str | Format, model: str | None, policies: Policies) -> tuple[Format, Policies]:
    """The format and the policies for a model: what the caller names, else what the model's name says.

    With `format="auto"` and a model whose name says what it writes, its format is taken, and its start where that
    differs from the format's own: `Qwen/Qwen3-4B-Thinking-2507` begins in a thought, `Qwen/Qwen3-4B` does not.
    """
    if format != "auto" or not model:
        return get_format(format), policies
    detection = detect(model)
    found = get_format(detection.format)
    # Explicit choices win, and a start that is the format's own is left to it: whole texts have a default there.
    if policies.start is None and policies.prompt is None and detection.start != start_of(begin_of(found.start)):
        policies = policies.but(start=detection.start)
    return found, policies
