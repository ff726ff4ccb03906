"""What engines are handed, without one of them: the callable, errors that cross processes, and what is not imported."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

import asides
from asides import UsageError
from asides.arrow import TableSplitter, UnreadableRowError, clean, mapper, split_type
from asides.arrow import _engines as engines
from tests.arrow.engines.rows import FORMATS, SHAPES, expected, table

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_a_table_gets_one_more_column() -> None:
    """Tables and record batches; the splitter that was pickled does the same."""
    whole = table(64)
    splitter = TableSplitter("text", format_column="model", formats=FORMATS, parts=True)
    for each in (splitter, pickle.loads(pickle.dumps(splitter))):
        found = each(whole)
        assert found.column_names == ["id", "text", "model", "split"]
        assert found["split"].to_pylist() == expected(64, parts=True)
        assert found.select(["id", "text", "model"]).equals(whole)
    batches = splitter.batches(whole.to_batches(max_chunksize=10))
    rows = [row for batch in batches for row in batch.to_pylist()]
    assert [row["split"] for row in rows] == expected(64, parts=True)
    assert splitter.type == split_type(parts=True)


def test_a_batch_of_lists() -> None:
    """What `datasets` hands over by default: the new column alone, and its type whatever is in its rows."""
    found = mapper("text", into="parted")({"text": ["Plain.", None], "id": [1, 2]})
    assert list(found) == ["parted"]
    assert [row and row["text"] for row in found["parted"]] == ["Plain.", None]
    assert pa.array(found["parted"]).type == split_type()


def test_formats_travel() -> None:
    """`auto`, whose table is made where it is used, and formats of one's own."""
    mine = asides.Format.tags("<why>", "</why>", name="mine")
    for format, thought in ((asides.get_format("auto"), ""), (mine, "a")):
        splitter = pickle.loads(pickle.dumps(TableSplitter("text", format=format)))
        found = splitter(pa.table({"text": ["<why>a</why>b"]}))
        assert found["split"].to_pylist()[0]["thinking"] == thought


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"column": "txet"}, "there is no column 'txet', did you mean 'text'; the columns: id, text, model"),
        ({"format_column": "zzz"}, "there is no column 'zzz'; the columns: id, text, model"),
        ({"column": "text", "into": "model"}, "there is a column 'model' already; name another with into="),
    ],
)
def test_columns_that_cannot_be(arguments: dict[str, Any], message: str) -> None:
    """Before a job starts, where the columns are known then, and on the first batch."""
    splitter = TableSplitter(**arguments)
    with pytest.raises(UsageError, match=re.escape(message)):
        splitter.check(["id", "text", "model"])
    with pytest.raises(UsageError, match=re.escape(message)):
        splitter(table(3))
    if "into" not in arguments:
        with pytest.raises(UsageError, match=re.escape(message)):
            splitter(table(3).to_pydict())


def test_arguments_are_checked_when_it_is_made() -> None:
    """On the machine that writes the query, not in a worker."""
    with pytest.raises(asides.UnknownFormatError, match="did you mean qwen3"):
        TableSplitter("text", format="qwem3")
    with pytest.raises(UsageError, match="errors must be one of"):
        TableSplitter("text", errors="skip")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="there is no policy 'colour'"):
        mapper("text", colour="red")


@pytest.mark.parametrize(
    "error",
    [
        UnreadableRowError(3, "too_long", "100 bytes"),
        asides.UnknownFormatError("qwem3", ["qwen3"]),
        asides.StrictError(asides.Notice("stray_close", "odd", 7), []),
    ],
)
def test_errors_cross_processes(error: Exception) -> None:
    """An engine raises in a worker what must be read on the driver."""
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert vars(found) == vars(error)


def test_a_dictionary_of_views() -> None:
    """A category of Polars, which Arrow's own functions cannot decode."""
    plain = pa.array(SHAPES)
    words = plain.dictionary_encode()
    views = pa.DictionaryArray.from_arrays(words.indices, words.dictionary.cast(pa.string_view()))
    found = clean(views)
    assert found.to_pylist() == clean(plain).to_pylist()
    assert found.type == pa.string()


def test_no_engine_is_imported() -> None:
    """`asides.arrow` needs pyarrow alone, and so do the modules that are handed an engine's objects."""
    program = (
        "import sys, asides.arrow, asides.arrow.daft, asides.arrow.duckdb, asides.arrow.ray, asides.arrow.spark\n"
        f"print(sorted({set(engines.LEAST)} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_an_engine_that_is_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line: which package, which version, what to type."""

    def found(version: str | None) -> Any:
        def look(package: str) -> str:
            if version is None:
                raise metadata.PackageNotFoundError(package)
            return version

        return look

    monkeypatch.setattr(metadata, "version", found(None))
    with pytest.raises(ImportError) as failure:
        engines.require("pyspark")
    needed, packages = "pyspark 4.0 or newer is needed", "pyarrow pyspark 'pandas<3'"
    assert str(failure.value) == f"{needed} and not installed: pip install {packages}"
    monkeypatch.setattr(metadata, "version", found("3.5.9"))
    with pytest.raises(ImportError) as failure:
        engines.require("pyspark")
    assert str(failure.value) == f"{needed}, this is 3.5.9: pip install --upgrade {packages}"
    for version in ("4.0.0", "4.0.0rc1", "10.1"):
        monkeypatch.setattr(metadata, "version", found(version))
        engines.require("pyspark")


def test_the_extras_ask_for_the_same_versions() -> None:
    """What `require` wants is what the extra installs, and each extra has the kernel."""
    for package, least in engines.LEAST.items():
        extra = PROJECT["optional-dependencies"][engines.EXTRAS[package]]
        assert [line for line in extra if re.fullmatch(rf"{package}(\[\w+\])?>={re.escape(least)}", line)], package
        assert "asides[arrow]" in extra
