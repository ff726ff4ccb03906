"""Whether every public name has a type that any type checker knows: `pyright --verifytypes`, at 100 %.

mypy checks this package from within and infers what is not written down; who uses the package has another checker,
which may infer something else or nothing. So every name that can be reached from a public module has its type written.

    python -m tools.public_types       nothing, or a line for each place that lacks one, and exit code 1

pyright needs Node.js. Where there is none, nothing is checked, and that is said.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any

SOURCE = Path(__file__).parents[1] / "src"


def main() -> int:
    """Check, and say what is missing."""
    missing = "pyright" if find_spec("pyright") is None else "Node.js" if which("node") is None else ""
    if missing:
        print(f"public types: NOT CHECKED, because {missing} is not here")
        return 0
    result = verify()
    problems = sorted(set(_problems(result)))
    print(*problems, sep="\n", end="\n" if problems else "")
    print(f"public types: {100 * result['completenessScore']:.1f} % known")
    return 1 if problems or result["completenessScore"] < 1 else 0


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


def _problems(result: dict[str, Any]) -> list[str]:
    """Where a type is not written. What only follows from another place has no place of its own and is left out."""
    found = []
    for symbol in result["symbols"]:
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
    sys.exit(main())
