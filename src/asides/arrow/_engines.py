"""Which engines there are modules for, from which version on, and the one line that says that one is missing."""

from __future__ import annotations

from .._extras import require as _require

LEAST = {"daft": "0.7.26", "datasets": "3.0", "duckdb": "1.3", "polars": "1.34", "pyspark": "4.0", "ray": "2.51"}
"""The oldest release of each package that its tests were run with. Polars 1.33 hands over broken categories, and
some releases of Daft 0.7 (0, 15) crash now and then when a program ends that has used a function in Python."""
EXTRAS = {name: "spark" if name == "pyspark" else name for name in LEAST}
"""The extra of asides that installs each."""


def require(package: str) -> None:
    """Raise an `ImportError` of one line if the package is missing or too old."""
    _require(package, LEAST[package], EXTRAS[package])
