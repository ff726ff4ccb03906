"""What the plug-ins share: from which release of a host on each works."""

from __future__ import annotations

from .._extras import require

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
