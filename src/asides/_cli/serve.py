"""`asides serve`: reads flags and configuration, prints warnings, and starts the gateway or checks it.

Everything that a flag gives is a setting of the configuration (`_flags`), so that a file, a variable and a flag mean
the same. The gateway's modules are imported only when they are needed: they come with an extra, and a package that is
missing is an error that names it.
"""

from __future__ import annotations

import argparse
import logging
from importlib import import_module
from types import ModuleType
from typing import Any

from .._config import Config, Loaded, hide_url, load_all, show
from .._extras import install_command
from ..errors import UsageError
from . import FAILED, INTERRUPTED, OK
from .options import Arguments, write_out
from .streams import complain

DESCRIPTION = """\
The gateway. It stands between clients and a model server: it splits thinking and
calls off the answer and gives each client its own kind of reasoning field. It
speaks OpenAI's chat, completions and responses, Anthropic's messages, and Ollama.
With nothing configured it replays recordings, so that it can be tried at once.
"""
EXAMPLES = f"""\
examples:
  asides serve                                       try it on recordings, no model
  asides serve --upstream http://127.0.0.1:8000/v1   in front of vLLM or llama.cpp
  asides serve --upstream http://127.0.0.1:11434     in front of Ollama
  asides serve --upstream http://127.0.0.1:8000/v1 --format qwen3 --start thinking
                                                     where the model is known
  asides serve --config asides.yaml --check          what is configured, does it work?
  ASIDES_UPSTREAM_KEY=... asides serve --upstream https://example.com/v1
                                                     a key that `ps` does not show

configuration:
  Flags win over variables, variables over the file. The file is --config, else
  ASIDES_CONFIG, else asides.yaml here or in ~/.config/asides. One that is only
  found here gets no keys from the environment and keeps no history: name it with
  --config where it is yours. Single settings have a variable each, as
  ASIDES_LIMITS_IDLE for `limits: idle:`. --format and --start hold for every model
  that the file does not name. docs/configuration.md lists all.

  SIGHUP reads all of it again for the requests that come from then on.

exit codes:
  {OK}    it was stopped by a signal, or --check found nothing wrong
  1    with --check: something does not work
  {FAILED}    wrong usage or configuration, or the address is taken
  {INTERRUPTED}  ended by Ctrl-C
"""
NOT_OURS = ("run",)
"""Sections whose secrets are not looked up: the gateway needs none of them."""


def run(arguments: list[str]) -> int:
    """`asides serve`."""
    parser = _parser()
    options = parser.parse_args(arguments)
    loaded = _load(options)
    logs = _gateway("observe.logs")
    if _gateway("workers").own_spec() is None:  # one of several workers does not repeat the warnings
        if not loaded.trusted:
            complain(_introduce(loaded))
        warnings = [*loaded.warnings, *_visible_secrets(options), *logs.warn_at_start(loaded.config)]
    else:
        warnings = []
    if options.check:
        return _check(loaded, warnings)
    server = _gateway("server")
    if loaded.config.telemetry.spans:
        _gateway("observe.spans", extra="otel")
    logs.setup(loaded.config.log, secrets=logs.secrets_of(loaded.config))
    for warning in warnings:
        logging.getLogger("asides").warning("%s", warning)
    code: int = server.serve(loaded.config, lambda: _read_again(options), arguments)
    return code


def _load(options: argparse.Namespace) -> Loaded:
    return load_all(options.config, flags=_flags(options), without=NOT_OURS, here=True)


def _read_again(options: argparse.Namespace) -> Config:
    """The configuration as it is now, for a gateway that runs; what is odd in it is logged."""
    loaded = _load(options)
    for warning in loaded.warnings:
        logging.getLogger("asides").warning("%s", warning)
    return loaded.config


def _parser() -> argparse.ArgumentParser:
    parser = Arguments(prog="asides serve", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--config", metavar="FILE", help="the configuration file")
    parser.add_argument(
        "--check", action="store_true", help="show the configuration, ask each upstream once, print what came, and end"
    )

    models = parser.add_argument_group("the model server")
    models.add_argument("--upstream", action="append", metavar="URL", help="its address; again for each of several")
    models.add_argument("--upstream-key", metavar="KEY", help="the key it wants (better: ASIDES_UPSTREAM_KEY)")
    models.add_argument("--kind", metavar="KIND", help="auto, openai or ollama (default auto: it is asked)")
    models.add_argument("--format", metavar="NAME", help="the model's format; see `asides formats`. none: do not split")
    models.add_argument("--start", metavar="STATE", help="where replies begin: text, thinking or undecided")

    clients = parser.add_argument_group("the clients")
    clients.add_argument("--host", metavar="HOST", help="where to listen (default 127.0.0.1)")
    clients.add_argument("--port", metavar="PORT", help="(default 8777; 0 takes a free one)")
    clients.add_argument("--workers", metavar="N", help="processes that share the port (default 1; docs/deploying.md)")
    clients.add_argument(
        "--key",
        action="append",
        metavar="KEY",
        help="a key that clients must show; may be repeated (better: ASIDES_KEYS)",
    )
    clients.add_argument(
        "--reasoning",
        metavar="FIELD",
        help="where thinking is written: raw, summary, both or drop in replies of every API; in chat replies also "
        "reasoning_content (default), reasoning, thinking, details or tags",
    )
    clients.add_argument(
        "--cors", action="append", metavar="ORIGIN", help="a web page that may ask, or *; may be repeated"
    )

    logs = parser.add_argument_group("what is kept")
    logs.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error (default info)")
    logs.add_argument("--log-json", action="store_true", help="JSON lines, also on a terminal")
    logs.add_argument("--log-bodies", action="store_true", help="log the text of requests and replies too")
    logs.add_argument("--save", action="store_true", help="keep thoughts; see `asides history`")
    return parser


def _flags(options: argparse.Namespace) -> dict[str, Any]:
    """The values of flags by the paths of their settings; None for a flag that was not given."""
    return {
        "upstreams": options.upstream,
        "upstreams.key": options.upstream_key,
        "upstreams.kind": options.kind,
        "defaults.format": options.format,
        "defaults.start": options.start,
        "defaults.reasoning": options.reasoning,
        "listen.host": options.host,
        "listen.port": options.port,
        "listen.workers": options.workers,
        "keys": options.key,
        "cors": options.cors,
        "log.level": options.log_level,
        "log.form": "json" if options.log_json else None,
        "log.bodies": options.log_bodies or None,
        "history.save": options.save or None,
    }


def _introduce(loaded: Loaded) -> str:
    """The message about a file that was found in the current folder: its name, and where it sends requests to."""
    addresses = [hide_url(upstream.url) for upstream in loaded.config.upstreams]
    asks = f" and asks {', '.join(addresses)}" if addresses else ""
    return f"reads {loaded.file} of the current folder{asks}"


def _visible_secrets(options: argparse.Namespace) -> list[str]:
    given = {"--upstream-key": (options.upstream_key, "ASIDES_UPSTREAM_KEY"), "--key": (options.key, "ASIDES_KEYS")}
    return [
        f"{flag}: everyone on this machine can see it in the list of processes; {variable} hides it"
        for flag, (value, variable) in given.items()
        if value
    ]


def _check(loaded: Loaded, warnings: list[str]) -> int:
    check = _gateway("check")
    for warning in warnings:
        complain(warning)
    source = loaded.file or "no file; variables, flags and built-in values only"
    write_out(f"# the configuration ({source})\n{show(loaded.config, loaded.origins)}\n")
    code: int = check.check(loaded.config)
    return code


def _gateway(name: str, *, extra: str = "gateway") -> ModuleType:
    """Import a module of the gateway; a `UsageError` that names the extra where a package is missing."""
    try:
        return import_module(f"asides._gateway.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "asides").partition(".")[0] == "asides":
            raise
        raise UsageError(
            f"the gateway needs the package {error.name}; install what it needs with: {install_command(extra)}"
        ) from error
