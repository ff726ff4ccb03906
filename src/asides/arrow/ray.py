"""Ray Data: `asides.arrow.ray.split(dataset, "text")`, on `map_batches` with Arrow batches.

Batches become tasks that share nothing, so Ray runs as many at once as there are cores in the cluster, and runs one
again whose worker is gone. For workers that stay (a tokenizer is then loaded once in each), hand the class itself to
`map_batches`, which makes actors of it:

    dataset.map_batches(TableSplitter, fn_constructor_args=("text",), batch_format="pyarrow", concurrency=4)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._engines import require
from ._tables import TableSplitter


def split(dataset: Any, column: str = "text", *, map_batches: Mapping[str, Any] | None = None, **options: Any) -> Any:
    """A dataset with one more column, of what `asides.arrow.split` makes of `column`.

    `map_batches`: keywords for Ray's method (`batch_size`, `concurrency`, `num_cpus`…). Others as for `TableSplitter`.
    """
    require("ray")
    splitter = TableSplitter(column, **options)
    schema = dataset.schema(fetch_if_missing=False)  # known for Parquet and for tables; else the first batch shows it
    if schema is not None:
        splitter.check(schema.names)
    return dataset.map_batches(splitter, batch_format="pyarrow", **(map_batches or {}))
