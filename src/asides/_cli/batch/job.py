"""Running a job of `asides batch`: ranges handed out, finished ranges noted and joined, until all are done.

Ranges that are finished are added to the output in the order of the input while others are still being split; only
records of JSON Lines that become columns wait for the last range, because only then all columns are known, and each
range is encoded with them in a second round. When something ends the job early (Ctrl-C, a full disk, a file that cannot
be read), ranges that are being split are waited for, no more are handed out, and `OUT.partial` has all that is
finished. All that costs time is done in `RangeWork`; what this process does alone is noting and copying.

    plan -> ranges -> RangeWork (here or in workers) -> files in OUT.partial -> Joining -> OUT
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from ...analysis._summary import Groups
from ...errors import Error
from ...terminal._progress import Progress
from ..inputs.files import BatchInput
from ..inputs.kinds import TABLES
from ..inputs.tables import BATCH_ROWS
from ..streams import Interrupt, Streams
from ..worker_process import serve_tasks
from .inputs import DamagedRows, RowRange, read_lines, read_tables, schema_of
from .manifest import PartialFolder
from .output import Joining, RangeFile, deliver, finished_file, read_schemas, unify, write_schemas
from .plan import BatchPlan, kept_columns
from .splitting import RangeSplitter, RowProblem, new_fields
from .summary import BatchSummary
from .workers import RangeWorkers, Task

SECONDS_PER_LINE = 60.0
"""How often progress is written where nobody looks at a screen."""
LINE_FACTOR = 3
"""How much longer than the longest text a line of JSON may be: it has other fields, and escapes."""


class RangeTask(msgspec.Struct, frozen=True):
    """A range to split."""

    number: int
    range: RowRange


class EncodeTask(msgspec.Struct, frozen=True):
    """A range that is split and has to be encoded."""

    number: int
    schema: Any
    """The columns of the output."""


class RangeDone(msgspec.Struct, frozen=True):
    """What came of a range."""

    lines: int = 0
    summary: BatchSummary = msgspec.field(default_factory=BatchSummary)
    failure: str = ""
    damage: list[str] = []
    """What of its input is damaged, in words."""


class RangeWork:
    """Splits ranges, each into a file of its own."""

    def __init__(self, plan: BatchPlan, folder: str, parent: int = 0) -> None:
        """`parent`: the process that this one works for."""
        self._plan = plan
        self._folder = PartialFolder(folder)
        self._parent = parent

    def do(self, task: RangeTask | EncodeTask) -> RangeDone:
        """Do a task. What fails is returned, not raised: others go on."""
        try:
            return self._split(task) if isinstance(task, RangeTask) else self._encode(task)
        except OSError as error:
            return RangeDone(failure=f"{error.filename or self._folder.path}: {error.strerror or error}")
        except Error as error:
            return RangeDone(failure=str(error))

    def _split(self, task: RangeTask) -> RangeDone:
        plan, wanted = self._plan, task.range
        input = plan.inputs[wanted.input]
        before = wanted.first or 0
        splitter = RangeSplitter(plan.settings, lambda row: f"{input.shown}:{before + row + 1}")
        counted = 0
        with self._range_file(task.number, "rows", plan.schema) as output:
            if input.kind not in TABLES:
                longest = plan.settings.row_limit * LINE_FACTOR
                for batch, lines in read_lines(input, wanted, longest):
                    self._check_parent()
                    counted = lines
                    if batch:
                        output.write_records(*splitter.split_lines(batch))
            else:
                for numbers, batch in read_tables(input, wanted):
                    self._check_parent()
                    if isinstance(batch, DamagedRows):
                        self._write_damaged(output, input, numbers, splitter, batch.reason)
                        continue
                    kept = kept_columns(batch.schema, plan.settings.field)
                    output.write_table(batch, kept, splitter.split_table(numbers, batch))
            # Before the range's own file has its name: whoever finds that one finds these.
            self._write_beside(task.number, splitter, output.schemas)
        return RangeDone(counted, splitter.summary, damage=splitter.damage)

    def _write_damaged(
        self, output: RangeFile, input: BatchInput, numbers: Sequence[int], splitter: RangeSplitter, reason: str
    ) -> None:
        """Rows that cannot be read stay rows: all is null but what is wrong with them."""
        schema = schema_of(input)
        kept = kept_columns(schema, self._plan.settings.field)
        for at in range(0, len(numbers), BATCH_ROWS):
            some = numbers[at : at + BATCH_ROWS]
            empty = pa.record_batch([pa.nulls(len(some), schema.field(name).type) for name in kept], names=kept)
            output.write_table(empty, kept, splitter.split_damaged(some, reason))

    def _encode(self, task: EncodeTask) -> RangeDone:
        self._check_parent()
        with self._range_file(task.number, "encoded", task.schema) as output:
            output.write_ranges_file(self._folder.file(task.number))
        return RangeDone()

    @contextmanager
    def _range_file(self, number: int, ending: str, schema: Any) -> Iterator[RangeFile]:
        with finished_file(self._folder.file(number, ending)) as file:
            output = RangeFile(file, self._plan.kind, self._plan.compression, schema)
            try:
                yield output
                output.close()
            except BaseException:
                output.abandon()
                raise

    def _write_beside(self, number: int, splitter: RangeSplitter, schemas: list[Any]) -> None:
        if schemas and self._plan.schema is None:
            with finished_file(self._folder.file(number, "schemas")) as file:
                write_schemas(file, schemas)
        if splitter.problems:
            with finished_file(self._folder.file(number, "errors")) as file:
                file.write(msgspec.json.Encoder().encode_lines(splitter.problems))
        if self._plan.settings.report:
            with finished_file(self._folder.file(number, "report")) as file:
                file.write(msgspec.msgpack.encode(splitter.groups))

    def _check_parent(self) -> None:
        """End where the parent was killed: nobody would note what is finished, and another job may be at work here."""
        if self._parent and os.getppid() != self._parent:
            os._exit(1)


def work(given: IO[bytes], sent: IO[bytes]) -> None:
    """A worker's life."""
    pa.set_cpu_count(1)
    serve_tasks(given, sent, lambda setup: RangeWork(*setup).do)


class BatchProgress:
    """How far a job is: a bar on a terminal, a line a minute elsewhere."""

    def __init__(self, streams: Streams, total: int) -> None:
        self._streams = streams
        self._total = total
        self._bar = Progress(streams.err, total=total, bar=True)
        self._done = self._rows = 0
        self._begun = time.monotonic()
        self._next = self._begun + SECONDS_PER_LINE

    def add(self, size: int, rows: int) -> None:
        """Count in a range that was finished now."""
        self._done += size
        self._rows += rows

    def show(self) -> None:
        """Draw it, if it is time to."""
        now = time.monotonic()
        self._bar.show(self._done, self._amount(now))
        if now >= self._next and not self._streams.err.terminal:
            self._next = now + SECONDS_PER_LINE
            share = f"{self._done / self._total:.0%}, " if self._total else ""
            self._streams.message(share + self._amount(now))
            self._streams.flush()

    def clear(self) -> None:
        """Take the bar away."""
        self._bar.clear()

    def _amount(self, now: float) -> str:
        spent = max(now - self._begun, 0.001)
        left = (self._total - self._done) * spent / self._done if self._done else None
        rest = "" if left is None else f", {duration(left)} left"
        return f"{self._rows:,} rows, {self._rows / spent:,.0f} rows/s{rest}"


def duration(seconds: float) -> str:
    """A time as a person reads it: `42 s`, `3:07`, `1:02:30`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"


class BatchJob:
    """A job in its folder. `run` does what is left; `finish` makes the output."""

    def __init__(self, plan: BatchPlan, output: str, folder: PartialFolder) -> None:
        self._plan = plan
        self._output = output
        self._folder = folder
        self._failure = ""
        self.damage: list[str] = []
        """What of the inputs is damaged, in words."""
        self._told = False
        """Whether it was told that a Ctrl-C was noticed."""
        self._joining: Joining | None = None
        self._joined = 0
        self._file: IO[bytes] | None = None

    @property
    def complete(self) -> bool:
        """Whether all ranges can be joined."""
        return self._all_split and all(self._joinable(number) for number in range(len(self._plan.ranges)))

    @property
    def _all_split(self) -> bool:
        return len(self._folder.finished) == len(self._plan.ranges)

    @property
    def _encodes_later(self) -> bool:
        """Whether ranges are encoded when all are split, because only then the columns are known."""
        return self._plan.kind == "parquet" and self._plan.schema is None

    def run(self, workers: RangeWorkers | None, interrupt: Interrupt, streams: Streams) -> None:
        """Split what is left. Raises what stopped it, when all that was being split is finished."""
        ranges = self._plan.ranges
        left = [number for number in range(len(ranges)) if number not in self._folder.finished]
        self._work(workers, interrupt, streams, [RangeTask(number, ranges[number]) for number in left])
        if self._encodes_later and self._all_split and not interrupt.came:
            schema = self._found_schema()
            left = [number for number in range(len(ranges)) if not self._joinable(number)]
            self._work(workers, interrupt, streams, [EncodeTask(number, schema) for number in left])

    def _work(
        self,
        workers: RangeWorkers | None,
        interrupt: Interrupt,
        streams: Streams,
        tasks: Sequence[RangeTask | EncodeTask],
    ) -> None:
        """Have tasks done, by other processes or here."""
        progress = BatchProgress(streams, sum(self._plan.ranges[task.number].size for task in tasks))
        left = iter(tasks)
        finished: list[tuple[int, Any]] = []

        def next_task() -> RangeTask | EncodeTask | None:
            return None if interrupt.came or self._failure else next(left, None)

        def given() -> Task | None:
            task = next_task()
            return None if task is None else (task.number, task, self._place(task))

        def done(number: int, result: Any) -> None:
            self._failure = self._failure or result.failure
            self.damage += [each for each in result.damage if each not in self.damage]
            if not result.failure:
                finished.append((number, result))

        def meanwhile() -> bool:
            while finished:
                self._note(*finished.pop(0), progress)
            progress.show()
            if interrupt.came and workers is not None and not self._told:
                self._told = True
                progress.clear()
                streams.message("finishing the ranges that are being split; press Ctrl-C again to stop at once")
                streams.flush()
            return self._join_next()

        try:
            if workers is not None:
                workers.run((self._plan, self._folder.path, os.getpid()), given, done, meanwhile)
            else:
                here = RangeWork(self._plan, self._folder.path)
                while (task := next_task()) is not None:
                    done(task.number, here.do(task))
                    meanwhile()
            while finished:
                self._note(*finished.pop(0), progress)
        finally:
            progress.clear()
        if self._failure:
            raise Error(self._failure)

    def _place(self, task: RangeTask | EncodeTask) -> str:
        wanted = self._plan.ranges[task.number]
        return f"{self._plan.inputs[wanted.input].shown} ({wanted.start} to {wanted.stop})"

    def _note(self, number: int, result: RangeDone, progress: BatchProgress) -> None:
        """A range is finished."""
        wanted = self._plan.ranges[number]
        if number not in self._folder.finished:
            self._folder.add(number, wanted, self._plan.inputs[wanted.input], result.lines, result.summary)
        progress.add(wanted.size, self._folder.finished[number].summary.rows)

    def _joinable(self, number: int) -> str:
        """The file that is joined for a range; empty while there is none."""
        if number not in self._folder.finished:
            return ""
        path = self._folder.file(number, "encoded" if self._encodes_later else "rows")
        return path if not self._encodes_later or os.path.exists(path) else ""

    def _join_next(self) -> bool:
        """Add the next range to the output, if it is finished. False where there is nothing to add."""
        if self._encodes_later or (self._plan.kind != "jsonl" and self._plan.schema is None):
            return False
        if not self._joinable(self._joined):
            return False
        self._add(self._plan.schema)
        return True

    def _add(self, schema: Any) -> None:
        path = os.path.join(self._folder.path, "joined.tmp")
        try:
            if self._joining is None:
                self._file = open(path, "wb")  # noqa: SIM115  # closed by `finish` or `close`
                self._joining = Joining(self._file, self._plan.kind, schema)
            if self._joined < len(self._plan.ranges):
                self._joining.add(self._joinable(self._joined))
                self._joined += 1
        except OSError as error:
            error.filename = error.filename or path
            raise

    def finish(self) -> BatchSummary:
        """Make the output of the finished ranges, and give what they come to."""
        assert self.complete
        schema = self._plan.schema if self._plan.schema is not None else self._found_schema()
        while self._joining is None or self._joined < len(self._plan.ranges):
            self._add(schema)
        assert self._file is not None
        self._joining.finish()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        deliver(self._file.name, self._output)
        return self.summary()

    def summary(self) -> BatchSummary:
        """What the finished ranges come to."""
        whole = BatchSummary()
        for number in sorted(self._folder.finished):
            whole.merge(self._folder.finished[number].summary)
        return whole

    def _found_schema(self) -> Any:
        """The columns of the output, when all records have been seen."""
        if self._plan.kind == "jsonl":
            return None
        new = new_fields(self._plan.settings)
        schemas: list[Any] = []
        for number in range(len(self._plan.ranges)):
            path = self._folder.file(number, "schemas")
            if os.path.exists(path):  # a range of blank lines has no columns
                schemas += [schema for schema in read_schemas(path) if schema not in schemas]
        names = {field.name for field in new}
        others = unify(schemas)
        return pa.schema([*(field for field in others if field.name not in names), *new])

    def problems(self) -> Iterator[dict[str, Any]]:
        """Every row that could not be read, in the order of the input, with its place."""
        lines = 0
        for number, wanted in enumerate(self._plan.ranges):
            input = self._plan.inputs[wanted.input]
            if number and wanted.input != self._plan.ranges[number - 1].input:
                lines = 0
            before = lines if wanted.first is None else wanted.first
            lines += self._folder.finished[number].lines
            with suppress(FileNotFoundError), open(self._folder.file(number, "errors"), "rb") as file:
                for each in file:
                    problem = msgspec.json.decode(each, type=RowProblem)
                    # Rows are counted from 0 on, as everyone who reads columns does; lines from 1 on, as editors do.
                    place = (
                        {"line": before + problem.row + 1} if input.kind == "jsonl" else {"row": before + problem.row}
                    )
                    turn = {} if problem.turn is None else {"turn": problem.turn}
                    about = {"code": problem.code, "message": problem.message, "raw": problem.raw}
                    yield {"file": input.shown, **place, **turn, **about}

    def groups(self) -> Groups:
        """The figures of the report."""
        groups = Groups()
        for number in range(len(self._plan.ranges)):
            with open(self._folder.file(number, "report"), "rb") as file:
                groups.merge(msgspec.msgpack.decode(file.read(), type=Groups))
        return groups

    def close(self) -> None:
        """Let go of what is open."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):  # where it was not finished it is of no use, and the disk may be full
                os.unlink(self._file.name)
