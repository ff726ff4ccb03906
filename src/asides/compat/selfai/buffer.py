"""The buffer of SelfAI's streaming loop: a `str` of what is not yet released that knows the stream it belongs to."""

from __future__ import annotations

from typing import Any

SHORT = 16_384
"""Up to so many characters a buffer holds its text itself. Copying more with every chunk would cost the square."""

HEAD = 64
"""So many characters of a longer one it holds itself."""


class ThinkBuffer(str):
    """What is not yet released. Made a plain `str` it still says all; only the whitespace beside a cut may differ."""

    stream: object = None
    """What reads on from here."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or a pickle, is the text alone."""
        return str, (str(self),)


class LongThinkBuffer(ThinkBuffer):
    """The same for a long thought: its text stands with the stream, and is put together when it is looked at.

    Every method of `str` sees the whole text. Functions that read a `str` from C without asking it (`re`, `json`,
    `"".join`) see its beginning: give them `str(buffer)`.
    """

    _before: str
    _pieces: list[str]
    _count: int
    _size: int

    @classmethod
    def of(cls, before: str, pieces: list[str], size: int) -> LongThinkBuffer:
        """A buffer of so many characters: these pieces, as many as there are now."""
        buffer = cls(before + pieces[0][:HEAD])
        buffer._before, buffer._pieces, buffer._count, buffer._size = before, pieces, len(pieces), size
        return buffer

    def __str__(self) -> str:
        return "".join([self._before, *self._pieces[: self._count]])

    def __len__(self) -> int:
        return self._size


def _ask_the_whole(name: str) -> Any:
    def method(self: LongThinkBuffer, *values: Any, **options: Any) -> Any:
        return getattr(str(self), name)(*values, **options)

    return method


for _name in set(vars(str)) - {"__new__", "__str__", "__len__", "__doc__", "__getattribute__", "__sizeof__"}:
    setattr(LongThinkBuffer, _name, _ask_the_whole(_name))


def _add_before(self: LongThinkBuffer, other: str) -> str:
    return other + str(self)


LongThinkBuffer.__radd__ = _add_before  # type: ignore[attr-defined]  # `str` has none; without it `x + buffer` is short
