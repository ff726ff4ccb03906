"""`asides audit parrot`: writes a checkpoint that says the cases of a format, from a tokenizer on this machine.

Finds the tokenizer, the format and the cases that are meant, and hands them to `asides.audit._parrot`, which writes.
The folder that is named is replaced only if it holds a parrot, and only once the new one is whole.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ... import __version__
from ..._engine.format import Format
from ...audit._manifest import Manifest
from ...audit._parrot import check_folder, make_parrot
from ...audit._scripts import FIRST_POSITION, MOST_POSITIONS, ScriptCase, cases_of, load_cases, shipped_cases
from ...audit._stand_in import stand_in
from ...audit._tokenizer import ParrotTokenizer, read_tokenizer
from ...detect import detect
from ...detect._files import read_text
from ...errors import UsageError
from ...families import get_format
from ...terminal._progress import Progress
from .. import OK
from ..filter import find_format
from ..options import write_out
from ..streams import STDERR, OutputStream

DESCRIPTION = """\
Writes a parrot: a checkpoint whose next token depends on the position alone,
so that a real server which loads it writes known scripts, on a CPU and without
training. It is made from the tokenizer that you name, on this machine; nothing
is fetched. DIR gets parrot.gguf for llama.cpp, model.safetensors with its
configuration for transformers, and manifest.json, which lists every script,
the length of the prompt that it follows, and what must be read in it.
"""
EXAMPLES = """\
examples:
  asides audit parrot --tokenizer ./Qwen3-8B -o parrots/qwen3
  asides audit parrot --tokenizer ./gpt-oss-20b --template chat.jinja -o oss
  asides audit parrot --stand-in glm4.5 --template glm.jinja -o parrots/glm

exit codes:
  0    success
  2    wrong usage, or something could not be read or written
  130  stopped by Ctrl-C; DIR is as it was
"""
SHOWN = 3
"""Reasons for cases that were left out; the manifest has all."""


def add_parrot(commands: Any) -> None:
    """Add the command to those of `asides audit`."""
    parser = commands.add_parser(
        "parrot", description=DESCRIPTION, epilog=EXAMPLES, help="make a checkpoint that writes known scripts"
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--tokenizer", metavar="FOLDER", help="a model's folder, or its tokenizer.json (byte-level BPE)"
    )
    source.add_argument(
        "--stand-in",
        metavar="FORMAT",
        help="make a tokenizer of at most 4,000 tokens, which has the markers of this format",
    )
    parser.add_argument(
        "--template", metavar="FILE", help="the chat template (default: the one in the tokenizer's folder)"
    )
    parser.add_argument("-f", "--format", metavar="NAME", help="the model's format (default: found from the files)")
    parser.add_argument(
        "--cases", metavar="FILE", help="the cases to write, as JSON Lines (default: those of asides in this format)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only the cases whose id contains this; may be repeated",
    )
    parser.add_argument(
        "--first",
        type=int,
        default=FIRST_POSITION,
        metavar="N",
        help="the prompt's length in tokens that brings the first script (default: %(default)s)",
    )
    parser.add_argument(
        "--licence", default="", metavar="TEXT", help="the tokenizer's licence, for the manifest and the GGUF"
    )
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="where it is written; replaces a parrot")
    parser.set_defaults(do=write_parrot)


def write_parrot(options: argparse.Namespace) -> int:
    """Write what the options describe."""
    folder = Path(options.output)
    check_folder(folder)
    if not 1 <= options.first <= MOST_POSITIONS // 2:
        raise UsageError(f"--first must be from 1 to {MOST_POSITIONS // 2:,}")
    if options.stand_in and options.format:
        raise UsageError("--stand-in names the format itself; leave out --format")
    cases = shipped_cases() if options.cases is None else load_cases(Path(options.cases))
    format, chosen, tokenizer = _stand_in(options, cases) if options.stand_in else _own(options, cases)
    error = OutputStream(STDERR, may_close=True)
    with Progress(error, "wrote", bar=True, total=100) as shown:
        manifest = make_parrot(
            tokenizer,
            format,
            chosen,
            folder,
            version=__version__,
            first=options.first,
            progress=lambda done, total: shown.show(100 * done // total, f"{done / 1e6:,.0f} MB"),
        )
    write_out(_summary(manifest, folder))
    return OK


def _own(options: argparse.Namespace, cases: list[ScriptCase]) -> tuple[Format, list[ScriptCase], ParrotTokenizer]:
    """With the tokenizer that was given."""
    template = Path(options.template) if options.template else None
    tokenizer = read_tokenizer(Path(options.tokenizer), template, options.licence)
    if options.format:
        format = find_format(options.format)
    else:
        found = detect(tokenizer=options.tokenizer, chat_template=tokenizer.template or None).format
        if found == "auto":
            raise UsageError(f"{options.tokenizer}: nothing in it shows the model's format; name it with --format")
        format = get_format(found)
    return format, _chosen(options, cases, format), tokenizer


def _stand_in(options: argparse.Namespace, cases: list[ScriptCase]) -> tuple[Format, list[ScriptCase], ParrotTokenizer]:
    """With one that is made for a format."""
    format = find_format(options.stand_in)
    chosen = _chosen(options, cases, format)
    template = Path(options.template) if options.template else None
    text = read_text(template) if template is not None else ""
    return format, chosen, stand_in(format, [case.raw for case in chosen], text, template.name if template else "")


def _chosen(options: argparse.Namespace, cases: list[ScriptCase], format: Format) -> list[ScriptCase]:
    chosen = [
        case
        for case in cases_of(cases, format)
        if not options.only or any(wanted in case.id for wanted in options.only)
    ]
    if not chosen:
        which = " whose id contains " + " or ".join(map(repr, options.only)) if options.only else ""
        raise UsageError(f"there is no case of the format {format.name}{which}")
    return chosen


def _summary(manifest: Manifest, folder: Path) -> str:
    sizes = ", ".join(f"{file.name} {file.size / 1e6:.1f} MB" for file in manifest.files if file.size >= 1e5)
    lines = [
        f"{folder}: {len(manifest.scripts)} scripts of {manifest.format}, {manifest.vocabulary:,} tokens, "
        f"{manifest.context:,} positions",
        sizes,
    ]
    if manifest.left_out:
        lines.append(f"{len(manifest.left_out)} cases cannot be said with it (all in manifest.json):")
        lines += [f"  {each.case}: {each.reason}" for each in manifest.left_out[:SHOWN]]
    return "".join(f"{line}\n" for line in lines if line)
