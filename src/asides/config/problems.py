"""What is wrong with a configuration, said so that its writer finds the place. Knows no YAML and no schema."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import Error

Path = tuple[str | int, ...]
"""Where a setting stands: keys, and places in lists."""

MOST_SHOWN = 50


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
    if name.replace("-", "_").isidentifier() and name.isascii() and len(name) <= 80:
        return name
    return quoted(name)


def quoted(text: str) -> str:
    """A value as it can be shown on one line of a terminal."""
    shown = ascii(text[:80] + "..." if len(text) > 80 else text)
    return shown if shown.startswith("'") and '"' in shown else f'"{shown[1:-1]}"'


def suggestion(name: str, known: Sequence[str]) -> str:
    """`; did you mean ...?` where something of that kind is near, else which there are."""
    from difflib import get_close_matches  # here, because it is needed only to explain a mistake

    near = get_close_matches(name.casefold()[:80], known, n=2, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(map(name_text, near))}?"
    return f"; there are: {', '.join(map(name_text, known))}" if known else ""
