"""The same search for configuration files: they are a configuration, or a `ConfigError` that says what is wrong."""

from __future__ import annotations

import logging
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from common import HEAD, ROOT, cases, every_marker, fuzz, head_of

from asides._config import ConfigError, load
from asides._config.showing import show

YAML = re.compile(r"```yaml\n(.*?)```", re.DOTALL)
ENVIRONMENT = {"HOME": "/nowhere", "KEY": "secret", "EMPTY": ""}
EACH = 40
"""Every so manieth case is a text in a file: markers are hard on YAML."""

_FOLDER = tempfile.TemporaryDirectory()
_FILE = Path(_FOLDER.name, "asides.yaml")


def check(raw: bytes) -> None:
    """Load the bytes as a file."""
    _FILE.write_bytes(raw[HEAD:])
    try:
        loaded = load(_FILE, environ=ENVIRONMENT)
    except ConfigError as error:
        if not str(error):
            raise AssertionError("an error that says nothing") from error
        return
    show(loaded)


def seeds() -> Iterator[bytes]:
    """The examples of the documentation, and cases as values."""
    for path in sorted((ROOT / "docs").glob("*.md")):
        for example in YAML.findall(path.read_text(encoding="utf-8")):
            yield head_of() + example.encode()
    for name, text in cases()[::EACH]:
        tags = f"models:\n  m:\n    format: {name}\n    extra_body: {{a: {text!r}}}\n"
        yield head_of() + tags.encode("utf-8", "surrogatepass")


def words() -> set[str]:
    """Names of settings, signs of YAML, markers."""
    found = {
        "&a ",
        "*a",
        "<<: ",
        "!!int ",
        "!!python/object:x ",
        "- ",
        ": ",
        "\n  ",
        "|\n",
        ">\n",
        "---\n",
        "$KEY",
        "${KEY}",
    }
    for seed in seeds():
        found |= set(re.findall(r"\w{2,}: ?", seed[HEAD:].decode("utf-8", "replace")))
    return found | every_marker()


if __name__ == "__main__":
    logging.disable()
    fuzz(check, seeds(), words())
