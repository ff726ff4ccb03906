"""Hugging Face `datasets` itself: `map`, in one process and in several, as lists and as Arrow, and streamed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
datasets: Any = pytest.importorskip("datasets", reason="datasets is not installed: make test-engines-light")

from asides import UsageError  # noqa: E402
from asides.arrow import UnreadableRowError, mapper, split_type  # noqa: E402
from tests.arrow.engines.examples import check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 5000
OPTIONS: dict[str, Any] = {"format_column": "model", "formats": FORMATS}
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # a fork of a process that has threads


@pytest.fixture
def traces() -> Any:
    """A dataset in memory, so that nothing is cached."""
    datasets.disable_progress_bars()
    return datasets.Dataset(table(ROWS))


@pytest.mark.parametrize("format", [None, "arrow"])
@pytest.mark.parametrize("processes", [None, 2])
def test_map(traces: Any, format: str | None, processes: int | None) -> None:
    """The rows and the type do not depend on the batches or on who reads them."""
    made = traces.with_format(format).map(mapper("text", **OPTIONS), batched=True, batch_size=300, num_proc=processes)
    assert made.column_names == ["id", "text", "model", "split"]
    assert made.with_format(None)["split"][:] == expected(ROWS)
    assert made.data.schema.field("split").type == split_type()


def test_other_arguments_of_map(traces: Any, tmp_path: Path) -> None:
    """Columns are removed as asked, a saved dataset has the column, and a streamed one has it too."""
    made = traces.map(mapper("text", **OPTIONS), batched=True, remove_columns=["text", "model"])
    assert made.column_names == ["id", "split"]
    made.save_to_disk(tmp_path / "saved")
    assert datasets.load_from_disk(tmp_path / "saved")["split"][:] == expected(ROWS)
    streamed = traces.to_iterable_dataset().map(mapper("text", **OPTIONS), batched=True)
    assert [row["split"] for row in streamed] == expected(ROWS)


def test_the_cache_tells_mappers_apart() -> None:
    """A dataset is taken from the cache exactly when the arguments are the same."""
    hash = datasets.fingerprint.Hasher.hash
    assert hash(mapper("text", **OPTIONS)) == hash(mapper("text", **OPTIONS))
    assert hash(mapper("text")) != hash(mapper("text", format="qwen3"))


def test_what_cannot_be_read(traces: Any) -> None:
    """The error is ours, from another process too."""
    with pytest.raises(UsageError, match="there is no column 'txet', did you mean 'text'"):
        traces.map(mapper("txet"), batched=True)
    for processes in (None, 2):
        with pytest.raises(UnreadableRowError, match="unknown format 'org/mine'") as failure:
            traces.map(mapper("text", format_column="model"), batched=True, num_proc=processes)
        assert failure.value.code == "unknown_format"


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("datasets", tmp_path)
