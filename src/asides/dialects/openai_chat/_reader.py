"""Replies of chat completions, read: frames and whole bodies of any server that speaks something like it. Never raises.

Thinking is looked for under every name that servers use; calls by index, with what servers leave out. Most frames
differ from the one before in a single string: `frame_templates` recognises these without decoding them, and
`text_frame` hands the text of such a frame straight to the pipeline. One `ChoiceReader` per choice knows what has come.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from ...reply._items import (
    Begin,
    CallChunk,
    Chunk,
    Ended,
    Failed,
    Foreign,
    Proof,
    RawText,
    Reason,
    ThinkingChunk,
    Usage,
)
from .._errors import UPSTREAM_ENDED, malformed
from .._fields import as_count, as_json, as_moment, as_object, as_objects, as_reply, as_text, as_tokens, maybe_count
from .._frame_templates import FrameTemplates, IdFrameTemplates
from .._framing import SseReader, read_odd_json
from .._thought_fields import ID_FIELDS, unknown_parts
from ._errors import failed_of
from ._request import NAME, REASONING, detail_text, thinking_text

_decode = msgspec.json.decode

REASONS: dict[str, Reason] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_use": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}
MOST_CHOICES = 1000
"""Choices of one reply that are remembered. Text of further ones is passed on, each frame by itself."""
_FRAME = frozenset({"id", "object", "created", "model", "choices", "usage"})
_CHOICE = frozenset({"index", "delta", "message", "logprobs", "finish_reason", "text"})
_DELTA = frozenset({"role", "content", "tool_calls", "function_call", *REASONING})
_PLAIN = frozenset({"role", "content"})
_CALL = frozenset({"index", "id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})
_IDS = ("token_ids", "response_token_ids")
"""Where a choice has the ids of its tokens: vLLM's name and SGLang's, then a later one of SGLang's."""
_CHOICE_WITH_IDS = _CHOICE | ID_FIELDS


class ChatReader:
    """Reads a streamed reply from bytes cut anywhere."""

    _dialect = NAME

    def __init__(self, *, ids: bool = False) -> None:
        """`ids`: whether the ids of tokens are handed over with the text, and not as fields that are passed on."""
        self.frames: SseReader = SseReader()
        self._takes_ids = ids
        self._templates = IdFrameTemplates() if ids else FrameTemplates()
        self._idle = True
        self._looked_at = b""
        self._found: tuple[Repeated, Any] | None = None
        """What the bytes that `text_frame` was called with last are like."""
        self._begun = False
        self._over = False
        self._no_reason = False
        """Whether it marked its end, but gave no reason."""
        self._usage: dict[str, Any] | None = None
        self._choices: dict[int, ChoiceReader] = {}
        self._names: tuple[str, ...] = ()
        """The fields of the last frame; most have the same."""
        self._unknown: tuple[str, ...] = ()
        """Those of them that only this dialect understands."""
        self._extra: dict[str, Any] = {}

    def text_frame(self, chunk: bytes) -> tuple[int, Any] | None:
        """The choice and the text of bytes that are one more frame of content, as most are; None: `feed` them."""
        found = self._found = self._templates.find(chunk) if self._idle else None
        self._looked_at = chunk
        if found is None:
            return None
        choice, field = found[0]
        # Thinking does not pass the parser, so it has no fast path to the splitter; and behind its end a choice is
        # silent.
        if field or choice.ended:
            return None
        choice.in_thinking = False
        return choice.number, found[1]

    def feed(self, chunk: bytes) -> list[Chunk]:
        """Read bytes and return the chunks of the reply that are whole in them."""
        chunks: list[Chunk] = []
        if self._idle:
            # What `text_frame` did not take was compared there.
            found = self._found if chunk is self._looked_at else self._templates.find(chunk)
            if found is not None and found[0].more(found[1], chunks):
                return chunks
            # Whole events, cut apart by their blank lines, can each be compared with the templates; `SseReader` takes
            # whatever is cut or written otherwise.
            if chunk.endswith(b"\n\n") and b"\r" not in chunk:
                self._blocks(chunk, chunks)
                return chunks
        for frame in self.frames.feed(chunk):
            self._frame(b"", frame.raw, chunks)
        self._idle = self.frames.idle
        return chunks

    def _blocks(self, chunk: bytes, chunks: list[Chunk]) -> None:
        """Whole events, several perhaps."""
        for text in chunk[:-2].split(b"\n\n"):
            block = text + b"\n\n"
            found = self._templates.find(block)
            if found is None or not found[0].more(found[1], chunks):
                for frame in self.frames.feed(block):
                    self._frame(block, frame.raw, chunks)

    def read_frame(self, frame: dict[str, Any]) -> list[Chunk]:
        """Read a frame that is decoded already."""
        chunks: list[Chunk] = []
        if not self._over:
            self._decoded(frame, chunks)
        return chunks

    def finish(self) -> list[Chunk]:
        """The stream is over. If the upstream did not say so before, that is a failure."""
        chunks: list[Chunk] = []
        if not self._idle:
            for frame in self.frames.finish():
                self._frame(b"", frame.raw, chunks)
        # The stream ended properly behind a `[DONE]` without a reason. Had it broken off, `Pipeline.lose` would drop
        # this.
        if self._no_reason:
            self._stopped(chunks)
        if not self._over:
            self._over = True
            # A reason without `[DONE]` is an end: not every server sends one.
            if self._choices and all(choice.ended for choice in self._choices.values()):
                self._append_usage(chunks)
            else:
                chunks.append(UPSTREAM_ENDED)
        return chunks

    def _frame(self, block: bytes, data: bytes, chunks: list[Chunk]) -> None:
        if self._over or data[:1] != b"{":
            if data.startswith(b"[DONE]") and not self._over:
                self._done(chunks)
            # Some proxies send their keep-alive as data (`data: : keepalive`).
            return  # keep-alive junk
        try:
            frame = _decode(data)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            frame = read_odd_json(data)
        if type(frame) is not dict:
            self._fail(Failed(malformed(data), code="malformed_frame"), chunks)
            return
        before = len(chunks)
        self._decoded(frame, chunks)
        # A frame that gave several chunks, or counts tokens, is more than its text and must be decoded each time.
        if len(chunks) == before + 1 and not frame.get("usage"):
            self._learn(block, data, chunks[-1])

    def _learn(self, block: bytes, data: bytes, piece: Chunk) -> None:
        """Most frames are like the one before but for their text."""
        choice = self._choices.get(piece.choice) if isinstance(piece, ThinkingChunk | RawText) else None
        if choice is None:
            return
        if isinstance(piece, ThinkingChunk):
            if piece.field and not piece.details and not piece.logprobs:
                self._templates.learn(block, data, self._path(piece.field), Repeated(choice, piece.field))
        elif isinstance(piece, RawText) and not piece.logprobs:
            content = self._path("content")
            if not piece.ids:
                self._templates.learn(block, data, content, Repeated(choice, ""))
            elif isinstance(self._templates, IdFrameTemplates):
                self._templates.learn_ids(block, data, content, ("choices", 0, _IDS[0]), Repeated(choice, ""))

    def _path(self, field: str) -> tuple[str | int, ...]:
        """Where the text of a frame stands."""
        return ("choices", 0, "delta", field)

    def _decoded(self, frame: dict[str, Any], chunks: list[Chunk]) -> None:
        choices = frame.get("choices")
        if not choices or type(choices) is not list:
            self._bare_frame(frame, chunks)
            return
        if not self._begun:
            self._begun = True
            self._extra = unknown_fields(frame)
            chunks.append(read_begin(frame, self._extra, self._dialect))
        self._fields(frame, chunks)
        usage = frame.get("usage")
        # vLLM can send usage with every chunk, each replacing the one before: the last is appended once, at the end.
        if usage:
            self._usage = usage
        for choice in choices:
            if type(choice) is dict:
                self._choice(choice).read(*self._content(choice), chunks)
        if frame.get("error"):
            self._fail(failed_of(frame, 502), chunks)

    def _content(self, choice: dict[str, Any]) -> tuple[dict[str, Any], Any]:
        """A choice, and its delta."""
        return choice, choice.get("delta") or choice.get("message")

    def _choice(self, choice: dict[str, Any]) -> ChoiceReader:
        number = choice.get("index", 0)
        # `type`, because true would be choice 1.
        if type(number) is not int:
            number = 0
        found = self._choices.get(number)
        if found is None:
            found = ChoiceReader(number, self._dialect, reads_ids=self._takes_ids, takes_ids=self._takes_ids)
            if len(self._choices) < MOST_CHOICES:
                self._choices[number] = found
        return found

    def _fields(self, frame: dict[str, Any], chunks: list[Chunk]) -> None:
        """Fields that only this dialect understands, where they are not those that the reply began with."""
        names = tuple(frame)
        if names != self._names:
            self._names = names
            self._unknown = tuple(name for name in names if name not in _FRAME and name != "error")
        if self._unknown:
            extra = self._extra
            new = {name: frame[name] for name in self._unknown if name not in extra or frame[name] != extra[name]}
            if new:
                chunks.append(Foreign(self._dialect, "fields", new))

    def _bare_frame(self, frame: dict[str, Any], chunks: list[Chunk]) -> None:
        """A frame without choices: what the reply cost, an error, or something of the server's own."""
        if frame.get("error") or frame.get("object") == "error":
            self._fail(failed_of(frame, 502), chunks)
            return
        usage = frame.get("usage")
        if usage:
            self._usage = usage
            return
        if frame.keys() - _FRAME:
            # Every client looks for choices in every frame, and fails where they are no list.
            sound = frame if isinstance(frame.get("choices", []), list) else {**frame, "choices": []}
            chunks.append(Foreign(self._dialect, "frame", sound))

    def _done(self, chunks: list[Chunk]) -> None:
        """The upstream says that it is over. Where it gave no reason, the end of the stream decides whether it was."""
        self._over = True
        self._no_reason = not self._choices or not all(choice.ended for choice in self._choices.values())
        if not self._no_reason:
            self._append_usage(chunks)

    def _stopped(self, chunks: list[Chunk]) -> None:
        """A choice without a reason has stopped."""
        self._no_reason = False
        for number, choice in (self._choices or {0: ChoiceReader(0)}).items():
            if not choice.ended:
                choice.ended = True
                chunks.append(Ended(number))
        self._append_usage(chunks)

    def _append_usage(self, chunks: list[Chunk]) -> None:
        if isinstance(self._usage, dict):
            chunks.append(read_usage(self._usage))

    def _fail(self, failed: Failed, chunks: list[Chunk]) -> None:
        self._over = True
        for choice in self._choices.values():
            choice.ended = True
        chunks.append(failed)


class Repeated(NamedTuple):
    """What a frame means that differs from another only in its text."""

    choice: ChoiceReader
    field: str
    """Where thinking stands; empty for content."""

    def more(self, text: Any, chunks: list[Chunk]) -> bool:
        """Take the text, with ids perhaps; False where the frame must be looked at."""
        choice, field = self
        # The first piece of a further thought may begin with the gap, which `_thinking` takes off.
        if choice.ended or (field and not choice.in_thinking):
            return False
        if not field:
            choice.in_thinking = False
            text, ids = (text, ()) if isinstance(text, str) else text
            chunks.append(RawText(choice.number, text, (), (ids,) if isinstance(ids, int) else ids))
        else:
            chunks.append(ThinkingChunk(choice.number, text, field))
        return True


class ChoiceReader:
    """One choice of a reply while it is read."""

    def __init__(self, number: int, dialect: str = NAME, *, reads_ids: bool = False, takes_ids: bool = False) -> None:
        """`reads_ids`: whether text is given its ids; `takes_ids`: whether these are then no field to pass on."""
        self.number = number
        self._dialect = dialect
        self._reads_ids = reads_ids
        self._known = _CHOICE_WITH_IDS if takes_ids else _CHOICE
        self.ended: bool = False
        self._calls: dict[int, tuple[int, str]] = {}
        """By the upstream's index: our number and the upstream's id."""
        self._last = -1
        self._details: list[dict[str, Any]] = []
        """All `reasoning_details` so far, put together."""
        self._seen_thinking = False
        self.in_thinking: bool = False

    def read(self, choice: dict[str, Any], delta: Any, chunks: list[Chunk]) -> None:
        """Read a choice of a frame or of a whole reply; `delta` is what it says."""
        if self.ended:
            return
        logprobs = choice.get("logprobs")
        tokens = read_tokens(logprobs) if logprobs else ()
        ids = read_ids(choice) if self._reads_ids else ()
        if type(delta) is dict:
            content = delta.get("content")
            if type(content) is str and delta.keys() <= _PLAIN:  # by far the most frames
                if content or tokens or ids:
                    self.in_thinking = False
                    chunks.append(RawText(self.number, content, tokens, ids))
                    ids = ()
            elif delta:
                self._delta(delta, tokens, chunks)
        if ids:  # of a frame that says nothing in words, or not in content
            chunks.append(RawText(self.number, "", (), ids))
        reason = choice.get("finish_reason")
        extra = {} if choice.keys() <= self._known else unknown_parts(choice, self._known)
        if reason:  # some servers write "" where others write null
            self.ended = True
            if self._details:
                chunks.append(Proof(self.number, self._dialect, {"reasoning_details": self._details}))
            chunks.append(self._end(choice, str(reason), extra))
        elif extra:
            chunks.append(Foreign(self._dialect, "choice", {"fields": extra}, self.number))

    def _delta(self, delta: dict[str, Any], tokens: tuple[dict[str, Any], ...], chunks: list[Chunk]) -> None:
        number = self.number
        content = delta.get("content")
        texts = [RawText(number, content)] if isinstance(content, str) and content else []
        before = len(chunks)
        # Thinking, text, calls, whatever the order of the fields: servers put the end of a thought and the first text
        # into one frame where their own parser met both in one step.
        thinking = self._thinking(delta, chunks)
        if isinstance(content, list):
            thinking += self._parts(content, chunks)
        if tokens:
            self._give(tokens, texts, chunks, before)
        calls = delta.get("tool_calls")
        if texts or calls:
            self.in_thinking = False
        chunks += texts
        if calls and isinstance(calls, list):
            for call in calls:
                self._call(call, chunks)
        legacy = delta.get("function_call")
        if isinstance(legacy, dict):
            self._call({"index": 0, "function": legacy}, chunks)
        unknown = unknown_parts(delta, _DELTA, thinking)
        if unknown:
            chunks.append(Foreign(self._dialect, "delta", {"delta": unknown}, number))

    def _give(self, tokens: tuple[dict[str, Any], ...], texts: list[RawText], chunks: list[Chunk], first: int) -> None:
        """Log probabilities to the text they are of: those at the end to the content, the others to thinking."""
        mine = tokens
        thought = next((index for index in range(first, len(chunks)) if isinstance(chunks[index], ThinkingChunk)), -1)
        if thought >= 0:
            text = texts[0].text if texts else ""
            place = "".join(str(token.get("token")) for token in tokens).rfind(text) if text else -1
            passed, count = 0, 0
            while count < len(tokens) and (place < 0 or passed < place):
                passed += len(str(tokens[count].get("token")))
                count += 1
            chunks[thought] = msgspec.structs.replace(chunks[thought], logprobs=tokens[:count])
            mine = tokens[count:]
        if texts:
            texts[0] = RawText(texts[0].choice, texts[0].text, mine)
        elif mine:
            texts.append(RawText(self.number, "", mine))

    def _thinking(self, delta: dict[str, Any], chunks: list[Chunk]) -> str:
        """Read the thinking of a delta; returns its text as it stands there."""
        field, text = "", ""
        # The first that has text. Servers that changed the name of the field sent both for a while, with the same text.
        for name in REASONING:
            value = delta.get(name)
            if value and isinstance(value, str):
                field, text = name, value
                break
        details = as_objects(delta.get("reasoning_details"))
        for detail in details:
            join_detail(self._details, detail)
        worded = tuple(detail for detail in details if detail_text(detail))
        if not text and worded:
            field, text = "reasoning_details", "".join(map(detail_text, worded))
        if not text and (blocks := as_objects(delta.get("thinking_blocks"))):
            # LiteLLM's, for clients that send signatures back. It takes text under its first name.
            field, text = REASONING[0], "".join(thinking_text(block.get("thinking")) for block in blocks)
        found = text
        if text and not self.in_thinking and self._seen_thinking:
            text = text.lstrip("\n")  # a gap between two thoughts, as we and others write it
        if text:
            self.in_thinking = self._seen_thinking = True
            chunks.append(ThinkingChunk(self.number, text, field, worded))
        if len(worded) < len(details):
            silent = [detail for detail in details if not detail_text(detail)]
            chunks.append(Foreign(self._dialect, "details", {"details": silent}, self.number))
        return found

    def _parts(self, content: list[Any], chunks: list[Chunk]) -> str:
        """Content as a list of parts (Mistral); returns the text of its thinking."""
        thoughts = ""
        for part in content:
            if not isinstance(part, dict):
                continue
            if part.get("type") == "thinking":
                inner = part.get("thinking")
                texts = inner if isinstance(inner, list) else [{"text": inner}]
                text = "".join(str(each.get("text") or "") for each in texts if isinstance(each, dict))
                chunks.append(ThinkingChunk(self.number, text, "thinking"))
                thoughts += text
            elif isinstance(part.get("text"), str):
                chunks.append(RawText(self.number, part["text"]))
        return thoughts

    def _call(self, call: Any, chunks: list[Chunk]) -> None:
        if not isinstance(call, dict):
            return
        function = call.get("function")
        if not isinstance(function, dict):
            if call.keys() <= _CALL:
                return
            if call.get("type", "function") != "function" or "custom" in call:
                chunks.append(Foreign(self._dialect, "delta", {"delta": {"tool_calls": [call]}}, self.number))
                return
            function = {}  # fields of the server's own alone, of a call that came before
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = "" if arguments is None else as_json(arguments)
        id, name = as_text(call.get("id")), as_text(function.get("name"))
        number = self._call_number(call.get("index"), id, bool(name))
        extra = None if call.keys() <= _CALL else unknown_parts(call, _CALL)
        if not function.keys() <= _FUNCTION and (beside := unknown_parts(function, _FUNCTION)):
            extra = {**(extra or {}), "function": beside}
        chunks.append(CallChunk(self.number, number, id, name, arguments, extra))
        if extra is not None and "extra_content" in extra:
            chunks.append(Proof(self.number, self._dialect, {"extra_content": extra["extra_content"]}, call=True))

    def _call_number(self, index: Any, id: str, named: bool) -> int:
        """Our number of a call. Some servers give no index, others the same one to every call."""
        if not isinstance(index, int):
            index = self._last + 1 if named or not self._calls else self._last
        known = self._calls.get(index)
        # The same index with another name and id is another call, from servers that number every call 0.
        if known is None or (named and id and known[1] and id != known[1]):
            known = (self._last + 1, id)
            self._calls[index] = known
            self._last += 1
        return known[0]

    def _end(self, choice: dict[str, Any], reason: str, extra: dict[str, Any]) -> Ended:
        if reason not in REASONS:
            extra["finish_reason"] = reason
        sequence = choice.get("stop_reason")
        return Ended(self.number, REASONS.get(reason, "stop"), sequence if isinstance(sequence, str) else None, extra)


Content = Callable[[dict[str, Any]], tuple[dict[str, Any], Any]]


def _with_message(choice: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    return choice, choice.get("message")


def read_reply(body: Any, dialect: str = NAME, content: Content = _with_message) -> list[Chunk]:
    """A whole reply; `content` gives a choice and its message."""
    body = as_reply(body)
    choices = as_objects(body.get("choices"))
    if not choices:
        return [failed_of(body, 502)]
    chunks: list[Chunk] = [read_begin(body, unknown_fields(body), dialect)]
    for position, choice in enumerate(choices):
        number = choice.get("index")
        reader = ChoiceReader(number if type(number) is int else position, dialect, reads_ids=True)
        reader.read(*content(choice), chunks)
        if not reader.ended:
            chunks.append(Ended(reader.number))
    if isinstance(body.get("usage"), dict):
        chunks.append(read_usage(body["usage"]))
    return chunks


def refusal_of(item: Foreign, choice: int | None = 0) -> str:
    """The text of a refusal of a choice, which stands beside the content; empty for anything else."""
    if item.dialect != NAME or item.event != "delta" or item.choice != choice:
        return ""
    return as_text(item.data["delta"].get("refusal"))


def read_tokens(logprobs: Any) -> tuple[dict[str, Any], ...]:
    """Log probabilities, token by token."""
    return as_tokens(as_object(logprobs).get("content"))


def read_ids(choice: dict[str, Any]) -> tuple[int, ...]:
    """The ids of the tokens of a choice."""
    found = next((choice[name] for name in _IDS if choice.get(name)), ())
    return tuple(found) if isinstance(found, list) and all(type(id) is int for id in found) else ()


def join_detail(details: list[dict[str, Any]], detail: dict[str, Any]) -> None:
    """Add one of `reasoning_details` that came in a stream: pieces of one have its type and its index."""
    last = details[-1] if details else {}
    same = last.get("type") == detail.get("type") and last.get("index") == detail.get("index")
    # One that says what it is by an id of its own is another, unless it repeats that of the one before.
    if not same or (detail.get("id") and last.get("id") and detail["id"] != last["id"]):
        details.append(dict(detail))
        return
    for name, value in detail.items():
        if name in _GROWS and isinstance(value, str) and isinstance(last.get(name), str):
            last[name] += value
        elif value is not None:
            last[name] = value


_GROWS = ("text", "summary", "data")
"""The fields of a detail that come in pieces."""


def unknown_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Fields of a reply that only this dialect understands."""
    return {} if body.keys() <= _FRAME else {name: value for name, value in body.items() if name not in _FRAME}


def read_begin(body: dict[str, Any], extra: dict[str, Any], dialect: str) -> Begin:
    """How a reply begins."""
    return Begin(
        as_text(body.get("id")),
        as_text(body.get("model")),
        as_moment(body.get("created")),
        dialect,
        extra,
    )


def read_usage(usage: dict[str, Any], given: str = "prompt", made: str = "completion") -> Usage:
    """What a reply cost, by the names that an API of OpenAI's has for tokens in and out."""
    tokens, made_tokens = as_count(usage.get(f"{given}_tokens")), as_count(usage.get(f"{made}_tokens"))
    if f"{made}_tokens_details" not in usage and f"{given}_tokens_details" not in usage:
        return Usage(tokens, made_tokens, extra=usage)
    output = as_object(usage.get(f"{made}_tokens_details"))
    return Usage(
        tokens,
        made_tokens,
        maybe_count(output.get("reasoning_tokens")),
        bool(output.get("estimated")),
        as_count(as_object(usage.get(f"{given}_tokens_details")).get("cached_tokens")),
        extra=usage,
    )
