"""A request between two dialects: messages, tools, sampling, how the caller wants thinking. Values only.

A dialect reads its JSON into a `Request` and writes one for an upstream. Fields that only the same dialect understands
travel in `extra`, at every level; those of them that change what is asked are named in `essential`, so that no other
dialect leaves them out in silence (`leave_out`). `WriteOptions` says what is known of the upstream and the model.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..errors import Error
from ..reply._items import PlacedProof

if TYPE_CHECKING:
    from ..families import Switch

log: logging.Logger = logging.getLogger("asides")

Role = Literal["system", "developer", "user", "assistant", "tool"]
ToolChoice = Literal["auto", "none", "required"]


class RequestError(Error):
    """A request that cannot be carried out. Says which field, and what to do."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        self.message = message
        self.param = param
        """The field that is wrong."""
        self.status = status
        super().__init__(message)


OWN_SIGNATURE = "asides-"
"""How a signature begins that we made for thinking that nobody signed: clients want one. It proves nothing."""
OWN_SEAL = "asides1:"
"""How `encrypted_content` begins that we made: thinking in base64, so that clients leave it alone."""


class TextPiece(msgspec.Struct, frozen=True, tag="text"):
    """Text of a message."""

    text: str
    extra: dict[str, Any] = {}
    """Fields that only the same dialect understands (cache_control…)."""


class ThinkingPiece(msgspec.Struct, frozen=True, tag="thinking"):
    """Thinking of an earlier turn, in whatever shape it came."""

    text: str
    signature: str = ""
    details: tuple[dict[str, Any], ...] = ()
    """OpenRouter's details or a reasoning item, to be sent back as they are."""
    written: str = ""
    """All that the model wrote between its markers, whitespace included; empty where that is not known."""
    extra: dict[str, Any] = {}
    """Fields that only the same dialect understands."""
    proof: PlacedProof | None = None
    """What the upstream wants back in its place, where that is known to be the upstream's own."""

    def within(self, framing: tuple[str, str] | None) -> str:
        """The text to send to a template that writes this whitespace around it by itself; None: nobody knows which.

        What the template then writes is what the model wrote, where the template allows that, so that servers find the
        turn in their prefix caches.
        """
        # Models write as they were trained to, with what their own template has: a newline at either side, or none.
        before, behind = ("\n", "\n") if framing is None else framing
        return self.written.removeprefix(before).removesuffix(behind) if self.written.strip() else self.text


class CallPiece(msgspec.Struct, frozen=True, tag="call"):
    """A call of an earlier turn."""

    name: str
    arguments: str
    """JSON text, as it was written."""
    id: str = ""
    extra: dict[str, Any] = {}
    proof: PlacedProof | None = None
    """What the upstream wants back with it."""


class ImagePiece(msgspec.Struct, frozen=True, tag="image"):
    """An image: by address, or its data in base64 with its media type."""

    url: str = ""
    data: str = ""
    media_type: str = ""
    extra: dict[str, Any] = {}


class OtherPiece(msgspec.Struct, frozen=True, tag="other"):
    """Something only the same dialect understands."""

    data: dict[str, Any]


RequestPiece = TextPiece | ThinkingPiece | CallPiece | ImagePiece | OtherPiece


class RequestTurn(msgspec.Struct, frozen=True):
    """One message of the conversation."""

    role: Role
    pieces: tuple[RequestPiece, ...] = ()
    call_id: str = ""
    """For a tool's result: the call it answers."""
    tool_name: str = ""
    """For a tool's result: the tool's name, where the dialect gives one."""
    is_error: bool = False
    """For a tool's result: whether the tool failed."""
    extra: dict[str, Any] = {}
    """Fields that only the same dialect understands (name, cache_control…)."""

    @property
    def text(self) -> str:
        """The text of the message."""
        return "".join(piece.text for piece in self.pieces if isinstance(piece, TextPiece))


class ToolOrigin(msgspec.Struct, frozen=True):
    """What the caller's API calls a tool that the model is offered as a function under a name of our own."""

    name: str
    namespace: str = ""
    kind: Literal["function", "custom", "tool_search"] = "function"
    """What its API calls such a tool. A custom one takes free text, and its function has one string instead."""


class Tool(msgspec.Struct, frozen=True):
    """A function the model may call."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    strict: bool | None = None
    extra: dict[str, Any] = {}
    origin: ToolOrigin | None = None
    """Set where the tool was no plain function; the writer of replies turns calls back by it."""

    @property
    def definition(self) -> dict[str, Any]:
        """The function as the parser is told of it."""
        return {"type": "function", "function": {"name": self.name, "parameters": self.parameters}}


class ThinkingOptions(msgspec.Struct, frozen=True):
    """What a request says about thinking: whether, how much, and what of it the caller is sent."""

    think: bool | None = None
    """Whether the model shall think; None where the request does not say."""
    show: bool = True
    """Whether the caller wants to see it. Thinking that comes anyway is split off, counted and not sent."""
    effort: str | None = None
    """none, minimal, low, medium, high, xhigh or max."""
    budget: int | None = None
    """How many tokens it may take."""
    summary: str | None = None
    """Responses: which summary was asked for."""
    omitted: bool = False
    """Anthropic's `display: omitted`: blocks without their text."""
    encrypted: bool = False
    """Responses: whether `encrypted_content` was asked for; clients are sent it in any case."""
    keep: Literal["all", "current_turn"] | int | None = None
    """Which earlier thinking the model shall see: all, that since the user's last message, or that of so many of its
    last turns; None where the request does not say."""
    passed: tuple[str, ...] = ()
    """Fields of the upstream's own that the caller is sent though it is shown no thinking."""
    reports_dropped: bool = False
    """Anthropic's `block_binding`: whether the reply lists earlier thinking that the model was not shown, because it is
    bound to another model or conversation."""
    sent: dict[str, Any] = {}
    """The fields that asked for it, as they were, for the same dialect."""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a reply."""

    dialect: str
    """The dialect that it was read from."""
    model: str = ""
    turns: tuple[RequestTurn, ...] = ()
    prompt: str | None = None
    """For completions and Ollama's generate: the bare prompt."""
    tools: tuple[Tool, ...] = ()
    other_tools: tuple[dict[str, Any], ...] = ()
    """Tools that were no functions, as they were, for the same dialect."""
    hosted: tuple[str, ...] = ()
    """The places and types of those that only the API's own server could run (`tools[8].web_search`): every other
    dialect leaves them out, and logs it."""
    tool_choice: ToolChoice | str = "auto"
    """`auto`, `none`, `required`, or `function:NAME`."""
    parallel_calls: bool | None = None
    thinking: ThinkingOptions = ThinkingOptions()
    stream: bool = False
    include_usage: bool = False
    """Whether a chat client asked for the usage chunk."""
    choices: int = 1
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    sampling: dict[str, Any] = {}
    """temperature, top_p, top_k, min_p, seed, presence_penalty, frequency_penalty, repeat_penalty, by these names."""
    response_format: dict[str, Any] | None = None
    """In OpenAI's chat shape: `{"type": "json_object"}` or `{"type": "json_schema", "json_schema": {...}}`."""
    logprobs: bool = False
    top_logprobs: int | None = None
    template_arguments: dict[str, Any] = {}
    """`chat_template_kwargs`."""
    user: str | None = None
    extra: dict[str, Any] = {}
    """Fields that only the same dialect understands, as they were."""
    names: dict[str, str] = {}
    """The name that a field came by, where its dialect has several: `{"max_tokens": "max_completion_tokens"}`."""
    essential: tuple[str, ...] = ()
    """Those of `extra` that change what is asked, so that no other dialect may leave them out."""
    echo: dict[str, Any] = {}
    """Fields of the reply that repeat what was asked, where who serves the request and not its upstream honours them:
    Responses' `store`, `previous_response_id`. For replies of the same dialect."""


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the upstream that a request is written for."""

    replay: Literal["auto", "reasoning_content", "reasoning", "tags", "drop"] = "auto"
    """How thinking of earlier turns is sent back. `auto`: as `field` and `keep_thinking` say."""
    field: str = "reasoning_content"
    """The name under which this upstream itself sends thinking; `tags` where it wants it in the content."""
    keep_thinking: Literal["all", "tool_turns", "none"] = "all"
    """Which earlier thinking the model's format needs: all, that of turns with calls and since the last user's
    message, or none."""
    every_thought: bool = False
    """Whether every message of the assistant must have a thought: an empty one where none is known."""
    switch: Switch | None = None
    """The keywords of the chat template that turn thinking on and off; None where there are none."""
    framing: tuple[str, str] | None = None
    """The whitespace that the chat template itself writes around a thought; None where nobody knows."""
    budget: str = ""
    """The name under which this upstream knows a thinking budget; empty where it knows none."""
    stream: bool | None = None
    """Whether the upstream shall stream; None for what the caller asked for."""
    model: str = ""
    """The upstream's own name of the model; empty for the caller's."""
    usage: bool = False
    """Whether the upstream shall say what a streamed reply cost, though the caller did not ask."""
    special_tokens: bool = False
    """Whether the upstream shall leave special tokens in its text, where it has a choice: markers are among them."""
    proved: bool = False
    """Whether only thoughts with the upstream's own proof go back as thoughts."""
    foreign_thoughts: Literal["text", "drop"] = "drop"
    """What becomes of other thoughts then: text between tags, or nothing."""
    drop_bound: bool = False
    """Whether the upstream shall leave out thoughts that are bound to another conversation, and not refuse them."""
    stateless: bool = False
    """Whether the upstream shall store nothing, and send what it wants back with its reply, where it has a choice."""

    def applied_to(self, request: Request) -> Request:
        """The request with the upstream's name of the model, and streamed or not as it shall be."""
        if self.stream is None and not self.model:
            return request
        stream = request.stream if self.stream is None else self.stream
        return msgspec.structs.replace(request, model=self.model or request.model, stream=stream)


def in_tags(thought: str) -> str:
    """A thought that goes back as text, before what was said."""
    return f"<think>{thought}</think>\n\n"


PLAIN: WriteOptions = WriteOptions()
"""Nothing is known of the upstream."""


def template_arguments(request: Request, options: WriteOptions) -> dict[str, Any]:
    """The keywords for the chat template: the caller's own, and those that switch thinking as the caller asks."""
    if options.switch is None:
        return dict(request.template_arguments)
    thinking = request.thinking
    arguments = options.switch.arguments(thinking.think, thinking.effort)
    if options.switch.keyword == "thinking_budget" and thinking.budget is not None and thinking.think is not False:
        arguments[options.switch.keyword] = thinking.budget  # a template that is given the number of tokens itself
    return {**arguments, **request.template_arguments}


def clear_thinking(request: Request) -> Request:
    """The request without the earlier thinking that it does not want the model to see (`thinking.keep`)."""
    keep = request.thinking.keep
    if keep is None or keep == "all":
        return request
    first = _first_kept(request.turns, keep)
    cleared = [
        msgspec.structs.replace(
            turn, pieces=tuple(piece for piece in turn.pieces if not isinstance(piece, ThinkingPiece))
        )
        for turn in request.turns[:first]
    ]
    return msgspec.structs.replace(request, turns=(*cleared, *request.turns[first:]))


def _first_kept(turns: tuple[RequestTurn, ...], keep: str | int) -> int:
    """From which message on thinking stays.

    A turn that counts is all that the assistant wrote between two messages of the user, with calls and their results.
    """
    kept, within = 0, False
    for index in range(len(turns) - 1, -1, -1):
        role = turns[index].role
        if role == "user":
            if keep == "current_turn":
                return index
            within = False
        elif role == "assistant" and not within:
            if kept == keep:
                return index + 1
            kept, within = kept + 1, True
    return 0


def piece_kinds(request: Request) -> set[type[RequestPiece]]:
    """The kinds of pieces that the messages of a request have: most hold neither calls nor thinking."""
    return {type(piece) for turn in request.turns for piece in turn.pieces}


def without_seals(request: Request) -> Request:
    """The request without signatures and encrypted contents of our own making: to an upstream they mean nothing."""
    turns = [
        msgspec.structs.replace(turn, pieces=tuple(map(_without_seal, turn.pieces)))
        if any(isinstance(piece, ThinkingPiece) for piece in turn.pieces)
        else turn
        for turn in request.turns
    ]
    return msgspec.structs.replace(request, turns=tuple(turns))


def _without_seal(piece: RequestPiece) -> RequestPiece:
    if not isinstance(piece, ThinkingPiece):
        return piece
    signature = "" if piece.signature.startswith(OWN_SIGNATURE) else piece.signature
    details = tuple(
        {name: held for name, held in detail.items() if not _is_seal(name, held)} for detail in piece.details
    )
    return ThinkingPiece(piece.text, signature, details, piece.written, piece.extra, piece.proof)


def _is_seal(name: str, held: Any) -> bool:
    prefix = {"signature": OWN_SIGNATURE, "encrypted_content": OWN_SEAL}.get(name)
    return prefix is not None and isinstance(held, str) and held.startswith(prefix)
