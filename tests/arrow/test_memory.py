"""Memory: beside the column, the result (twice, where it is joined into one array) and one slice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SPARE = 64 << 20
"""Bytes for a slice in Python's memory and for what allocators hold back."""
PROGRAM = """
import sys
import pyarrow as pa
from asides.arrow import split

def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith(name))

trace = "<think>" + "word and so on " * 160 + "</think>" + "and the answer " * 40
split(pa.array([trace] * 2000), parts=True)
array = pa.concat_arrays([pa.array([trace] * 1000)] * int(sys.argv[2]))
pa.default_memory_pool().release_unused()
open("/proc/self/clear_refs", "w").write("5")
before = memory("VmRSS")
result = split(pa.chunked_array([array]) if sys.argv[1] == "chunked" else array, parts=True)
print(memory("VmHWM") - before, result.nbytes)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is read as Linux shows it")
@pytest.mark.parametrize(("kind", "times"), [("chunked", 1), ("array", 2)])
def test_memory_grows_with_the_result_alone(kind: str, times: int) -> None:
    """60 and 120 MB of traces: the result, so many times, and a constant."""
    for thousands in ("20", "40"):
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, kind, thousands], capture_output=True, text=True, check=True
        )
        peak, result = map(int, run.stdout.split())
        assert peak <= times * result + SPARE
