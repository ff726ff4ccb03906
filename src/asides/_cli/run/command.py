"""`asides run`: talk with a model, once or at length. Flags in, exit codes out.

Which server is asked is found in `server`, one reply is asked for and shown in `reply`, a conversation is held in
`conversation`, and what the person types is read in `input`. These are imported when they are needed: `--help` and a
wrong flag load neither the HTTP client nor the configuration.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from ..._extras import install_command
from ...errors import UsageError
from .. import FAILED, INTERRUPTED, OK
from ..filter import find_format
from ..options import (
    Arguments,
    add_markdown,
    add_raw,
    add_reading,
    add_store,
    add_style,
    add_wordwrap,
    check_style,
    given_policies,
)
from ..streams import END_KEYS, READ_SIZE, STDIN, Streams, complain

if TYPE_CHECKING:
    from ..._config import Config, ModelSettings
    from ..._engine.format import Format
    from ...client._client import Client, Think
    from .continued import LastTalk
    from .reply import Choices, ReplySaver

DESCRIPTION = """\
Chats with a model on an OpenAI-compatible server, on Ollama or on the gateway.

With a PROMPT, or with text on standard input, it asks once: the answer goes to
standard output, and nothing else goes there; thoughts go to standard error.
Otherwise it opens a conversation, in which /? lists the commands. Thoughts are
shown but not sent back: the model gets only the answers of earlier turns.
"""
EXAMPLES = """\
examples:
  asides run qwen3 "Why is the sky blue?"        ask once
  asides run qwen3                               a conversation
  asides run                                     with the server's only model
  asides run "Why is the sky blue?"              the same, asked once
  asides run gpt-oss --url http://gpu:8000/v1    a model on another server
  asides run qwen3 --think=high "Prove it."      let the model think longer
  asides run qwen3 --hidethinking < question.txt
  git diff | asides run qwen3 "Review this:" > review.md
  asides run qwen3 -o temperature=0.2 -v "Prove it."
  asides run --save qwen3                        save the replies
  asides run -c                                  continue what was saved last

which server (the first that is set):
  --url, run.url of asides.yaml, OPENAI_BASE_URL, OLLAMA_HOST, else Ollama at
  127.0.0.1:11434 or the gateway (`asides serve`) on this machine.
  OPENAI_API_KEY is sent to --url and OPENAI_BASE_URL, run.key to run.url,
  OLLAMA_API_KEY to OLLAMA_HOST.

exit codes:
  0    the whole answer was written, or the conversation was closed
  2    wrong usage, no server, an error of the server, or a reply that broke
       off; what arrived of it is written
  130  stopped by Ctrl-C; what arrived is written
  141  the reader of the output closed it
"""
LEVELS = ("low", "medium", "high", "max")
_SWITCHES: dict[str, Think] = {"": True, "true": True, "on": True, "false": False, "off": False}
_VALUES: dict[str, Think] = _SWITCHES | {level: level for level in LEVELS}
THINK_VALUES = ("true", "false", *LEVELS)
"""What a person may write after `--think=`, as the help lists it."""


def run(arguments: list[str]) -> int:
    """`asides run`."""
    options = _parse(arguments)
    think = None if options.think is None else read_think(options.think)
    # Here, because --help and a wrong flag need none of it.
    from ..._config import load
    from ...client._client import UpstreamError
    from .server import addresses, find, only_model, unreached

    config = load(options.config, without=("upstreams", "keys"))
    store = options.store or os.environ.get("ASIDES_HISTORY") or config.history.store
    before = _before(store) if options.goes_on else None
    model = options.model or (before.model if before is not None else "") or config.run.model
    given = config.run.think if think is None else think

    def choices_for(model: str) -> Choices:
        return _choices(options, config, model, given)

    choices = choices_for(model)  # before a server is looked for, also without a model: a wrong flag is reported first
    candidates = addresses(options.url, config, os.environ)
    client = find(candidates, config)
    try:
        if not model:
            choices = choices_for(only_model(client))
        saving = _saving(options, config, store, before)
        streams = Streams(raw=options.raw, wrap=choices.wrap, markdown=options.markdown is not False)
        if not options.prompt and os.isatty(STDIN) and streams.out.terminal:
            return _converse(client, choices, choices_for, streams, options, saving, before)
        return _ask_once(client, choices, streams, options, saving, before)
    except UpstreamError as error:
        raise unreached(error, candidates, config) from error


def _choices(options: argparse.Namespace, config: Config, model: str, think: Think) -> Choices:
    from ..._config import policies_of, resolve_model
    from ...terminal import Style
    from ..display import read_style
    from .reply import Choices

    settings = resolve_model(config, model)
    asked = options.style or os.environ.get("ASIDES_STYLE")
    style = read_style(asked) if asked else Style(config.terminal.heading, config.terminal.text)
    return Choices(
        model=model,
        think=think,
        format=_format(options, settings),
        policies=policies_of(settings, **given_policies(options)),
        extra=settings.extra_body,
        mode="collapse" if options.collapse else "hide" if options.hidethinking or config.run.hide_thinking else "show",
        options=read_options(options.option),
        verbose=options.verbose,
        style=style,
        wrap=options.wordwrap and config.terminal.wrap,
    )


def _format(options: argparse.Namespace, settings: ModelSettings) -> str | Format | None:
    """The format that was asked for, else the configured one; None: by the model's name."""
    if options.tags or (settings.tags and not options.format):
        from ...families._own_tags import own_tags

        return own_tags(options.tags or settings.tags.items())
    name = options.format or {"none": "passthrough"}.get(settings.format, settings.format)
    return find_format(name).name if name else None


def _before(store: str) -> LastTalk:
    from .continued import last_talk  # here, because most who talk begin anew

    return last_talk(store)


def _saving(options: argparse.Namespace, config: Config, store: str, before: LastTalk | None) -> ReplySaver | None:
    from .reply import ReplySaver

    if before is not None:
        return ReplySaver(store, before.id)  # it was kept, so what follows is kept with it
    if options.save or config.history.save:
        return ReplySaver(store)
    if options.store:
        raise UsageError("--store names where replies are saved; add --save")
    return None


def _converse(
    client: Client,
    choices: Choices,
    choices_for: Callable[[str], Choices],
    streams: Streams,
    options: argparse.Namespace,
    saving: ReplySaver | None,
    before: LastTalk | None,
) -> int:
    from .conversation import RunSession
    from .folds import ScreenFolds
    from .input import choose
    from .server import greet

    greet(client)
    folds = ScreenFolds(streams, choices.style, mouse=options.mouse)
    reader = choose(folds, mouse=options.mouse)
    if options.mouse and not reader.edits:
        raise UsageError(
            f"--mouse needs prompt_toolkit ({install_command('prompt-toolkit')}) and a terminal that knows escape codes"
        )
    conversation = RunSession(
        client, choices, reader, streams, folds,
        choices_for=choices_for, system=options.system, saving=saving,
    )  # fmt: skip
    if before is not None:
        conversation.go_on(before)
    code = conversation.run()
    return FAILED if saving is not None and saving.failed else code


def _ask_once(
    client: Client,
    choices: Choices,
    streams: Streams,
    options: argparse.Namespace,
    saving: ReplySaver | None,
    before: LastTalk | None,
) -> int:
    from .reply import ask

    prompt = _prompt(options.prompt, streams, options.model)
    earlier = [] if before is None else before.messages
    system = [{"role": "system", "content": options.system}] if options.system else []
    if system:
        earlier = [message for message in earlier if message["role"] != "system"]
    asked = [*system, {"role": "user", "content": prompt}]
    outcome = ask(client, [*system, *earlier, asked[-1]], choices, streams)
    if saving is not None:
        saving.save(asked, outcome, choices)
    if outcome.error is not None:
        raise outcome.error
    if outcome.stopped:
        return INTERRUPTED
    return FAILED if saving is not None and saving.failed else OK


def _prompt(words: list[str], streams: Streams, model: str | None) -> str:
    """Standard input, where it is no terminal, and then the words of the command line."""
    typed = os.isatty(STDIN)
    if typed and not words:
        streams.message(f"type your question; {END_KEYS}")
        streams.flush()
    given = "" if typed and words else _read_stdin(needed=not words)
    prompt = " ".join(part for part in (given, *words) if part)
    if not prompt.strip():
        taken = f" ({model!r} is the MODEL; the PROMPT comes after it)" if model else ""
        raise UsageError(f"there is no question: standard input is empty, and no PROMPT was given{taken}")
    return prompt


def _read_stdin(*, needed: bool) -> str:
    data = bytearray()
    try:
        while piece := os.read(STDIN, READ_SIZE):
            data += piece
    except OSError as error:  # it may have been closed before we began
        if needed:
            error.filename = "standard input"
            raise
    return data.decode("utf-8", "replace")


def read_options(given: list[str]) -> dict[str, Any]:
    """Fields of the request, from `key=value`."""
    found: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"-o takes key=value, such as temperature=0.2, not {each!r}")
        found |= read_option(name, value)
    return found


def read_option(name: str, value: str) -> dict[str, Any]:
    """One field of the request: its value is JSON, or else a text. One that cannot be sent is refused."""
    from ...client._client import check_extra

    try:
        found: Any = msgspec.json.decode(value)
    except msgspec.DecodeError:
        found = value.strip()
    field = {name.strip(): found}
    check_extra(field)
    return field


def read_think(value: str, flag: str = "--think") -> Think:
    """What a value means; what is none is refused in the words that Ollama has for it."""
    if value not in _VALUES:
        raise UsageError(f'invalid value for {flag}: "{value}" (must be true, false, high, medium, low, or max)')
    return _VALUES[value]


def think_in_words(think: Think) -> str:
    """The choice, for the person."""
    words: dict[Think, str] = {None: "as the model likes", True: "on", False: "off"}
    return words.get(think, str(think))


def spell_out(arguments: list[str]) -> list[str]:
    """A bare `--think` is `--think=true`: a value stands only behind `=`, so the next word is never taken for one."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return ["--think=true" if word == "--think" and place < end else word for place, word in enumerate(arguments)]


def hint_of(arguments: list[str]) -> str:
    """What to tell who wrote a value behind a bare `--think`; empty where nobody did."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    for flag, word in itertools.pairwise(arguments[:end]):
        value = {"on": "true", "off": "false"}.get(word, word)
        if flag == "--think" and word and value in _VALUES:
            return f'"{word}" is taken as part of the prompt; a value needs "=": --think={value}'
    return ""


def _take_model(options: argparse.Namespace) -> None:
    """Tell the model among the words: the first one, unless `-m` names it or it holds a space, as no name does."""
    words = options.words
    if options.model is None and words and not re.search(r"\s", words[0].strip()):
        options.model, *words = words
    options.prompt = words


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = Arguments(
        prog="asides run",
        usage="asides run [options] [MODEL] [PROMPT ...]",
        description=DESCRIPTION,
        epilog=EXAMPLES,
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="MODEL PROMPT",
        help="the model's name on the server (default: run.model of asides.yaml, or the server's only model), and the "
        "question; text on standard input is put before it. A first word with a space in it is the question",
    )
    asking = parser.add_argument_group("what to ask")
    asking.add_argument("-m", "--model", metavar="NAME", help="the model; all other words are the PROMPT then")
    asking.add_argument("--url", metavar="URL", help="the server's address, with or without /v1 (default: see below)")
    asking.add_argument(
        "--think",
        nargs="?",
        metavar="=VALUE",
        help="ask the model to think, or with a value (only after `=`): true, false, low, medium, high or max "
        "(default: the model's own)",
    )
    asking.add_argument(
        "-o",
        "--option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a parameter of the request, such as temperature=0.2 or max_tokens=500; may be repeated",
    )
    asking.add_argument(
        "-c",
        "--continue",
        dest="goes_on",
        action="store_true",
        help="continue the last conversation that was saved (--save), and save the new replies with it",
    )
    asking.add_argument("--system", default="", metavar="TEXT", help="the system prompt")
    asking.add_argument(
        "--tools",
        metavar="FILE",
        help="a JSON file with a list of tool definitions; in a conversation you type the results of calls",
    )
    add_reading(
        parser,
        start="the format's own, then as earlier replies began",
        format="by the model's name, else auto",
        tools=False,
    )
    showing = parser.add_argument_group("what to show and save")
    hiding = showing.add_mutually_exclusive_group()
    hiding.add_argument(
        "--hidethinking",
        action="store_true",
        help="let the model think, but show no thoughts; on a terminal one line for each, and Ctrl-T opens the last",
    )
    hiding.add_argument("--collapse", action="store_true", help="show each thought as one line with its length")
    showing.add_argument(
        "--mouse",
        action="store_true",
        help="in a conversation, open and close a thought by a click on its line; to select text or scroll with the "
        "mouse, hold Shift (in most terminals)",
    )
    showing.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="after each reply, print its tokens, tokens per second, the seconds to the first thought and answer, and "
        "how it was read: its format, and where it began and why",
    )
    add_style(showing)
    add_wordwrap(showing)
    add_markdown(showing)
    add_raw(showing)
    showing.add_argument(
        "--save", action="store_true", help="save the replies with their thoughts to the history; see `asides history`"
    )
    add_store(showing, "with --save or -c: ")
    parser.add_argument(
        "--config",
        metavar="FILE",
        help="the configuration file (default: $ASIDES_CONFIG, or asides.yaml in ~/.config/asides)",
    )
    options = parser.parse_intermixed_args(spell_out(arguments))
    _take_model(options)
    check_style(options)
    if hint := hint_of(arguments):
        complain(hint)
    return options
