"""The tutorial is run from its first step to its last, in one shell, and prints what it says.

`python -m tests.docs.test_tutorial` writes what the commands print into the page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

import pytest

from tests.ports import held_port

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorial" / "first_stream.md"
BLOCK = re.compile(r"```(sh|python|text)(?: title=\"([^\"]*)\")?\n(.*?)```\n", re.S)
NOT_RUN = "in a clone of the repository"
"""The title of the block that installs, which the tests have done."""
PORT = "8777"
"""The gateway's own, which may be taken where tests run."""
END = "-- the end of a step --"


def run(page: str, folder: Path) -> str:
    """The page with the output of each command below it, as it comes when the commands are run in order."""
    with held_port() as port:
        return run_at(str(port), page, folder)


def run_at(port: str, page: str, folder: Path) -> str:
    """The same, with a gateway at this port."""
    steps = [match for match in BLOCK.finditer(page) if match[1] != "text" and match[2] != NOT_RUN]
    # A program and no function: `kill %1` would end the shell that runs the function, and leave the gateway.
    command = folder / "bin" / "asides"
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nexec python -m asides "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    script: list[str] = []
    for step in steps:
        if step[1] == "python":
            (folder / step[2]).write_text(step[3], encoding="utf-8")
        else:
            script.append(step[3].replace("asides serve", f"asides serve --port {port}").replace(PORT, port))
            if step[3].rstrip().endswith("&"):
                script.append(
                    f"for _ in $(seq 1200); do curl -s -o /dev/null http://127.0.0.1:{port}/ && break; sleep 0.05; done"
                )
            elif "asides run" in step[3]:
                script[-1] = script[-1].replace("asides run", f"asides run --url http://127.0.0.1:{port}")
        script.append(f"echo '{END}'")
    script.append("wait")  # for the gateway that was told to end: nothing is left behind
    environment = {
        "PATH": os.pathsep.join([str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT / "src"),
        "HOME": str(folder),
        "PYTHONUTF8": "1",
    }
    done = subprocess.run(
        ["bash", "-m", "-e", "-c", "\n".join(script)],
        cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    printed = iter(done.stdout.split(f"{END}\n"))
    outputs = {step.start(): next(printed) for step in steps}

    last = ""

    def write(block: re.Match[str]) -> str:
        nonlocal last
        if block[1] == "text":
            text, last = last, ""
            return f"```text\n{text}```\n"
        assert not last, f"its output is not on the page: {last}"
        last = outputs.get(block.start(), "")
        return block[0]

    written = BLOCK.sub(write, page)
    assert not last, f"the output of the last step is not on the page: {last}"
    return written


@pytest.mark.skipif(sys.platform == "win32" or which("curl") is None, reason="its commands are bash and curl")
def test_the_tutorial_prints_what_it_says(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert run(page, tmp_path) == page, "run: python -m tests.docs.test_tutorial"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        PAGE.write_text(run(PAGE.read_text(encoding="utf-8"), Path(temporary)), encoding="utf-8")
