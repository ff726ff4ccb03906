"""What is wrong with a configuration, said so that its writer finds the place. Knows no YAML and no schema."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import Error

Path = tuple[str | int, ...]
"""Where a setting stands: keys, and places in lists."""

MOST_SHOWN = 50
LONGEST = 80
"""Characters of a name or a value that a mistake repeats."""


class Origin(msgspec.Struct, frozen=True):
    """Where something was said."""

    source: str
    """A file, a variable, or a flag."""
    line: int = 0
    """The line of the file; 0 where there is none."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class Problem(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    origin: Origin
    key: str
    """The setting, as `path_text` writes it; empty where there is none."""
    message: str

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.origin), self.key, self.message) if part)


class ConfigError(Error):
    """The configuration cannot be used. All that is wrong with it is told at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        # Those of variables and flags have no line and stay first, in their order.
        self.problems = tuple(sorted(problems, key=lambda problem: problem.origin.line))
        """In the order of the file."""
        if len(self.problems) == 1:
            super().__init__(str(self.problems[0]))
        else:
            lines = [f"the configuration has {len(self.problems)} mistakes:"]
            lines += [f"  {problem}" for problem in self.problems[:MOST_SHOWN]]
            if len(self.problems) > MOST_SHOWN:
                lines.append(f"  and {len(self.problems) - MOST_SHOWN} more")
            super().__init__("\n".join(lines))


def path_text(path: Path) -> str:
    """A path as people write it: `upstreams[0].url`, `models."qwen3.5".format`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + name_text(step)
    return text


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
    """`; did you mean ...?` where something of that kind is near, else which there are."""
    meant = near(name, known)
    if meant:
        return f"; did you mean {' or '.join(map(name_text, meant))}?"
    return f"; there are: {', '.join(map(name_text, known))}" if known else ""


def near(name: str, known: Sequence[str]) -> list[str]:
    """Which of the known names somebody may have meant, the likeliest first."""
    from difflib import get_close_matches  # here, because it is needed only to explain a mistake

    folded = {other.casefold(): other for other in known}
    return [folded[match] for match in get_close_matches(name.casefold()[:LONGEST], list(folded), n=2, cutoff=0.6)]
