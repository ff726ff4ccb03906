"""The measured figures of the documentation: each block names the command that printed it.

    <!-- figures: python -m benchmarks calls-per-marker -->
    ...
    <!-- /figures -->

    python -m tools.figures                     lists the blocks: page, command, when and where it was measured
    python -m tools.figures --write gateway     runs the commands in which "gateway" stands, and writes what they print
    make figures FIGURES=gateway                the same, in the environment that has the peers

Without a word all commands are run but those of `make`, whose environments take gigabytes: name them (`bench-plugin`).

No figure is typed: a test looks for figures outside of such blocks. It cannot compare the blocks themselves, because
times differ from run to run; so a block says on which day, with which Python and under which load it was measured.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.__main__ import NOTE
from benchmarks.measure import machine

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"<!-- figures: (?P<command>.+?) -->\n(?P<text>.*?)<!-- /figures -->", re.S)
CHATTER = re.compile(
    # The machine, which the tool writes in its own line; how long a section took.
    r"^(?:(?:python|processor|cores|load): .*|\((?:[\w -]+: )?\d+ s\)|make\[.*)\n",
    re.M,
)


def pages() -> Iterator[Path]:
    """The pages that have such blocks."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]:
        if BLOCK.search(path.read_text(encoding="utf-8")):
            yield path


def measure(command: str) -> str:
    """What a command prints, as Markdown."""
    facts = machine()
    measured = f"Measured on {time.strftime('%Y-%m-%d')}: {facts.pop('python')}, {facts.pop('processor')}, "
    measured += ", ".join(f"{name} {value}" for name, value in facts.items()) + "."
    words = shlex.split(command)
    program = [sys.executable, *words[1:]] if words[0] == "python" else words
    done = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode:
        sys.exit(f"{command}: ended with {done.returncode}")
    return shown(measured, done.stdout)


def shown(measured: str, printed: str) -> str:
    """The block's text: a table that is Markdown stays one, any other output is fenced."""
    text = re.sub(r"\n{3,}", "\n\n", CHATTER.sub("", printed.replace(NOTE, ""))).strip("\n")
    body = text if re.search(r"^\|", text, re.M) else f"```text\n{text}\n```"
    return f"{measured}\n\n{body}\n"


def write(path: Path, chosen: str) -> None:
    """Run the chosen commands of a page. Written after each: minutes are not lost to the failure of the next."""
    commands = [block["command"] for block in BLOCK.finditer(path.read_text(encoding="utf-8"))]
    for command in commands:
        if chosen in command and (chosen or command.startswith("python ")):
            print(f"{path.relative_to(ROOT)}: {command}", flush=True)
            text = measure(command)
            page = path.read_text(encoding="utf-8")

            def replace(block: re.Match[str], command: str = command, text: str = text) -> str:
                return (
                    f"<!-- figures: {command} -->\n{text}<!-- /figures -->" if block["command"] == command else block[0]
                )

            path.write_text(BLOCK.sub(replace, page), encoding="utf-8")


def main() -> None:
    """List the blocks, or write them."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.figures", description="The measured figures of the documentation."
    )
    parser.add_argument(
        "--write", action="store_true", help="run the commands and write what they print (minutes each)"
    )
    parser.add_argument("chosen", nargs="?", default="", metavar="TEXT", help="only commands in which this stands")
    arguments = parser.parse_args()
    for path in pages():
        if arguments.write:
            write(path, arguments.chosen)
            continue
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            if arguments.chosen in block["command"]:
                print(f"{os.path.relpath(path)}: {block['command']}\n    {block['text'].partition(chr(10))[0]}")


if __name__ == "__main__":
    main()
