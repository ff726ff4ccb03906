"""What every renderer does: messages to ids and weights, ids back to a message. A family fills in how it writes.

Reading is `TokenParser` and nothing else. Writing puts a family's own tokens by their ids, and everything that people
and models wrote as ordinary text, so that no text becomes a token of the template.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from .._engine.format import Format
from .._engine.tokens import TokenParser
from .._engine.vocabulary import vocabulary_of
from ..events import Event, PartEnd, PartStart, TextDelta, ThinkingDelta, ToolCallDelta
from ..policies import Start
from .content import History, Message, RendererError, Said, read_message
from .framing import Frame, Unframe


class TrainOnWhat(StrEnum):
    """Which tokens of an example carry weight."""

    LAST_ASSISTANT_MESSAGE = "last_assistant_message"
    LAST_ASSISTANT_TURN = "last_assistant_turn"
    ALL_ASSISTANT_MESSAGES = "all_assistant_messages"
    ALL_MESSAGES = "all_messages"
    ALL_TOKENS = "all_tokens"
    ALL_USER_AND_SYSTEM_MESSAGES = "all_user_and_system_messages"
    CUSTOMIZED = "customized"


class Token(str):
    """A token of the template in what is written, to be put by its id."""

    __slots__ = ()


Writing = list[str]
"""What is written: template tokens and text."""


class Example(NamedTuple):
    """A conversation for training."""

    ids: list[int]
    weights: list[int]
    """For each id 1 or 0."""


class Written(NamedTuple):
    """One message as its family writes it."""

    header: Writing
    """What a prompt supplies. Never trained on, but with `all_tokens`."""
    body: Writing
    """What is said, and how it ends."""


class Renderer:
    """Writes conversations for one family of models, and reads what such a model answers."""

    name: ClassVar[str]
    """Its name for `get_renderer`."""
    histories: ClassVar[tuple[History, ...]] = ("turn", "strip", "keep")
    """What may become of earlier thinking; the default first."""
    frame: ClassVar[Frame] = Frame()
    """The whitespace that the family writes around parts."""
    stops: ClassVar[tuple[str, ...]] = ()
    """The tokens at which sampling stops."""
    thinks: ClassVar[bool] = True
    """Whether the family can write thinking."""
    calls: ClassVar[bool] = True
    """Whether it can write calls."""
    start: ClassVar[Start | None] = "text"
    """Where an answer to this renderer's own prompts begins; None where the format says it."""

    def __init__(self, tokenizer: Any, *, history: History | None = None, seed: int | None = None) -> None:
        self.vocabulary = vocabulary_of(tokenizer)
        self.history: History = history if history is not None else self.histories[0]
        """What becomes of earlier thinking: `strip`, `turn` or `keep`."""
        if self.history not in self.histories:
            raise RendererError(f"{self.name} has no history {history!r}; it has {', '.join(self.histories)}")
        self.seed = seed
        """Decides the ids of calls to which the model gave none; without it they are random."""
        self.format = self._make_format()
        """How answers are read."""

    # What a family fills in.

    def _make_format(self) -> Format:
        raise NotImplementedError

    def _begin(self) -> Writing:
        """Before the first message."""
        return []

    def _prepare(self, messages: list[Said]) -> list[Said]:
        """Messages that the family adds by itself."""
        return messages

    def _write(self, messages: Sequence[Said], index: int, target: bool) -> Written:
        """One message. `target`: it is the answer that an example ends with."""
        raise NotImplementedError

    def _open(self, messages: Sequence[Said], role: str) -> Writing:
        """What a prompt ends with, so that the answer of `role` follows."""
        raise NotImplementedError

    @property
    def has_extension_property(self) -> bool:
        """Whether the prompt of a longer conversation always begins with the example of the shorter one."""
        raise NotImplementedError

    # Writing.

    def build_generation_prompt(
        self, messages: Iterable[Message], role: str = "assistant", prefill: str | None = None
    ) -> list[int]:
        """The ids of a prompt. `prefill` is how the answer begins: the caller's own words, markers in it are tokens."""
        said = self._prepare(self._read(messages))
        ids = self._encode(self._begin())
        for index in range(len(said)):
            written = self._write(said, index, False)
            ids += self._encode(written.header) + self._encode(written.body)
        ids += self._encode(self._open(said, role))
        return ids + self._encode(self._marked(prefill)) if prefill else ids

    def build_supervised_example(
        self,
        messages: Iterable[Message],
        train_on_what: TrainOnWhat | str = TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    ) -> Example:
        """The ids of a conversation and the weight of each. What a prompt would supply never carries weight."""
        what = TrainOnWhat(train_on_what)
        given = list(messages)
        trained = _trained(given, what)
        read = self._read(given)
        said = self._prepare(read)
        # What the family adds by itself is never trained on.
        weighing = {id(message) for message, weighs in zip(read, trained, strict=True) if weighs}
        trained = [id(message) in weighing for message in said]
        everything = int(what is TrainOnWhat.ALL_TOKENS)
        ids = self._encode(self._begin())
        weights = [everything] * len(ids)
        for index, weighs in enumerate(trained):
            written = self._write(said, index, index == len(said) - 1)
            for writing, weight in ((written.header, everything), (written.body, int(weighs))):
                found = self._encode(writing)
                ids += found
                weights += [weight] * len(found)
        found = self._encode(self._overlap(said))
        return Example(ids + found, weights + [int(trained[-1]) if trained else 0] * len(found))

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[Message]
    ) -> list[int] | None:
        """The next prompt, beginning with exactly these ids; None where the family would write them otherwise."""
        new = self._read(new_messages)
        if not completion_ids or completion_ids[-1] not in self._stop_ids():
            return None
        answer = read_message(self.parse_response(completion_ids, prompt_ids)[0])
        said = [Said("user"), answer, *new]
        if not self._stays(said, prompt_ids, completion_ids):
            return None
        ids = [*prompt_ids, *completion_ids]
        for index in range(2, len(said)):
            written = self._write(said, index, False)
            ids += self._encode(written.header) + self._encode(written.body)
        return ids + self._encode(self._open(said, "assistant"))

    def _stays(self, said: Sequence[Said], prompt: Sequence[int], sampled: Sequence[int]) -> bool:
        """Whether the answer `said[1]` stands in a prompt just as it was sampled, when others follow it."""
        written = self._write(said, 1, False)
        header, text = self._encode(written.header), self.vocabulary.text
        if list(prompt[-len(header) :]) == header and text(self._encode(written.body)) == text(sampled):
            return True
        try:
            return written == self._write(said[:2], 1, True)
        except RendererError:
            return False

    def get_stop_sequences(self) -> list[int] | list[str]:
        """Where sampling must stop: ids, or strings where the family has no token for it."""
        return self._stop_ids()

    def create_conversation_prefix_with_tools(
        self, tools: Iterable[Mapping[str, Any]], system_prompt: str = ""
    ) -> list[dict[str, Any]]:
        """The messages that declare tools to the model, to be put before a conversation."""
        if not self.calls:
            raise RendererError(f"{self.name} has no way to declare tools")
        return [{"role": "system", "content": system_prompt, "tools": list(tools)}]

    def _read(self, messages: Iterable[Message]) -> list[Said]:
        said = [read_message(message) for message in messages]
        for message in said:
            if message.thinks and not self.thinks:
                raise RendererError(f"{self.name} cannot write thinking")
            if (message.calls or message.tools) and not self.calls:
                raise RendererError(f"{self.name} cannot write calls")
            if message.role != "assistant" and (message.thinks or message.calls):
                raise RendererError(f"only an assistant thinks and calls, not the {message.role}")
        return said

    def _overlap(self, messages: Sequence[Said]) -> Writing:
        """What sampling would still see of the next message before it stops."""
        return []

    def _encode(self, writing: Writing) -> list[int]:
        """Ids: a template's token by its id, the text between two of them as one."""
        ids: list[int] = []
        text: list[str] = []
        for piece in writing:
            if isinstance(piece, Token):
                ids += self.vocabulary.encode("".join(text)) + self.vocabulary.marker(piece)
                text.clear()
            else:
                text.append(piece)
        return ids + self.vocabulary.encode("".join(text))

    def _marked(self, text: str) -> Writing:
        """Text of the caller's own, the markers in it as tokens."""
        markers = sorted((added for added in self.vocabulary.added if added in text and added.strip()), key=len)
        writing: Writing = [text]
        for marker in reversed(markers):
            cut: Writing = []
            for piece in writing:
                if isinstance(piece, Token):
                    cut.append(piece)
                    continue
                first, *rest = piece.split(marker)
                cut.append(first)
                for after in rest:
                    cut += (Token(marker), after)
            writing = cut
        return writing

    def _stop_ids(self) -> list[int]:
        return [self.vocabulary.added[stop] for stop in self.stops if stop in self.vocabulary.added]

    # Reading.

    def parse_response(
        self, ids: Sequence[int], prompt_ids: Sequence[int] | None = None
    ) -> tuple[dict[str, Any], bool]:
        """The message that was sampled, and whether it ends with a stop token. Never raises, whatever was sampled.

        With `prompt_ids` the prompt says where the answer begins. Without them the whole answer does: a lone closer
        makes all before it thinking; with no thinking marker an answer that a stop token ends is text, and one that was
        cut off is what this renderer's prompts begin.
        """
        parser = self._parser(ids, prompt_ids)
        events = [event for found in self._events(parser, ids) for event in found]
        message = parser.message
        ended = self._ended(ids, message.raw) and not any(notice.code == "after_stop" for notice in message.notices)
        return _message(events, message.raw), ended

    def parse_response_streaming(self, ids: Iterable[int], prompt_ids: Sequence[int] | None = None) -> Iterator[Event]:
        """The events of an answer as its ids come, without waiting for the next id.

        Joined they say what `parse_response` says. A stream cannot look ahead: without `prompt_ids` the answer is taken
        to follow a prompt of this renderer's own.
        """
        for events in self._events(self._parser(None, prompt_ids), ids):
            yield from events

    def _parser(self, ids: Sequence[int] | None, prompt_ids: Sequence[int] | None) -> TokenParser:
        """A parser for an answer; `ids` are those of the whole answer, where they are known."""
        begin: dict[str, Any] = {"start": self.start}
        if prompt_ids is not None:
            begin = {"prompt_ids": prompt_ids}
        elif ids is not None and self.thinks and (self.start == "text" or self._ended(ids, "")):
            begin = {"start": "undecided"}
        seed = self.seed if self.seed is not None else secrets.randbits(32)
        return TokenParser(self.vocabulary, self.format, whitespace="exact", seed=seed, **begin)

    def _events(self, parser: TokenParser, ids: Iterable[int]) -> Iterator[list[Event]]:
        unframe = Unframe(self.frame)
        for id in ids:
            yield unframe.read(parser.feed(id))
        yield unframe.read(parser.finish())
        yield unframe.finish()

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        return len(ids) > 0 and ids[-1] in self._stop_ids()


def _trained(messages: Sequence[Message], what: TrainOnWhat) -> list[bool]:
    """Which messages carry weight."""
    marked = ["trainable" in message for message in messages]
    if what is TrainOnWhat.CUSTOMIZED:
        if not all(marked):
            raise RendererError("train_on_what='customized' needs `trainable` on every message")
        return [bool(message["trainable"]) for message in messages]
    if any(marked):
        raise RendererError(f"`trainable` is there, but train_on_what is {what.value!r}, not 'customized'")
    roles = [message.get("role") for message in messages]
    answers = [role == "assistant" for role in roles]
    if what in (TrainOnWhat.ALL_MESSAGES, TrainOnWhat.ALL_TOKENS):
        return [True] * len(roles)
    if what is TrainOnWhat.ALL_USER_AND_SYSTEM_MESSAGES:
        return [role in ("user", "system") for role in roles]
    if what is TrainOnWhat.ALL_ASSISTANT_MESSAGES:
        return answers
    first = len(roles) - 1 - answers[::-1].index(True) if True in answers else len(roles)
    if what is TrainOnWhat.LAST_ASSISTANT_TURN:
        first = last_user(roles) + 1
    return [answer and index >= first for index, answer in enumerate(answers)]


def last_user(roles: Sequence[object]) -> int:
    """Where the last message of a user stands; -1 where there is none."""
    return max((index for index, role in enumerate(roles) if role == "user"), default=-1)


def _message(events: Iterable[Event], raw: str) -> dict[str, Any]:
    """Events as a message dictionary."""
    starts: dict[int, PartStart] = {}
    texts: dict[int, list[str]] = {}
    ends: dict[int, PartEnd] = {}
    for event in events:
        if isinstance(event, PartStart):
            starts[event.index], texts[event.index] = event, []
        elif isinstance(event, TextDelta | ThinkingDelta | ToolCallDelta):
            texts[event.index].append(event.text)
        elif isinstance(event, PartEnd):
            ends[event.index] = event
    content: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    unparsed: list[dict[str, Any]] = []
    for index, start in starts.items():
        text, end = "".join(texts[index]), ends[index]
        if start.kind != "tool_call":
            content.append({"type": start.kind, start.kind: text})
        elif end.error is None:
            function = {"name": start.name, "arguments": text}
            calls.append({"id": start.id, "type": "function", "function": function})
        else:
            words = {"raw": raw[end.span[0] : end.span[1]], "error": end.error, "reason": end.error_message}
            unparsed.append(words)
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if not any(part["type"] == "thinking" for part in content):
        message["content"] = _joined([part["text"] for part in content])
    if calls:
        message["tool_calls"] = calls
    if unparsed:
        message["unparsed_tool_calls"] = unparsed
    return message


def _joined(texts: Sequence[str]) -> str:
    """Texts as one, with no two words glued together."""
    joined = ""
    for text in texts:
        glued = joined and not joined.endswith("\n") and not text.startswith("\n")
        joined += "\n\n" + text if glued else text
    return joined
