"""Which engines there are modules for, from which version on, and the one line that says that one is missing."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from .._extras import install_command

LEAST = {"daft": "0.7.26", "datasets": "3.0", "duckdb": "1.3", "polars": "1.34", "pyspark": "4.0", "ray": "2.51"}
"""The oldest release of each package that its tests were run with. Polars 1.33 hands over broken categories, and
some releases of Daft 0.7 (0, 15) crash now and then when a program ends that has used a function in Python."""
EXTRAS = {name: "spark" if name == "pyspark" else name for name in LEAST}
"""The extra of asides that installs each."""


def require(package: str) -> None:
    """Raise an `ImportError` of one line if the package is missing or too old."""
    needed = f"{package} {LEAST[package]} or newer is needed"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise ImportError(f"{needed} and not installed: {install_command(EXTRAS[package])}") from None
    if _numbers(found) < _numbers(LEAST[package]):
        upgrade = install_command(EXTRAS[package], upgrade=True)
        raise ImportError(f"{needed}, this is {found}: {upgrade}")


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)[:3]]
