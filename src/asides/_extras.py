"""How what is missing is installed: the one place that writes a `pip install` line for an error.

An extra is named by its packages: `asides[gateway]` can be installed by name only where asides itself comes from a
package index, and a package can be installed by everyone. Imports nothing, so that every package may ask.
"""

from __future__ import annotations

PACKAGES = {
    "arrow": ("pyarrow",),
    "batch": ("pyarrow", "fsspec"),
    "daft": ("pyarrow", "daft"),
    "datasets": ("pyarrow", "datasets"),
    "duckdb": ("pyarrow", "duckdb", "numpy"),
    "gateway": ("aiohappyeyeballs", "httptools<1", "prometheus-client", "pyyaml", "uvicorn<1", "uvloop"),
    "hf": ("regex",),
    "otel": ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk"),
    "parquet": ("pyarrow",),
    "polars": ("pyarrow", "polars"),
    "postgres": ("psycopg[binary]",),
    "ray": ("pyarrow", "ray[data]"),
    "spark": ("pyarrow", "pyspark", "pandas<3"),
    "terminal": ("prompt-toolkit", "pyyaml"),
    "tokens": ("jinja2", "tokenizers"),
}
"""What each extra installs, as in pyproject.toml, with the bounds that the newest releases do not keep to."""


def install_command(wanted: str, *, upgrade: bool = False) -> str:
    """The command that installs an extra's packages, or a package. `upgrade`: what is there is too old."""
    packages = PACKAGES.get(wanted, (wanted,))
    # A shell would read brackets and comparisons as something else.
    names = (name if name.replace("-", "").isalnum() else f"'{name}'" for name in packages)
    return " ".join(("pip install", *(("--upgrade",) if upgrade else ()), *names))
