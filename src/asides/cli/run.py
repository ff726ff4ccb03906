"""`asides run`: talk with a model, once or at length. Flags in, exit codes out; the talk is in `run_conversation`."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import UsageError
from . import EXIT_CODES, INTERRUPTED, OK
from .filter import find_format
from .options import Arguments
from .run_think import read_think, spell_out
from .streams import STDIN, Streams

if TYPE_CHECKING:
    from ..backends.client import Client, Think
    from ..config import Config
    from .run_reply import Choices

DESCRIPTION = """\
Talks with a model of an OpenAI-compatible server, of Ollama, or of the gateway.

With a prompt, or with something on standard input, it asks once: the answer
goes to standard output and is all that goes there; thoughts go to standard
error. Otherwise it is a conversation: /? lists its commands. Thoughts are
shown, not remembered: only the clean answers go back to the model.
"""
EXAMPLES = f"""\
examples:
  asides run qwen3                               a conversation
  asides run qwen3 "Why is the sky blue?"        one answer
  asides run qwen3 --think=high "Prove it."      thinking hard
  asides run qwen3 --hidethinking < question.txt
  git diff | asides run qwen3 "Review this:" > review.md
  asides run gpt-oss --url http://gpu:8000/v1
  asides run                                     the server's only model

which server (the first that is set):
  --url, run.url of asides.yaml, OPENAI_BASE_URL, OLLAMA_HOST, else Ollama at
  127.0.0.1:11434 or the gateway (`asides serve`) on this machine.
  OPENAI_API_KEY goes to --url and OPENAI_BASE_URL, run.key to run.url.

{EXIT_CODES}"""


def run(arguments: list[str]) -> int:
    """`asides run`."""
    options = _parse(arguments)
    think = None if options.think is None else read_think(options.think)
    # Here, because --help and a wrong flag need none of it.
    from ..backends.client import UpstreamError
    from ..config import load
    from .run_server import find, only_model, places, unreached

    config = load(options.config, without=("upstreams", "keys"))
    candidates = places(options.url, config, os.environ)
    client = find(candidates, config)
    try:
        model = options.model or config.run.model or only_model(client)
        choices = _choices(options, config, model, config.run.think if think is None else think)
        streams = Streams()
        if _is_conversation(options, streams):
            return _converse(client, choices, streams, options)
        return _ask_once(client, choices, streams, options)
    except UpstreamError as error:
        raise unreached(error, candidates, config) from error


def _is_conversation(options: argparse.Namespace, streams: Streams) -> bool:
    return not options.prompt and os.isatty(STDIN) and streams.out.terminal


def _choices(options: argparse.Namespace, config: Config, model: str, think: Think) -> Choices:
    from ..config import resolve_model
    from ..terminal import Style
    from .run_reply import Choices

    settings = resolve_model(config, model)
    format = options.format or {"none": "passthrough"}.get(settings.format, settings.format)
    return Choices(
        model=model,
        think=think,
        format=find_format(format).name if format else None,
        start=options.start or settings.start,
        tools=_read_tools(options.tools) if options.tools else None,
        extra=settings.extra_body,
        hide=options.hidethinking or config.run.hide_thinking,
        style=Style(config.terminal.heading, config.terminal.text),
    )


def _converse(client: Client, choices: Choices, streams: Streams, options: argparse.Namespace) -> int:
    from .run_conversation import Conversation
    from .run_input import choose
    from .run_server import greet

    greet(client)
    return Conversation(client, choices, choose(), streams, system=options.system, keep=None).run()


def _ask_once(client: Client, choices: Choices, streams: Streams, options: argparse.Namespace) -> int:
    from .run_reply import ask

    prompt = _prompt(options.prompt, streams)
    messages = [{"role": "system", "content": options.system}] if options.system else []
    outcome = ask(client, [*messages, {"role": "user", "content": prompt}], choices, streams)
    if outcome.error is not None:
        raise outcome.error
    return INTERRUPTED if outcome.stopped else OK


def _prompt(words: list[str], streams: Streams) -> str:
    """Standard input, where it is no terminal, and then the words of the command line."""
    given = ""
    if not os.isatty(STDIN):
        given = sys.stdin.buffer.read().decode("utf-8", "replace")
    elif not words:
        streams.say("reads your question; Ctrl-D ends it")
        streams.flush()
        given = sys.stdin.buffer.read().decode("utf-8", "replace")
    prompt = " ".join(part for part in (given, *words) if part)
    if not prompt.strip():
        raise UsageError("nothing was asked: standard input is empty, and there is no prompt")
    return prompt


def _read_tools(path: str) -> list[dict[str, Any]]:
    with open(path, "rb") as file:
        content = file.read()
    try:
        return msgspec.json.decode(content, type=list[dict[str, Any]])
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not a JSON list of tool definitions: {error}") from error


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides run",
        usage="asides run [options] [MODEL [PROMPT ...]]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument("model", nargs="?", metavar="MODEL", help="the model's name, as the server knows it")
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to ask; standard input comes before it")
    parser.add_argument("--url", metavar="URL", help="the server's address, with or without /v1")
    parser.add_argument("--think", metavar="VALUE", help="think; --think=VALUE: true, false, low, medium, high or max")
    parser.add_argument("--hidethinking", action="store_true", help="think, but show no thoughts")
    parser.add_argument("--system", default="", metavar="TEXT", help="what the model is told before all else")
    parser.add_argument(
        "-f", "--format", metavar="NAME", help="the model's format (default: told by its name, else auto)"
    )
    parser.add_argument(
        "--start", choices=("text", "thinking", "undecided"), help="where the model's words begin (default: found out)"
    )
    parser.add_argument(
        "--tools", metavar="FILE", help="a JSON list of tool definitions; in a conversation you give their results"
    )
    parser.add_argument("--config", metavar="FILE", help="the configuration (default: asides.yaml where it is found)")
    return parser.parse_intermixed_args(spell_out(arguments))
