"""The gateway's log: one line for each request, JSON or text, on standard error.

Three things hold for every line, whatever clients, upstreams or other libraries put into it: it holds no key (those of
the configuration, and whatever looks like one, are hidden), it cannot forge another line (what does not print is
escaped), and no request waits for it to be written (a thread does that, many lines at a time; lines that find its queue
full are dropped and counted). The text of requests and replies is in it only where `log.bodies` asks for it.

    logs.setup(config.log, secrets=logs.secrets_of(config))
    logs.log_request(record)
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import sys
import textwrap
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, ClassVar, Final, TextIO

import msgspec

from ..._config.schema import Config, Log, keys_of
from ..._config.values import HIDDEN, escaped, hide_url
from ..._descriptor import write_all
from ..origins import is_loopback
from ..record import BODIES, RequestRecord

LONGEST: Final = 300
"""Characters of a value that came from outside."""
LONGEST_BODY: Final = 65_536
LONGEST_TRACE: Final = 8_000
WAITING_LINES: Final = 10_000
"""Lines that wait for a slow reader of standard error; beyond these, new ones are dropped."""
GATHERING: Final = 0.05
"""Seconds for which lines are gathered before they are written: waking a thread costs more than a line does."""
BATCH: Final = 64 * 1024
"""Characters that are written at once."""
PATIENCE: Final = 2.0
"""Seconds that the end of the process waits for that reader."""
LEAST_SECRET: Final = 4
MARGIN: Final = 8_192
"""Characters beyond what is shown that are searched for secrets."""
SAME_TEXTS: Final = 1_000
"""Short texts of requests whose lines are remembered."""
LEVELS: Final = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
EVENTS: Final = ("event", "url")
"""What lines other than those of requests may add for programs, by `extra`."""
SHOWN: Final = "shown"
"""By `extra`, for a line of ours in which nothing is to be hidden: the page's address, with the start token."""


_SECRETS: Final = (
    # What a header, a body or an address may hold; the name stays, the value goes.
    re.compile(r"(?i)(\b(?:bearer|basic)\s+)[^\s\"',;]+"),
    re.compile(
        r"(?i)(\b(?:authorization|(?:x-)?api[-_]?key|cookie|password|secret)\b[\"']?\s*[:=]\s*"
        # The scheme is no secret; what stands behind it is hidden by the pattern above.
        r"(?!(?:bearer|basic)\b)b?[\"']?)[^\s\"',;&}]+"
    ),
    re.compile(r"(\b(?:sk|pk|rk|hf|gsk|xai)[-_])[A-Za-z0-9_-]{8,}"),
)
_HINT: Final = re.compile(r"(?i)bearer|basic|authorization|api|cookie|password|secret|(?:sk|pk|rk|hf|gsk|xai)[-_]")
"""What every such secret begins with: most texts hold none of it."""
_requests = logging.getLogger("asides.requests")
_logger = logging.getLogger("asides")
_handler: BackgroundHandler | None = None
"""Where lines of requests go; None until `setup`."""


def setup(log: Log, *, secrets: Iterable[str] = ()) -> None:
    """Let this process log as configured. `secrets` are hidden wherever they appear; calling again replaces it."""
    handler = BackgroundHandler(sys.stderr)
    as_text = log.form == "text" or (log.form == "auto" and sys.stderr.isatty())
    # The longest first, or a secret that begins with another would be hidden only up to the other's end. Short ones are
    # no secrets, and would blank out ordinary text.
    hidden = tuple(sorted({secret for secret in secrets if len(secret) >= 4}, key=len, reverse=True))
    handler.setFormatter((_TextLog if as_text else _JsonLog)(hidden))
    root = logging.getLogger()
    for other in root.handlers[:]:
        if isinstance(other, BackgroundHandler):
            root.removeHandler(other)
            other.flush()
    root.addHandler(handler)
    global _handler
    _handler = handler
    _logger.setLevel(LEVELS[log.level])
    # Their lines about each connection only repeat ours; their warnings are wanted.
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(max(logging.WARNING, LEVELS[log.level]))


def dropped() -> int:
    """Lines that could not be written, since the start."""
    return sum(handler.dropped for handler in logging.getLogger().handlers if isinstance(handler, BackgroundHandler))


def flush() -> None:
    """Wait until what was logged is written."""
    for handler in logging.getLogger().handlers:
        handler.flush()


def secrets_of(config: Config) -> list[str]:
    """The keys and header values of a configuration, which must never be logged.

    Those of fewer than `LEAST_SECRET` characters protect nothing, and hiding them would garble every line.
    """
    found = [*(entry.key for entry in keys_of(config)), config.run.key, *config.continuity.keys]
    for upstream in config.upstreams:
        found += [upstream.key, *upstream.headers.values()]
    return [secret for secret in found if len(secret) >= LEAST_SECRET]


def warn_at_start(config: Config) -> list[str]:
    """Warnings about what is unsafe in a configuration."""
    warnings = []
    if not config.keys and not is_loopback(config.listen.host):
        warnings.append(
            f"listening on {config.listen.host} without keys: whoever reaches this address may use the upstream; "
            "set `keys` (or ASIDES_KEYS)"
        )
    if config.log.bodies:
        warnings.append("log.bodies is on: the text of requests and replies is written to the log")
    if "*" in config.cors and not config.keys:
        warnings.append("cors allows every origin and there are no keys: any web page may use the upstream")
    for upstream in config.upstreams:
        if upstream.key and upstream.url.startswith("http://") and not _is_near(upstream.url):
            warnings.append(f"the key of upstream {upstream.name} is sent unencrypted: {hide_url(upstream.url)}")
    return warnings


def log_request(record: RequestRecord, *, bodies: bool = False) -> None:
    """Write the line of a request that is over. An error of ours or of the upstream makes it a warning."""
    level = logging.WARNING if record.status >= 500 or record.upstream_error else logging.INFO
    # Past `logging`, whose own record of a line costs more than ours of the whole request.
    if _handler is not None and _requests.isEnabledFor(level):
        _handler.put(RequestLine("WARNING" if level == logging.WARNING else "INFO", record.fields(bodies=bodies)))


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without what looks like a key, and without these secrets."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    if "://" in text:
        text = hide_url(text)
    # One search for most texts instead of three; none for ids and plain names, because every pattern has a sign in it.
    if not text.isalnum() and _HINT.search(text):
        for pattern in _SECRETS:
            text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    return text


def one_line(text: str, longest: int = LONGEST, secrets: Iterable[str] = ()) -> str:
    """The text without secrets, shortened, every character that does not print as an escape."""
    # Cut first, so that no client chooses how much is searched; a margin, so that no secret is cut in half.
    found = scrub(text[: longest + MARGIN], secrets)
    shown = escaped(found[:longest])
    return shown if len(found) <= longest else f"{shown}...({len(text)} characters)"


class RequestLine(msgspec.Struct, frozen=True):
    """The line of a request, which waits to be written among those of other programs."""

    name: ClassVar[str] = "asides.requests"
    levelname: str
    request: Mapping[str, Any]
    created: float = msgspec.field(default_factory=time.time)


class BackgroundHandler(logging.Handler):
    """Lines for standard error, written by a thread of their own.

    Standard error may be a pipe that nobody reads. A write into a full pipe waits for ever, so no request may do it:
    lines wait in a queue, and what finds the queue full is dropped and counted. They are written to the descriptor,
    past Python's own buffer: a thread that waited inside that buffer would hold its lock, and the interpreter would
    wait for it when it ends. The thread is woken once for all lines of the next moment: each time it works, it takes
    the interpreter's lock from the streams.
    """

    def __init__(self, stream: TextIO, size: int = WAITING_LINES) -> None:
        super().__init__()
        self.dropped = 0
        """Lines that found the queue full, since the start."""
        self._descriptor = stream.fileno()
        self._lines: deque[logging.LogRecord | RequestLine | threading.Event] = deque()
        """What waits; an event is set once all before it is written."""
        self._size = size
        self._asleep = True
        """Whether the thread has to be woken."""
        self._wake = threading.Event()
        self._hurry = threading.Event()
        """Set while somebody waits for the lines."""
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Lines that wait to be written."""
        return len(self._lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand a line to the thread."""
        self.put(record)

    def put(self, line: logging.LogRecord | RequestLine) -> None:
        """Hand a line to the thread."""
        # From several threads at once the bound may be exceeded by as many lines.
        if len(self._lines) >= self._size:
            self.dropped += 1
            return
        self._lines.append(line)
        # In this order, and the thread looks once more after it has set it: no line is left without somebody awake.
        if self._asleep:
            self._asleep = False
            self._start()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_lines, name="asides-log", daemon=True)
            self._thread.start()
        self._wake.set()

    def flush(self) -> None:
        """Wait until all is written, but not for a reader that has stopped reading. `logging` calls it at exit."""
        # The thread cannot wait for itself; without one nothing was ever logged.
        if self._thread is None or threading.current_thread() is self._thread:
            return
        written = threading.Event()
        self._lines.append(written)
        self._hurry.set()
        self._wake.set()
        written.wait(PATIENCE)

    def _write_lines(self) -> None:
        while True:
            self._asleep = not self._lines
            if self._asleep:
                self._wake.wait()
            self._wake.clear()
            self._hurry.wait(GATHERING)
            self._hurry.clear()
            while self._lines:
                self._write_batch()

    def _write_batch(self) -> None:
        """Write the next lines, up to where somebody waits for them."""
        texts: list[str] = []
        size = 0
        waits: threading.Event | None = None
        while self._lines and size < BATCH and waits is None:
            item = self._lines.popleft()
            if isinstance(item, threading.Event):
                waits = item
                continue
            # A line that cannot be written is nobody's fault who could do something about it: the gateway goes on.
            with contextlib.suppress(Exception):
                text = self.format(item)  # type: ignore[arg-type]  # a `RequestLine` has all that is read
                texts.append(text)
                size += len(text)
        if texts:
            with contextlib.suppress(Exception):  # nor is there anybody to complain to
                write_all(self._descriptor, "\n".join((*texts, "")).encode("utf-8", "backslashreplace"))
        if waits is not None:
            waits.set()


class _LogFormatter(logging.Formatter):
    """What the two forms of the log share: messages, traces and fields without secrets."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        super().__init__()
        self._secrets = secrets
        # Most requests name the same few paths, models and upstreams, and a search for secrets costs more than a line.
        self._one_line = lru_cache(SAME_TEXTS)(partial(one_line, secrets=secrets))

    def _message(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            text = str(record.msg)  # another library's mistake must not cost the line
        return escaped(text) if getattr(record, SHOWN, False) else one_line(text, LONGEST_BODY, self._secrets)

    def _trace(self, record: logging.LogRecord) -> str:
        # The end of a trace says what happened; cut with a margin for the same reason as in `one_line`.
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        return scrub(trace[-LONGEST_TRACE - MARGIN :], self._secrets)[-LONGEST_TRACE:]

    def _fields(self, line: RequestLine) -> dict[str, Any]:
        """The fields of a request as they are written. What is zero, empty or never came is left out."""
        found: dict[str, Any] = {}
        for name, value in line.request.items():
            if not value and name != "status" and type(value) is not float:
                continue
            if type(value) is str:
                if name == "id":
                    name, value = "request_id", one_line(value, LONGEST, self._secrets)
                elif len(value) <= LONGEST:
                    value = self._one_line(value)
                else:
                    value = one_line(value, LONGEST_BODY if name in BODIES else LONGEST, self._secrets)
            elif type(value) is float:
                value = round(value, 4)
            elif type(value) is bytes:
                value = one_line(value.decode("utf-8", "replace"), LONGEST_BODY, self._secrets)
            found[name] = value
        return found


class _JsonLog(_LogFormatter):
    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        line: dict[str, Any] = {
            "time": _time(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if isinstance(record, RequestLine):
            line["message"] = "request"
            line |= self._fields(record)
        else:
            line["message"] = self._message(record)
            write = escaped if getattr(record, SHOWN, False) else one_line
            line |= {name: write(str(getattr(record, name))) for name in EVENTS if hasattr(record, name)}
            if trace := self._trace(record):
                line["trace"] = "\n".join(map(escaped, trace.splitlines()))
        return msgspec.json.encode(line).decode()


class _TextLog(_LogFormatter):
    def format(self, record: logging.LogRecord) -> str:
        """One line, and below it, set in, the lines of a trace."""
        lead = f"{_time(record.created)} {record.levelname.lower():<7}"
        if isinstance(record, RequestLine):
            found = self._fields(record)
            rest = " ".join([f"{name}={_value(value)}" for name, value in found.items() if name not in _LEADING])
            return f"{lead} {found['status']} {found['method']} {found['path']} {found['seconds']}s {rest}"
        trace = [f"    | {escaped(part)}" for part in self._trace(record).splitlines()]
        return "\n".join([fitted(f"{lead} {self._message(record)}"), *trace])


def terminal_columns() -> int:
    """How wide the terminal is that standard error writes to; 80 where it does not tell."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


def fitted(text: str) -> str:
    """Text for standard error: on a terminal its lines are wrapped between words, what is set in is left as it is.

    The rows below the first are set in, so that none of them looks like a line of its own. Lines of requests are not
    wrapped: there are many of them, and they are read by programs too.
    """
    if not sys.stderr.isatty():
        return text
    width = terminal_columns() - 1
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    rows = ([line] if line[:1] in ("", " ") else wrap(line, subsequent_indent="    ") for line in text.split("\n"))
    return "\n".join(row for lines in rows for row in lines)


_LEADING: Final = {"status", "method", "path", "seconds"}


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{count}" for name, count in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return text if re.fullmatch(r"[^\s\"=]+", text) else msgspec.json.encode(text).decode()


def _time(seconds: float) -> str:
    return f"{_second(int(seconds))}.{int(seconds % 1 * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))


def _is_near(url: str) -> bool:
    from urllib.parse import urlsplit

    return is_loopback(urlsplit(url).hostname or "")
