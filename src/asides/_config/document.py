"""The file `asides.yaml`: where it is found, and its text as YAML nodes that know their lines. Knows no schema."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from .problems import ConfigError, Origin, Problem, quoted

if TYPE_CHECKING:
    import yaml

NAME = "asides.yaml"
MOST_BYTES = 4 * 1024 * 1024
"""A configuration that is larger is another file, or a device."""


class Source(NamedTuple):
    """A file that is to be read."""

    path: str
    named_by: str = ""
    """The flag or the variable that names it; empty where it was found."""
    trusted: bool = True
    """False for a file that merely lies in the current folder: whoever made the folder wrote it, not the user."""


def find(path: str | os.PathLike[str] | None, environ: Mapping[str, str], *, here: bool = False) -> Source | None:
    """The file that is to be read. No file at all is fine where nobody named one.

    With `here` one in the current folder is taken where none is named, but not trusted.
    """
    if path is not None:
        return Source(os.path.expanduser(os.fspath(path)), "--config")
    if environ.get("ASIDES_CONFIG"):
        return Source(os.path.expanduser(environ["ASIDES_CONFIG"]), "ASIDES_CONFIG")
    if here and os.path.isfile(NAME):
        return Source(NAME, trusted=False)
    folder = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".config")
    own = os.path.join(folder, "asides", NAME)
    return Source(own) if os.path.isfile(own) else None


def read(path: str, named_by: str) -> str:
    """The text of the file."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise mistake(path, 0, f"{reason}{f' ({named_by})' if named_by else ''}") from error
    if len(content) > MOST_BYTES:
        raise mistake(path, 0, "larger than a configuration can be (4 MiB)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise mistake(path, line, "not UTF-8; save the file as UTF-8") from error


def compose(text: str, path: str) -> yaml.Node | None:
    """The document as nodes, None where it is empty."""
    try:
        import yaml
    except ImportError as error:
        raise UsageError(
            f"{shown(path)} cannot be read without PyYAML; install it with: pip install 'asides[gateway]'"
        ) from error
    try:
        # Nodes only, with the loader that knows plain data: nothing is ever constructed from a tag.
        node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise mistake(path, mark.line + 1 if mark else 0, _in_words(error)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"holds the character U+{ord(text[error.position]):04X}, which YAML does not allow"
        raise mistake(path, line, message) from error
    except RecursionError as error:
        raise mistake(path, 0, "nested too deeply") from error
    except (ValueError, OverflowError) as error:
        # PyYAML lets these through: an escape beyond Unicode, a directive with a number of thousands of digits.
        raise mistake(path, 0, f"not YAML: {error}") from error
    return node


def mistake(path: str, line: int, message: str) -> ConfigError:
    """The error that one place of the file makes."""
    return ConfigError([Problem(Origin(shown(path), line), "", message)])


def shown(path: str) -> str:
    """A file's name on one line."""
    return path if path.isprintable() else quoted(path)


def _in_words(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    if "'\\t'" in problem:
        return "a tab; YAML is indented with spaces"
    if "expected a single document" in (error.context or ""):
        return "a second document begins here (`---`); one file holds one configuration"
    if problem == "mapping values are not allowed here":
        return "not YAML: a `:` where no key can stand; is the indentation right, or does a text need quotes?"
    if "undefined alias" in problem or "cannot start any token" in problem or "duplicate anchor" in problem:
        return f"not YAML: {problem}; a text that begins with a sign needs quotes"
    context = f" {error.context}" if error.context else ""
    return f"not YAML:{context}{',' if context and problem else ''} {problem}".rstrip()
