"""`asides probe --lint`: what is wrong with a Hugging Face response template, each finding with its reason.

`asides lint-template` is its former name, which works for one more release.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..detect._files import MOST_JSON, read_bytes, read_text
from ..errors import UsageError
from ..hf._lint import lint_template
from . import FAILED, ODD, OK
from .options import Arguments, write_out
from .streams import complain

DESCRIPTION = """\
The former name of `asides probe --lint`, which checks a Hugging Face response
template. It works for one more release.
"""
EXAMPLES = f"""\
examples:
  asides probe tokenizer_config.json --lint
  asides probe mine.json --lint --chat-template chat_template.jinja
  asides probe mine.json --lint --sample output.txt --sample other.txt

exit codes:
  {OK}    no problem was found
  {ODD}    there are problems; each line names the key, the reason and the kind
  {FAILED}    wrong usage, or something could not be read
"""


def run(arguments: list[str]) -> int:
    """`asides lint-template`."""
    parser = Arguments(prog="asides lint-template", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the response template, or a tokenizer_config.json")
    add_lint_options(parser)
    parser.add_argument("--json", action="store_true", help="write JSON")
    options = parser.parse_args(arguments)
    complain("lint-template is now `asides probe --lint`; this name works for one more release")
    return lint(options.file, options.chat_template, options.sample, as_json=options.json)


def add_lint_options(parser: argparse._ActionsContainer) -> None:
    """What a response template can be tried with."""
    parser.add_argument("--chat-template", metavar="FILE", help="the model's chat template (Jinja), for a round trip")
    parser.add_argument(
        "--sample",
        metavar="FILE",
        action="append",
        default=[],
        help="a file with an output of the model; may be repeated",
    )


def lint(path: str, chat_template: str | None, samples: Sequence[str], *, as_json: bool) -> int:
    """Check the response template in a file."""
    template = load(Path(path))
    written = None if chat_template is None else read_text(Path(chat_template))
    outputs = [read_bytes(Path(sample), MOST_JSON).decode("utf-8", "replace") for sample in samples]
    findings = lint_template(template, chat_template=written, samples=outputs)
    if as_json:
        rows = [finding._asdict() for finding in findings]
        write_out(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n")
    else:
        write_out("".join(f"{finding}\n" for finding in findings) or "no problem was found\n")
    return ODD if findings else OK


def load(path: Path) -> dict[str, Any]:
    """The template in a file."""
    try:
        found = msgspec.json.decode(read_bytes(path, MOST_JSON))
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not valid JSON: {error}") from error
    if isinstance(found, dict) and "fields" not in found and isinstance(found.get("response_template"), dict):
        found = found["response_template"]
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not a response template: it must be a JSON object")
    return found
