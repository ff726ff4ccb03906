"""The Arrow types of what `asides.arrow` returns: constants, with a version that changes when one of them does.

A column of raw outputs becomes one struct per row. Texts are `string`, or `large_string` where the column that was
given is. A row that is null is a null struct; in every other row the fields are there, and empty rather than null: no
thinking is the empty string, no calls are an empty list. Null means "not known": a call's `error` is null exactly when
the call may be run, `share` is null where nothing was written at all.

    SPLIT      what `split` returns             split_type(parts=True, ...) with what was asked for beyond that
    FIGURES    what `figures` returns
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa  # type: ignore[import-untyped]

from ..analysis._figures import PARTS
from ..analysis._turns import KINDS

SCHEMA_VERSION: Final = 1
"""Changes when a field is renamed or removed, or its type or meaning changes. New fields come last, and do not."""

CALL: Final[Any] = pa.struct(
    [("name", pa.string()), ("arguments", pa.string()), ("id", pa.string()), ("error", pa.string())]
)
"""A call. `arguments` is a JSON object as text; `error` is null exactly when the call may be run, else a code."""
PART: Final[Any] = pa.struct(
    [("kind", pa.string()), ("start", pa.int64()), ("end", pa.int64()), ("complete", pa.bool_())]
)
"""A part: `thinking`, `text` or `tool_call`, and where it stands in the raw text, in characters (code points)."""
TOKEN_PART: Final[Any] = pa.struct([*PART, ("token_start", pa.int64()), ("token_end", pa.int64())])
"""A part with its place in the token ids; null where the tokenizer's ids do not spell the text as it was written."""
TOKENS: Final[Any] = pa.struct([(name, pa.int64()) for name in ("total", "thinking", "text", "calls")])
"""How many tokens there are in all, and in the parts of each kind; markers are in the total alone."""
ROW_ERROR: Final[Any] = pa.struct([("code", pa.string()), ("message", pa.string())])
"""Why a row could not be read. With `errors="null"`, every other field of such a row is null."""

_SPLIT = [
    ("thinking", pa.string()),
    ("text", pa.string()),
    ("calls", pa.list_(CALL)),
    ("termination", pa.string()),
    ("notices", pa.list_(pa.string())),
    ("format", pa.string()),
]
_BEYOND = ("beyond", pa.int64())
SPLIT: Final[Any] = pa.struct([*_SPLIT, _BEYOND])
"""What `split` returns for a row: thinking and text joined, the calls, how it ended (`stop`, `end`, `cut`), the codes
of the notices, the format that was taken, and how many characters stand beyond the turn."""


def split_type(*, parts: bool = False, tokens: bool = False, errors: bool = False, large: bool = False) -> Any:
    """The type of `split`'s result: `SPLIT`, with fields for what else was asked for.

    `parts`: with `parts`. `tokens`: with `tokenizer`. `errors`: with `errors="null"`. `large`: from a `large_string`.

    Examples:
        >>> from asides import arrow
        >>> [field.name for field in arrow.split_type()]
        ['thinking', 'text', 'calls', 'termination', 'notices', 'format', 'beyond']
    """
    fields: list[Any] = list(_SPLIT)
    if large:
        call = pa.struct([(field.name, large_type(field.type, field.name == "arguments")) for field in CALL])
        fields[:3] = [("thinking", pa.large_string()), ("text", pa.large_string()), ("calls", pa.list_(call))]
    if parts or tokens:
        fields.append(("parts", pa.list_(TOKEN_PART if tokens else PART)))
    if tokens:
        fields.append(("tokens", TOKENS))
    if errors:
        fields.append(("error", ROW_ERROR))
    return pa.struct([*fields, _BEYOND])


def large_type(type: Any, large: bool) -> Any:
    """The type itself, or `large_string`."""
    return pa.large_string() if large else type


_COUNTS = ("blocks", "steps", "thinking_characters", "thinking_words", "thinking_tokens", "text_characters")
_COUNTS_OF_TEXT = ("text_words", "text_tokens", "call_characters")
FIGURES: Final[Any] = pa.struct(
    [
        *((name, pa.int64()) for name in (*_COUNTS, *_COUNTS_OF_TEXT)),
        ("share", pa.float64()),
        ("questions", pa.int64()),
        ("turns", pa.int64()),
        ("turn_kinds", pa.struct([(kind, pa.int64()) for kind in KINDS])),
        ("repetition", pa.float64()),
        ("loop", pa.struct([("words", pa.int64()), ("times", pa.int64()), ("text", pa.string())])),
        *((name, pa.int64()) for name in ("unclosed", "empty", "drafts", "calls", "broken_calls")),
        ("quality", pa.struct([("score", pa.float64()), *((part, pa.float64()) for part in PARTS)])),
        _BEYOND,
    ]
)
"""What `figures` returns for a row: the fields of `asides.analysis.Figures`, `quality` with its parts beside the score.
Token counts are null without a tokenizer."""
