"""How what is missing is installed, and how the command is typed: the one place that writes a `pip install` line for an
error, and the name of the command where a person is to type it.

An extra is named by its packages: `asides[gateway]` can be installed by name only where asides itself comes from a
package index, and a package can be installed by everyone. Imports nothing of asides, so that every package may ask.
"""

from __future__ import annotations

import os
import re
import sys

PACKAGES = {
    "arrow": ("pyarrow",),
    "batch": ("pyarrow", "fsspec"),
    "daft": ("pyarrow", "daft"),
    "datasets": ("pyarrow", "datasets"),
    "duckdb": ("pyarrow", "duckdb", "numpy"),
    "gateway": (
        *("aiohappyeyeballs", "cryptography", "httptools<0.10", "prometheus-client", "pyyaml", "uvicorn<0.55"),
        "uvloop",
    ),
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


def own_command() -> str:
    """What to type for this very `asides`: its path, where the shell would not find it or would find another one.

    An environment that was made and never activated (`make demo`) is not on the path.
    """
    import shlex  # these here, because only a person who is told what to type needs them
    import shutil

    script = os.path.join(os.path.dirname(sys.executable), "asides.exe" if sys.platform == "win32" else "asides")
    found = shutil.which("asides")
    if not os.path.exists(script):
        return "asides" if found else f"{shlex.quote(sys.executable)} -m asides"
    if found is not None and os.path.samefile(found, script):
        return "asides"
    near = os.path.relpath(script)
    return shlex.quote(script if near.startswith(os.pardir) else near)


def require(package: str, least: str, extra: str | None = None) -> None:
    """Raise an `ImportError` of one line if a package is missing or older than `least`.

    `extra`: the extra that installs it, where there is one.
    """
    # Here, because it takes 10 ms and only who uses a host or an engine needs it.
    from importlib.metadata import PackageNotFoundError, version

    needed = f"{package} {least} or newer is needed"
    try:
        found = version(package)
    except PackageNotFoundError:
        raise ImportError(f"{needed} and not installed: {install_command(extra or package)}") from None
    if _numbers(found) < _numbers(least):
        raise ImportError(f"{needed}, this is {found}: {install_command(extra or package, upgrade=True)}")


def _numbers(release: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", release)[:3]]
