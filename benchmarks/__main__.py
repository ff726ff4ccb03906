"""`python -m benchmarks [section ...]`: runs the sections in turn and prints their tables. Knows their names only."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from benchmarks import measure

SECTIONS = {
    "performance": "performance",
    "streaming": "streaming",
    "whole": "whole",
    "peers": "side_by_side",
    "startup": "startup",
    "calls": "calls",
    "calls-per-marker": "calls_per_marker",
    "dialects": "dialects",
    "sdk": "sdk",
    "capsules": "capsules",
    "tokens": "tokens",
    "whole-ids": "whole_ids",
    "conversations": "conversations",
    "ids": "ids",
    "analysis": "analysis",
    "history": "history",
    "arrow": "arrow",
}
"""What a section is called, and the module that holds it."""
NOTE = """\
Every figure is a ratio within one run, and the best of several repeats. Differences below a fifth are noise; on a
machine that is busy (see `load`) so are larger ones. benchmarks/README.md says how to read a figure.
"""


def main() -> None:
    """Run what was asked for, or everything."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Measure asides; the whole takes minutes."
    )
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    chosen = parser.parse_args().sections or list(SECTIONS)
    for name in chosen:
        if name not in SECTIONS:
            parser.error(f"there is no section {name!r}; there are {', '.join(SECTIONS)}")
    # Minutes pass between the tables: each should be seen when it is ready, into a file too.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
    measure.print_machine()
    print(NOTE)
    for name in chosen:
        start = time.perf_counter()
        section = import_module(f"benchmarks.{SECTIONS[name]}")
        measure.settle()
        section.run()
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n")


if __name__ == "__main__":
    main()
