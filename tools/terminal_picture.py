"""The picture of a terminal in the README: the filter is run on a terminal of its own, and what it wrote is drawn.

    python -m tools.terminal_picture --write       writes docs/images/terminal.svg
    python -m tools.terminal_picture               ends with 1 if the picture is not current

An SVG, so that it is sharp at every size, needs no screen to be made, and a test can compare it. Of the escape
sequences those that the filter writes are known: colours, and their end. Any other is an error.
"""

from __future__ import annotations

import os
import pty
import re
import sys
import tempfile
from html import escape
from pathlib import Path

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "terminal.svg"
REPLY = """<think>
The capital of Norway. Oslo, or was it Bergen?
Bergen was, until about 1300. Today it is Oslo.
</think>

{"country": "Norway", "capital": "Oslo"}
"""
COMMANDS = (
    "cat reply.txt",
    "cat reply.txt | asides",
    "cat reply.txt | asides > answer.json 2> /dev/null",
    "cat answer.json",
)
COLUMNS = 72
CELL, LINE, EDGE = 8.4, 20, 18
"""The width of a character, the height of a line, and the margin, in pixels."""
PROMPT = "\x1b[32m$\x1b[0m "
LOOKS = {"": "", "0": "", "1": 'font-weight="bold"', "2": 'fill="#9ea4aa"', "32": 'fill="#7ee787"'}
"""What each code looks like; faint is two thirds of the foreground."""
NO_BREAK = "\N{NO-BREAK SPACE}"
"""In place of spaces, of which an SVG leaves out those at the beginning of a line."""
SEQUENCE = re.compile(r"\x1b\[(\d*)m")


def run(command: str, folder: str) -> str:
    """What a command writes to a terminal of these columns."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(folder)
        source = str(Path(__file__).parents[1] / "src")
        environment = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "PYTHONPATH": source,
        }
        shell = f'asides() {{ "{sys.executable}" -m asides "$@"; }}; {command}'
        os.execvpe("bash", ["bash", "-c", shell], environment)
    written = b""
    try:
        while chunk := os.read(terminal, 4096):
            written += chunk
    except OSError:  # how Linux says that nobody holds the other end any more
        pass
    os.close(terminal)
    if os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]):
        sys.exit(f"{command}: {written.decode()}")
    return written.decode().replace("\r\n", "\n")


def draw(text: str) -> str:
    """The text with its colours as SVG."""
    lines = text.splitlines()
    width, height = COLUMNS * CELL + 2 * EDGE, len(lines) * LINE + 2 * EDGE
    rows = []
    look = ""
    for number, line in enumerate(lines):
        spans = []
        for index, piece in enumerate(SEQUENCE.split(line)):
            if (index % 2 and piece not in LOOKS) or "\x1b" in piece:
                sys.exit(f"an escape sequence that is not known here: {line!r}")
            if index % 2:
                look = LOOKS[piece]
            elif piece:
                shown = escape(piece).replace(" ", NO_BREAK)
                spans.append(f"<tspan {look}>{shown}</tspan>" if look else shown)
        rows.append(f'<text x="{EDGE}" y="{EDGE + 14 + number * LINE}">{"".join(spans)}</text>')
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}"'
    font = 'font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3"'
    parts = [
        f'{frame} width="{width:.0f}" height="{height}">',
        '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
        f"<g {font}>",
        *rows,
        "</g>",
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def make() -> str:
    """The picture as it is now."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "reply.txt").write_text(REPLY, encoding="utf-8")
        return draw("".join(f"{PROMPT}{command}\n{run(command, folder)}" for command in COMMANDS) + PROMPT)


def main() -> int:
    """Write the picture, or compare it."""
    picture = make()
    if "--write" in sys.argv:
        PICTURE.write_text(picture, encoding="utf-8")
        return 0
    if picture != PICTURE.read_text(encoding="utf-8"):
        sys.exit("the picture is not current: python -m tools.terminal_picture --write")
    return 0


if __name__ == "__main__":
    sys.exit(main())
