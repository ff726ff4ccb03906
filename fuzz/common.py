"""What the fuzz targets share: an input's bytes as choices and a text, seeds from the recorded cases, a dictionary.

An input is `HEAD` bytes, each a choice, and behind them the text itself. So a recorded case is a seed as it stands, and
what the fuzzer puts in from the dictionary are markers. The seeds and the dictionary are made anew on every run.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import atheris

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

# All at once: what is imported later, when it is first asked for, would not be instrumented.
with atheris.instrument_imports(include=["asides"]):
    import asides

    for _package in ("_config", "_engine", "dialects", "families"):
        for _module in walk_packages([str(ROOT / "src" / "asides" / _package)], f"asides.{_package}."):
            import_module(_module.name)
    from tests.dialects import odd
    from tests.laws.texts import TOOLS, prompts
    from tests.support import cut, markers

NAMES = asides.formats()

__all__ = ["HEAD", "NAMES", "ROOT", "Input", "cases", "every_marker", "fuzz", "head_of", "odd", "seeds_of_cases"]

HEAD = 16
"""How many bytes of choices an input begins with."""
LONGEST = 2000
"""How many bytes an input may have: enough for nearly every case."""
FLAGS: tuple[tuple[str, Any], ...] = (
    ("mentions", "marker"),
    ("whitespace", "exact"),
    ("calls", False),
    ("repair", True),
    ("collect", False),
    ("strict", True),
)
"""Policies that are a byte's bits: its first bit is the first of them."""


class Input:
    """One input, taken apart."""

    def __init__(self, raw: bytes) -> None:
        head = raw[:HEAD].ljust(HEAD, b"\0")
        self.data = raw[HEAD:]
        """The bytes behind the choices."""
        self.text = self.data.decode("utf-8", "surrogateescape")
        """The same as text; bytes that are no UTF-8 are halves of surrogate pairs, which any text may hold."""
        self.number = head[0]
        self.format = asides.get_format(NAMES[head[0] % len(NAMES)])
        self.policies: dict[str, Any] = {name: value for bit, (name, value) in enumerate(FLAGS) if head[1] >> bit & 1}
        self._choose("start", head[2], (None, "text", "thinking", "undecided"))
        self._choose("calls_in_thinking", head[3], (None, "resolve", "never", "always"))
        self._choose("limit", head[4] | head[5] << 8, (None, *range(1, 301)))
        self._choose("tools", head[6], (None, *TOOLS))
        self._choose("prompt", head[7], (None, *prompts(self.format)))
        self._choose("seed", head[8], (None, 1, 2))
        size = max(len(self.text), 1)
        self.places = [(low | high << 8) % size for low, high in (head[10:12], head[12:14], head[14:16])]
        """Where to cut."""

    def _choose(self, name: str, number: int, choices: tuple[Any, ...]) -> None:
        choice = choices[number % len(choices)]
        if choice is not None:
            self.policies[name] = choice

    @property
    def chunks(self) -> tuple[str, ...]:
        """The text, cut."""
        return tuple(cut(self.text, self.places))


def head_of(number: int = 0) -> bytes:
    """The choices of a seed: every policy as it is by default."""
    return bytes([number]) + bytes(HEAD - 1)


@cache
def cases() -> tuple[tuple[str, str], ...]:
    """The format and the text of every recorded case."""
    found: dict[tuple[str, str], None] = {}
    for path in sorted((ROOT / "tests" / "cases").glob("*.toml")):
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        for case in data.get("case", ()):
            text = case["input"] if "input" in case else "".join(case["chunks"])
            names = [case["format"]] if "format" in case else data.get("formats", [data.get("format")])
            found |= {(asides.get_format(name).name, text): None for name in names if name}
    return tuple(found)


def seeds_of_cases() -> Iterator[bytes]:
    """Every recorded case, read with its own format."""
    for name, text in cases():
        yield head_of(NAMES.index(name)) + text.encode("utf-8", "surrogatepass")


def every_marker() -> set[str]:
    """The markers of all formats."""
    return set(chain.from_iterable(markers(asides.get_format(name)) for name in NAMES))


def fuzz(
    check: Callable[[bytes], None], seeds: Iterable[bytes], words: Iterable[str], show: Callable[[bytes], str] = repr
) -> None:
    """Look for an input on which `check` fails. What was found is shown in the way that is of most use."""

    def one_input(raw: bytes) -> None:
        try:
            check(raw)
        except BaseException:
            print(show(raw), file=sys.stderr)
            raise

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, seed in enumerate(seeds):
            if len(seed) <= LONGEST:
                Path(corpus, str(number)).write_bytes(seed)
        flags = [f"-max_len={LONGEST}", "-len_control=0", "-timeout=60", "-rss_limit_mb=4096"]
        if entries := "".join(map(_entry, sorted(set(words)))):
            dictionary = Path(folder, "dictionary")
            dictionary.write_text(entries, encoding="ascii")
            flags.append(f"-dict={dictionary}")
        atheris.Setup([sys.argv[0], *flags, *sys.argv[1:], str(corpus)], one_input)
        atheris.Fuzz()


def _entry(word: str) -> str:
    """A line of libFuzzer's dictionary."""
    data = word.encode("utf-8", "surrogatepass")[:120]
    return '"' + "".join(f"\\x{byte:02x}" for byte in data) + '"\n' if data else ""
