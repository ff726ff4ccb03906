"""Whether every public name has a type that any type checker knows: `pyright --verifytypes`, at 100 %.

mypy checks this package from within and infers what is not written down; who uses the package has another checker,
which may infer something else or nothing. So every name that can be reached from a public module has its type written.

    python -m tools.public_types            nothing, or a line for each place that lacks one, and exit code 1
    python -m tools.public_types agui       the same for one plug-in: the environments of hosts lack other extras

pyright needs Node.js. Where there is none, nothing is checked, and that is said; in continuous integration, where the
variable CI is set, it fails. A plug-in whose host is not installed cannot be checked either and is named;
`make test-plugins-light` checks those of the light hosts.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"


def main(plugin: str = "") -> int:
    """Check all, or one plug-in, and say what is missing."""
    missing = "pyright" if find_spec("pyright") is None else "Node.js" if which("node") is None else ""
    if missing:
        print(f"public types: NOT CHECKED, because {missing} is not here")
        return 1 if os.environ.get("CI") else 0
    unchecked = hostless_plugins()
    symbols = [symbol for symbol in verify()["symbols"] if not symbol["name"].startswith(tuple(unchecked))]
    if plugin:
        symbols = [symbol for symbol in symbols if symbol["name"].startswith(f"asides.plugins.{plugin}.")]
        if not symbols:
            print(f"public types: asides.plugins.{plugin} cannot be imported here")
            return 1
    problems = sorted(set(_problems(symbols)))
    print(*problems, sep="\n", end="\n" if problems else "")
    exported = [symbol for symbol in symbols if symbol["isExported"]]
    known = [symbol for symbol in exported if symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]]
    hosts = ", ".join(name.rsplit(".", 1)[1] for name in unchecked)
    # Rounded down, so that one name of ten thousand shows.
    print(f"public types: {math.floor(1000 * len(known) / len(exported)) / 10} % known", end="")
    print(f"; plug-ins without their host, not checked: {hosts}" if hosts else "")
    return 1 if problems or len(known) < len(exported) else 0


def hostless_plugins() -> list[str]:
    """The modules of plug-ins that cannot be imported here, because their host is missing or too old."""
    found = []
    for path in sorted((SOURCE / "asides" / "plugins").glob("[a-z]*.py")):
        try:
            import_module(f"asides.plugins.{path.stem}")
        except ImportError:
            found.append(f"asides.plugins.{path.stem}")
    return found


def verify() -> dict[str, Any]:
    """What pyright says of the package in this repository."""
    environment = {
        **os.environ,
        # It asks the first Python of the path where packages are.
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")]),
        "PYTHONPATH": str(SOURCE),
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    command = [sys.executable, "-m", "pyright", "--verifytypes", "asides", "--ignoreexternal", "--outputjson"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    try:
        result: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        sys.exit(f"public types: pyright failed: {done.stderr.decode()[-2000:] or done.stdout.decode()[-2000:]}")
    return result


def _problems(symbols: list[dict[str, Any]]) -> list[str]:
    """Where a type is not written. What only follows from another place has no place of its own and is left out."""
    found = []
    for symbol in symbols:
        if symbol["isTypeKnown"] and not symbol["isTypeAmbiguous"]:
            continue
        for problem in symbol["diagnostics"]:
            if problem["file"] and "partially unknown" not in problem["message"]:
                line = problem["range"]["start"]["line"] + 1
                place = os.path.relpath(problem["file"])
                message = " ".join(problem["message"].split())
                found.append(f"{place}:{line}: {symbol['name'].rpartition('.')[2]}: {message}")
    return found


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
