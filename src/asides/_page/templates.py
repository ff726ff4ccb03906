"""A report on a chat template as the page shows it: the conversation by whose words it is, and sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .._conversation._report_process import report_on
from .._conversation._report_words import sections, title_of


def describe_template(template: str | None, tokenizer: str, model: str) -> dict[str, Any]:
    """Study a template, or the one beside a model's tokenizer. A `UsageError` says why it cannot be.

    It runs in a process of its own, so the caller's thread only waits.
    """
    report = report_on(Path(tokenizer) if tokenizer else None, template, model=model)
    return {
        "title": title_of(report),
        "counted": report.counted,
        "conversation": msgspec.to_builtins(report.conversation),
        "sections": sections(report),
    }
