"""The Python sources of packages that do not install on this machine, unpacked so that they can be imported.

`python -m tools.peer_sources FOLDER vllm==0.32.0 sglang==0.5.23` downloads each wheel without what it needs and unpacks
all of it but the compiled parts, which the readers of response templates do not touch. It prints what was unpacked and
ends with 1 if something could not be had.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

from tools.peer_names import download

COMPILED = (".so", ".bin", ".cubin", ".cu", ".cuh")
"""How files end that are left out."""


def unpack(wheel: Path, folder: Path) -> None:
    """Put what is not compiled of a wheel into a folder."""
    with ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if not name.endswith(COMPILED)])


def main(folder: Path, packages: Sequence[str]) -> int:
    """Unpack every package; the number of those that could not be had."""
    missing = 0
    for package in packages:
        with tempfile.TemporaryDirectory() as downloads:
            wheel = download(package, Path(downloads))
            if wheel is None:
                missing += 1
                print(f"{package}: could not be downloaded")
                continue
            unpack(wheel, folder)
            print(f"{wheel.name}: unpacked")
    return missing


if __name__ == "__main__":
    sys.exit(min(1, main(Path(sys.argv[1]), sys.argv[2:])))
