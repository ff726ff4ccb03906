"""The data that is shipped: cases, the table of formats, their schemas, the licence.

`python -m tools.case_data` makes it. It is read from the package, or copied into a folder that anybody may keep beside
their own sources.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from ..errors import UsageError

DATA_VERSION = 1
"""The version of the data's shape. It rises when a field changes its meaning or goes; new cases do not raise it."""
FILES = ("README.md", "LICENSE", "cases.jsonl", "cases.schema.json", "formats.json", "formats.schema.json")
"""The files of the data."""


def read_data(name: str) -> bytes:
    """A file of the data."""
    return (resources.files(__package__) / "data" / name).read_bytes()


def cases() -> Iterator[dict[str, Any]]:
    """Every case, as its line of `cases.jsonl` has it.

    Examples:
        >>> from asides import audit
        >>> case = next(case for case in audit.cases() if case["id"] == "formats_think_tags/two blocks")
        >>> case["raw"]
        '<think>one</think>first<think>two</think>second'
        >>> case["parts"]
        [{'thinking': 'one'}, {'text': 'first'}, {'thinking': 'two'}, {'text': 'second'}]
    """
    for line in read_data("cases.jsonl").splitlines():
        yield msgspec.json.decode(line)


def format_table() -> dict[str, Any]:
    """The formats and the names of models, as `formats.json` has them.

    Examples:
        >>> from asides import audit
        >>> [row["thinking_opens"] for row in audit.format_table()["formats"] if row["name"] == "mistral"]
        [['[THINK]']]
    """
    table: dict[str, Any] = msgspec.json.decode(read_data("formats.json"))
    return table


def export_data(folder: str | Path) -> list[Path]:
    """Write the data into a folder, which is made if need be, and return the files. Files of these names are replaced.

    Examples:
        >>> import tempfile
        >>> from asides import audit
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [path.name for path in audit.export_data(folder)][2]
        'cases.jsonl'
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            (place / name).write_bytes(read_data(name))
    except OSError as error:
        raise UsageError(f"{error.filename or place}: {error.strerror or error}") from error
    return [place / name for name in FILES]
