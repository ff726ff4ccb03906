"""`asides probe TARGET --conversation`: a report on a chat template, for a person on one screen, or as JSON.

What is reported is found by `asides._conversation`; here it becomes lines. Colours are added on a terminal only: the
column before each line says the same.
"""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import msgspec

from .._conversation._report_process import report_on
from .._conversation._report_subject import Origin, OriginStretch, TemplateReport
from .._conversation._report_words import sections, title_of
from ..detect._facts import read as read_facts
from ..detect._files import read_text
from ..errors import UsageError
from ..terminal import Screen
from ..terminal._sanitize import sanitize
from ..terminal._style import PLAIN, codes
from . import OK
from .options import write_out
from .streams import STDOUT, OutputStream

WIDTH = 100
"""Columns where there is no terminal."""
LOOKS: dict[Origin, str] = {
    "system": "magenta",
    "user": "green",
    "tool": "cyan",
    "tools": "cyan",
    "thinking": "yellow",
    "text": "bold",
    "call": "blue",
    "marker": "bright-black",
    "template": "dim",
}


def run_report(
    target: str, *, is_template: bool, tokenizer: str | None, model: str | None, twin: str | None, as_json: bool
) -> int:
    """Report on the template of a folder or file."""
    if not os.path.exists(target):
        raise UsageError(
            f"{target}: no such file or folder; --conversation needs the model's files, and nothing is downloaded"
        )
    path = Path(target)
    template = read_text(path) if is_template else None
    if tokenizer is not None and template is None:
        template = read_facts(path).template
        if template is None:
            raise UsageError(f"{target}: holds no chat template")
    report = report_on(
        Path(tokenizer) if tokenizer is not None else None if is_template else path,
        template,
        model=model or "",
        twin=Path(twin) if twin is not None else None,
    )
    if as_json:
        write_out(msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n")
    else:
        screen, output = Screen(STDOUT), OutputStream(STDOUT)
        # Sanitized piece by piece: the colours are ours.
        output.draw(_words(target, report, screen.width() if screen.terminal else WIDTH, screen.colour))
        output.flush()
    return OK


def _words(target: str, report: TemplateReport, width: int, colour: bool) -> str:
    lines = [f"{sanitize(target)}: a chat template of {report.template:,} characters; {report.counted}"]
    lines += ["", f"{title_of(report)} (* the model samples it; ↵ a line break)"]
    lines += [_row(stretch, width, colour) for stretch in report.conversation]
    for title, sentences in sections(report):
        lines += ["", title, *_items(sentences, width)]
    return "\n".join(lines) + "\n"


def _items(texts: list[str], width: int) -> list[str]:
    wrapped = (
        textwrap.wrap(sanitize(text), width - 4, break_long_words=False, break_on_hyphens=False) for text in texts
    )
    return [f"  {'-' if not at else ' '} {line}" for lines in wrapped for at, line in enumerate(lines)]


def _row(stretch: OriginStretch, width: int, colour: bool) -> str:
    number = "" if stretch.message is None else str(stretch.message)
    before, after = codes(LOOKS[stretch.origin]) if colour else PLAIN
    text = sanitize(stretch.text).replace("\t", " ").replace("\n", "↵")
    room = width - 16
    if len(text) > room:
        half = (room - 3) // 2
        text = f"{text[:half]} … {text[-half:]}"
    return f"{number:>3} {before}{stretch.origin:<8}{after} {'*' if stretch.sampled else ' '} {before}{text}{after}"
