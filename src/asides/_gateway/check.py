"""`asides serve --check`: asks models a question and for a tool call, and prints what came. Starts no server.

The questions go the way of any client's request: the same routing, the same profile of the model, the same body. The
replies are read with the format and start that would be used. If markers or calls are left in an answer (`LEAK`), or it
is empty, the same reply is read in other ways, and those that leave a clean answer are printed as flags to try. A reply
without a thought is not called good: nothing shows then that thoughts are split off.
"""

from __future__ import annotations

import asyncio
import re
import sys
from functools import partial
from typing import Any, NamedTuple

from .._config.schema import Config, matches, policies_of
from .._engine.format import Format
from .._engine.markers import Action, compile_tables
from ..dialects import openai_chat
from ..dialects._framing import to_json
from ..dialects._providers import provider_of
from ..dialects._request import Request
from ..dialects._servers import OPENAI
from ..families import formats, get_format
from ..policies import Policies, Start
from ..reading import Reading
from ..reply._fold import Fold
from ..reply._items import Chunk, Failed
from ..reply._reply import Reply
from .bodies import read_json
from .capsules import key_file
from .model_profile import ModelProfile
from .observe import logs
from .plan import Target, find_question, find_reading, write_request
from .questions import headers_of
from .refusals import Refusal
from .state import State
from .upstreams import Upstream, UpstreamLost

QUESTION = "What is 17 times 23? Think briefly, then answer with the number."
TOOL = "get_weather"
TOOL_QUESTION = f"What is the weather in Lisbon? Use the tool {TOOL}."
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "The weather in a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
ALL = "all"
"""Stands for every model that an upstream lists."""
_CALL_IN_TEXT = re.compile(rf'"name"\s*:\s*"{TOOL}"|\b{TOOL}\s*[({{]|[=>]\s*{TOOL}\b')
"""How a call is written that was not read, where it has no marker of its own."""
MOST_ADVICE = 3
"""Ways to read a reply that are printed."""
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


def check(config: Config, wanted: str = "") -> int:
    """Ask models, print what came, and return 0 if each answered and nothing leaked, else 1.

    `wanted`: a model's name, `all`, or empty for every model that the configuration names; an upstream of which it
    names none is asked for the first that it lists.
    """
    return asyncio.run(_check(config, wanted))


async def _check(config: Config, wanted: str) -> int:
    state = State(config)
    state.open()
    try:
        named = [wanted] if wanted and wanted != ALL else state.configured_models()
        served: dict[str, list[str]] = {}
        good = [await _route(state, model, served) for model in named]
        for upstream in state.upstreams:
            if served.get(upstream.name) or wanted in ("", ALL):
                good.append(await _upstream(state, upstream, served.get(upstream.name, []), wanted))
    finally:
        await state.close()
    return 0 if all(good) else 1


async def _route(state: State, model: str, served: dict[str, list[str]]) -> bool:
    """Find the upstream that is asked for a model; False where there is none."""
    try:
        upstream = (await state.route(model, ""))[0]
    except Refusal as refusal:
        _print(state, f"model {model}")
        _print(state, f"  FAILED    {refusal.message}")
        return False
    served.setdefault(upstream.name, []).append(model)
    return True


def _print(state: State, line: str) -> None:
    """Print a line. Upstreams wrote parts of it: no secret and nothing that a terminal would obey may be in it."""
    sys.stdout.write(logs.one_line(line, logs.LONGEST_BODY, logs.secrets_of(state.config)) + "\n")
    sys.stdout.flush()


async def _upstream(state: State, upstream: Upstream, named: list[str], wanted: str) -> bool:
    """Ask an upstream for these models, and for those that it lists where they are wanted too."""
    _print(state, f"upstream {upstream.name} ({upstream.url})")
    try:
        kind = await upstream.find_kind()
        _print(state, f"  speaks    {kind.title}")
        engine = await state.engines.find(upstream) if kind is OPENAI else None
        if engine is not None:
            certain = "keeps to" if engine.certain else "may keep to"
            where = " where its chat template shows thoughts" if engine.by_template else ""
            _print(state, f"  runs      {engine.name}, which {certain} thinking budgets by {engine.budget}{where}")
        else:
            _print(state, "  runs      no server that is known to enforce thinking budgets")
        if kind.proved or provider_of(upstream.host) is not None:
            _print(state, f"  thoughts  {_sealed_by(state.config)}")
        listed = [model.id for model in await state.list_models(upstream)]
        _print(state, f"  models    {', '.join(listed[:8]) or 'none listed'}{' …' if len(listed) > 8 else ''}")
    except Refusal as refusal:
        _print(state, f"  FAILED    {refusal.message}")
        return False
    except UpstreamLost as error:
        _print(state, f"  FAILED    {error}")
        return False
    if wanted in ("", ALL):
        # Patterns of the configuration name models that an upstream lists.
        patterns = [pattern for pattern in state.config.models if pattern not in state.configured_models()]
        named = [*named, *(id for id in listed if wanted == ALL or any(matches(id, each) for each in patterns))]
    models = list(dict.fromkeys(named)) or listed[:1] or [""]
    return all([await _model(state, upstream, model) for model in models])


def _sealed_by(config: Config) -> str:
    """Which key seals what clients carry of a provider's thoughts."""
    if not config.continuity.carry:
        return "clients carry none of what the provider wants back (continuity.carry)"
    if config.continuity.keys:
        return "what clients carry is sealed by continuity.keys; several machines must have the same"
    return f"what clients carry is sealed by the key in {key_file()}; several machines need one in continuity.keys"


async def _model(state: State, upstream: Upstream, model: str) -> bool:
    """Ask a model both questions, and print what came."""
    settings = state.settings(model)
    profile = await state.profiles.resolve(upstream, model, settings)
    format = profile.format
    _print(state, f"  asked     {model or 'the model it serves'}: {QUESTION}")
    _print(
        state,
        f"  format    {format.name if format is not None else 'none (not split)'}, from {format_source(profile)}",
    )
    target = Target(upstream, await upstream.find_kind(), settings, profile)
    policies = policies_of(settings, start=settings.start, collect=False)
    reading = await find_checked_reading(state, target, request_of(model), policies)
    begins = reading.begins
    _print(state, f"  start     {begins}")
    if profile.switch:
        _print(state, f"  switch    {profile.switch}")
    try:
        chunks = await ask(state, target, request_of(model))
        checked = read(chunks, reading)
        sound = _judge(state, checked, chunks, format, begins.start or "text")
        called = await _call(state, target, model, begins.start or "text")
    except Refusal as refusal:
        _print(state, f"  FAILED    {refusal.message}")
        return False
    except UpstreamLost as error:
        _print(state, f"  FAILED    {error}")
        return False
    if sound and called and checked.reply.thinking:
        _print(state, "  good      thinking and answer are apart")
    elif sound and called:
        how = f", or is not asked to by default (switch: {profile.switch.keyword})" if profile.switch else ""
        _print(state, f"  no thinking seen: the model does not think{how}, or its thought is in the answer above")
    return sound and called


async def _call(state: State, target: Target, model: str, start: Start) -> bool:
    """Ask for a tool call. That none is made, or that the server takes no tools, is no fault of the gateway's."""
    format = target.profile.format
    _print(state, f"  asked     {TOOL_QUESTION}")
    try:
        request = request_of(model, tools=True)
        chunks = await ask(state, target, request)
    except Refusal as refusal:
        if refusal.status >= 500:
            raise
        _print(state, f"  call      not tried, the server refuses tools: {refusal.message}")
        return True
    policies = policies_of(target.settings, start=target.settings.start, collect=False, tools=TOOLS)
    checked = read(chunks, await find_checked_reading(state, target, request, policies))
    reply = checked.reply
    if checked.failed:
        _print(state, f"  FAILED    {checked.failed}")
        return False
    written = ", ".join(f"{call.name}({shortened(call.arguments)})" for call in reply.tool_calls)
    _print(state, f"  call      {written or 'none'}")
    broken = [call.error for call in reply.tool_calls if call.error is not None]
    leaks = leaked(reply.text, format, calls=True)
    if not leaks and not broken:
        if not written:
            _print(state, f"  answer    {shortened(reply.text) or 'none'}")
        return True
    what = f"the answer still holds {', '.join(leaks)}" if leaks else f"the call cannot be read ({', '.join(broken)})"
    _print(state, f"  LEAK      {what}; another format or start reads it:")
    _advise(state, chunks, format, start, tools=True)
    return False


def format_source(profile: ModelProfile) -> str:
    """Where the format is known from, for people."""
    known = {
        "name": "the model's name",
        "server": "the server's chat template",
        "nobody": "each reply's own markers (neither name nor server tells more)",
    }
    return known.get(profile.format_source, profile.format_source)


def request_of(model: str, *, tools: bool = False) -> Request:
    """A question, as a client would send it."""
    question = {"role": "user", "content": TOOL_QUESTION if tools else QUESTION}
    asked: dict[str, Any] = {"model": model, "messages": [question], "max_tokens": MOST_TOKENS}
    return openai_chat.read_request({**asked, "tools": TOOLS} if tools else asked)


async def find_checked_reading(state: State, target: Target, request: Request, policies: Policies) -> Reading:
    """How the reply is read: also by how the server ends the prompt, where it can be asked."""
    question = find_question(state, target, write_request(request, target.kind.dialect(request), target))
    end = await state.prompt_ends.ask(target.upstream, question) if question is not None else None
    return find_reading(target, request, policies, prompt_end=end)


async def ask(state: State, target: Target, request: Request) -> list[Chunk]:
    """The chunks of the upstream's reply to a question that is sent as any client's request would be."""
    upstream, upstream_dialect = target.upstream, target.kind.dialect(request)
    body = to_json(write_request(request, upstream_dialect, target))
    sent = {"content-type": "application/json", "accept-encoding": "identity", **headers_of(upstream, "")}
    sent |= upstream.own_headers
    async with upstream.ask("POST", upstream_dialect.upstream_path(request), body, sent) as answer:
        data = await answer.read(state.config.limits.body)
    if answer.status >= 400:
        failed = upstream_dialect.read_error(answer.status, data)
        status = f"status {answer.status}"
        raise Refusal(answer.status, failed.message if status in failed.message else f"{status}: {failed.message}")
    return upstream_dialect.read_reply(read_json(data))


def read(chunks: list[Chunk], reading: Reading) -> CheckedReply:
    """A whole reply, read in one way."""
    splitter = reading.splitter(whole=True)
    fold, failed = Fold(), ""
    for item in [item for chunk in chunks for item in splitter.feed(chunk)] + splitter.finish(None):
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
        return True
    _advise(state, chunks, format, start)
    return False


def _advise(state: State, chunks: list[Chunk], format: Format | None, start: Start, *, tools: bool = False) -> None:
    for line in advice(chunks, format, start, tools=tools) or ["none of those that were tried"]:
        _print(state, f"            {line}")


def leaked(text: str, format: Format | None, *, calls: bool = False) -> list[str]:
    """Markers of any format that still stand in an answer; `calls`: those of calls, and calls without a marker too."""
    names = [format.name] if format is not None else []
    names += [name for name in formats() if name not in ("auto", "passthrough")]
    found: dict[str, None] = {}
    for name in names:
        for table in get_format(name).states.values():
            found.update(dict.fromkeys(marker for marker in table if len(marker) > 4 and marker in text))
        for syntax in get_format(name).calls if calls else ():
            found.update(dict.fromkeys(marker for marker in syntax.openers if len(marker) > 4 and marker in text))
    if calls and not found and (match := _CALL_IN_TEXT.search(text)) is not None:
        found[match.group()] = None
    return list(dict.fromkeys((*_tags(text), *found)))[:5]


def _tags(text: str) -> list[str]:
    """Tags for thinking that stand in an answer, in whatever case and with whatever attributes they are written."""
    table = compile_tables(get_format(ANY_TAG), "never", False).text
    matches = [match.group() for pattern in table.searches for match in pattern.finditer(text)]
    return [tag for tag in matches if table.marker(tag).action is Action.OPEN or table.marker(tag).closes_thinking]


def advice(chunks: list[Chunk], format: Format | None, start: Start, *, tools: bool = False) -> list[str]:
    """Other ways to read the same reply that leave nothing in the answer, the likeliest first."""
    other: Start = "thinking" if start == "text" else "text"
    starts: tuple[Start, ...] = ("text", "thinking")
    tried: list[tuple[str, Start | None]] = [(format.name, other)] if format is not None else []
    tried += [(name, begin) for name in ("auto", ANY_TAG) for begin in starts]
    lines = [line for line in map(partial(_flags, chunks, tools), dict.fromkeys(tried)) if line]
    if not lines:  # as `asides probe` does: every format, with its own start
        names = [name for name in formats() if name not in ("auto", "passthrough")]
        lines = [line for line in map(partial(_flags, chunks, tools), [(name, None) for name in names]) if line]
    return lines[:MOST_ADVICE]


def _flags(chunks: list[Chunk], tools: bool, tried: tuple[str, Start | None]) -> str:
    """The flags of a way to read a reply; empty where it is no better."""
    name, begin = tried
    policies = Policies(start=begin, collect=False, tools=TOOLS if tools else None)
    reply = read(chunks, Reading.of(format=name, policies=policies)).reply
    calls = [call for call in reply.tool_calls if call.error is None] if tools else []
    if not (calls or (reply.text and not tools)) or leaked(reply.text, None, calls=tools):
        return ""
    return f"--format {name}" + (f" --start {begin}" if begin is not None else "")


def shortened(text: str) -> str:
    """A text in one short line."""
    line = " ".join(text.split())
    return line if len(line) <= SHOWN else f"{line[:SHOWN]}… ({len(text)} characters)"
