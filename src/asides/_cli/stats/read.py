"""Reading for `asides stats`: replies, traces and the history, one record at a time, with progress. Draws no table.

`Counting` holds the figures so far, grouped as `--by` asks, and what could not be read. What a file is, is found out as
it is read: traces by its name or because its first line is a record with an output, one JSON document where it begins
as one, else a reply. Lines are counted as they come, so that memory does not grow with a file of traces and Ctrl-C can
show what was counted until then.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec

from ..._api import parse
from ..._config.values import near, suggestion
from ..._descriptor import open_to_read
from ..._extras import install_command
from ...analysis import analyze
from ...analysis.figures import analyze_reply
from ...analysis.summary import EXCERPT, NAMELESS, Groups
from ...analysis.traces import FoundReplies, decode, find_replies, find_seconds, look_up
from ...errors import UsageError
from ...message import Message
from ...parts import Thinking
from ...policies import DEFAULTS, Policies
from ...terminal.progress import Progress
from ...terminal.table import amount
from ..filter import format_of
from ..streams import STDIN, Interrupt, Streams, packed_kind, split_lines

if TYPE_CHECKING:
    from ..._history import KeptReply
    from .jobs import Jobs

KEPT_GROUPS = ("model", "source", "agent", "conversation", "format", "termination")
"""What replies of the history can be compared by."""
NAMED = 3
"""Oddities of one kind that are named one by one; the rest is only counted."""
MOST_NAMES = 50
"""Fields of a record that a hint may name."""
TRACES = (".jsonl", ".ndjson", ".jsonlines")


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
        self.odd: dict[str, list[str]] = {"not valid JSON": [], "no output found": []}
        """The first places of each kind of oddity."""
        self.skipped = dict.fromkeys(self.odd, 0)
        self.names: list[str] = []
        """The fields of the first record, to say what `--by` or `--field` may have meant."""
        self.failed: list[str] = []
        """Files that could not be read, with the reason."""
        self._by_field = by
        self._by_file = by_file
        self._field = field
        self._seconds_field = seconds_field
        self._tokens = load_tokenizer(tokenizer) if tokenizer else None
        self._format = format_of(format, tags)
        self._policies = policies

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
        self._add(self._parse(text), None, path, path if self._by_file else "")

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

    def count_line(self, line: bytes, path: str, place: str) -> None:
        """Count a line of a trace file in."""
        try:
            record = decode(line)
        except ValueError:
            self._skip("not valid JSON", place)
        else:
            self.count_record(record, path, place)

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
        return find_replies(record, self._parse, self._field)

    def group(self, record: Any) -> str:
        """The group of a record."""
        if not self._by_field or not isinstance(record, dict):
            return ""
        value = look_up(record, self._by_field)
        return "" if value is None else value if isinstance(value, str) else str(value)

    def _parse(self, text: str) -> Message:
        return parse(text, self._format, self._policies)

    def _add(self, message: Message, seconds: float | None, place: str, group: str) -> None:
        figures = analyze(message, format=self._format, tokens=self._tokens, seconds=seconds)
        first = next((part.text for part in message.parts if isinstance(part, Thinking)), "")
        self.groups.add(group, figures, place, first[:EXCERPT])

    def check_names(self) -> None:
        """`UsageError` where `--field` or `--by` names a field that no record has."""
        if self._field and not self.fields and self.skipped["no output found"]:
            raise UsageError(f"no record has an output in the field {self._field!r}{self._meant(self._field)}")
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
                what = amount(count, "line", "lines") if kind == "not valid JSON" else f"in {count:,} of the records"
                hint = "; --field names the field" if kind == "no output found" and not self._field else ""
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
            "skipped": {"no_json": self.skipped["not valid JSON"], "no_output": self.skipped["no output found"]},
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
    reads: str,
    counting: Counting,
    interrupt: Interrupt,
    streams: Streams,
    make_jobs: Callable[[Progress], Jobs] | None = None,
) -> None:
    """Count every file that can be read. Where jobs can be made, they count the lines."""
    with Progress(streams.err, total=_sizes(paths), bar=True) as progress, ExitStack() as stack:
        jobs = stack.enter_context(make_jobs(progress)) if make_jobs is not None else None
        for path in paths:
            if interrupt.came:
                break
            try:
                descriptor = STDIN if path == "-" else open_to_read(path)
            except OSError as error:
                counting.failed.append(f"{path}: {error.strerror}")
                continue
            try:
                counting.files += 1
                name = "standard input" if path == "-" else path
                _count_file(name, descriptor, reads, counting, interrupt, progress, jobs)
            finally:
                if descriptor != STDIN:
                    os.close(descriptor)
            if interrupt.failure is not None:
                counting.failed.append(f"{path}: {interrupt.failure.strerror}")
                interrupt.failure = None
        if jobs is not None:
            jobs.finish()


def _count_file(
    path: str,
    descriptor: int,
    reads: str,
    counting: Counting,
    interrupt: Interrupt,
    progress: Progress,
    jobs: Jobs | None,
) -> None:
    lines = split_lines(_measured(interrupt.read(descriptor), counting))
    # Blank lines before the first are kept for a reply and mean nothing in traces.
    before: list[bytes] = []
    first = b""
    for first in lines:
        if first.strip():
            break
        before.append(first)
    first = first.removeprefix(b"\xef\xbb\xbf") if not before else first
    # Any bytes could be counted as a reply, and the figures of noise look like figures.
    if packed := reads != "text" and packed_kind(first):
        counting.failed.append(f"{path}: {packed}, which `asides batch` reads; with --html it writes the same report")
        return
    if reads == "text" or (reads == "auto" and not _is_traces(path, first, counting)):
        if jobs is not None:
            jobs.finish()
        _count_whole(b"\n".join([*before, first, *lines]), path, reads, counting)
        return
    if first.lstrip().startswith(b"[") or first.strip() == b"{":
        whole = b"\n".join([first, *lines])
        if jobs is not None:
            jobs.finish()
        if _count_document(whole, path, counting):
            return
        first, lines = b"", iter(whole.split(b"\n"))
    for number, line in enumerate(chain([first] if first else [], lines), start=len(before) + 1):
        if not line.strip():
            pass
        elif jobs is not None:
            jobs.add(line, path, number)
        else:
            counting.count_line(line, path, f"{path}:{number}")
            counting.show(progress)
        if interrupt.came:
            break


def _is_traces(path: str, first: bytes, counting: Counting) -> bool:
    """Whether a file holds traces: by its name, or because its first line is a record with an output."""
    if path.lower().endswith((*TRACES, ".json")):
        return True
    if not first.lstrip().startswith((b"{", b'"')):
        return False
    try:
        record = decode(first)
    except ValueError:
        return False
    return bool(counting.find(record).replies)


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


def _measured(chunks: Iterable[bytes], counting: Counting) -> Iterator[bytes]:
    for chunk in chunks:
        counting.size += len(chunk)
        yield chunk
