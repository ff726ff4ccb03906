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
Runs the gateway: a server between your clients and a model server. It
separates thinking and tool calls from the answer, and gives each client
thinking in the field that this client reads. Clients may use the APIs of
OpenAI (chat, completions, responses), Anthropic (messages) and Ollama. A web
page to chat and to look inside is at the same address. Without --upstream it
replays recordings, so that you can try it without a model.
"""
EXAMPLES = f"""\
examples:
  asides serve --upstream http://127.0.0.1:8000/v1   in front of vLLM, llama.cpp, ...
  asides serve --upstream http://127.0.0.1:11434     in front of Ollama
  asides serve                                       without a model: plays recordings
  asides serve --upstream http://127.0.0.1:8000/v1 --check
                                                     ask the model, show what comes
  asides serve --upstream http://127.0.0.1:8000/v1 --save
                                                     save replies with their thoughts
  asides serve --upstream http://127.0.0.1:8000/v1 --format qwen3
                                                     only if the format is not found
  asides serve --config asides.yaml                  settings from a file
  ASIDES_UPSTREAM_KEY=... asides serve --upstream https://example.com/v1
                                                     with a key that `ps` does not show

clients then use these addresses:
  http://127.0.0.1:8777/v1   OpenAI clients (OPENAI_BASE_URL)
  http://127.0.0.1:8777      Anthropic and Ollama clients, and your browser

configuration:
  Flags win over variables, variables over the file. The file is the one named
  by --config, else by ASIDES_CONFIG, else asides.yaml in the current folder or
  in ~/.config/asides. A file that was only found in the current folder may not
  read keys from the environment nor save history; --config allows it both.
  Single settings have variables: ASIDES_LIMITS_IDLE is `limits: idle:`. --format
  and --start apply to every model that the file does not name. All settings
  are in docs/reference/configuration.md. SIGHUP reloads them for new requests.

exit codes:
  {OK}    stopped by a signal, or --check found no problem
  1    --check found a problem
  {FAILED}    wrong usage or configuration, or the port is in use
  {INTERRUPTED}  stopped by Ctrl-C
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
    if options.check is not None:
        return _check(loaded, warnings, options)
    if options.verbose:
        parser.error("-v needs --check; for more lines in the log: --log-level debug")
    if options.open and not loaded.config.page.show:
        raise UsageError("--open: there is no page to open, the configuration has `page: off`")
    server = _gateway("server")
    if loaded.config.telemetry.spans:
        _gateway("observe.spans", extra="otel")
    logs.setup(loaded.config.log, secrets=logs.secrets_of(loaded.config))
    for warning in warnings:
        logging.getLogger("asides").warning("%s", warning)
    code: int = server.serve(loaded.config, lambda: _read_again(options), arguments, open_page=options.open)
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
    parser.add_argument("--config", metavar="FILE", help="the configuration file (default: see below)")
    parser.add_argument(
        "--check",
        nargs="?",
        const="",
        metavar="MODEL",
        help="ask every configured model (or MODEL, or `all` that are listed) a question and for a tool call, print "
        "what came, and exit",
    )
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="with --check: print every setting, not only those that you changed",
    )

    models = parser.add_argument_group("the model server")
    models.add_argument(
        "--upstream", action="append", metavar="URL", help="its address; may be repeated (default: recordings)"
    )
    models.add_argument(
        "--upstream-key", metavar="KEY", help="the key that it requires (better: set ASIDES_UPSTREAM_KEY)"
    )
    models.add_argument(
        "--kind",
        metavar="KIND",
        help="auto, openai, ollama, anthropic or responses (default: auto)",
    )
    models.add_argument(
        "--format",
        metavar="NAME",
        help="the model's format, or none: do not split (default: found by the model's name or its chat template); "
        "`asides formats` lists them",
    )
    models.add_argument(
        "--start", metavar="STATE", help="where replies begin: text, thinking or undecided (default: found likewise)"
    )

    clients = parser.add_argument_group("the clients")
    clients.add_argument(
        "--host", metavar="HOST", help="the address to listen on (default: 127.0.0.1, this machine only)"
    )
    clients.add_argument("--port", metavar="PORT", help="the port to listen on (default: 8777; 0: any free port)")
    clients.add_argument(
        "--workers",
        metavar="N",
        help="processes that share the port (default: 1); several need a shared store, see docs/how-to/deploying.md",
    )
    clients.add_argument(
        "--key",
        action="append",
        metavar="KEY",
        help="a key that clients must send; may be repeated (better: set ASIDES_KEYS; default: no key)",
    )
    clients.add_argument(
        "--reasoning",
        metavar="FIELD",
        help="where clients find thinking. In every API: raw, summary, both or drop; in chat replies also "
        "reasoning_content, reasoning, thinking, details or tags (default: reasoning_content in chat replies, summary "
        "in Responses)",
    )
    clients.add_argument(
        "--cors", action="append", metavar="ORIGIN", help="an origin whose web pages may call it, or *; may be repeated"
    )

    clients.add_argument("--open", action="store_true", help="open its page in your browser")

    logs = parser.add_argument_group("logs and history")
    logs.add_argument("--log-level", metavar="LEVEL", help="debug, info, warning or error (default: info)")
    logs.add_argument("--log-json", action="store_true", help="log lines of JSON on a terminal too")
    logs.add_argument("--log-bodies", action="store_true", help="also log the text of requests and replies")
    logs.add_argument(
        "--save", action="store_true", help="save replies with their thoughts to the history; see `asides history`"
    )
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
    asks = f"; its requests go to {', '.join(addresses)}" if addresses else ""
    return f"using {loaded.file} of the current folder{asks}"


def _visible_secrets(options: argparse.Namespace) -> list[str]:
    given = {"--upstream-key": (options.upstream_key, "ASIDES_UPSTREAM_KEY"), "--key": (options.key, "ASIDES_KEYS")}
    return [
        f"{flag}: other users of this machine can see the key in the list of processes; set {variable} instead"
        for flag, (value, variable) in given.items()
        if value
    ]


def _check(loaded: Loaded, warnings: list[str], options: argparse.Namespace) -> int:
    check = _gateway("check")
    for warning in warnings:
        complain(warning)
    source = loaded.file or "no file: from flags, variables and defaults"
    shown = show(loaded.config, loaded.origins, changed=not options.verbose)
    rest = "" if options.verbose else "# all else has its default (-v shows it)\n"
    write_out(f"# the configuration ({source})\n{shown}{rest}\n")
    code: int = check.check(loaded.config, options.check)
    return code


def _gateway(name: str, *, extra: str = "gateway") -> ModuleType:
    """Import a module of the gateway; a `UsageError` that names the extra where a package is missing."""
    try:
        return import_module(f"asides._gateway.{name}")
    except ModuleNotFoundError as error:
        if (error.name or "asides").partition(".")[0] == "asides":
            raise
        raise UsageError(
            f"the gateway needs the package {error.name}, which is not installed: {install_command(extra)}"
        ) from error
