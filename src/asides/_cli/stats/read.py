"""Reading for `asides stats`: replies, traces and the history, one record at a time, with progress. Draws no table.

`Counting` holds the figures so far, grouped as `--by` asks, and what could not be read. Files of traces are read as by
every command (`asides._cli.inputs`): tables, JSON Lines, a JSON array, CSV, compressed or not. A file whose name does
not tell is one of them by its first bytes, or because its first line is a record with an output; else it is a reply.
Rows are counted as they come, so that memory does not grow with a file of traces and Ctrl-C can show what was counted
until then.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ..._config.values import near, suggestion
from ..._extras import install_command
from ...analysis import analyze
from ...analysis._figures import analyze_reply
from ...analysis._summary import EXCERPT, NAMELESS, Groups
from ...analysis._traces import FoundReplies, decode, find_replies, find_seconds, look_up
from ...errors import Error, UsageError
from ...message import Message
from ...parts import Thinking
from ...policies import DEFAULTS, Policies
from ...terminal._progress import Progress
from ...terminal._table import amount
from ..filter import reading_of
from ..inputs.files import STANDARD_INPUT, expand
from ..inputs.kinds import InputKind
from ..inputs.reader import Reads, ReplyFile
from ..inputs.rows import InputRow, decoded
from ..streams import STDIN, Interrupt, Streams

if TYPE_CHECKING:
    from ..._history import KeptReply
    from .jobs import Jobs

KEPT_GROUPS = ("model", "source", "agent", "conversation", "format", "termination")
"""What replies of the history can be compared by."""
NAMED = 3
"""Oddities of one kind that are named one by one; the rest is only counted."""
MOST_NAMES = 50
"""Fields of a record that a hint may name."""


class Counted(msgspec.Struct):
    """What a part of the lines came to."""

    groups: Groups
    fields: dict[str, int]
    odd: dict[str, list[str]]
    skipped: dict[str, int]
    names: list[str]


class Counting:
    """What was read so far: the groups, and what could not be read."""

    def __init__(
        self,
        *,
        format: str = "auto",
        tags: Sequence[tuple[str, str]] = (),
        model: str = "",
        policies: Policies = DEFAULTS,
        field: str = "",
        seconds_field: str = "",
        by: str = "",
        by_file: bool = False,
        tokenizer: str = "",
    ) -> None:
        self.groups = Groups()
        self.by = "file" if by_file else by
        """What the groups are, in words; empty where there is one group only."""
        self.files = 0
        self.size = 0
        """Bytes of files, or characters of kept replies, that were read."""
        self.fields: dict[str, int] = {}
        """The fields that outputs were found in, and how often."""
        self.odd: dict[str, list[str]] = {"not valid JSON": [], "cannot be read": [], "no output found": []}
        """The first places of each kind of oddity."""
        self.skipped = dict.fromkeys(self.odd, 0)
        self.names: list[str] = []
        """The fields of the first record, to say what `--by` or `--field` may have meant."""
        self.failed: list[str] = []
        """Files that could not be read, with the reason."""
        self._by_field = by
        self._by_file = by_file
        self.field = field
        self._seconds_field = seconds_field
        self._tokens = load_tokenizer(tokenizer) if tokenizer else None
        self.reading = reading_of(format, tags, model, policies)

    def counted(self) -> Counted:
        """What was counted in lines, for `merge`."""
        return Counted(self.groups, self.fields, self.odd, self.skipped, self.names)

    def clear(self) -> None:
        """Begin anew, with lines that will be merged into another counting. Every group is kept apart."""
        self.groups = Groups(most=sys.maxsize)
        self.fields = {}
        self.odd = {kind: [] for kind in self.odd}
        self.skipped = dict.fromkeys(self.odd, 0)

    def merge(self, later: Counted) -> None:
        """Count in lines that come after all that was counted here: the result is as if they had been counted here."""
        self.groups.merge(later.groups)
        for field, count in later.fields.items():
            self.fields[field] = self.fields.get(field, 0) + count
        for kind, places in later.odd.items():
            self.odd[kind] = (self.odd[kind] + places)[:NAMED]
            self.skipped[kind] += later.skipped[kind]
        self.names = self.names or later.names

    @property
    def replies(self) -> int:
        """How many replies were counted."""
        return sum(summary.replies for summary in self.groups.summaries.values())

    def show(self, progress: Progress) -> None:
        """Draw how far it is."""
        progress.show(self.size, amount(self.replies, "reply", "replies"))

    def count_text(self, text: str, path: str) -> None:
        """Count a reply in."""
        self._add(self.reading.parse_row(text), None, path, path if self._by_file else "")

    def count_record(self, record: Any, path: str, place: str) -> None:
        """Count the replies of a record in."""
        found = self.find(record)
        if not self.names and isinstance(record, dict):
            self.names = [name for name in record if isinstance(name, str)][:MOST_NAMES]
        if not found.replies:
            self._skip("no output found", place)
            return
        self.fields[found.field] = self.fields.get(found.field, 0) + 1
        group = path if self._by_file else self.group(record)
        seconds = find_seconds(record, self._seconds_field)
        for message in found.replies:
            self._add(message, seconds, place, group)

    def count_row(self, row: InputRow, path: str, place: str) -> None:
        """Count a row of a trace file in."""
        record, problem = decoded(row)
        if problem is not None and problem[0] == "invalid_utf8" and row.data:
            with suppress(ValueError):  # one bad byte does not change the figures of a trace
                record, problem = decode(bytes(row.data)), None
        if problem is None:
            self.count_record(record, path, place)
        elif problem[0] == "no_json":
            self._skip("not valid JSON", place)
        else:
            self._skip("cannot be read", f"{place}: {problem[1]}")

    def count_kept(self, kept: KeptReply) -> None:
        """Count a reply of the history in."""
        reply = kept.reply
        thoughts = reply.thoughts
        figures = analyze_reply(reply, self._tokens)
        group = (reply.model if self.by == "model" else getattr(kept, self.by)) if self.by else ""
        first = thoughts[0].text if thoughts else ""
        self.groups.add(group, figures, f"history {kept.id[:12]}", first[:EXCERPT])

    def find(self, record: Any) -> FoundReplies:
        """The replies of a record."""
        return find_replies(record, self.reading.row_parser(), self.field)

    def group(self, record: Any) -> str:
        """The group of a record."""
        if not self._by_field or not isinstance(record, dict):
            return ""
        value = look_up(record, self._by_field)
        return "" if value is None else value if isinstance(value, str) else str(value)

    def _add(self, message: Message, seconds: float | None, place: str, group: str) -> None:
        figures = analyze(message, format=self.reading.format, tokens=self._tokens, seconds=seconds)
        first = next((part.text for part in message.parts if isinstance(part, Thinking)), "")
        self.groups.add(group, figures, place, first[:EXCERPT])

    def check_names(self) -> None:
        """`UsageError` where no record has an output, or `--field` or `--by` names a field that none has."""
        if self.field and not self.fields and self.skipped["no output found"]:
            held = ", which holds no text" if self.field in self.names else self._meant(self.field)
            raise UsageError(f"no record has an output in the field {self.field!r}{held}")
        if not self.replies and self.skipped["no output found"]:
            has = f", the first has {', '.join(self.names[:10])}" if self.names else ""
            raise UsageError(f"no output found in any record{has}; --field names the field")
        if self._by_field and self.names and set(self.groups.summaries) == {NAMELESS}:
            raise UsageError(f"no record has the field {self._by_field!r} to compare by{self._meant(self._by_field)}")

    def _meant(self, name: str) -> str:
        return "" if name in self.names else suggestion(name, self.names)

    def _skip(self, kind: str, place: str) -> None:
        self.skipped[kind] += 1
        if len(self.odd[kind]) < NAMED:
            self.odd[kind].append(place)

    def notes(self) -> list[str]:
        """What could not be read, in words."""
        notes = list(self.failed)
        for kind, count in self.skipped.items():
            if count:
                places = ", ".join(self.odd[kind]) + (", ..." if count > len(self.odd[kind]) else "")
                what = f"in {count:,} of the records" if kind == "no output found" else amount(count, "line", "lines")
                hint = "; --field names the field" if kind == "no output found" and not self.field else ""
                notes.append(f"{kind}: {what} ({places}){hint}")
        return notes

    def title(self) -> str:
        """What was read, in a line."""
        where = f" in {amount(self.files, 'file', 'files')}" if self.files else ""
        fields = sorted(self.fields, key=lambda name: -self.fields[name])
        named = f", field {', '.join(fields[:NAMED])}" if fields else ""
        return f"{amount(self.replies, 'reply', 'replies')}{where}{named}"

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "files": self.files,
            "fields": self.fields,
            "skipped": {
                "no_json": self.skipped["not valid JSON"],
                "unreadable": self.skipped["cannot be read"],
                "no_output": self.skipped["no output found"],
            },
            "unreadable_files": self.failed,
            "by": self.by,
            "all": self.groups.all().to_dict(),
            "groups": [{"name": name, **summary.to_dict()} for name, summary in self.groups.largest_first()]
            if self.by
            else [],
        }


def load_tokenizer(path: str) -> Callable[[str], int]:
    """A function that counts tokens, from a tokenizer.json or a folder that holds one."""
    tokenizer = open_tokenizer(path)
    # Half a surrogate pair is no text that a tokenizer takes.
    return lambda text: len(tokenizer.encode(text.encode("utf-8", "replace").decode(), add_special_tokens=False).ids)


def open_tokenizer(path: str) -> Any:
    """The tokenizer of a tokenizer.json, or of a folder that holds one."""
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError(
            f"--tokenizer needs a package that is not installed: {install_command('tokenizers')}"
        ) from error
    if os.path.isdir(path):
        path = os.path.join(path, "tokenizer.json")
    if not os.path.exists(path):
        raise UsageError(f"{path}: no such file; --tokenizer takes a tokenizer.json, or a folder with one")
    try:
        tokenizer = Tokenizer.from_file(path)
        # Some files have these switched on, and then every long text would have as many tokens.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer
    except Exception as error:  # the package raises plain exceptions
        raise UsageError(f"{path}: not a tokenizer.json: {error}") from error


def count_files(
    paths: list[str],
    reads: Reads,
    counting: Counting,
    interrupt: Interrupt,
    streams: Streams,
    make_jobs: Callable[[Progress], Jobs] | None = None,
) -> None:
    """Count every file that can be read. Where jobs can be made, they count the rows."""
    with Progress(streams.err, total=_sizes(paths), bar=True) as progress, ExitStack() as stack:
        jobs = stack.enter_context(make_jobs(progress)) if make_jobs is not None else None
        for path in _expanded(paths, counting):
            if interrupt.came:
                break
            try:
                _FileCount(path, reads, counting, interrupt, progress, jobs).run()
            except OSError as error:
                counting.failed.append(f"{path}: {error.strerror or error}")
            except Error as error:
                shown = str(error)
                counting.failed.append(shown if shown.startswith(path) else f"{path}: {shown}")
        if jobs is not None:
            jobs.finish()


def _expanded(paths: list[str], counting: Counting) -> Iterator[str]:
    """The files that are meant; standard input as it is."""
    for path in paths:
        try:
            yield from [path] if path == STANDARD_INPUT else expand(path)
        except Error as error:
            counting.failed.append(str(error))


class _FileCount:
    """Counts one file."""

    def __init__(
        self,
        path: str,
        reads: Reads,
        counting: Counting,
        interrupt: Interrupt,
        progress: Progress,
        jobs: Jobs | None,
    ) -> None:
        self._path = path
        self._name = "standard input" if path == STANDARD_INPUT else path
        self._reads = reads
        self._counting = counting
        self._interrupt = interrupt
        self._progress = progress
        self._jobs = jobs

    def run(self) -> None:
        """Count it."""
        counting = self._counting
        with ReplyFile(self._path, self._interrupt, self._reads, self._note) as file:
            counting.files += 1
            kind = file.kind()
            if kind is None and self._reads == "auto" and _is_trace(file.first_line(), counting):
                kind = "jsonl"
            if kind is None:
                self._count_whole(file.read())
                return
            for row in file.rows(kind, counting.field):
                self._count(row, kind)
                if self._interrupt.came:
                    break

    def _note(self, size: int) -> None:
        self._counting.size += size

    def _count(self, row: InputRow, kind: InputKind) -> None:
        place = f"{self._name}:{row.number + 1}" if kind == "jsonl" else f"{self._name}[{row.number + 1}]"
        if self._jobs is not None:
            self._jobs.add(row, self._name, place)
            return
        self._counting.count_row(row, self._name, place)
        self._counting.show(self._progress)

    def _count_whole(self, data: bytes) -> None:
        if self._jobs is not None:
            self._jobs.finish()
        _count_whole(data, self._name, self._reads, self._counting)


def _is_trace(first: bytes, counting: Counting) -> bool:
    """Whether a line is a record with an output."""
    try:
        return bool(first) and bool(counting.find(decode(first)).replies)
    except ValueError:
        return False


def _count_whole(data: bytes, path: str, reads: str, counting: Counting) -> None:
    """A reply; or, where it turns out to be one, a JSON document of traces."""
    if reads == "auto" and data.lstrip()[:1] in (b"[", b"{") and _count_document(data, path, counting):
        return
    text = data.decode("utf-8", "replace")
    if text.strip():
        counting.count_text(text, path)


def _count_document(data: bytes, path: str, counting: Counting) -> bool:
    """Count a whole file that is one JSON document: a list of records, or a record. False where it is none."""
    try:
        document = decode(data)
    except ValueError:
        return False
    records = document if isinstance(document, list) else [document]
    if not any(counting.find(record).replies for record in records[:NAMED]):
        return False
    for number, record in enumerate(records, start=1):
        counting.count_record(record, path, f"{path}[{number}]" if isinstance(document, list) else path)
    return True


def count_history(
    store: str, since: str | None, until: str | None, counting: Counting, interrupt: Interrupt, streams: Streams
) -> None:
    """Count what the history keeps."""
    from ... import _history as history
    from ..history.common import warn

    if counting.by not in ("", *KEPT_GROUPS):
        meant = near(counting.by, KEPT_GROUPS)
        hint = f"; did you mean {meant[0]}?" if meant else f"; it has {', '.join(KEPT_GROUPS)}"
        raise UsageError(f"the history has no field {counting.by!r} to compare by{hint}")
    where = history.ReplyFilter(
        since=history.read_time(since) if since else None, until=history.read_time(until) if until else None
    )
    with history.open(store, create=False) as kept, Progress(streams.err, bar=True) as progress:
        warn(kept)
        for reply in kept.replies(where):
            if interrupt.came:
                break
            counting.count_kept(reply)
            counting.size += reply.size
            counting.show(progress)


def _sizes(paths: Iterable[str]) -> int:
    """How many bytes there are to read; 0 where nobody can tell."""
    total = 0
    for path in paths:
        try:
            found = os.fstat(STDIN) if path == "-" else os.stat(path)
        except OSError:
            continue
        if not stat.S_ISREG(found.st_mode):
            return 0
        total += found.st_size
    return total
