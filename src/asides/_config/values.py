"""One value of a configuration: text to the type that the schema wants, and how values are named in messages.

What the file, the environment and the flags share stands here, so that they agree:

- where a setting came from (`Origin`), what is wrong with it (`Problem`), and all problems at once (`ConfigError`);
- `convert`, which makes a typed value of one word, or raises `InvalidValueError` with the rest of a sentence;
- what a message or a log may repeat: names and values are quoted and shortened, secrets are hidden.

    convert("8777", inspect.IntType(ge=0))      8777
    str(Problem(Origin("asides.yaml", 3), "listen.port", "must be 1 or more"))
                                                "asides.yaml:3: listen.port: must be 1 or more"

Knows no YAML, no schema and no environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import inspect

from ..errors import Error

Path = tuple[str | int, ...]
"""Where a setting stands: keys, and places in lists."""

MOST_SHOWN = 50
"""Problems that one error lists; a file of another kind can have thousands."""
LONGEST = 80
"""Characters of a name or a value that a problem repeats."""
HIDDEN = "(hidden)"
"""What stands in the place of a secret."""
TRUE = frozenset({"true", "yes", "on"})
FALSE = frozenset({"false", "no", "off"})
SECTION = "a section with keys of its own"
LARGEST = 2**63 - 1
_WHOLE = re.compile(r"[-+]?[0-9][0-9_]*")
_NUMBER = re.compile(r"[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
# Both are linear in any text, because logs are searched with them: a scheme is short, and a name ends at a `?`.
_USER = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{0,20}://)[^/?#\s]*@")
_QUERY = re.compile(r"(?P<name>[?&][^=&?#\s]*=)[^&#\s]+")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:key|apikey|secret|password|passwd|authorization|bearer|credentials?|token|cookie)$", re.IGNORECASE
)


class Origin(msgspec.Struct, frozen=True):
    """Where a setting was given."""

    source: str
    """A file, a variable, or a flag."""
    line: int = 0
    """The line of the file; 0 where there is none."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong with a configuration."""

    origin: Origin
    key: str
    """The setting, as `path_text` writes it; empty where there is none."""
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.origin), self.key, self.message) if part)


class ConfigError(Error):
    """The configuration cannot be used. Lists every problem at once, so that one run is enough to find them all."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Those of variables and flags have no line and stay first, in their order.
        self.problems = tuple(sorted(problems, key=lambda problem: problem.origin.line))
        """In the order of the file."""
        if len(self.problems) == 1:
            super().__init__(str(self.problems[0]))
            return
        lines = [f"the configuration has {len(self.problems)} mistakes:"]
        lines += [f"  {problem}" for problem in self.problems[:MOST_SHOWN]]
        if len(self.problems) > MOST_SHOWN:
            lines.append(f"  and {len(self.problems) - MOST_SHOWN} more")
        super().__init__("\n".join(lines))


class InvalidValueError(Exception):
    """A value that the schema does not take; the message completes `listen.port: ...`. Becomes a `Problem`."""


def file_error(file: str, line: int, message: str) -> ConfigError:
    """The error of a file that cannot be read at all; `line` 0 where it is no single one."""
    return ConfigError([Problem(Origin(file, line), "", message)])


# What a message may repeat.


def path_text(path: Path) -> str:
    """A path as people write it: `upstreams[0].url`, `models."qwen3.5".format`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{name_text(step)}" for step in path)
    return text.removeprefix(".")


def name_text(name: str) -> str:
    """A key as it can be shown: bare where it is a plain word, else quoted, without control characters, not long."""
    if name.replace("-", "_").isidentifier() and name.isascii() and len(name) <= LONGEST:
        return name
    return quoted(name)


def quoted(text: str, longest: int = LONGEST) -> str:
    """A value in double quotes, as YAML and JSON would write it on one line, shortened."""
    shown = text if len(text) <= longest else f"{text[:longest]}..."
    return '"' + escaped(shown.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def escaped(text: str) -> str:
    """The text with every character that does not print as an escape."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escape(ord(character)) for character in text)


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def suggestion(name: str, known: Sequence[str]) -> str:
    """`; did you mean ...?` where a known name is near, else which there are."""
    meant = near(name, known)
    if meant:
        return f"; did you mean {' or '.join(map(name_text, meant))}?"
    return f"; there are: {', '.join(map(name_text, known))}" if known else ""


def near(name: str, known: Sequence[str]) -> list[str]:
    """Which of the known names somebody may have meant, the likeliest first."""
    from difflib import get_close_matches  # here, because it is needed only to explain a mistake

    folded = {other.casefold(): other for other in known}
    return [folded[match] for match in get_close_matches(name.casefold()[:LONGEST], list(folded), n=2, cutoff=0.6)]


def hide_url(url: str) -> str:
    """The address without its user, password and the values of its query."""
    return _QUERY.sub(rf"\g<name>{HIDDEN}", _USER.sub(rf"\g<scheme>{HIDDEN}@", url))


def is_secret_name(name: str) -> bool:
    """Whether a value under this name is likely a secret: `api_key` and `X-Token`, but not `max_tokens`."""
    return _SECRET_NAME.search(name.replace("-", "_")) is not None


# From one word to a typed value.


def kinds(wanted: inspect.Type) -> tuple[inspect.Type, ...]:
    """The types that a value may have. That it may be missing is not one of them."""
    found = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
    return tuple(kind for kind in found if not isinstance(kind, inspect.NoneType))


def is_scalar(wanted: inspect.Type) -> bool:
    """Whether one word is enough for a value of this type."""
    scalars = (inspect.StrType, inspect.IntType, inspect.FloatType, inspect.BoolType, inspect.LiteralType)
    return all(isinstance(kind, scalars) for kind in kinds(wanted))


def takes_text(wanted: inspect.Type) -> bool:
    """Whether a word in quotes can be a value of this type."""
    return any(isinstance(kind, inspect.StrType | inspect.LiteralType) for kind in kinds(wanted))


def convert(text: str, wanted: inspect.Type, *, secret: bool = False) -> Any:
    """The word as a value of this type, or `InvalidValueError`. A secret is not repeated in the message."""
    for kind in kinds(wanted):
        if isinstance(kind, inspect.StrType):
            return whole(text)
        if isinstance(kind, inspect.BoolType) and text.lower() in TRUE | FALSE:
            return text.lower() in TRUE
        if isinstance(kind, inspect.LiteralType) and text in kind.values:
            return text
        if isinstance(kind, inspect.IntType | inspect.FloatType):
            value = _number(text, kind)
            if value is not None:
                return value
    raise InvalidValueError("must be " + describe(wanted) + ("" if secret else f", not {quoted(text)}"))


def whole(text: str) -> str:
    """The text, if it can be written anywhere: escapes and other encodings can leave half a character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError("holds half a character, or bytes that are not UTF-8") from None
    return text


def describe(wanted: inspect.Type) -> str:
    """The type in words, as a message names it: `a whole number, 1 or more`, `true, false, low or high`."""
    words: list[str] = []
    for kind in kinds(wanted):
        match kind:
            case inspect.BoolType():
                words += ["true", "false"]
            case inspect.LiteralType():
                words += map(str, kind.values)
            case inspect.IntType():
                words.append("a whole number" + _bounds(kind))
            case inspect.FloatType():
                words.append("a number" + _bounds(kind))
            case inspect.StrType():
                words.append("text")
            case inspect.VarTupleType():
                words.append("a list")
            case _:
                words.append(SECTION)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _number(text: str, kind: inspect.IntType | inspect.FloatType) -> int | float | None:
    """The number that the text writes, None where it writes none or one that is out of bounds."""
    is_whole = isinstance(kind, inspect.IntType)
    # The length first: Python refuses to convert thousands of digits, with an error of its own.
    if len(text) > 40 or not (_WHOLE if is_whole else _NUMBER).fullmatch(text):
        return None
    plain = text.replace("_", "")
    value = int(plain) if is_whole else float(plain)
    if not math.isfinite(value) or abs(value) > LARGEST:
        return None
    below = (kind.ge is not None and value < kind.ge) or (kind.gt is not None and value <= kind.gt)
    return None if below or (kind.le is not None and value > kind.le) else value


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    if kind.ge is not None:
        return f", {kind.ge} or more"
    return f" above {kind.gt}" if kind.gt is not None else ""
