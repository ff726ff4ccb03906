"""Every exception that asides raises. Nothing else may escape from the library.

Error
 +-- UnknownFormatError   no format has this name (also a ValueError)
 +-- StrictError          the model wrote something odd and the caller asked for strictness
 +-- UsageError           the library was called in an order or with a value that cannot work

Rooms that need one have an error of their own beside what raises it: `ConfigError`, `HistoryError`, `RequestError`…
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .events import Event, Notice


class Error(Exception):
    """The base of all errors of this library.

    Examples:
        >>> try:
        ...     asides.parse("hm", "qwen33")
        ... except asides.Error as error:
        ...     print(error)
        unknown format 'qwen33'; did you mean qwen3, qwen3.5?
    """


class UnknownFormatError(Error, ValueError):
    """No registered format answers to this name.

    Examples:
        >>> try:
        ...     asides.get_format("qwen33")
        ... except asides.UnknownFormatError as error:
        ...     print(error.near)
        ('qwen3', 'qwen3.5')
    """

    def __init__(self, name: str, near: Sequence[str] = (), hint: str = "") -> None:
        self.name = name
        """The name that was asked for."""
        self.near: tuple[str, ...] = tuple(near)
        """Names that look like it, best first."""
        self.hint: str = hint or (
            f"did you mean {', '.join(self.near)}?" if self.near else "asides.formats() lists the names."
        )
        """What to do about it."""
        super().__init__(f"unknown format {name!r}; {self.hint}")

    def __reduce__(self) -> tuple[type[UnknownFormatError], tuple[str, tuple[str, ...], str]]:
        """What it is made of: it comes out of another process as it went in."""
        return type(self), (self.name, self.near, self.hint)


class StrictError(Error):
    """A notice that the caller's `strict` turns into an error.

    Examples:
        >>> try:
        ...     asides.parse("<think>so this is", strict=True)
        ... except asides.StrictError as error:
        ...     print(error.notice.code)
        unclosed_thinking
    """

    def __init__(self, notice: Notice, events: Sequence[Event] = ()) -> None:
        self.notice = notice
        """The notice that became the error."""
        self.events: tuple[Event, ...] = tuple(events)
        """The events of this call up to the notice, which were not returned."""
        super().__init__(f"{notice.code} at character {notice.offset}: {notice.message}")

    def __reduce__(self) -> tuple[type[StrictError], tuple[Notice, tuple[Event, ...]]]:
        """What it is made of: it comes out of another process as it went in."""
        return type(self), (self.notice, self.events)


class UsageError(Error):
    """The library was used in a way that cannot work: `feed` after `finish`, a policy that does not exist.

    Examples:
        >>> try:
        ...     asides.parse(b"bytes")
        ... except asides.UsageError as error:
        ...     print(error)
        a model's output is text (str), not bytes; decode it first
    """
