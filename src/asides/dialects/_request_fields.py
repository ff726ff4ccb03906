"""Fields of requests: what every API's reader and writer of requests shares.

**Checks.** What a stranger sent is the value that is wanted, or a `RequestError` that names the field: `expect`,
`optional`, `maybe`. (What an upstream sent is never refused: `fields`.)

**Tables.** Each API's table says of every field of a `Request` what becomes of it there. A field that both have is a
`Field`, and both directions use it; one that the writer writes in its own way is `WrittenApart`; the others are
`Refused`, `LeftOut` (and reported) or `Moot`. A test compares each table with `Request` and each row with what is
written.

    FIELDS = FieldTable(Field("max_tokens", "max_tokens", whole), Refused("choices", "n"), WrittenApart("turns"), ...)
    Request(dialect=NAME, **FIELDS.read(body), extra=FIELDS.rest(body))
    same = FIELDS.leave_out(request, NAME)
    body = FIELDS.write(request)

**The rest** that several APIs write alike: functions as tools, images by data URL, earlier thinking, refusals.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar

from ._request import (
    CallPiece,
    ImagePiece,
    OtherPiece,
    Request,
    RequestError,
    RequestPiece,
    TextPiece,
    Tool,
    WriteOptions,
    log,
)
from ._whole_calls import to_object

T = TypeVar("T")

_KINDS: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "true or false",
    int: "a whole number",
}

# Checks.


def expect(value: Any, kind: type[T], param: str) -> T:
    """The value, if it is of this kind."""
    # In Python true is a whole number; in JSON it is not.
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RequestError(f"{param} must be {_KINDS[kind]}", param)
    return value


def expect_object(body: Any) -> dict[str, Any]:
    """The body of a request, if it is an object."""
    if not isinstance(body, dict):
        raise RequestError("the request must be a JSON object")
    return body


def optional(body: dict[str, Any], name: str, kind: type[T], default: T, within: str = "") -> T:
    """A field of the body, if it is there and not null."""
    value = body.get(name)
    return default if value is None else expect(value, kind, f"{within}{name}")


def without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The fields that are not among these, and not null."""
    # Null is how SDKs write what was not set.
    return {name: value for name, value in body.items() if name not in names and value is not None}


Shape = Mapping[str, "Shape | None"] | list[Any]
"""What is understood of a value: the fields of an object, each with its own shape (None: whatever it is); or a list,
with the shape of its elements."""


def unknown_fields(value: Any, shape: Shape | None, place: str = "") -> Iterator[str]:
    """The places of fields, at any depth, that nobody here understands. Null is how SDKs write what was not set."""
    if isinstance(shape, list):
        for number, each in enumerate(value if isinstance(value, list) else ()):
            yield from unknown_fields(each, shape[0], f"{place}[{number}]")
    elif shape is not None and isinstance(value, dict):
        for name, inner in value.items():
            at = f"{place}.{name}" if place else name
            if name in shape:
                yield from unknown_fields(inner, shape[name], at)
            elif inner is not None:
                yield at


# Tables.

Read = Callable[[Any, str], Any]


def of(kind: type[Any]) -> Read:
    """Reads a value of this kind."""
    # Nearly always it is just that, and a comparison is less than a call.
    return lambda value, param: value if type(value) is kind else expect(value, kind, param)


def positive(value: Any, param: str) -> int:
    """A whole number that is at least 1."""
    if expect(value, int, param) < 1:
        raise RequestError(f"{param} must be at least 1", param)
    return int(value)


def stops(value: Any, param: str) -> tuple[str, ...]:
    """Stop sequences: one, or a list."""
    return tuple(
        expect(each, str, param) for each in ([value] if isinstance(value, str) else expect(value, list, param))
    )


def read_budget(fields: Mapping[str, Any]) -> int | None:
    """The first budget for thinking among these fields: 0 for no thinking, None for none, or one without bound."""
    for name, value in fields.items():
        if value is not None:
            return budget if (budget := expect(value, int, name)) >= 0 else None  # -1 is how servers write: no bound
    return None


def _as_it_is(value: Any) -> Any:
    return value


class Field(NamedTuple):
    """A field of an API that a `Request` has too."""

    name: str
    attribute: str
    """Its name in a `Request`."""
    read: Read = of(str)
    """Checks the API's value and makes ours of it."""
    write: Callable[[Any], Any] | None = _as_it_is
    """Makes the API's value of ours; None for a field that is written elsewhere."""


class WrittenApart(NamedTuple):
    """A field of a `Request` that the writer of an API writes in its own way, or that changes how it writes others."""

    attribute: str


class Refused(NamedTuple):
    """A field of a `Request` that an API has no counterpart for and a client relies on: the request is refused."""

    attribute: str
    name: str = ""
    """What the error calls it; empty where the field itself holds names."""
    asked: Callable[[Request], object] | None = None
    """Whether a request asks for it; None: wherever it is not what it is by default."""


class LeftOut(NamedTuple):
    """A field of a `Request` that an API has no counterpart for and that only tunes or annotates: it is reported."""

    attribute: str
    name: str = ""
    """What the report calls it; empty where the field itself holds names."""
    asked: Callable[[Request], object] | None = None
    """As for `Refused`."""


class Moot(NamedTuple):
    """A field of a `Request` that asks nothing of an upstream with this API."""

    attribute: str
    reason: str


FieldRow = Field | WrittenApart | Refused | LeftOut | Moot
"""What becomes of a field of a `Request`; it may have several rows, where that depends on its value."""

_DEFAULTS = Request(dialect="")
"""Fields with these values are not written. Nor is an empty model: a server of one model needs no name."""
SAMPLING = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
    "repetition_penalty": "repeat_penalty",
}
"""OpenAI's names (and vLLM's) of what tunes sampling, and ours."""
COMMON: tuple[FieldRow, ...] = (
    Field("model", "model"),
    Field("stream", "stream", of(bool)),
    WrittenApart("dialect"),
    WrittenApart("extra"),  # in the same dialect
    *(LeftOut(name) for name in ("extra", "hosted")),
    Refused("essential"),
    Moot("echo", "it is for the reply"),
)
"""The fields that every API has under these names, and those that fare alike in all of them."""


class FieldTable:
    """The fields of one API: those of a `Request`, what tunes sampling, and the names of those that are read apart."""

    def __init__(
        self,
        *rows: FieldRow,
        sampling: Mapping[str, str] = SAMPLING,
        foreign_sampling: Container[str] | None = None,
        apart: Iterable[str] = (),
        within: str = "",
    ) -> None:
        """`foreign_sampling`: the names of `sampling` that are written for requests of other dialects; None: all.
        `within`: what stands before their names in an error."""
        self._fields = fields = tuple(row for row in rows if isinstance(row, Field))
        self._refused = tuple((row.name, _asked(row)) for row in rows if isinstance(row, Refused) and row.name)
        self._left_out = tuple((row.name, _asked(row)) for row in rows if isinstance(row, LeftOut) and row.name)
        self._written = tuple(
            (field.name, field.attribute, field.write, getattr(_DEFAULTS, field.attribute))
            for field in fields
            if field.write is not None
        )
        """What `write` writes: name, attribute, how, and the value that is not written."""
        self._sampling = sampling
        self._foreign_sampling = {
            name: ours for name, ours in sampling.items() if foreign_sampling is None or name in foreign_sampling
        }
        lost = set(SAMPLING.values()).difference(self._foreign_sampling.values())
        tuned = (WrittenApart("sampling"), *((LeftOut("sampling"),) if lost else ())) if sampling else ()
        self.rows: tuple[FieldRow, ...] = (*rows, *tuned)
        """What becomes of each field of a `Request`."""
        self._known = frozenset({*(field.name for field in fields), *sampling, *apart})
        self._within = within

    def read(self, body: dict[str, Any]) -> dict[str, Any]:
        """The fields of a `Request` that are in the body."""
        found = {
            field.attribute: field.read(body[field.name], self._within + field.name)
            for field in self._fields
            # Most are absent, and a test is less than a call of `get`.
            if field.name in body and body[field.name] is not None
        }
        if not self._sampling.keys().isdisjoint(body):
            sampling = {
                ours: body[name] for name, ours in self._sampling.items() if name in body and body[name] is not None
            }
            if sampling:
                found["sampling"] = sampling
        return found

    def rest(self, body: dict[str, Any]) -> dict[str, Any]:
        """The fields that only this API understands."""
        return {} if body.keys() <= self._known else without(body, *self._known)

    def leave_out(self, request: Request, dialect: str, kept: Iterable[str] = ()) -> bool:
        """Before a request is written: whether it came in the same dialect. Refuses what changes what is asked and has
        no counterpart, and reports what else is lost. `kept`: names in `extra` that have a counterpart."""
        same = request.dialect == dialect
        # First what refuses the request: nothing is reported as left out of one that is never sent.
        if not same:
            refuse(dialect, **dict.fromkeys(request.essential, True))
        refuse(dialect, **{name: asked(request) for name, asked in self._refused})
        lost = {name for name, asked in self._left_out if asked(request)}
        if not same:
            lost |= _own_names(request).difference(kept).union(request.hosted)
            if request.sampling and self._sampling:
                lost |= request.sampling.keys() - self._foreign_sampling.values()
        report_lost(dialect, lost)
        return same

    def write(self, request: Request, same: bool = True) -> dict[str, Any]:
        """The fields of a request that are not what they are by default. `same`: as `leave_out` returned it."""
        body = {
            name: value if write is _as_it_is else write(value)
            for name, attribute, write, default in self._written
            if (value := getattr(request, attribute)) != default
        }
        if not request.sampling:
            return body
        names = self._sampling if same else self._foreign_sampling
        return body | {name: request.sampling[ours] for name, ours in names.items() if ours in request.sampling}


def _asked(row: Refused | LeftOut) -> Callable[[Request], object]:
    """Whether a request asks for the field of a row."""
    if row.asked is not None:
        return row.asked
    attribute, default = row.attribute, getattr(_DEFAULTS, row.attribute)
    return lambda request: getattr(request, attribute) != default


# What has no counterpart.

LONGEST = 200
"""Characters of a field's name that an error or the log repeats: a client may choose any name."""
MOST_NAMED = 100
"""Fields that one line of the log names."""


def refuse(dialect: str, **asked: object) -> None:
    """Refuse the first of these fields that is asked for."""
    for name, value in asked.items():
        if value:
            raise RequestError(f"{name[:LONGEST]!r} has no counterpart in {dialect}; leave it out", name[:LONGEST])


LEFT_OUT: ContextVar[list[str] | None] = ContextVar("left_out", default=None)
"""Collects the names of what is left out, for a server that reports them with its response; None: they are logged."""


def report_lost(dialect: str, names: Iterable[str]) -> None:
    """Report what only tunes or annotates and is left out."""
    if lost := sorted(names):
        if (collected := LEFT_OUT.get()) is not None:
            collected += lost
            return
        more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
        shown = ", ".join(name[:LONGEST] for name in lost[:MOST_NAMED])
        log.info("left out, no counterpart in %s: %s%s", dialect, shown, more)


def _own_names(request: Request) -> set[str]:
    """The fields, at every level of a request, that only its own dialect understands."""
    found = set(_names(request.extra))
    for holder in (*request.tools, *request.turns, *(piece for turn in request.turns for piece in turn.pieces)):
        if extra := getattr(holder, "extra", None):
            found.update(_names(extra))
        if details := getattr(holder, "details", None):
            found.update(name for detail in details for name in unknown_fields(detail, _DETAIL))
    return found


_PARTLY = frozenset({"custom", "function", "message", "options", "part", "source", "stream_options", "text"})
"""Names in `extra` that hold no more than what is left of an object whose other fields are understood."""
_UNSAID = frozenset({"call", "id", "index", "item", "status", "type"})
"""Names in `extra` that are lost without a word: a thing as it was, whose unknown fields stand beside it, and what only
tells things of one API apart."""
_DETAIL: Shape = {
    **dict.fromkeys(("format", "id", "index", "status", "thinking", "type"), None),
    "text": None,
    "summary": [{"type": None, "text": None}],
    "content": [{"type": None, "text": None}],
}
"""What is understood of an earlier thought that other dialects see as text alone."""


def _names(extra: Mapping[str, Any]) -> Iterator[str]:
    """The fields that another dialect leaves out."""
    for name, value in extra.items():
        if name in _PARTLY and isinstance(value, dict):
            yield from (f"{name}.{inner}" for inner in value if inner not in _UNSAID)
        elif name not in _UNSAID:
            yield name


def no_counterpart(piece: RequestPiece, dialect: str) -> RequestError:
    """The error for a piece of a message that a dialect has no place for."""
    kind = piece.data.get("type", "content") if isinstance(piece, OtherPiece) else type(piece).__name__
    return RequestError(f"content of type {str(kind)!r} has no counterpart in {dialect}", "messages")


_ALIKE = ("metadata", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "service_tier")
"""Fields that Chat Completions and Responses have with the same name and meaning, and no other dialect."""


def shared_extra(request: Request, names: Iterable[str] = _ALIKE) -> dict[str, Any]:
    """What a request says in fields that both of OpenAI's APIs have. They stay in `extra`, for its own dialect."""
    return {name: request.extra[name] for name in names if request.extra.get(name) is not None}


# Messages.


def read_content(content: Any, param: str, part: Callable[[Any, str], RequestPiece], at: str) -> list[RequestPiece]:
    """The content of a message: a string, or a list of parts; `at` is how an API counts them in the names of fields."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextPiece(content)]
    if not isinstance(content, list):
        raise RequestError(f"{param} must be a string or a list of parts", param)
    return [part(each, param + at.format(number)) for number, each in enumerate(content)]


_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^;,]*)*;base64,(.*)", re.DOTALL)


def read_image(url: str, extra: dict[str, Any]) -> ImagePiece:
    """An image by its address, or by its data where the address holds them."""
    match = _DATA_URL.fullmatch(url)
    return ImagePiece(url, extra=extra) if match is None else ImagePiece("", match.group(2), match.group(1), extra)


def with_data(image: ImagePiece) -> ImagePiece:
    """An image with its data apart, where its address holds them."""
    return image if image.data else read_image(image.url, image.extra)


def image_url(image: ImagePiece) -> str:
    """The address of an image; its data as one where it has none."""
    return image.url or f"data:{image.media_type or 'image/png'};base64,{image.data}"


def read_tool(function: Any, param: str, extra: dict[str, Any], schema: str = "parameters") -> Tool:
    """A function that the model may call."""
    function = expect(function, dict, param)
    return Tool(
        expect(function.get("name"), str, f"{param}.name"),
        optional(function, "description", str, "", f"{param}."),
        optional(function, schema, dict, {}, f"{param}."),
        function.get("strict"),
        extra,
    )


def write_tool(tool: Tool, schema: str = "parameters") -> dict[str, Any]:
    """The same, as every API writes it."""
    parameters = tool.parameters or {"type": "object", "properties": {}}
    return without(
        {"name": tool.name, "description": tool.description or None, schema: parameters, "strict": tool.strict}
    )


def read_nested_tool(tool: Any, param: str) -> Tool:
    """A tool whose function stands in a field of its own."""
    function = expect(tool, dict, param).get("function")
    unknown = without(function if isinstance(function, dict) else {}, "name", "description", "parameters", "strict")
    extra = without(tool, "type", "function") | ({"function": unknown} if unknown else {})
    return read_tool(function, f"{param}.function", extra)


def write_nested_tool(tool: Tool, same: bool) -> dict[str, Any]:
    """The same, with what only its own dialect understands."""
    extra = dict(tool.extra) if same else {}
    return {"type": "function", "function": write_tool(tool) | extra.pop("function", {}), **extra}


def call_value(call: CallPiece) -> dict[str, Any]:
    """The arguments of an earlier call as an object; what is none goes along, because its result needs a call."""
    value = to_object(call.arguments or "{}")
    return {"unparsed": call.arguments} if value is None else value


def replay_field(request: Request, index: int, options: WriteOptions) -> str:
    """Where the thinking of an earlier turn is sent back; empty where it is not."""
    if options.replay != "auto":
        return "" if options.replay == "drop" else options.replay
    # DeepSeek answers 400 where a turn with calls comes back without its thinking, however long ago it was; the
    # thinking of other turns it ignores.
    called = any(isinstance(piece, CallPiece) for piece in request.turns[index].pieces)
    answered = any(turn.role == "user" for turn in request.turns[index + 1 :])
    if options.keep_thinking == "none" or (options.keep_thinking == "tool_turns" and answered and not called):
        return ""
    return options.field
