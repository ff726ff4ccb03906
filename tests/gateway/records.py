"""The record of a request as it is when the request is over, for tests that need no gateway."""

from __future__ import annotations

from typing import Any

from asides import get_format
from asides._engine.parser import Parser
from asides._gateway.record import RequestRecord
from asides.reply._items import RawText, Usage
from asides.reply._splitter import Splitter


def finished(*choices: str, usage: Usage | None = None, **fields: Any) -> RequestRecord:
    """A request for a reply with these choices (raw output of Qwen3); `fields` are set on the record as they are."""
    record = RequestRecord("req_1", "POST", "/v1/chat/completions")
    splitter = Splitter(get_format("qwen3"), lambda format: Parser(format, start="text", collect=False), choices=10)
    record.begin_reply(splitter, collect=True, limit=1_000_000)
    for number, raw in enumerate(choices):
        for item in splitter.feed(RawText(number, raw)):
            record.add(item)
    for item in splitter.finish():
        record.add(item)
    if usage is not None:
        record.add(usage)
    for fold in record.folds.values():
        fold.first_thought = record.started + 0.2 if fold.first_thought is not None else None
        fold.first_answer = record.started + 2.0 if fold.first_answer is not None else None
    values = {"route": "generate", "dialect": "openai_chat", "status": 200, "seconds": 4.0, "upstream": "gpu", **fields}
    for name, value in values.items():
        setattr(record, name, value)
    record.finish()
    record.seconds = values["seconds"]
    return record
