"""Whether a server is still writing, and how much it has written: what llama.cpp, vLLM and SGLang show of it."""

from __future__ import annotations

import re

from ..dialects._fields import as_objects
from ._wire import Sender, decode

RUNNING = ("llamacpp:requests_processing", "vllm:num_requests_running", "sglang:num_running_reqs")
"""Metrics of the requests that are being answered."""
WRITTEN = ("llamacpp:tokens_predicted_total", "vllm:generation_tokens_total", "sglang:generation_tokens_total")
"""Metrics of the tokens that were written since the server began."""
_VALUE = r"^{}(?:\{{[^\n]*\}})? +([0-9.eE+]+)"


def busy(sender: Sender) -> bool | None:
    """Whether a request is being answered; None where the server does not show it."""
    slots = sender.get("/slots")
    listed = decode(slots.data) if slots.status == 200 else None
    if isinstance(listed, list) and all("is_processing" in slot for slot in as_objects(listed)) and listed:
        return any(slot["is_processing"] is True for slot in as_objects(listed))
    running = _metric(sender, RUNNING)
    return None if running is None else running > 0


def tokens_written(sender: Sender) -> float | None:
    """The tokens that the server has written since it began; None where it does not show it."""
    return _metric(sender, WRITTEN)


def _metric(sender: Sender, names: tuple[str, ...]) -> float | None:
    arrival = sender.get("/metrics")
    if arrival.status != 200:
        return None
    page = arrival.data.decode("utf-8", "replace")
    for name in names:
        values = re.findall(_VALUE.format(re.escape(name)), page, re.M)
        if values:
            try:
                return sum(map(float, values))
            except ValueError:
                return None
    return None
