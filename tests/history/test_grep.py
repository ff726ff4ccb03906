"""Lines that match, with context, as grep chooses them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asides import UsageError
from asides._history.grep import compile_pattern, matching_lines
from tests.history.generated import STEADY

TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def shown(text: str, pattern: str, before: int = 0, after: int = 0) -> str:
    """As grep -n writes it."""
    written = []
    for line in matching_lines(text, compile_pattern(pattern), before, after):
        if line.gap and (before or after):
            written.append("--")
        written.append(f"{line.number}{':' if line.matches else '-'}{line.text}")
    return "\n".join(written)


def test_context() -> None:
    """Lines of context once each, and a gap where lines are left out."""
    assert shown(TEXT, "two|six", 1, 1) == "1-one\n2:two\n3-three\n--\n5-five\n6:six\n7-seven"
    assert shown(TEXT, "two|three", 1, 1) == "1-one\n2:two\n3:three\n4-four"


@pytest.mark.skipif(shutil.which("grep") is None, reason="there is no grep on this machine to compare with")
@pytest.mark.parametrize("pattern", ["e", "o", "^t", "^$", "zero", "e$"])
@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 0), (0, 2), (2, 1)])
def test_as_grep_does(tmp_path: Path, pattern: str, before: int, after: int) -> None:
    """The same lines in the same form as the real one."""
    file = tmp_path / "text"
    file.write_text(TEXT + "\nlast\n")
    context = ["-B", str(before), "-A", str(after)] if before or after else []
    command = ["grep", "-n", *context, pattern, str(file)]
    theirs = subprocess.run(command, capture_output=True, text=True).stdout.rstrip("\n")
    assert shown(TEXT + "\nlast\n", pattern, before, after) == theirs


def test_patterns() -> None:
    """Plain text, whole words, no case; and an error that says what to do."""
    assert compile_pattern("a.c", fixed=True).search("abc") is None
    assert compile_pattern("b|c", word=True).search("abc") is None
    assert compile_pattern("b|c", word=True).search("a c")
    assert compile_pattern("ABC", ignore_case=True).search("xabcx")
    with pytest.raises(UsageError, match="-F"):
        compile_pattern("(")


@STEADY
@given(st.text(max_size=100), st.integers(0, 3), st.integers(0, 3))
def test_lines_rise(text: str, before: int, after: int) -> None:
    """Every line is shown once, in order, as it stands in the text."""
    lines = list(matching_lines(text, compile_pattern("[a-z]"), before, after))
    numbers = [line.number for line in lines]
    assert numbers == sorted(set(numbers))
    assert all(text.split("\n")[line.number - 1] == line.text for line in lines)
