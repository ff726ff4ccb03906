"""`TokenParser`: token ids in, the same events out, and every part knows its place in the ids.

Where the tokenizer has a token for a marker, only that token is the marker: the same characters typed with ordinary
tokens are words (`token_markers.py` rewrites the format so). Many ids become one text, which the machine reads in one
go (`token_text.py`). A single id, as streams have it, is answered without the machine where its text cannot matter
(`plain_pieces.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Unpack

import msgspec

from ..events import Event, Notice, PartEnd, PartStart, Retyped, TextDelta, ThinkingDelta, ToolCallDelta
from ..message import Message, Role
from ..parts import Part, Span, Text, Thinking, ToolCall
from ..policies import DEFAULTS, Policies, PolicyOptions
from .fast_path import ALWAYS
from .format import Format, find_format, read_model
from .markers import Table
from .parser import Opening, Parser, ParserState, fast_path_of, open_span, read_prompt
from .plain_pieces import PlainPieces
from .token_markers import Disguise, disguise
from .token_text import TokenPlaces, split_last, surrogates_in, whole_characters
from .vocabulary import Pieces, Vocabulary, vocabulary_of

LITTLE = 128
"""More whitespace than this is the machine's to hold."""
MANY = 1024
"""After this many markers, those before what has been emitted are forgotten where nothing is collected."""


def read_prompt_ids(tokenizer: Any, format: Format, ids: Iterable[int]) -> Opening:
    """Where a prompt leaves the model; a marker that is typed with ordinary tokens is none."""
    parser = TokenParser(tokenizer, format)
    return read_prompt(parser._disguise.format, parser._prompt(ids))


class TokenParser:
    """Takes a model's token ids apart as they come. `feed` ids, then `finish`; both return a list of events.

    Examples:
        >>> from splintr import Tokenizer
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> parser = asides.TokenParser(tokenizer, "qwen3")
        >>> events = parser.feed(tokenizer.encode_with_special("<think>2+2</think>Four.<|im_end|>"))
        >>> events = parser.finish()
        >>> parser.message.mask("thinking")
        [False, True, True, True, False, False, False, False]
    """

    __slots__ = (
        "_collect",
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
        model: str | None = None,
        prompt_ids: Sequence[int] | None = None,
        **options: Unpack[PolicyOptions],
    ) -> None:
        """`model`: as for `Parser`. `prompt_ids`: the prompt, whose end says where the output begins, whatever the
        model's name says."""
        self._vocabulary = vocabulary_of(tokenizer)
        if options:
            policies = policies.but(**options)
        if model is not None:
            format, named = read_model(model, format, policies)
            policies = named if prompt_ids is None else policies
        self._disguise = disguise(find_format(format), self._vocabulary)
        if prompt_ids is not None:
            policies = policies.but(prompt=self._prompt(prompt_ids))
        self._parser = Parser(self._disguise.format, policies)
        self._fast = fast_path_of(self._parser)
        self._collect = policies.collect
        self._pieces = self._disguise.pieces
        self._half = ""  # the beginning of a character, whose rest has not come
        self._tail = ""  # what the next token may make a marker of; the machine has not seen it
        self._waits = False  # whether there is half a character or a tail
        self.ids: list[int] = []
        """Every id that was fed; none where nothing is collected."""
        # Where the marker tokens stand in the machine's text, and how much longer the raw text is behind each.
        self._places: list[int] = []
        self._shifts: list[int] = [0]
        self._marked = False  # whether what the machine tells may hold a surrogate
        self._table: Table | None = None  # the state that `_plain` is of
        self._plain: PlainPieces
        self._change_table()

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
        fed = list(ids)
        if set(map(type, fed)) != {int}:  # one look at each costs half of what a conversion does
            fed = list(map(int, fed))
        text = self._disguise.texts.join(fed)
        if self._waits:
            text = self._tail + self._half + text
            self._tail, self._half, self._waits = "", "", False
        places = surrogates_in(text)
        if places:
            text = self._read_surrogates(text, places)
        events = self._parser.feed(text)
        if self._collect:
            self.ids += fed
        if self._places:
            events = self._translate(events)
        return events

    def _read_surrogates(self, text: str, places: list[int]) -> str:
        """The text in which pieces of characters are whole ones. Takes note of the marker tokens in it."""
        rests = self._disguise.rests
        if any(ord(text[place]) not in rests for place in places):
            text, self._half = split_last(text)
            self._waits = self._half != ""
            places = surrogates_in(text)
        size = self._fast.length()
        for place in places:
            self._mark(size + place, len(rests[ord(text[place])]) - 1)
        return text

    def _mark(self, place: int, longer: int) -> None:
        if not self._collect and len(self._places) >= MANY:
            # What stands before the part that is open can no longer be told of.
            known = bisect_left(self._places, min(open_span(self._parser)))
            del self._places[:known], self._shifts[:known]
        self._places.append(place)
        self._shifts.append(self._shifts[-1] + longer)
        self._marked = True

    def finish(self, finish_reason: str | None = None) -> list[Event]:
        """The input is over: return what was held back and how it ends. A second call returns nothing.

        `finish_reason` as in `Parser.finish`.
        """
        self._settle_tail()
        rest, self._half = whole_characters(self._half), ""
        events = self._parser.feed(rest) if rest else []
        return self._translate(events + self._parser.finish(finish_reason))

    def _settle_tail(self) -> None:
        """Let the machine hold the tail; it tells nothing of it, because it is a marker's beginning."""
        if self._tail:
            self._parser.feed(self._tail)
            self._tail, self._waits = "", self._half != ""

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
        places = self._disguise.texts.places(self.ids, len(told.raw))
        tokens = [places.of(part.span) for part in told.parts]
        raw = self._raw(told.raw)
        # A token in a part is rare: what has none is not looked through.
        marked = any(self._holds_token(part.span) for part in told.parts if not isinstance(part, ToolCall))
        reveal = self._disguise.reveal if marked else str
        return msgspec.structs.replace(
            told,
            parts=tuple(self._part(part, span, raw) for part, span in zip(told.parts, tokens, strict=True)),
            raw=raw,
            notices=tuple(map(self._notice, told.notices)),
            thinking=reveal(told.thinking),
            text=reveal(told.text),
            roles=_roles(told, places, tokens),
            beyond=self._span(told.beyond) if told.beyond is not None else None,
        )

    def _raw(self, text: str) -> str:
        """The machine's text as the model wrote it."""
        rests = self._disguise.rests
        pieces: list[str] = []
        at = 0
        for place in self._places:
            pieces += (text[at:place], rests[ord(text[place])])
            at = place + 1
        pieces.append(text[at:])
        return "".join(pieces)

    def _holds_token(self, span: Span) -> bool:
        """Whether a marker token stands in a stretch of the machine's text."""
        first = bisect_left(self._places, span[0])
        return first < len(self._places) and self._places[first] < span[1]

    def _prompt(self, ids: Iterable[int]) -> str:
        """The prompt as the machine reads it."""
        return split_last(self._disguise.texts.join(ids))[0]

    # Back from surrogates to texts, and from the machine's offsets to the raw text's.

    def _offset(self, offset: int) -> int:
        return offset + self._shifts[bisect_left(self._places, offset)]

    def _span(self, span: Span) -> Span:
        return self._offset(span[0]), self._offset(span[1])

    def _notice(self, notice: Notice) -> Notice:
        words = self._disguise.reveal_words(notice.message)
        return Notice(notice.code, words, self._offset(notice.offset))

    def _part(self, part: Part, tokens: Span, raw: str) -> Part:
        span = self._span(part.span)
        if isinstance(part, Thinking):
            return Thinking(raw[span[0] : span[1]], part.complete, span, tokens)
        if isinstance(part, Text):
            return Text(raw[span[0] : span[1]], span, tokens)
        reveal = self._disguise.reveal
        return msgspec.structs.replace(
            part,
            name=reveal(part.name),
            arguments=self._disguise.reveal_arguments(part.arguments),
            id=reveal(part.id),
            error_message=self._disguise.reveal_words(part.error_message),
            raw=raw[span[0] : span[1]],
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
        if isinstance(event, Retyped):
            return event
        if isinstance(event, PartStart):
            reveal = self._disguise.reveal
            return PartStart(event.index, event.kind, event.gap, reveal(event.name), reveal(event.id))
        return self._notice(event)


_DELTAS = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})


# For one who compares ids with the text that came with them: `asides.reply`.


def machine_of(parser: TokenParser) -> Parser:
    """What reads the text that a parser of ids makes of them. Its offsets are its own, not those of the raw text."""
    return parser._parser


def vocabulary_in(parser: TokenParser) -> Vocabulary:
    """The vocabulary that a parser reads ids by."""
    return parser._vocabulary


def marker_tokens(parser: TokenParser) -> dict[int, str]:
    """The ids that are markers to a parser, or pieces of one, with their texts."""
    rests = parser._disguise.rests
    return {id: letter[0] + rests[ord(letter[1])] for id, letter in parser._disguise.letters.items()}


def raw_span(parser: TokenParser, span: Span) -> Span:
    """A span of the machine's text, in the raw text."""
    return parser._span(span)


def revealed(parser: TokenParser, text: str) -> str:
    """A text of the machine's as the model wrote it."""
    return parser._disguise.reveal(text)


def ordinary_pieces(parser: TokenParser) -> Pieces:
    """For each id its text; None for markers, and where its bytes alone are no whole characters."""
    return parser._pieces


def feed_ordinary(parser: TokenParser, ids: tuple[int, ...], text: str) -> list[Event]:
    """Let a parser read ids of `ordinary_pieces`, whose texts joined are `text`."""
    if parser._waits or parser._collect:
        return parser.feed(ids)
    events = parser._parser.feed(text)
    return parser._translate(events) if parser._places else events


def feed_spelled(parser: TokenParser, text: str) -> list[Event]:
    """Let a parser read text for which no ids came: what is written like one of its marker tokens is that token.

    No marker may be cut off at the end of the text, and no character where the ids before it end.
    """
    parser._settle_tail()
    letters, size = parser._disguise.letters, parser._fast.length()
    ids = {spelled: id for id, spelled in marker_tokens(parser).items()}
    read: list[str] = []
    for piece in _spelled(parser._disguise).split(text):
        if piece in ids:
            letter = letters[ids[piece]]
            parser._mark(size + 1, len(piece) - 2)
            piece = letter
        read.append(piece)
        size += len(piece)
    return parser._translate(parser._parser.feed("".join(read)))


@lru_cache(maxsize=256)
def _spelled(disguise: Disguise) -> re.Pattern[str]:
    """Finds the texts of marker tokens, the longest first."""
    texts = [letter[0] + disguise.rests[ord(letter[1])] for letter in disguise.letters.values()]
    longest = sorted(texts, key=len, reverse=True)
    return re.compile(f"({'|'.join(map(re.escape, longest))})" if longest else r"(?!)()")


_KINDS: dict[str, Role] = {"Thinking": "thinking", "Text": "text", "ToolCall": "call"}


def _roles(message: Message, places: TokenPlaces, tokens: list[Span]) -> tuple[Role, ...]:
    """A label for every id."""
    # What is in no part stands around parts: markers, whitespace, and what another turn wrote.
    roles: list[Role] = ["marker"] * len(places.firsts)
    at = 0
    for part, (first, last) in zip(message.parts, tokens, strict=True):
        first = max(first, at)  # a token that holds characters of two parts is the earlier one's
        if first < last:
            roles[first:last] = [_KINDS[type(part).__name__]] * (last - first)
            at = last
    return tuple(roles)
