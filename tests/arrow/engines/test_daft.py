"""Daft itself: a batch function over Arrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq  # type: ignore[import-untyped]
import pytest

daft: Any = pytest.importorskip("daft", reason="Daft is not installed: make test-engines")

import asides.arrow.daft  # noqa: E402
from asides import UnknownFormatError  # noqa: E402
from tests.arrow.engines.examples import check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 4000
pytestmark = pytest.mark.filterwarnings("ignore")  # of Daft's own


def test_split(tmp_path: Path) -> None:
    """From and to Parquet, the format of each row in a column."""
    pq.write_table(table(ROWS), tmp_path / "in.parquet", row_group_size=300)
    frame = daft.read_parquet(str(tmp_path / "in.parquet"))
    column = asides.arrow.daft.split(frame["text"], frame["model"], formats=FORMATS, parts=True)
    frame.with_column("split", column).write_parquet(str(tmp_path / "out"))
    found = daft.read_parquet(str(tmp_path / "out")).sort("id").to_pydict()
    assert found["id"] == list(range(ROWS))
    assert found["split"] == expected(ROWS, parts=True)


def test_what_cannot_be_read() -> None:
    """Arguments when the expression is written, rows when it runs."""
    frame = daft.from_arrow(table(8))
    with pytest.raises(UnknownFormatError, match="did you mean qwen3"):
        asides.arrow.daft.split(frame["text"], "qwem3")
    with pytest.raises(Exception, match="unknown format 'org/mine'"):
        frame.select(asides.arrow.daft.split(frame["text"], frame["model"])).collect()


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("Daft", tmp_path)
