"""A chat template, rendered as transformers renders it, with an origin for each character.

`tag` makes of messages, tools and keywords what a template is given: plain JSON values whose strings know their leaf.
A leaf is a message (or none) and a path in it. `ChatTemplate.render` gives a `RenderedChat`: the text, and for each
stretch of it the leaf it comes from and the message whose turn the template was at when it wrote it. The first says
whose words these are; the second, to which message the markers around them belong.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from .._extras import install_command
from ..errors import UsageError
from ..parts import Span
from ._origin import (
    NOBODY,
    OriginDict,
    OriginFloat,
    OriginInt,
    Runs,
    join,
    listed,
    plain,
    runs_of,
    tagged,
)

LEAST_OUTPUT = 1 << 20
"""Characters that a rendering may have in any case."""
GROWTH = 8
"""How many times its input a rendering may be long."""
LEAST_WORK = 1 << 26
"""Units of work (`_budget`) that a rendering may do in any case: a million loops, or eight million characters
that are made."""
WORK_PER_CHARACTER = 512
"""What is added for each character of its input: a loop may go through all of them."""
WORK_PER_VALUE = 4096
"""What is added for each text, number, list and dictionary of its input."""
WORK_PER_PAIR = 256
"""What is added for each message and message: some templates look through all of them at each."""
MOST_SOURCE = 1 << 17
"""Characters that a template may have. The longest in use have some twenty thousand."""
REASONING = ("reasoning_content", "thinking", "reasoning")
"""Fields of a message that hold its thinking. transformers copies the first that is there to the others' names."""


class Owner(NamedTuple):
    """Where something in a prompt comes from."""

    message: int | None
    """The message's index; None for tools, documents and keywords of the template."""
    part: str
    """The path in it, such as `content` or `tool_calls.0.function.name`; empty for what the template writes around."""


class Leaves:
    """The leaves of a conversation, numbered."""

    def __init__(self, before: Leaves | None = None) -> None:
        self._rows: list[tuple[int | None, int, str | int, int]] = list(before._rows) if before is not None else []
        self.characters: int = before.characters if before is not None else 0
        """How long all strings together are."""

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, message: int | None, parent: int, key: str | int, length: int = -1) -> int:
        """A new leaf; `length` of its text, where it is one."""
        self._rows.append((message, parent, key, length))
        if length > 0:
            self.characters += length
        return len(self._rows) - 1

    def owner(self, leaf: int) -> Owner:
        """Whose it is."""
        message, parent, key, _ = self._rows[leaf]
        path = [str(key)] if key != "" else []
        while parent != NOBODY:
            _, parent, key, _ = self._rows[parent]
            if key != "":
                path.append(str(key))
        return Owner(message, ".".join(reversed(path)))

    def message(self, leaf: int) -> int | None:
        """The index of its message."""
        return self._rows[leaf][0]

    def field(self, leaf: int) -> str:
        """The first step of its path: the field of a message, or `tools`."""
        parent, key = self._rows[leaf][1:3]
        field = key
        while parent != NOBODY:
            _, parent, key, _ = self._rows[parent]
            if key != "":
                field = key
        return str(field)

    def texts(self) -> Iterable[tuple[int, int]]:
        """Every leaf that is a text, and its length."""
        return ((number, row[3]) for number, row in enumerate(self._rows) if row[3] > 0)

    def tag(self, value: Any, message: int | None, parent: int, key: str | int) -> Any:
        """A value as a template is given it: JSON and nothing else, its strings with their leaf."""
        kind = type(value)
        if kind is str:
            return tagged(value, self.add(message, parent, key, len(value))) if value else value
        if value is None or kind is bool:
            return value
        if kind is int:
            number = OriginInt(value)
            number.leaf = self.add(message, parent, key)
            return number
        if kind is float:
            real = OriginFloat(value)
            real.leaf = self.add(message, parent, key)
            return real
        if isinstance(value, Mapping):
            return self._tag_mapping(value, message, parent, key)
        if isinstance(value, (list, tuple)):
            leaf = self.add(message, parent, key)
            items = [self.tag(item, message, leaf, place) for place, item in enumerate(value)]
            return tuple(items) if isinstance(value, tuple) else listed(items, leaf)
        return self.tag(as_json(value), message, parent, key)

    def _tag_mapping(self, value: Mapping[Any, Any], message: int | None, parent: int, key: str | int) -> OriginDict:
        leaf = self.add(message, parent, key)
        made = OriginDict()
        made.leaf, made.message, made.written = leaf, None, {}
        # A name in an object is a message's own word as well; the fields of a message itself are everybody's.
        names = key != ""
        for name, item in value.items():
            found = self.tag(item, message, leaf, name if isinstance(name, str) else str(name))
            made[tagged(plain(name), leaf) if names and isinstance(name, str) else name] = found
        return made


def as_json(value: Any) -> Any:
    """An object as plain values, as transformers sees it: what is no data is its type's name."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "shape", ()):  # a scalar of numpy
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if callable(getattr(value, "model_dump", None)):
        return value.model_dump()
    return f"<{type(value).__name__}>"


def tag_messages(leaves: Leaves, messages: Sequence[Mapping[str, Any]], first: int = 0) -> list[OriginDict]:
    """Messages as a template is given them. The first has the index `first`."""
    found: list[OriginDict] = []
    for place, message in enumerate(messages, first):
        given = {name: value for name, value in message.items() if value is not None}
        made = leaves.tag(given, place, NOBODY, "")
        thinking = next((made[name] for name in REASONING if made.get(name) is not None), None)
        if thinking is not None:
            made.setdefault("thinking", thinking)
            made["reasoning_content"] = thinking
        made.message = place
        found.append(made)
    return found


class RenderedChat:
    """What a template wrote."""

    def __init__(
        self, text: str, places: Runs, leaves: Leaves, losses: dict[int, str], generated: Sequence[Span] = ()
    ) -> None:
        self.text: str = plain(text)
        """All of it."""
        self.runs: Runs = runs_of(text)
        """The leaf of each stretch."""
        self.places: Runs = places
        """The message at which the template's loop stood when it wrote each stretch."""
        self.generated: Sequence[Span] = generated
        """What stands in `{% generation %}`, where the template does not put it together with other text first."""
        self.leaves = leaves
        self._losses = losses

    @cached_property
    def losses(self) -> dict[int, str]:
        """The texts that are not in the prompt as they were given, and why."""
        written: dict[int, int] = {}
        start = 0
        for end, leaf in self.runs:
            written[leaf] = written.get(leaf, 0) + end - start
            start = end
        found = dict(self._losses)
        for leaf, length in self.leaves.texts():
            if leaf not in found and written.get(leaf, 0) < length:
                found[leaf] = "written in part" if leaf in written else "not written"
        return found

    def last_words(self, index: int) -> int | None:
        """Where the words of a message end; None where there are none."""
        leaves = self.leaves
        ends = (end for end, leaf in reversed(self.runs) if leaf >= 0 and leaves.message(leaf) == index)
        return next((end for end in ends), None)


class ChatTemplate:
    """A chat template that can be rendered."""

    def __init__(self, source: str) -> None:
        if len(source) > MOST_SOURCE:
            raise UsageError(f"the chat template has {len(source):,} characters; at most {MOST_SOURCE:,} are read")
        self.source = source
        try:
            import jinja2

            from . import _environment as engine
        except ImportError as error:
            raise UsageError(f"writing prompts needs jinja2: {install_command('tokens')}") from error
        self._engine = engine
        self._environment = engine.ChatEnvironment()
        try:
            self._compiled = self._environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"the chat template is not valid Jinja: line {error.lineno}: {error.message}") from error
        except SyntaxError as error:  # of what Jinja makes of it: a `break` outside of loops
            raise UsageError(f"the chat template is not valid Jinja: {error.msg}") from error
        except (RecursionError, MemoryError) as error:  # Python's own parser says the latter
            raise UsageError("the chat template is nested too deeply") from error
        except ValueError as error:  # a number with more digits than Python reads
            raise UsageError(f"the chat template is not valid Jinja: {error}") from error

    def render(self, variables: Mapping[str, Any], leaves: Leaves) -> RenderedChat:
        """Render it. A `UsageError` says why it cannot be."""
        import jinja2

        size = leaves.characters + len(self.source)
        pairs = len(variables.get("messages", ())) ** 2
        work = LEAST_WORK + WORK_PER_CHARACTER * size + WORK_PER_VALUE * len(leaves) + WORK_PER_PAIR * pairs
        state = self._engine.RenderState(max(LEAST_OUTPUT, GROWTH * size), work)
        environment = self._environment
        environment.state = state
        pieces: list[str] = []
        places: list[tuple[int, int]] = []
        generated: list[Span] = []
        length, last = 0, None
        try:
            for piece in self._compiled.root_render_func(self._compiled.new_context(dict(variables))):
                if not piece:
                    continue
                pieces.append(piece)
                if isinstance(piece, self._engine.GeneratedText):
                    generated.append((length, length + len(piece)))
                length += len(piece)
                if length > state.limit:
                    state.check(length)
                place = NOBODY if state.current is None else state.current
                if place == last:
                    places[-1] = (length, place)
                else:
                    places.append((length, place))
                    last = place
        except UsageError:
            raise
        except RecursionError as error:
            raise UsageError("the chat template calls itself too deeply") from error
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template refuses this conversation: {_describe(error)}") from error
        except Exception as error:  # a template can fail in as many ways as Python
            raise UsageError(f"the chat template fails on this conversation: {_describe(error)}") from error
        return RenderedChat(join(pieces), tuple(places), leaves, state.losses, generated)

    def mentions(self, *names: str) -> bool:
        """Whether any of these words stands in its source."""
        return any(name in self.source for name in names)


def _describe(error: Exception) -> str:
    import jinja2

    try:
        words = str(error)
    except Exception:  # an error whose message is itself made by the template
        words = ""
    kind = "" if isinstance(error, jinja2.TemplateError) else f"{type(error).__name__}: "
    # Its author knows of dicts and texts, not of ours that remember where they are from.
    named = _OWN_TYPES.sub(lambda own: _PLAIN_TYPES.get(own[1], own[1].lower()), kind + plain(words))
    return named[:300] or type(error).__name__


_OWN_TYPES = re.compile(r"(?:asides\._conversation\._\w+\.(?:Origin|Chat)|\bOrigin(?=[A-Z]))(\w+)")
_PLAIN_TYPES = {"Text": "str", "Markup": "Markup"}


def common_length(one: str, other: str) -> int:
    """How many characters two strings begin with in common."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


@lru_cache(maxsize=64)
def chat_template(source: str) -> ChatTemplate:
    """The template of this source, compiled once."""
    return ChatTemplate(source)
