"""`TokenParser`: token ids in, the same events out, and every part knows its place in the ids.

Where the tokenizer has a token for a marker, only that token is the marker: the same characters typed with ordinary
tokens are words. To say so to the machine, the format is rewritten: each such token becomes its first character and a
lone surrogate, which no decoder ever produces, and what the machine tells is translated back. (The first character
stays because grammars end a name before a `<`.)
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Unpack

import msgspec

from ..errors import UsageError
from ..events import Event, Notice, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Message
from ..parts import Part, Span, Text, Thinking
from ..policies import DEFAULTS, Policies, PolicyOptions
from .calls.json_calls import JsonCalls
from .calls.named_calls import NamedCalls
from .calls.syntax import CallSyntax
from .fast_path import ALWAYS
from .format import Format, find_format
from .markers import Table
from .parser import Opening, Parser, ParserState, fast_path_of, open_span, read_prompt
from .vocabulary import Pieces, TokenPlaces, Vocabulary, vocabulary_of

FIRST, LAST = 0xD8C0, 0xDB3F
"""The surrogates that stand for tokens: those of planes that Unicode has left empty, so that JSON escapes none."""
_TOKEN = re.compile(f".[{chr(FIRST)}-{chr(LAST)}]", re.DOTALL)
_ESCAPED = re.compile(r"(.)\\u(d[89ab][0-9a-f]{2})(?!\\u[dD][c-fC-F])", re.DOTALL)
"""What stands for a token, its surrogate written as an escape. Half of a pair only the model can have written."""
_WRITTEN = (
    "states",
    "calls",
    "header",
    "ignored",
    "strays",
    "partial",
    "tag_rules",
    "leading",
    "behind_calls",
    "assistant",
)
"""The fields of a format that hold what models write."""
LITTLE = 128
"""More whitespace than this is the machine's to hold."""
MANY = 1024
"""After this many markers, those behind what has been told are forgotten where nothing is collected."""


class Cut(NamedTuple):
    """An ordinary text, cut by what may be told of it."""

    words: str
    """What can be told at once."""
    space: str
    """Whitespace that may stand beside a marker."""
    tail: str
    """What is a marker's beginning if the next token is the rest of it."""


class PlainPieces(dict[int, str | None]):
    """The text of each token in which nothing can matter in one state, so that it is told as it is; None for others."""

    def __init__(self, pieces: Pieces, table: Table, tidy: bool) -> None:
        super().__init__()
        self._pieces = pieces
        self._tidy = tidy
        self._cuts: dict[str, Cut | None] = {}
        spelled = [marker.text for marker in table.markers.values() if not marker.certain]
        # Only markers that are spelled out can be mere mentions.
        self._table = table
        self._spelled = {name[:length] for name in spelled for length in range(1, len(name) + 1)}
        self._whole = spelled
        # A token comes whole, so the character before its surrogate alone is no beginning.
        heads = [_TOKEN.split(name, maxsplit=1)[0] for name in table.markers]
        self._heads = {head[:length] for head in heads for length in range(1, len(head) + 1)} - set(spelled)
        self._longest = max(map(len, (*self._spelled, *self._heads)), default=0)

    def __missing__(self, id: int) -> str | None:
        found = self._pieces[id]
        cut = self.cut(found) if found else None
        self[id] = found = found if cut is not None and cut.words == found else None
        return found

    def cut(self, text: str) -> Cut | None:
        """Cut a text; None if something in it may matter to the machine."""
        if text not in self._cuts:
            self._cuts[text] = self._cut(text)
        return self._cuts[text]

    def _may_be_spelled(self, text: str) -> bool:
        """Whether a marker, or the beginning of one, stands in the text in another spelling."""
        return self._table.unmarked(text) < len(text)

    def _cut(self, text: str) -> Cut | None:
        if any(name in text for name in self._whole):
            return None
        if self._table.has_spellings and self._may_be_spelled(text):
            return None
        tail = ""
        for length in range(1, min(len(text), self._longest) + 1):
            if text[-length:] in self._spelled:
                return None
            tail = text[-length:] if text[-length:] in self._heads else tail
        rest = text[: len(text) - len(tail)]
        words = rest.rstrip() if self._tidy else rest
        return Cut(words, rest[len(words) :], tail)


class Disguise(msgspec.Struct, frozen=True, eq=False):
    """A format whose marker tokens are written as surrogates, and the way back."""

    format: Format
    letters: dict[int, str]
    """For each id that is a marker or a piece of one: what stands for it."""
    rests: dict[int, str]
    """For `str.translate`: what each surrogate stands for."""
    pieces: Pieces
    """For each other id its text; None for markers, and where its bytes alone are no whole characters."""
    encodes: bool
    """Whether a call syntax writes arguments anew, so that a surrogate in one may come back as an escape."""
    plain: dict[tuple[Table, bool], PlainPieces] = {}
    """For each state, with tidy whitespace or without: what can be told at once there."""

    def reveal(self, text: str) -> str:
        """Text with the tokens' own texts in it."""
        return text if text.isascii() else text.translate(self.rests)

    def reveal_arguments(self, text: str) -> str:
        """The same in JSON that may have been written anew."""
        if self.encodes and "\\u" in text:
            text = _ESCAPED.sub(lambda match: self._escaped(match, True), text)
        return self.reveal(text)

    def reveal_words(self, text: str) -> str:
        """The same in a message of ours, which may quote what the model wrote."""
        if "\\u" in text:
            text = _ESCAPED.sub(lambda match: self._escaped(match, False), text)
        return self.reveal(text)

    def _escaped(self, match: re.Match[str], quote: bool) -> str:
        surrogate = int(match[2], 16)
        if match[1] + chr(surrogate) not in self.letters.values():
            return match[0]
        rest = self.rests[surrogate]
        return match[1] + (json.dumps(rest, ensure_ascii=False)[1:-1] if quote else rest)


def disguise(format: Format, vocabulary: Vocabulary) -> Disguise:
    """Rewrite a format for a tokenizer."""
    format = format.for_tokens(vocabulary.added)
    markers = "\0".join(_strings(format))
    wanted = sorted((text for text in vocabulary.added if text in markers and text.strip()), key=len, reverse=True)
    if len(wanted) > LAST - FIRST:
        raise UsageError("the tokenizer has more marker tokens than can be told apart")
    surrogates = {text: chr(FIRST + number) for number, text in enumerate(wanted)}
    letters = {text: text[0] + surrogate for text, surrogate in surrogates.items()}
    pieces = Pieces(vocabulary.bytes_of)
    pieces.update({vocabulary.added[text]: None for text in wanted})
    return Disguise(
        _Swap(letters).format(format),
        {vocabulary.added[text]: letter for text, letter in letters.items()},
        {ord(surrogate): text[1:] for text, surrogate in surrogates.items()},
        pieces,
        any(not isinstance(syntax, JsonCalls | NamedCalls) for syntax in _syntaxes(format)),
    )


def _syntaxes(format: Format) -> Iterable[CallSyntax]:
    formats = (format, *_settled(format)) if format.settle is not None else (format,)
    for found in formats:
        yield from found.calls
        yield from found.header.calls if found.header is not None else ()


def _strings(value: object) -> Iterable[str]:
    """Every string in a format and its call syntaxes, but for its names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Format):
        yield from _strings(tuple(getattr(value, name) for name in _WRITTEN))
        if value.settle is not None:
            yield from _strings(tuple(_settled(value)))
    elif isinstance(value, dict):
        yield from _strings((*value.keys(), *value.values()))
    elif isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, msgspec.Struct):
        yield from _strings(tuple(getattr(value, name) for name in value.__struct_fields__))


def _settled(format: Format) -> Iterable[Format]:
    """The formats that `auto` may become by its markers."""
    assert format.settle is not None
    seen: dict[int, Format] = {}
    for markers in format.states.values():
        for marker in markers:
            found = format.settle(marker)
            seen.setdefault(id(found), found)
    return [found.but(settle=None) for found in seen.values() if found is not format]


def _sure_of_calls(format: Format) -> Format:
    """The format with what it says of calls in thinking where their openers are tokens, if they all are."""
    said = format.calls_in_thinking_ids
    openers = (opener for syntax in format.calls for opener in syntax.openers)
    if said is None or not all(_TOKEN.search(opener) for opener in openers):
        return format
    return msgspec.structs.replace(format, calls_in_thinking=said)


class _Swap:
    """Puts what stands for tokens in the place of their texts, everywhere in a format."""

    def __init__(self, letters: dict[str, str]) -> None:
        self._letters = letters
        self._formats: dict[int, tuple[Format, Format]] = {}
        self._values: dict[int, tuple[object, Any]] = {}
        self._originals: dict[int, Any] = {}

    def format(self, format: Format) -> Format:
        known = self._formats.get(id(format))
        if known is None:
            changes = {name: self._value(getattr(format, name)) for name in _WRITTEN}
            settle = self._settle(format.settle) if format.settle is not None else None
            # In ids a marker is a token; what is typed with others is words, and no reason to look at every `<`.
            swapped = _sure_of_calls(
                msgspec.structs.replace(format, **changes, settle=settle, suffixed=None, foreign=False)
            )
            known = self._formats[id(format)] = (format, swapped)
        return known[1]

    def _settle(self, settle: Callable[[str | CallSyntax], Format]) -> Callable[[str | CallSyntax], Format]:
        def swapped(met: str | CallSyntax) -> Format:
            return self.format(settle(self._original(met)))

        return swapped

    def _original(self, met: str | CallSyntax) -> str | CallSyntax:
        if isinstance(met, str):
            for text, letter in self._letters.items():
                met = met.replace(letter, text)
            return met
        original: CallSyntax = self._originals.get(id(met), met)
        return original

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            for text, letter in self._letters.items():
                value = value.replace(text, letter)
            return value
        if isinstance(value, dict):
            return {self._value(key): self._value(item) for key, item in value.items()}
        if isinstance(value, tuple | list | frozenset):
            return type(value)(map(self._value, value))
        if isinstance(value, msgspec.Struct):
            known = self._values.get(id(value))
            if known is None:
                names = value.__struct_fields__
                swapped = msgspec.structs.replace(value, **{name: self._value(getattr(value, name)) for name in names})
                known = self._values[id(value)] = (value, swapped)
                self._originals[id(swapped)] = value
            return known[1]
        return value


@lru_cache(maxsize=256)
def _disguise(format: Format, vocabulary: Vocabulary) -> Disguise:
    return disguise(format, vocabulary)


def read_prompt_ids(tokenizer: Any, format: Format, ids: Iterable[int]) -> Opening:
    """Where a prompt leaves the model; a marker that is typed with ordinary tokens is none."""
    parser = TokenParser(tokenizer, format)
    return read_prompt(parser._disguise.format, parser._prompt(ids))


class TokenParser:
    """Takes a model's token ids apart as they come. `feed` ids, then `finish`; both return a list of events."""

    __slots__ = (
        "_collect",
        "_decoder",
        "_disguise",
        "_fast",
        "_half",
        "_marked",
        "_parser",
        "_pieces",
        "_places",
        "_plain",
        "_shifts",
        "_table",
        "_tail",
        "_vocabulary",
        "_waits",
        "ids",
    )

    def __init__(
        self,
        tokenizer: Any,
        format: str | Format = "auto",
        policies: Policies = DEFAULTS,
        *,
        prompt_ids: Sequence[int] | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        self._vocabulary = vocabulary_of(tokenizer)
        self._disguise = _disguise(find_format(format), self._vocabulary)
        if prompt_ids is not None:
            options["prompt"] = self._prompt(prompt_ids)
        policies = policies.but(**options) if options else policies
        self._parser = Parser(self._disguise.format, policies)
        self._fast = fast_path_of(self._parser)
        self._collect = policies.collect
        self._pieces = self._disguise.pieces
        self._decoder = self._vocabulary.decoder()
        self._half = False  # whether the decoder waits for the rest of a character
        self._tail = ""  # what the next token may make a marker of; the machine has not seen it
        self._waits = False  # whether there is half a character or a tail
        self.ids: list[int] = []
        """Every id that was fed; none where nothing is collected."""
        # Where the marker tokens stand in the machine's text, and how much longer the raw text is behind each.
        self._places: list[int] = []
        self._shifts: list[int] = [0]
        self._marked = False  # whether what the machine tells may hold a surrogate
        self._table: Table | None = None  # the state that `_plain` is of
        self._plain = PlainPieces(self._pieces, self._fast.table, True)

    def feed(self, ids: int | Iterable[int]) -> list[Event]:
        """Read one id or several and return what they tell."""
        if ids.__class__ is not int:
            return self._feed_all((ids,) if hasattr(ids, "__index__") else ids)  # type: ignore[arg-type]
        # The fast path of `Parser.feed`, with what it would ask of the piece known beforehand.
        fast = self._fast
        delta = fast.delta
        if delta is None or self._waits or fast.glance is ALWAYS:
            return self._feed_one(ids)
        if fast.table is not self._table:
            self._change_table()
        words = self._plain[ids]
        if words is None:
            return self._feed_one(ids)
        if self._collect:
            self.ids.append(ids)
        fast.pieces.append(words)
        if len(fast.pieces) > fast.most:
            fast.close()
        if fast.held:
            words = fast.take_held() + words
        return [delta(fast.index, words)]

    def _feed_one(self, id: int) -> list[Event]:
        piece = self._pieces[id]
        if piece is None or self._half:
            return self._feed_all((id,))
        fast = self._fast
        if self._tail:
            piece, self._tail, self._waits = self._tail + piece, "", False
        if fast.delta is not None and fast.glance is not ALWAYS:
            # `_plain` is of this state: `feed` has seen to it, now or before the tail, in which no state changes.
            cut = self._plain.cut(piece)
            if cut is not None and len(fast.held) < LITTLE:
                words, space, self._tail = cut
                self._waits = self._tail != ""
                if self._collect:
                    self.ids.append(id)
                return fast.take_cut(words, space)
        events = self._parser.feed(piece)
        if self._collect:
            self.ids.append(id)
        if not self._places or (not self._marked and len(events) == 1 and events[0].__class__ in _DELTAS):
            return events
        return self._translate(events)

    def _change_table(self) -> None:
        self._table = self._fast.table
        key = (self._table, self._fast.tidy)
        plain = self._disguise.plain.get(key)
        if plain is None:
            plain = self._disguise.plain[key] = PlainPieces(self._pieces, *key)
        self._plain = plain

    def _feed_all(self, ids: Iterable[int]) -> list[Event]:
        pieces, letters = self._pieces, self._disguise.letters
        read: list[str] = [self._tail] if self._tail else []
        fed: list[int] = []
        size = -1
        for id in map(int, ids):
            piece = pieces[id]
            fed.append(id)
            if piece is None or self._half:
                letter = letters.get(id)
                if letter is None:
                    piece = self._decoder.decode(self._vocabulary.bytes_of(id))
                    self._half = bool(self._decoder.getstate()[0])
                else:
                    piece = self._flush() + letter
                    if size < 0:
                        size = self._fast.length() + sum(map(len, read))
                    self._mark(size + len(piece) - 1, len(self._disguise.rests[ord(letter[1])]) - 1)
            read.append(piece)
            if size >= 0:
                size += len(piece)
        self._tail, self._waits = "", self._half
        events = self._parser.feed("".join(read))
        if self._collect:
            self.ids += fed
        if self._places:
            events = self._translate(events)
        return events

    def _flush(self) -> str:
        """Half a character that never becomes a whole one, because a marker or the end follows it."""
        rest = self._decoder.decode(b"", True)
        self._decoder.reset()
        self._half = False
        return rest

    def _mark(self, place: int, longer: int) -> None:
        if not self._collect and len(self._places) >= MANY:
            # What stands before the part that is open can no longer be told of.
            known = bisect_left(self._places, min(open_span(self._parser)))
            del self._places[:known], self._shifts[:known]
        self._places.append(place)
        self._shifts.append(self._shifts[-1] + longer)
        self._marked = True

    def finish(self) -> list[Event]:
        """The input is over: return what was held back and how it ends. A second call returns nothing."""
        self._settle_tail()
        rest = self._flush()
        events = self._parser.feed(rest) if rest else []
        return self._translate(events + self._parser.finish())

    def _settle_tail(self) -> None:
        """Let the machine hold the tail; it tells nothing of it, because it is a marker's beginning."""
        if self._tail:
            self._parser.feed(self._tail)
            self._tail, self._waits = "", self._half

    @property
    def state(self) -> ParserState:
        """Where the parser stands: what the next token would be part of."""
        return self._parser.state

    @property
    def held(self) -> int:
        """How many characters are held back, a marker token counting as two, half a character as none."""
        self._settle_tail()
        return self._parser.held

    @property
    def message(self) -> Message:
        """The message so far; the whole of it after `finish`. Its parts know their tokens."""
        self._settle_tail()
        told = self._parser.message
        places = self._token_places()
        tokens = [places.of(part.span) for part in told.parts]
        reveal = self._disguise.reveal
        return msgspec.structs.replace(
            told,
            parts=tuple(map(self._part, told.parts, tokens)),
            raw=reveal(told.raw),
            notices=tuple(map(self._notice, told.notices)),
            thinking=reveal(told.thinking),
            text=reveal(told.text),
            roles=_roles(told, places, tokens),
        )

    def _prompt(self, ids: Iterable[int]) -> str:
        """The prompt as the machine reads it."""
        decoder, letters, bytes_of = self._vocabulary.decoder(), self._disguise.letters, self._vocabulary.bytes_of
        texts = []
        for id in ids:
            letter = letters.get(id)
            if letter is None:
                texts.append(decoder.decode(bytes_of(id)))
            else:
                texts.append(decoder.decode(b"", True) + letter)
                decoder.reset()
        return "".join(texts)

    def _token_places(self) -> TokenPlaces:
        """Where each token's bytes stand in the machine's text."""
        firsts: list[int] = []
        stops: list[int] = []
        decoder, letters, pieces = self._vocabulary.decoder(), self._disguise.letters, self._pieces
        size, half = 0, False
        for id in self.ids:
            piece = pieces[id]
            if piece is None or half:
                letter = letters.get(id)
                if letter is None:
                    piece = decoder.decode(self._vocabulary.bytes_of(id))
                    half = bool(decoder.getstate()[0])
                else:
                    size += len(decoder.decode(b"", True))
                    decoder.reset()
                    piece, half = letter, False
            firsts.append(size)
            size += len(piece)
            stops.append(size + half)
        return TokenPlaces(firsts, stops)

    # Back from surrogates to texts, and from the machine's offsets to the raw text's.

    def _offset(self, offset: int) -> int:
        return offset + self._shifts[bisect_left(self._places, offset)]

    def _span(self, span: Span) -> Span:
        return self._offset(span[0]), self._offset(span[1])

    def _notice(self, notice: Notice) -> Notice:
        words = self._disguise.reveal_words(notice.message)
        return Notice(notice.code, words, self._offset(notice.offset))

    def _part(self, part: Part, tokens: Span) -> Part:
        reveal, span = self._disguise.reveal, self._span(part.span)
        if isinstance(part, Thinking):
            return Thinking(reveal(part.text), part.complete, span, tokens)
        if isinstance(part, Text):
            return Text(reveal(part.text), span, tokens)
        return msgspec.structs.replace(
            part,
            name=reveal(part.name),
            arguments=self._disguise.reveal_arguments(part.arguments),
            id=reveal(part.id),
            error_message=self._disguise.reveal_words(part.error_message),
            raw=reveal(part.raw),
            span=span,
            tokens=tokens,
        )

    def _translate(self, events: list[Event]) -> list[Event]:
        if not self._places:
            return events
        translated = [self._event(event) for event in events]
        # A letter that was fed may still be held back, or kept by the reader of a call.
        self._marked = self._marked and (self._parser.held > 0 or self._parser.state == "call")
        return translated

    def _event(self, event: Event) -> Event:
        if isinstance(event, TextDelta | ThinkingDelta):
            return type(event)(event.index, self._disguise.reveal(event.text)) if self._marked else event
        if isinstance(event, ToolCallDelta):
            if not self._marked:
                return event
            return ToolCallDelta(event.index, self._disguise.reveal_arguments(event.text))
        if isinstance(event, PartEnd):
            words = self._disguise.reveal_words(event.error_message)
            return PartEnd(event.index, event.complete, event.error, self._span(event.span), words)
        if isinstance(event, PartStart):
            reveal = self._disguise.reveal
            return PartStart(event.index, event.kind, event.gap, reveal(event.name), reveal(event.id))
        return self._notice(event)


_DELTAS = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})


_KINDS = {"Thinking": "thinking", "Text": "text", "ToolCall": "call"}


def _roles(message: Message, places: TokenPlaces, tokens: list[Span]) -> tuple[str, ...]:
    """A label for every id."""
    roles = [""] * len(places.firsts)
    at = 0
    for part, (first, last) in zip(message.parts, tokens, strict=True):
        first = max(first, at)  # a token that holds characters of two parts is the earlier one's
        if first < last:
            roles[first:last] = [_KINDS[type(part).__name__]] * (last - first)
            at = last
    raw = message.raw
    for number, role in enumerate(roles):
        if not role:
            text = raw[places.firsts[number] : places.stops[number]]
            roles[number] = "other" if not text or text.isspace() else "marker"
    return tuple(roles)
