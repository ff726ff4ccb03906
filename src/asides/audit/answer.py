"""`python -m asides.audit.answer`: answers a runner's cases with what `asides` makes of them.

One case on each line of the input, one answer on each line of the output, in the same order. A line that cannot be
answered gets an answer that says why; only the end of the input ends the program.
"""

from __future__ import annotations

import sys
from typing import Any, BinaryIO

import msgspec

from ..errors import Error, UnknownFormatError
from ._answers import answer_case

__all__ = ["answer_line", "main"]


def answer_line(line: bytes) -> bytes:
    """The answer to one line: what is compared, `skip` for a format that nobody knows, or what is wrong as `error`.

    Examples:
        >>> from asides.audit.answer import answer_line
        >>> answer_line(b'{"format": "of-tomorrow", "chunks": ["hm"]}')[:8]
        b'{"skip":'
    """
    return msgspec.json.encode(_answer(line))


def _answer(line: bytes) -> dict[str, Any]:
    try:
        case = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return {"error": f"this line is no JSON object: {error}"}
    try:
        return answer_case(case)
    except UnknownFormatError as error:
        return {"skip": str(error)}
    except Error as error:
        return {"error": str(error)}


def main(source: BinaryIO | None = None, target: BinaryIO | None = None) -> None:
    """Answer every line of the standard input, or of `source`."""
    source, target = source or sys.stdin.buffer, target or sys.stdout.buffer
    for line in source:
        if line.strip():
            target.write(answer_line(line) + b"\n")
            target.flush()


if __name__ == "__main__":
    main()
