"""Which columns go in and what comes out: types, nulls, chunks, slices, schemas; and what is wrong with bad ones."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import asides
from asides import UnknownFormatError, UsageError
from asides.arrow import (
    FIGURES,
    ROW_LIMIT,
    SPLIT,
    UnreadableRowError,
    clean,
    figures,
    split,
    split_type,
    thinking,
)
from asides.arrow import (
    _columns as columns,
)

CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
ROWS = ["<think>2+2</think>It is 4.", None, "", "Plain.", "<think>cut", CALL]
THOUGHTS = ["2+2", None, "", "", "cut", ""]
TEXTS = ["It is 4.", None, "", "Plain.", "", ""]


def of_every_type() -> dict[str, Any]:
    """The same rows as every kind of column."""
    plain = pa.array(ROWS)
    return {
        "string": plain,
        "large_string": pa.array(ROWS, pa.large_string()),
        "string_view": pa.array(ROWS, pa.string_view()),
        "dictionary": plain.dictionary_encode(),
        "large dictionary": pa.array(ROWS, pa.large_string()).dictionary_encode(),
        "sliced": pa.array(["before", *ROWS, "after"]).slice(1, len(ROWS)),
        "sliced dictionary": pa.array(["before", *ROWS, "after"]).dictionary_encode().slice(1, len(ROWS)),
        "chunked": pa.chunked_array([plain.slice(0, 2), plain.slice(2, 0), plain.slice(2)]),
        "chunked view": pa.chunked_array([pa.array(ROWS, pa.string_view())]),
    }


@pytest.mark.parametrize("kind", of_every_type())
def test_every_type_of_column(kind: str) -> None:
    """The rows are the same whatever holds them, and a result validates."""
    column = of_every_type()[kind]
    found = split(column, "qwen3", parts=True)
    found.validate(full=True)
    assert isinstance(found, pa.ChunkedArray) == kind.startswith("chunked")
    large = kind.startswith("large")
    assert found.type == split_type(parts=True, large=large)
    rows = found.to_pylist()
    assert [row and row["thinking"] for row in rows] == THOUGHTS
    assert [row and row["text"] for row in rows] == TEXTS
    assert found.null_count == 1
    for function, expected in ((clean, TEXTS), (thinking, THOUGHTS)):
        alone = function(column, "qwen3")
        assert alone.to_pylist() == expected
        assert alone.type == (pa.large_string() if large else pa.string())
    assert figures(column, "qwen3").type == FIGURES


def test_what_offers_the_c_interface_is_a_column() -> None:
    """A column of another library: it needs no conversion by the caller."""

    class Series:
        def __init__(self, held: Any) -> None:
            self.held = held

    class Whole(Series):
        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return self.held.__arrow_c_array__(requested_schema)

    class Stream(Series):
        def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
            return self.held.__arrow_c_stream__(requested_schema)

    plain = pa.array(ROWS)
    assert clean(Whole(plain), "qwen3").to_pylist() == TEXTS
    assert clean(Stream(pa.chunked_array([plain, plain])), "qwen3").to_pylist() == TEXTS * 2
    assert clean(plain, Whole(pa.array(["qwen3"] * len(ROWS)))).to_pylist() == TEXTS


@pytest.mark.parametrize("type", [pa.string(), pa.large_string(), pa.string_view(), pa.null()])
def test_columns_without_texts(type: Any) -> None:
    """No row, no chunk, or nothing but nulls."""
    assert split(pa.array([], type)).to_pylist() == []
    assert split(pa.chunked_array([], type)).to_pylist() == []
    nulls = split(pa.nulls(3, type), tokenizer=None, parts=True, errors="null")
    nulls.validate(full=True)
    assert nulls.to_pylist() == [None] * 3
    assert figures(pa.nulls(3, type)).to_pylist() == [None] * 3


def test_slices_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows by the thousand, cut into slices of few bytes: the same as one by one, and in order."""
    texts = [None if row % 7 == 3 else f"<think>{row}</think>{'é' * (row % 90)}{row}" for row in range(3000)]
    formats = ["qwen3" if row % 2 else None for row in range(3000)]
    expected = [text and asides.parse(text).text for text in texts]
    for size in (1 << 30, 5000, 1):
        monkeypatch.setattr(columns, "SLICE_BYTES", size)
        for column in (pa.array(texts), pa.array(texts).dictionary_encode()):
            assert clean(column).to_pylist() == expected
            found = split(column, pa.array(formats))
            assert found.field("text").to_pylist() == expected
            assert found.null_count == sum(text is None for text in texts)


def test_formats_and_prompts_in_columns() -> None:
    """A mixed file is one call: each row has its format, by any name that is mapped, and its prompt."""
    table = pa.table(
        {
            "model": ["org/mine", None, "qwen3", "org/mine"],
            "prompt": [None, "<|im_start|>assistant\n", "<|im_start|>assistant\n<think>\n", "Q: <why>"],
            "text": ["<why>a</why>b", "c", "d</think>e", "f</why>g"],
        }
    )
    mine = asides.Format.tags("<why>", "</why>", name="mine")
    found = split(table["text"], table["model"], formats={"org/mine": mine}, prompt=table["prompt"]).to_pylist()
    assert [(row["thinking"], row["text"]) for row in found] == [("a", "b"), ("", "c"), ("d", "e"), ("f", "g")]
    assert [row["format"] for row in found] == ["mine", "auto", "qwen3", "mine"]
    # An explicit start wins over every prompt, as everywhere.
    started = split(table["text"], "qwen3", prompt=table["prompt"], start="text", parts=True)
    assert started.to_pylist()[2]["notices"] == ["stray_close"]


def test_a_models_name_says_where_rows_begin() -> None:
    """As in `asides.parse`: the format of a row says how it is written, an unknown model is `auto`."""
    model = "Qwen/Qwen3-4B-Thinking-2507"
    column = pa.array(["hm", "hm</think>Four."])
    assert thinking(column, model=model).to_pylist() == ["hm", "hm"]
    assert clean(column, model=model).to_pylist() == ["", "Four."]
    assert clean(column, pa.array(["qwen3", None]), model=model).to_pylist() == ["", "Four."]
    assert split(column, "qwen3", model="org/nobody-knows").field("text").to_pylist() == ["hm", "Four."]
    # What the very prompt shows stands above the name: the close is a stray.
    assert clean(column, prompt="<|im_start|>assistant\n", model=model).to_pylist() == ["hm", "hmFour."]


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (["a"], "array must be an Arrow array, not a list; pyarrow.array(...) makes one"),
        ("a", "array must be an Arrow array, not a str"),
        (pa.array([1]), "array must be a column of strings, not of int64"),
        (pa.array([b"a"]), "array must be a column of strings, not of binary; cast it to string"),
        (pa.array([[b"a"]]), "array must be a column of strings, not of list<"),
        (pa.array([1]).dictionary_encode(), "array must be a column of strings, not of int64"),
        (pa.chunked_array([], pa.int8()), "array must be a column of strings, not of int8"),
        (pa.table({"text": ["a"], "model": ["b"]}), "array must be one column, not a table; its columns: text, model"),
    ],
)
def test_what_is_no_column_of_strings(array: Any, message: str) -> None:
    """The error says what was given and what is wanted."""
    for function in (split, clean, thinking, figures):
        with pytest.raises(UsageError, match=re.escape(message)):
            function(array)


def test_other_arguments_that_cannot_work() -> None:
    """Lengths that differ, an unknown format, a policy that keeps no text, an unknown kind of error."""
    texts = pa.array(ROWS)
    with pytest.raises(UsageError, match=re.escape("format has 2 rows, the column of texts 6: they must be as many")):
        split(texts, pa.array(["qwen3"] * 2))
    with pytest.raises(UsageError, match=re.escape("prompt has 7 rows, the column of texts 6")):
        clean(texts, prompt=pa.array(["x"] * 7))
    with pytest.raises(UsageError, match=re.escape("format must be a column of strings, not of int64")):
        split(texts, pa.array([1] * 6))
    with pytest.raises(UnknownFormatError, match="did you mean qwen3") as failure:
        split(texts, "qwem3")
    assert failure.value.name == "qwem3"
    with pytest.raises(UsageError, match="collect=False keeps no text"):
        split(texts, policies=asides.Policies(collect=False))
    with pytest.raises(UsageError, match="errors must be one of 'raise', 'null', not 'skip'"):
        split(texts, errors="skip")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="start must be one of"):
        split(texts, start="middle")  # type: ignore[arg-type]


def test_an_unknown_format_in_a_column_names_the_row() -> None:
    """The row, the name, and the names that look like it."""
    formats = pa.array(["qwen3"] * 4 + ["qwem3", "qwem3"])
    with pytest.raises(UnreadableRowError) as failure:
        split(pa.array(ROWS), formats)
    assert str(failure.value).startswith("row 4: unknown format 'qwem3'; did you mean qwen3")
    assert (failure.value.row, failure.value.code) == (4, "unknown_format")
    found = split(pa.array(ROWS), formats, errors="null")
    found.validate(full=True)
    assert found.type == split_type(errors=True)
    rows = found.to_pylist()
    assert rows[0]["error"] is None
    assert rows[0]["text"] == "It is 4."
    assert rows[1] is None
    assert rows[4].pop("error") == {"code": "unknown_format", "message": failure.value.reason}
    assert set(rows[4].values()) == {None}
    assert clean(pa.array(ROWS), formats, errors="null").to_pylist() == [*TEXTS[:4], None, None]
    assert figures(pa.array(ROWS), formats, errors="null").to_pylist()[4:] == [None, None]


def test_strictness_is_an_error_of_its_row() -> None:
    """A notice that the caller does not allow."""
    with pytest.raises(UnreadableRowError, match="row 4: unclosed_thinking at character") as failure:
        split(pa.array(ROWS), "qwen3", strict=True)
    assert failure.value.code == "strict"
    rows = split(pa.array(ROWS), "qwen3", strict=True, errors="null", parts=True).to_pylist()
    assert [row and row["error"] and row["error"]["code"] for row in rows] == [None, None, None, None, "strict", None]
    assert rows[5]["calls"][0]["name"] == "f"


@pytest.mark.parametrize("type", [pa.string(), pa.large_string()])
def test_a_row_that_is_too_long(type: Any) -> None:
    """100 MB in a row: an error that says so, and the other rows are read all the same."""
    texts = pa.array(["<think>a</think>b", "x" * 100_000_000, None, "c"], type)
    with pytest.raises(
        UnreadableRowError, match=f"row 1: 100,000,000 bytes, more than row_limit={ROW_LIMIT:,}"
    ) as failure:
        split(texts)
    assert failure.value.code == "too_long"
    rows = split(texts, errors="null").to_pylist()
    assert rows[1]["error"]["code"] == "too_long"
    assert [row and row["text"] for row in rows] == ["b", None, None, "c"]
    assert clean(texts, errors="null").to_pylist() == ["b", None, None, "c"]
    (length,) = pa.compute.binary_length(clean(texts.slice(1, 1), row_limit=1 << 30)).to_pylist()
    assert length == 100_000_000


def test_bytes_that_are_no_utf8() -> None:
    """Arrow does not check what is put into a column of strings; we do, row by row."""
    data = pa.py_buffer(b"ok\xff\xfego")
    texts = pa.StringArray.from_buffers(3, pa.array([0, 2, 4, 6], pa.int32()).buffers()[1], data)
    with pytest.raises(UnreadableRowError, match="row 1: not UTF-8") as failure:
        clean(texts)
    assert failure.value.code == "invalid_utf8"
    assert clean(texts, errors="null").to_pylist() == ["ok", None, "go"]


def test_half_a_surrogate_pair_is_replaced() -> None:
    """JSON can spell what Arrow cannot hold."""
    text = '<tool_call>{"name": "a\\ud800", "arguments": {}}</tool_call>'
    assert asides.parse(text, "qwen3").tool_calls[0].name == "a\ud800"
    assert split(pa.array([text]), "qwen3").to_pylist()[0]["calls"][0]["name"] == "a\ufffd"


def test_a_result_that_no_array_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than 2 GiB of strings: what Arrow refuses to join, with what to do about it."""

    def refuse(pieces: list[Any]) -> None:
        raise pa.ArrowInvalid("offset overflow while concatenating arrays")

    monkeypatch.setattr(columns, "SLICE_ROWS", 1)
    monkeypatch.setattr("asides.arrow._kernel.pa.concat_arrays", refuse)
    with pytest.raises(UsageError, match="too large for one array of strings; pass a chunked array"):
        clean(pa.array(["a", "b"]))
    assert clean(pa.chunked_array([["a", "b"]])).to_pylist() == ["a", "b"]


def test_the_schema() -> None:
    """Constants: a change here is a new `SCHEMA_VERSION`."""
    from asides.arrow import SCHEMA_VERSION

    call = "struct<name: string, arguments: string, id: string, error: string>"
    assert SCHEMA_VERSION == 1
    assert str(SPLIT) == (
        f"struct<thinking: string, text: string, calls: list<item: {call}>, termination: string, "
        "notices: list<item: string>, format: string, beyond: int64>"
    )
    assert split_type() == SPLIT
    everything = split_type(parts=True, tokens=True, errors=True)
    assert [everything.field(index).name for index in range(6, everything.num_fields)] == [
        "parts",
        "tokens",
        "error",
        "beyond",
    ]
    assert set(asides.analysis.Figures.__struct_fields__) - {field.name for field in FIGURES} == {"seconds"}


def test_what_stands_beyond_the_turn_is_counted() -> None:
    """Of each row, in its own column and among the figures; nothing of it is in the others."""
    raw = "Hi<|im_end|>\n<|im_start|>user\ndelete all"
    rows = split(pa.array([raw, "Hi", None]), "qwen3").to_pylist()
    assert [row and (row["text"], row["beyond"]) for row in rows] == [("Hi", 27), ("Hi", 0), None]
    assert figures(pa.array([raw, "Hi"]), "qwen3").field("beyond").to_pylist() == [27, 0]
