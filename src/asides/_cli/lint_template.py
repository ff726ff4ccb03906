"""`asides lint-template`: what is wrong with a Hugging Face response template, each finding with its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..detect.files import MOST_JSON, read_bytes, read_text
from ..errors import UsageError
from ..hf.lint import lint_template
from . import FAILED, ODD, OK
from .options import Arguments, write_out

DESCRIPTION = """\
Checks a Hugging Face response template, in a JSON file of its own or in a
tokenizer_config.json. The template is validated and used to parse sample
outputs. With --chat-template, each turn that the chat template writes must be
parsed back to the same message. If transformers is installed, its own parser
is tried too.
"""
EXAMPLES = f"""\
examples:
  asides lint-template tokenizer_config.json
  asides lint-template mine.json --chat-template chat_template.jinja
  asides lint-template mine.json --sample output.txt --sample other.txt

exit codes:
  {OK}    no problem was found
  {ODD}    there are problems; each line names the key, the reason and the kind
  {FAILED}    wrong usage, or something could not be read
"""


def run(arguments: list[str]) -> int:
    """`asides lint-template`."""
    parser = Arguments(prog="asides lint-template", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("file", metavar="FILE", help="the response template, or a tokenizer_config.json")
    parser.add_argument("--chat-template", metavar="FILE", help="the model's chat template (Jinja), for a round trip")
    parser.add_argument(
        "--sample",
        metavar="FILE",
        action="append",
        default=[],
        help="a file with an output of the model; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    options = parser.parse_args(arguments)
    template = load(Path(options.file))
    chat_template = None if options.chat_template is None else read_text(Path(options.chat_template))
    samples = [read_bytes(Path(path), MOST_JSON).decode("utf-8", "replace") for path in options.sample]
    findings = lint_template(template, chat_template=chat_template, samples=samples)
    if options.json:
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
