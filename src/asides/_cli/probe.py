"""`asides probe`: what a model speaks, from its files, its name or an output of it, and why.

What was named is taken for what it is: a folder and a file by its suffix or its first bytes, an address of
huggingface.co for the model's name. Detection itself is `asides.detect`; an output is read by every format in
`probe_output`. Nothing is downloaded.

    asides probe ./Qwen3-8B      asides probe Qwen/Qwen3-8B      asides probe reply.txt
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any, Literal

import msgspec

from .._engine.format import Format
from ..detect import Detection, detect
from ..detect._files import MOST_JSON, read_bytes
from ..errors import UsageError
from ..hf._writing import TARGETS, Target, written_template
from . import FAILED, ODD, OK
from .lint_template import add_lint_options, lint
from .options import Arguments, write_out
from .streams import complain

DESCRIPTION = """\
Finds out which format a model writes and whether it thinks, and prints the
reasons. TARGET is one of these:

  a folder with a tokenizer or chat template, a tokenizer.json, .jinja or .gguf
  the name of a model, or its address on huggingface.co
  a file with a model's output: which formats can split it, with which flags

Nothing is downloaded. Chat templates are rendered in a process of their own,
with limits on time and memory.
"""
EXAMPLES = f"""\
examples:
  asides probe deepseek-ai/DeepSeek-R1     by the model's name
  asides probe https://huggingface.co/Qwen/Qwen3-8B
  asides probe ./Qwen3-8B                  by a downloaded folder
  asides probe chat_template.jinja         by a chat template alone
  asides probe model.gguf --json           write JSON, for another program
  asides probe reply.txt                   by an output of the model
  model | asides probe --output -          the same, from a pipe
  asides probe ./Qwen3-8B --conversation   what its chat template does: whose
                                           words, what is lost, what is sampled
  asides probe --response-template ./Qwen3-8B    for transformers and TRL
  asides probe tokenizer_config.json --lint      check such a template

exit codes:
  {OK}    the format was found; a report was made; nothing was wrong
  {ODD}    it was not found; with --lint: something is wrong
  {FAILED}    wrong usage, or something could not be read
"""
PATHS = (".json", ".jinja", ".jinja2", ".j2", ".gguf")
PAGES = ("huggingface.co", "hf.co")
TEMPLATE_SIGNS = (b"{%", b"{{")
BEGINNING = 65536
"""Bytes by which a template is told from a model's output."""
MOST_OUTPUT = 4 * 1024 * 1024
"""Bytes of an output: every format reads it."""
YES = {True: "yes", False: "no", None: "not known"}


def run(arguments: list[str]) -> int:
    """`asides probe`."""
    parser = Arguments(prog="asides probe", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("target", nargs="?", metavar="TARGET", help="a folder, a file, or a model's name")
    parser.add_argument("--output", metavar="FILE", help="a file with a model's output; - is standard input")
    parser.add_argument("--model", metavar="NAME", help="the model's name, where TARGET is a folder or a file")
    parser.add_argument(
        "--prompt", metavar="FILE", help="a prompt as the model gets it: does its output begin inside a thought?"
    )
    parser.add_argument("--json", action="store_true", help="write JSON")
    parser.add_argument(
        "--response-template", action="store_true", help="print a Hugging Face response template for the model instead"
    )
    parser.add_argument(
        "--reader",
        choices=TARGETS,
        default="transformers",
        help="the program that is to read that template (default: transformers)",
    )
    report = parser.add_argument_group("a report on the chat template")
    report.add_argument(
        "--conversation", action="store_true", help="what it makes of a conversation, in place of the format"
    )
    report.add_argument("--tokenizer", metavar="PATH", help="a folder or tokenizer.json, for a template without one")
    report.add_argument("--twin", metavar="FILE", help="a training template to compare with (default: TRL's)")
    checks = parser.add_argument_group("checking a response template")
    checks.add_argument(
        "--lint", action="store_true", help="TARGET is a response template, or a tokenizer_config.json: check it"
    )
    add_lint_options(checks)
    options = parser.parse_args(arguments)
    _check(parser, options)
    if options.lint:
        return lint(options.target, options.chat_template, options.sample, as_json=options.json)
    if options.conversation:
        return _conversation(options)
    if options.output is not None or (not (options.model or options.prompt) and file_kind(options.target) == "output"):
        return _output(options.output or options.target, as_json=options.json)
    found = look(options.target, options.model, options.prompt)
    if options.response_template:
        return _response_template(found, options.reader)
    if options.json:
        write_out(msgspec.json.format(msgspec.json.encode(found.to_dict()), indent=2).decode() + "\n")
    else:
        write_out(_words(options.target, found))
    return ODD if found.format == "auto" and found.thinks is None else OK


def _check(parser: Arguments, options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    if (options.output is None) == (options.target is None):
        parser.error("name one thing to probe: TARGET (a folder, a file or a model's name) or --output FILE")
    if options.output is not None and (options.model or options.prompt or options.response_template):
        parser.error("--output cannot be used with --model, --prompt or --response-template")
    if (options.twin or options.tokenizer) and not options.conversation:
        parser.error("--tokenizer and --twin can only be used with --conversation")
    if (options.chat_template or options.sample) and not options.lint:
        parser.error("--chat-template and --sample can only be used with --lint")
    for name in ("conversation", "lint"):
        if getattr(options, name) and (options.output or options.prompt or options.response_template):
            parser.error(f"--{name} cannot be used with --output, --prompt or --response-template")
    if options.lint and (options.conversation or options.model):
        parser.error("--lint cannot be used with --conversation or --model")


def _conversation(options: argparse.Namespace) -> int:
    from .probe_conversation import run_report  # here, because it imports Jinja's half of the library

    if file_kind(options.target) == "output":
        raise UsageError(f"{options.target}: the output of a model; --conversation reports on a chat template")
    return run_report(
        options.target,
        is_template=file_kind(options.target) == "template",
        tokenizer=options.tokenizer,
        model=options.model,
        twin=options.twin,
        as_json=options.json,
    )


def _response_template(found: Detection, target: Target) -> int:
    """Print a response template; what its reader loses goes to standard error."""
    written = written_template(found, target)
    write_out(msgspec.json.format(msgspec.json.encode(written.template), indent=2).decode() + "\n")
    for loss in written.loses:
        complain(f"{target} loses: {loss}")
    return OK


def _output(path: str, *, as_json: bool) -> int:
    from .probe_output import probe_output  # here, because it imports every family

    data = sys.stdin.buffer.read(MOST_OUTPUT + 1) if path == "-" else read_bytes(Path(path), MOST_OUTPUT)
    if len(data) > MOST_OUTPUT:
        raise UsageError(f"standard input is longer than {MOST_OUTPUT:,} bytes, the most that is probed")
    if not data.strip() or b"\0" in data:
        name = "standard input" if path == "-" else path
        raise UsageError(f"{name}: {'binary data' if data.strip() else 'empty'}; the output of a model is needed")
    return probe_output(path, data.decode("utf-8", "replace"), as_json=as_json)


def file_kind(target: str) -> Literal["model", "template", "output"]:
    """What a file is: by its name, else by its beginning. A folder, and what is no file, is a model."""
    if target.endswith(PATHS) or not os.path.isfile(target):
        return "model"
    with open(target, "rb") as file:
        beginning = file.read(BEGINNING)
    if beginning.startswith((b"GGUF", b'{"version"', b"{\n")):
        return "model"
    return "template" if any(sign in beginning for sign in TEMPLATE_SIGNS) else "output"


def model_name(target: str) -> str:
    """The model's name, also from the address of its page on Hugging Face."""
    if not target.startswith(("http://", "https://")):
        return target
    host, _, path = target.partition("://")[2].partition("/")
    names = [name for name in path.split("?")[0].split("#")[0].split("/") if name]
    if host.removeprefix("www.") not in PAGES or not names or names[0] in ("datasets", "spaces", "docs"):
        raise UsageError(
            f"{target}: nothing is downloaded; of web addresses only those of models on huggingface.co are known"
        )
    return "/".join(names[:2])


def look(target: str, model: str | None, prompt: str | None) -> Detection:
    """Detect from what was named on the command line."""
    given: dict[str, Any] = {"model": model}
    target = model_name(target)
    if prompt is not None:
        given["prompt"] = read_bytes(Path(prompt), MOST_JSON).decode("utf-8", "replace")
    if os.path.exists(target):
        given |= {"chat_template": Path(target)} if file_kind(target) == "template" else {"tokenizer": target}
    elif target.endswith(PATHS) or target.startswith((".", "/", "~")) or target.count("/") > 2:
        raise UsageError(f"{target}: no such file or folder")
    elif model is not None:
        raise UsageError(f"{target}: no such file or folder, and --model already names the model")
    else:
        given["model"] = target
    return detect(**given)


def _words(target: str, found: Detection) -> str:
    rows = [("format", _format(found)), ("thinks", _thinks(found))]
    if found.tokens:
        rows.append(("tokens", ", ".join(f"{text} {id}" for text, id in sorted(found.tokens.items(), key=_by_id))))
    if found.thinks is not False:
        rows.append(("starts", f"in {found.start or 'a header'}{_SURE[found.confidence]}"))
    if found.switch is not None:
        rows.append(("switch", _switch(found)))
    if found.field is not None:
        rows.append(("thoughts", f"go into {found.field}"))
    lines = [target, *(f"  {name:<9} {value}" for name, value in rows), "because"]
    lines += [f"  - {reason}" for reason in found.reasons]
    return "\n".join(lines) + "\n"


_SURE = {"known": "", "near": " (a guess, by the nearest older version)", "guess": " (a guess)"}
"""How well it is known where output begins."""


def _by_id(item: tuple[str, int]) -> int:
    return item[1]


def _format(found: Detection) -> str:
    if isinstance(found.format, Format):
        return "one made for these markers; none that is known fits"
    if found.format == "auto":
        candidates = f"; it may be {', '.join(found.equals)}" if found.equals else ""
        return f"auto (found by the first marker{candidates})"
    return found.format + (f" (as well: {', '.join(found.equals)})" if found.equals else "")


def _thinks(found: Detection) -> str:
    if not found.close or found.thinks is False:
        return YES[found.thinks]
    opener, closer = (repr(marker)[1:-1] for marker in (found.open, found.close))
    return f"{YES[found.thinks]}, " + (f"between {opener} and {closer}" if opener else f"until {closer}")


def _switch(found: Detection) -> str:
    values = []
    for value, start in ((found.on, found.start_on), (found.off, found.start_off)):
        shown = "unset" if value is None else msgspec.json.encode(value).decode()
        if start is not None:
            values.append(f"{shown} starts in {start}")
        elif found.start is None or found.start_on is found.start_off is None:
            values.append(shown)
    return f"{found.switch}: {'; '.join(values)}"
