"""Spark 4: `asides.arrow.spark.split(frame, "text")`, on `mapInArrow`.

Every executor reads the batches of its own partitions; nothing is shuffled. asides must be installed where the
executors' Python is. All columns of the frame pass through Python, so select those that are needed before.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from ._engines import require
from ._tables import TableSplitter


def split(frame: Any, column: str = "text", **options: Any) -> Any:
    """A frame with one more column, of what `asides.arrow.split` makes of `column`.

    Arguments as for `TableSplitter`.
    """
    require("pyspark")
    splitter = TableSplitter(column, **options)
    splitter.check(frame.columns)
    # Spark's own reading of the Arrow type: an empty table becomes a frame, and its schema has it.
    empty = pa.table({splitter.into: pa.array([], splitter.type)})
    (field,) = frame.sparkSession.createDataFrame(empty).schema.fields
    return frame.mapInArrow(splitter.batches, type(frame.schema)([*frame.schema.fields, field]))
