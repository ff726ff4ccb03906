"""`asides serve --check`: asks each upstream one question and prints what came. Starts no server.

The question goes the way of any client's request: the same routing, the same profile of the model, the same body. The
reply is read with the format and start that would be used; if markers are left in the answer, or it is empty, the same
reply is read in other ways, and those that leave a clean answer are printed as flags to try.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any, NamedTuple

from .._config.schema import BUILT_IN, Config, ModelSettings, policies_of
from .._engine.format import TEXT, Format
from .._engine.markers import Action, compile_tables
from .._engine.parser import Parser
from ..dialects import openai_chat
from ..dialects.framing import to_json
from ..dialects.servers import OPENAI
from ..families import formats, get_format
from ..policies import Start
from ..reply.fold import Fold
from ..reply.items import Chunk, Failed
from ..reply.reply import Reply
from ..reply.splitter import Splitter
from .bodies import read_json
from .model_profile import ModelProfile
from .observe import logs
from .plan import PASSTHROUGH, Target, write_request
from .refusals import Refusal
from .state import State
from .upstreams import Upstream, UpstreamLost

QUESTION = "What is 17 times 23? Think briefly, then answer with the number."
MOST_TOKENS = 400
ANY_TAG = "think_tag"
"""The format that reads every tag for thinking, in any spelling."""
SHOWN = 160
"""Characters of a reply that are shown."""


class CheckedReply(NamedTuple):
    """A reply as one format and start read it."""

    reply: Reply
    failed: str
    """Why there is none."""
    split: bool
    """Whether the upstream had split off the thinking by itself."""


def check(config: Config) -> int:
    """Ask every upstream, print what came, and return 0 if each answered and nothing leaked, else 1."""
    return asyncio.run(_check(config))


async def _check(config: Config) -> int:
    state = State(config)
    state.open()
    try:
        good = [await _upstream(state, upstream) for upstream in state.upstreams]
    finally:
        await state.close()
    return 0 if all(good) else 1


def _print(state: State, line: str) -> None:
    """Print a line. Upstreams wrote parts of it: no secret and nothing that a terminal would obey may be in it."""
    sys.stdout.write(logs.one_line(line, logs.LONGEST_BODY, logs.secrets_of(state.config)) + "\n")
    sys.stdout.flush()


async def _upstream(state: State, upstream: Upstream) -> bool:
    _print(state, f"upstream {upstream.name} ({upstream.url})")
    try:
        kind = await upstream.find_kind()
        _print(state, f"  speaks    {kind.title}")
        engine = await state.find_engine(upstream) if kind is OPENAI else None
        if engine is not None:
            certain = "keeps to" if engine.certain else "may keep to"
            where = " where its chat template shows thoughts" if engine.by_template else ""
            _print(state, f"  runs      {engine.name}, which {certain} thinking budgets by {engine.budget}{where}")
        else:
            _print(state, "  runs      no server that is known to enforce thinking budgets")
        models = [model.id for model in await state.list_models(upstream)]
        _print(state, f"  models    {', '.join(models[:8]) or 'none listed'}{' …' if len(models) > 8 else ''}")
        named = [name for name in state.config.models if name in models]
        model = (named or models or [""])[0]
        return await _model(state, upstream, model)
    except Refusal as refusal:
        _print(state, f"  FAILED    {refusal.message}")
    except UpstreamLost as error:
        _print(state, f"  FAILED    {error}")
    return False


async def _model(state: State, upstream: Upstream, model: str) -> bool:
    settings = state.settings(model)
    profile = await state.profiles.resolve(upstream, model, settings)
    format = profile.format
    _print(state, f"  asked     {model or 'the model it serves'}: {QUESTION}")
    _print(
        state,
        f"  format    {format.name if format is not None else 'none (not split)'}, from {format_source(profile)}",
    )
    start = settings.start or profile.start
    who = "configuration" if settings.start else "the chat template" if profile.start else "the format"
    own: Start = "text" if format is None or format.start != "thinking" else "thinking"
    _print(state, f"  start     {start or own}, from {who}")
    if profile.switch:
        _print(state, f"  switch    {profile.switch}")
    chunks = await ask(state, Target(upstream, await upstream.find_kind(), settings, profile), model)
    checked = read(chunks, format or PASSTHROUGH, start, settings)
    return _judge(state, checked, chunks, format, start or own)


def format_source(profile: ModelProfile) -> str:
    """Where the format is known from, for people."""
    known = {
        "name": "the model's name",
        "server": "the server's chat template",
        "nobody": "each reply's own markers (neither name nor server tells more)",
    }
    return known.get(profile.format_source, profile.format_source)


async def ask(state: State, target: Target, model: str) -> list[Chunk]:
    """The chunks of the upstream's reply to a question that is sent as any client's request would be."""
    asked: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": QUESTION}]}
    request = openai_chat.read_request({**asked, "max_tokens": MOST_TOKENS})
    upstream, upstream_dialect = target.upstream, target.kind.dialect(request)
    body = to_json(write_request(request, upstream_dialect, target))
    headers = {"content-type": "application/json", "accept-encoding": "identity", **upstream.own_headers}
    async with upstream.ask("POST", upstream_dialect.upstream_path(request), body, headers) as answer:
        data = await answer.read(state.config.limits.body)
    if answer.status >= 400:
        failed = upstream_dialect.read_error(answer.status, data)
        status = f"status {answer.status}"
        raise Refusal(answer.status, failed.message if status in failed.message else f"{status}: {failed.message}")
    return upstream_dialect.read_reply(read_json(data))


def read(chunks: list[Chunk], format: Format, start: Start | None, settings: ModelSettings = BUILT_IN) -> CheckedReply:
    """A reply, read by a format and the policies of a model's settings."""
    if start is None and format.start == TEXT:
        start = "undecided"
    policies = policies_of(settings, start=start, collect=False)
    behind = policies.but(start=None)  # a thought that the server has split off comes the answer
    splitter = Splitter(format, lambda found: Parser(found, policies if found is format else behind))
    fold, failed = Fold(), ""
    for item in [item for chunk in chunks for item in splitter.feed(chunk)] + splitter.finish():
        fold.add(item)
        if isinstance(item, Failed):
            failed = item.message
    return CheckedReply(fold.reply, failed, bool(splitter.fields))


def _judge(state: State, checked: CheckedReply, chunks: list[Chunk], format: Format | None, start: Start) -> bool:
    reply = checked.reply
    if checked.failed:
        _print(state, f"  FAILED    {checked.failed}")
        return False
    _print(state, f"  thinking  {shortened(reply.thinking) or 'none'}")
    _print(state, f"  answer    {shortened(reply.text) or 'none'}")
    if checked.split:
        _print(state, "  note      the upstream splits its thinking off by itself; it is passed on as it comes")
    if reply.notices:
        _print(state, f"  notices   {', '.join(sorted({notice.code for notice in reply.notices}))}")
    leaks = leaked(reply.text, format)
    if leaks:
        _print(state, f"  LEAK      the answer still holds {', '.join(leaks)}; another format or start reads it:")
    elif not reply.text and reply.reason == "length":
        _print(state, f"  note      {MOST_TOKENS} tokens were not enough for an answer: it was still thinking")
        return True
    elif not reply.text:
        _print(state, "  EMPTY     there is no answer; another format or start may find one:")
    else:
        _print(state, "  good      thinking and answer are apart")
        return True
    for line in advice(chunks, format, start) or ["none of those that were tried"]:
        _print(state, f"            {line}")
    return False


def leaked(text: str, format: Format | None) -> list[str]:
    """Markers of any format that still stand in an answer."""
    names = [format.name] if format is not None else []
    names += [name for name in formats() if name not in ("auto", "passthrough")]
    found: dict[str, None] = {}
    for name in names:
        for table in get_format(name).states.values():
            found.update(dict.fromkeys(marker for marker in table if len(marker) > 4 and marker in text))
    return list(dict.fromkeys((*_tags(text), *found)))[:5]


def _tags(text: str) -> list[str]:
    """Tags for thinking that stand in an answer, in whatever case and with whatever attributes they are written."""
    table = compile_tables(get_format(ANY_TAG), "never", False).text
    matches = [match.group() for pattern in table.searches for match in pattern.finditer(text)]
    return [tag for tag in matches if table.marker(tag).action is Action.OPEN or table.marker(tag).closes_thinking]


def advice(chunks: list[Chunk], format: Format | None, start: Start) -> list[str]:
    """Other ways to read the same reply that leave nothing in the answer."""
    other: Start = "thinking" if start == "text" else "text"
    starts: tuple[Start, ...] = ("text", "thinking")
    tried = [(format.name, other)] if format is not None else []
    tried += [(name, begin) for name in ("auto", ANY_TAG) for begin in starts]
    lines = []
    for name, begin in dict.fromkeys(tried):
        text = read(chunks, get_format(name), begin).reply.text
        if text and not leaked(text, None):
            lines.append(f"--format {name} --start {begin}")
    return lines


def shortened(text: str) -> str:
    """A text in one short line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}… ({len(text)} characters)"
