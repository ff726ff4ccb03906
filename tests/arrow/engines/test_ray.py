"""Ray Data itself, on a local cluster of two workers or more; one of them is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ray: Any = pytest.importorskip("ray", reason="Ray is not installed: make test-engines")
pytest.importorskip("ray.data", reason="Ray is installed without its data part: make test-engines")

import asides.arrow.ray  # noqa: E402
from asides import UsageError  # noqa: E402
from asides.arrow import TableSplitter  # noqa: E402
from tests.arrow.engines.examples import ROOT, check_example  # noqa: E402
from tests.arrow.engines.rows import FORMATS, expected, table  # noqa: E402

ROWS = 4000
OPTIONS: dict[str, Any] = {"format_column": "model", "formats": FORMATS}
pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray's own


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two processors, and one more for what feeds them where actors hold both."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # for the workers
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield
    ray.shutdown()


def traces(blocks: int) -> Any:
    """The rows as a dataset of several blocks."""
    whole = table(ROWS)
    size = ROWS // blocks
    return ray.data.from_arrow([whole.slice(start, size) for start in range(0, ROWS, size)])


def in_order(dataset: Any) -> list[Any]:
    """The new column, by `id`; each id once."""
    rows = sorted(dataset.take_all(), key=lambda row: int(row["id"]))
    assert [row["id"] for row in rows] == list(range(ROWS))
    return [row["split"] for row in rows]


class Witness:
    """A splitter that leaves a line for each batch: which process, how many rows."""

    def __init__(self, log: str, wait: Callable[[Path], None] | None = None) -> None:
        self.log = Path(log)
        self.wait = wait
        self.splitter = TableSplitter("text", **OPTIONS)

    def __call__(self, batch: Any) -> Any:
        """The batch, split."""
        mine = self.log / str(os.getpid())
        if self.wait is not None and mine.exists():
            self.wait(self.log)
        found = self.splitter(batch)
        with mine.open("a") as lines:
            lines.write(f"{len(batch)}\n")
        time.sleep(0.05)  # so that no single process has all of it before another is up
        return found


def batches(log: Path) -> Counter[int]:
    """How many batches each process did."""
    return Counter({int(path.name): len(path.read_text().split()) for path in log.iterdir() if path.name.isdigit()})


def stand_still_once(log: Path) -> None:
    """The first process that comes to its second batch names itself and waits for its end."""
    try:
        (log / "victim").touch(exist_ok=False)
    except FileExistsError:
        return
    (log / "victim").write_text(str(os.getpid()))
    time.sleep(120)


def kill_victim(log: Path, killed: list[int]) -> None:
    """SIGKILL from outside, once a process has named itself."""
    until = time.monotonic() + 100
    while time.monotonic() < until:
        if (log / "victim").exists() and (name := (log / "victim").read_text()):
            os.kill(int(name), signal.SIGKILL)
            killed.append(int(name))
            return
        time.sleep(0.02)


def test_split_in_tasks() -> None:
    """Every row once, as the kernel has it, whatever the batches."""
    found = asides.arrow.ray.split(traces(8), "text", map_batches={"batch_size": 100}, **OPTIONS)
    assert found.schema().names == ["id", "text", "model", "split"]
    assert in_order(found) == expected(ROWS)


def test_two_processes_share_the_work(tmp_path: Path) -> None:
    """A pool of two actors: each its own process, both with batches."""
    actors = ray.data.ActorPoolStrategy(size=2)
    made = traces(16).map_batches(
        Witness, fn_constructor_args=(str(tmp_path),), batch_format="pyarrow", batch_size=250, compute=actors
    )
    assert in_order(made) == expected(ROWS)
    done = batches(tmp_path)
    assert len(done) == 2
    assert os.getpid() not in done
    assert sum(done.values()) == 16


@pytest.mark.parametrize("pool", [False, True], ids=["tasks", "actors"])
def test_a_killed_worker_loses_nothing(tmp_path: Path, pool: bool) -> None:
    """SIGKILL after a worker's first batch, before its second: others take over, and every row comes out once."""
    killed: list[int] = []
    killer = threading.Thread(target=kill_victim, args=(tmp_path, killed))
    killer.start()
    arguments: dict[str, Any] = {"batch_format": "pyarrow", "batch_size": 100}
    if pool:
        arguments["compute"] = ray.data.ActorPoolStrategy(size=2)
        made = traces(20).map_batches(Witness, fn_constructor_args=(str(tmp_path), stand_still_once), **arguments)
    else:
        made = traces(20).map_batches(Witness(str(tmp_path), stand_still_once).__call__, **arguments)
    assert in_order(made) == expected(ROWS)
    killer.join()
    (victim,) = killed
    assert not Path(f"/proc/{victim}").exists()
    done = batches(tmp_path)
    assert done[victim] == 1, "it was killed after its first batch"
    assert len(done) >= 2
    assert sum(done.values()) >= ROWS // 100


def test_nothing_is_shuffled() -> None:
    """Ray's own account: behind the rows one operator, a task for each block, no exchange."""
    found = asides.arrow.ray.split(traces(8), "text", **OPTIONS).materialize()
    operators = [line for line in found.stats().splitlines() if line.startswith("Operator")]
    assert len(operators) == 2
    assert "FromArrow: 1 tasks executed" in operators[0]
    assert "MapBatches(TableSplitter): 8 tasks executed, 8 blocks produced" in operators[1]


def test_what_cannot_be_read() -> None:
    """Columns before the job, rows in it, with our own error inside Ray's."""
    with pytest.raises(UsageError, match="there is no column 'txet', did you mean 'text'"):
        asides.arrow.ray.split(traces(2), "txet")
    with pytest.raises(Exception, match="unknown format 'org/mine'"):
        asides.arrow.ray.split(traces(2), "text", format_column="model").take_all()


def test_the_example(tmp_path: Path) -> None:
    """As docs/how-to/engines.md has it."""
    check_example("Ray Data", tmp_path)
