"""For a data job: a file of raw outputs becomes columns of thoughts, answers and calls, for any number of rows.

    pip install . pyarrow
    python examples/data_job.py

It prints:

    6 rows, 1 of them null
    answers: ['It is 4.', 'Paris.', 'Hello!', '', None, 'Done.']
    cut off while thinking: 1
    words of thinking: [1, 2, 0, 3, None, 2]
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from asides import arrow

OUTPUTS = [
    "<think>2+2</think>\n\nIt is 4.",
    "<think>A capital.</think>\n\nParis.",
    "Hello!",
    "<think>This never ends",
    None,
    "<think>One.</think><think>Two.</think>Done.",
]


def main() -> None:
    """Read Parquet, split a column, write Parquet. The command for the same is `asides batch`."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "raw.parquet"), Path(folder, "split.parquet")
        pq.write_table(pa.table({"output": OUTPUTS}), source)
        with pq.ParquetWriter(target, pa.schema({"split": arrow.SPLIT})) as writer:
            for batch in pq.ParquetFile(source).iter_batches(
                batch_size=10_000
            ):  # so memory does not grow with the file
                column = arrow.split(batch["output"], "qwen3")
                writer.write_batch(pa.record_batch({"split": column}))
        split = pq.read_table(target)["split"].combine_chunks()
    print(f"{len(split)} rows, {split.null_count} of them null")
    print("answers:", split.field("text").to_pylist())
    print("cut off while thinking:", pc.sum(pc.equal(split.field("termination"), "cut")))
    print(
        "words of thinking:",
        [len(thought.split()) if thought is not None else None for thought in split.field("thinking").to_pylist()],
    )


if __name__ == "__main__":
    main()
