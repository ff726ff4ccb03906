"""One turn of an agent over the client of an SDK: a request, its events, and what the conversation goes on with.

    messages = [{"role": "user", "content": "What should I pack for Oslo?"}]
    while True:
        turn = asides.turn(client, messages, model="qwen3", tools=TOOLS)
        for event in turn:
            ...                                                   # show it, or leave the loop out
        messages += turn.messages({call.id: run(call) for call in turn.calls})
        if not turn.reply.tool_calls:
            break

Messages and tools are in the shape of the client's own API: of OpenAI's chat completions, of Anthropic's Messages, of
Ollama's chat. With `client.responses` they are items and tools of OpenAI's Responses. What chat templates want of a
conversation (one system message, the results of calls in their order) is seen to before it is sent, by the rules of
the gateway; what is sent is otherwise what was given.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .. import dialects
from .._engine.format import Format
from ..detect._from_name import find_earlier
from ..dialects._arrange import arrange
from ..dialects._request import CallPiece, Request, WriteOptions, piece_kinds
from ..dialects._sent_back import messages_field, write_turn
from ..errors import UsageError
from ..events import Event
from ..parts import ToolCall
from ..policies import DEFAULTS, Policies
from ..reading import Reading
from ..reply import Reply
from .streams import AsyncSplitStream, Options, SdkReader, SplitStream, frame_of

_BESIDE = ("system", "instructions")
"""Fields of a request that hold instructions, beside the conversation."""
_OWN = ("messages", "input", "model", "stream", "tools")
"""Those that a turn sets by itself."""


class _Asked(NamedTuple):
    """A request that is ready to be sent."""

    api: str
    """The name of the dialect."""
    create: Callable[..., Any]
    """The SDK's own method."""
    body: dict[str, Any]
    options: Options


def turn(
    client: Any,
    messages: Iterable[Any],
    *,
    model: str,
    tools: Sequence[Any] | None = None,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    reading: Reading | None = None,
    **fields: Any,
) -> AgentTurn:
    """Ask a model once, with a conversation and tools: the events of its reply, its calls, and what to append.

    `client`: one of OpenAI's, Anthropic's or Ollama's SDK; `client.responses` for OpenAI's Responses. `messages` and
    `tools`: as its API has them. `fields`: what else goes into the request (`max_tokens`, `temperature`,
    `extra_body`…). How the reply is read is chosen as in `asides.openai.split`. The request is sent at once.

    Examples:
        >>> import openai
        >>> messages = [{"role": "user", "content": "2+2?"}]
        >>> with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:  # of a model server
        ...     turn = asides.turn(client, messages, model="qwen3")
        ...     messages += turn.messages()
        >>> turn.reply.thinking, turn.calls
        ('2+2', ())
        >>> messages[-1]
        {'role': 'assistant', 'content': 'It is 4.'}
    """
    return AgentTurn(_ask(client, messages, model, tools, format, policies, reading, fields))


def aturn(
    client: Any,
    messages: Iterable[Any],
    *,
    model: str,
    tools: Sequence[Any] | None = None,
    format: str | Format = "auto",
    policies: Policies = DEFAULTS,
    reading: Reading | None = None,
    **fields: Any,
) -> AsyncAgentTurn:
    """As `turn`, with an asynchronous client. The request is sent when the turn is iterated over or awaited.

    Examples:
        >>> import asyncio
        >>> import openai
        >>> async def ask():
        ...     async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        ...         messages = [{"role": "user", "content": "2+2?"}]
        ...         turn = await asides.aturn(client, messages, model="qwen3")
        ...         return turn.reply.text
        >>> asyncio.run(ask())
        'It is 4.'
    """
    return AsyncAgentTurn(_ask(client, messages, model, tools, format, policies, reading, fields))


class _AnyAgentTurn:
    """What both kinds of turn can be asked, once the reply has come."""

    def __init__(self, api: str) -> None:
        self._api = api

    def _read_whole(self) -> SdkReader:
        """What has read the whole reply."""
        raise NotImplementedError

    @property
    def reply(self) -> Reply:
        """The reply: its parts, how it ended, what it cost."""
        return self._read_whole().replies[0]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that may be run, in their order. What `messages` does with others, it says."""
        return tuple(call for call in self.reply.tool_calls if call.error is None)

    def messages(self, results: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """What to append to the conversation: the assistant's message, and a result for each of its calls.

        `results`: what each of `calls` gave, by the call's id. The model learns of its broken calls too: one that has a
        name is answered with its text and what was wrong with it; one that has none stands in the message as text, and
        a message of the user says that it was not run. Thoughts go back where the model wants them, under the name that
        the server gives them; to Anthropic with the signatures that came with them. What came redacted or encrypted
        goes back as it came, and so does what tools of the server itself have done.
        """
        reader = self._read_whole()
        message = reader.replies[0].message
        if not isinstance(results, Mapping | None):
            raise UsageError("results are a dict: for the id of each of `calls` what it gave, as text")
        given = dict(results or {})
        calls = {call.id: call for call in message.tool_calls if call.error is None}
        missing = [call.name for id, call in calls.items() if id not in given]
        if missing:
            raise UsageError(f"there is no result for {', '.join(missing)}: servers refuse a call without one")
        unknown = sorted(map(str, given.keys() - calls.keys()))
        if unknown:
            raise UsageError(f"results are for the calls in `calls`; there is none with the id {', '.join(unknown)}")
        wrong = [calls[id].name for id, result in given.items() if not isinstance(result, str)]
        if wrong:
            raise UsageError(f"the result of {', '.join(wrong)} is no text; json.dumps makes one")
        reading = reader.reading
        earlier = find_earlier(reading.model, reading.format) if reading is not None else None
        return write_turn(
            self._api,
            message,
            given,
            earlier=earlier,
            field=reader.field,
            proofs=reader.proofs,
            items=reader.own_items,
        )


class AgentTurn(_AnyAgentTurn):
    """One turn of a model: iterate over it for the events of the reply as they come.

    What is asked of it besides (`reply`, `calls`, `messages`) waits for the end of the reply.

    Examples:
        >>> import openai
        >>> with openai.OpenAI(base_url=f"{url}/v1", api_key="none") as client:  # of a model server
        ...     turn = asides.turn(client, [{"role": "user", "content": "2+2?"}], model="qwen3")
        ...     "".join(event.text for event in turn if isinstance(event, asides.TextDelta))
        'It is 4.'
    """

    def __init__(self, asked: _Asked) -> None:
        super().__init__(asked.api)
        self._reader = SdkReader(asked.options, choices=1)
        stream = asked.create(**asked.body)
        if hasattr(stream, "__await__"):
            getattr(stream, "close", lambda: None)()  # a coroutine that nobody awaits would warn
            raise UsageError("this client is asynchronous: asides.aturn asks it")
        self._events = iter(SplitStream(stream, self._reader))

    def __iter__(self) -> Iterator[Event]:
        """The events of the reply, each of them once."""
        return self._events

    def _read_whole(self) -> SdkReader:
        for _ in self._events:
            pass
        return self._reader


class AsyncAgentTurn(_AnyAgentTurn):
    """As `AgentTurn`, with an asynchronous client: `async for event in turn`, or `await turn` for the whole.

    Examples:
        >>> import asyncio
        >>> import openai
        >>> async def ask():
        ...     async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        ...         turn = asides.aturn(client, [{"role": "user", "content": "2+2?"}], model="qwen3")
        ...         return [event.text async for event in turn if isinstance(event, asides.TextDelta)]
        >>> "".join(asyncio.run(ask()))
        'It is 4.'
    """

    def __init__(self, asked: _Asked) -> None:
        super().__init__(asked.api)
        self._reader = SdkReader(asked.options, choices=1)
        self._events = self._read(asked)
        self._over = False

    def __aiter__(self) -> AsyncIterator[Event]:
        """The events of the reply, each of them once."""
        return self._events

    def __await__(self) -> Generator[Any, None, AsyncAgentTurn]:
        """Wait for the end of the reply; the turn itself."""
        return self._whole().__await__()

    async def _whole(self) -> AsyncAgentTurn:
        async for _ in self._events:
            pass
        return self

    async def _read(self, asked: _Asked) -> AsyncIterator[Event]:
        try:
            stream = asked.create(**asked.body)
            if not hasattr(stream, "__await__"):
                getattr(stream, "close", lambda: None)()
                raise UsageError("this client is not asynchronous: asides.turn asks it")
            async for event in AsyncSplitStream(await stream, self._reader):
                yield event
        finally:
            self._over = True

    def _read_whole(self) -> SdkReader:
        if not self._over:
            raise UsageError("the reply has not come to its end: `await` the turn, or iterate over it, first")
        return self._reader


def _ask(
    client: Any,
    messages: Iterable[Any],
    model: str,
    tools: Sequence[Any] | None,
    format: str | Format,
    policies: Policies,
    reading: Reading | None,
    fields: dict[str, Any],
) -> _Asked:
    api, create = _find_api(client)
    for name in _OWN:
        if name in fields:
            raise UsageError(f"{name} is set by the turn itself")
    if fields.get("n") not in (None, 1):
        raise UsageError("a turn is one reply: several are asked for with the SDK's own call and read by its choices")
    if isinstance(messages, str | bytes | Mapping) or not isinstance(messages, Iterable):
        raise UsageError("messages must be a list of messages, as the SDK takes them")
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable | None):
        raise UsageError("tools must be a list of definitions, as the SDK takes them")
    if not isinstance(policies, Policies) or not isinstance(reading, Reading | None):
        raise UsageError("policies are asides.Policies(...), and a reading is an asides.Reading")
    sent = [frame_of(message, whole=True) for message in messages]
    field = messages_field(api)
    body = {"model": model, field: sent, **({"tools": list(map(frame_of, tools))} if tools else {})}
    beside = {name: fields[name] for name in _BESIDE if name in fields}
    request = dialects.get(api).read_request({**body, **beside, "max_tokens": 1})
    body |= _arranged(api, request, sent, field)
    Options(reading, None, format, policies, {})  # refuses what cannot be given together
    chosen = policies if reading is None else reading.policies
    # Who offers no tool, and never did, wants no call.
    calls = chosen.calls and (bool(tools) or CallPiece in piece_kinds(request))
    definitions = chosen.tools or [tool.definition for tool in request.tools] or None
    if reading is not None:
        options = Options(reading.but(tools=definitions, calls=calls), None, "auto", DEFAULTS, {})
    else:
        options = Options(None, None, format, policies.but(tools=definitions, calls=calls), {})
    return _Asked(api, create, {**fields, **body, "stream": True}, options)


def _arranged(api: str, request: Request, sent: list[dict[str, Any]], messages: str) -> dict[str, Any]:
    """The fields of the request that have to be written anew; mostly none, and then all is sent as it was given."""
    arranged = arrange(request)
    if not arranged.changes:
        return {}
    field = "reasoning" if any("reasoning" in message for message in sent) else "reasoning_content"
    written = dialects.get(api).write_request(arranged.request, WriteOptions(field=field))
    return {name: written[name] for name in (messages, *_BESIDE) if name in written}


def _find_api(client: Any) -> tuple[str, Callable[..., Any]]:
    """The API that a client speaks, by what it has, and its method for one reply."""
    chat = getattr(client, "chat", None)
    for api, create in (
        ("openai_responses", getattr(client, "create", None) if hasattr(client, "input_items") else None),
        ("openai_chat", getattr(getattr(chat, "completions", None), "create", None)),
        ("anthropic", getattr(getattr(client, "messages", None), "create", None)),
        ("ollama", chat),
    ):
        if callable(create):
            return api, create
    wanted = "a client of OpenAI's, Anthropic's or Ollama's SDK is wanted, or OpenAI's `client.responses`"
    raise UsageError(f"{wanted}, not {type(client).__name__}")
