"""`python -m tests.load`: plays every scene, prints what came of each, and fails if anything was lost or left."""

from __future__ import annotations

import argparse
import asyncio
import sys

from tests.load.harness import Outcome
from tests.load.scenarios import SCENES, play


def tell(outcome: Outcome) -> None:
    """Print one scene."""
    counts = ", ".join(f"{number:,} {name}" for name, number in sorted(outcome.counts.items()) if number)
    verdict = "FAILED" if outcome.problems else "ok"
    notes = "; ".join(outcome.notes)
    print(f"{outcome.name:<18}{verdict:<8}{outcome.seconds:6.1f} s  {counts:<32}{notes}", flush=True)
    for problem in outcome.problems[:10]:
        print(f"    {problem}", flush=True)


def main() -> int:
    """Play, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description="The gateway under load.")
    parser.add_argument("--scale", type=float, default=1.0, help="a share of the full numbers (default 1)")
    scale = parser.parse_args().scale
    print(f"{len(SCENES)} scenes at scale {scale:g}; `cut off` are replies that had to end early, and did, honestly\n")
    outcomes = asyncio.run(play(scale, tell))
    failed = [outcome.name for outcome in outcomes if outcome.problems]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nnothing lost, nothing left behind")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
