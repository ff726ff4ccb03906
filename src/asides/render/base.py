"""The base of every renderer: messages to ids and weights, ids back to a message. A family fills in how it writes.

A family renders one message as segments: text, and `TemplateToken`s. The base encodes a template's token by its id and
everything that people and models wrote as ordinary text, so that no text can become a token of the template. Each
message has a header, which a prompt supplies and which never carries weight, and a body, which a model would sample.

Reading is `TokenParser` and nothing else: its events lose the whitespace that the family writes around its parts
(`whitespace.py`), and are folded to a message dictionary.

    prompt = renderer.build_generation_prompt([{"role": "user", "content": "2+2?"}])     # ids; then sample
    message, ended = renderer.parse_response(sampled, prompt)
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

import msgspec

from .._engine.format import Format
from .._engine.tokens import TokenParser
from .._engine.vocabulary import Vocabulary, vocabulary_of
from ..events import Event
from ..families import get_format
from ..families.index import RENDERERS
from ..parts import Thinking, ToolCall
from ..policies import Start
from ..reply.fold import Fold
from ..reply.reply import Reply
from .messages import ChatMessage, EarlierThinking, MessageDict, RendererError, read_message
from .whitespace import PartWhitespace, WhitespaceRemover


class TrainOnWhat(StrEnum):
    """Which tokens of an example carry weight."""

    LAST_ASSISTANT_MESSAGE = "last_assistant_message"
    """The last message of the assistant. The default."""
    LAST_ASSISTANT_TURN = "last_assistant_turn"
    """Every message of the assistant behind the last one of the user."""
    ALL_ASSISTANT_MESSAGES = "all_assistant_messages"
    """Every message of the assistant."""
    ALL_MESSAGES = "all_messages"
    """Every message of any role, without the headers that a prompt supplies."""
    ALL_TOKENS = "all_tokens"
    """Every token, headers included."""
    ALL_USER_AND_SYSTEM_MESSAGES = "all_user_and_system_messages"
    """Every message of the user and of the system."""
    CUSTOMIZED = "customized"
    """The messages whose field `trainable` is true; every message must have that field."""


class TemplateToken(str):
    """A segment that is a token of the template, to be encoded by its id. Every other segment is ordinary text."""

    __slots__ = ()


Segments = list[str]
"""A rendered stretch: text, and `TemplateToken`s between it."""


class Example(NamedTuple):
    """A conversation as a training example."""

    ids: list[int]
    """The token ids of the whole conversation."""
    weights: list[int]
    """For each id 1 where it is trained on, else 0; as long as `ids`."""


class RenderedMessage(NamedTuple):
    """One message as its family writes it, not encoded yet."""

    header: Segments
    """What a prompt supplies. It carries no weight, except with `all_tokens`."""
    body: Segments
    """What a model samples: the content, and the token that ends the message."""


_NAMES = {cls: name for name, (_, cls, options) in reversed(RENDERERS.items()) if not options}
"""For each class that a card names, the first of its names that stands for no options."""


class Renderer:
    """Writes conversations for one family of models, and reads what such a model answers."""

    name: ClassVar[str]
    """Its name for `get_renderer`, which is also a name of the format of its answers. The card of the family has it; a
    renderer that no card names gives its own."""
    histories: ClassVar[tuple[EarlierThinking, ...]] = ("turn", "strip", "keep")
    """What may become of earlier thinking; the default first."""
    whitespace: ClassVar[PartWhitespace] = PartWhitespace()
    """The whitespace that the family writes around parts; `parse_response` takes it off."""
    stops: ClassVar[tuple[str, ...]] = ()
    """The tokens at which sampling stops."""
    thinks: ClassVar[bool] = True
    """Whether the family can write thinking."""
    calls: ClassVar[bool] = True
    """Whether it can write calls."""
    start: ClassVar[Start | None] = "text"
    """Where an answer to this renderer's own prompts begins; None where the format says it."""

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__ and cls.__name__ in _NAMES:
            cls.name = _NAMES[cls.__name__]

    def __init__(self, tokenizer: Any, *, history: EarlierThinking | None = None, seed: int | None = None) -> None:
        self.vocabulary: Vocabulary = vocabulary_of(tokenizer)
        """The tokenizer as a list of tokens: encodes text, and gives the ids of markers."""
        self.history: EarlierThinking = history if history is not None else self.histories[0]
        """What becomes of earlier thinking: `strip`, `turn` or `keep`."""
        if self.history not in self.histories:
            raise RendererError(f"{self.name} has no history {history!r}; it has {', '.join(self.histories)}")
        self.seed = seed
        """Decides the ids of calls to which the model gave none; without it they are random."""
        self.format: Format = self._make_format()
        """How answers are read."""

    # What a family fills in.

    def _make_format(self) -> Format:
        return get_format(self.name)

    def _begin(self) -> Segments:
        """What stands before the first message."""
        return []

    def _prepare(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        """The messages with those that the family's template adds by itself."""
        return messages

    def _write(self, messages: Sequence[ChatMessage], index: int, target: bool) -> RenderedMessage:
        """Render one message. `target`: it is the answer that an example ends with."""
        raise NotImplementedError

    def _open(self, messages: Sequence[ChatMessage], role: str) -> Segments:
        """The end of a prompt, behind which the answer of `role` follows."""
        raise NotImplementedError

    @property
    def has_extension_property(self) -> bool:
        """Whether the prompt of a longer conversation always begins with the example of the shorter one.

        Nearly everywhere only when all thinking is kept: else an earlier answer is rendered without it later on.
        """
        return self.history == "keep"

    def _turn_start(self, messages: Sequence[ChatMessage]) -> int:
        """Where the present turn starts, behind the last user's message: `history="turn"` drops thinking before it."""
        return _last([message.role for message in messages], "user") + 1

    def _keeps_thinking(self, messages: Sequence[ChatMessage], index: int, target: bool) -> bool:
        if target or self.history == "keep":
            return True
        return self.history == "turn" and index >= self._turn_start(messages)

    def _visible(self, messages: Sequence[ChatMessage], index: int, target: bool) -> ChatMessage:
        """The message of this index, without its thinking where `history` drops that."""
        message = messages[index]
        return message if self._keeps_thinking(messages, index, target) else message.without_thinking()

    # Segments.

    def build_generation_prompt(
        self, messages: Iterable[MessageDict], role: str = "assistant", prefill: str | None = None
    ) -> list[int]:
        """The ids of a prompt. `prefill` is how the answer begins: text of the caller, so markers in it are tokens."""
        chat = self._prepare(self._read(messages))
        ids = self._encode(self._begin()) + self._encode_messages(chat) + self._encode(self._open(chat, role))
        return ids + self._encode(self._marked(prefill)) if prefill else ids

    def build_supervised_example(
        self,
        messages: Iterable[MessageDict],
        train_on_what: TrainOnWhat | str = TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    ) -> Example:
        """The ids of a conversation and the weight of each. What a prompt would supply carries no weight."""
        what = TrainOnWhat(train_on_what)
        given = list(messages)
        read = self._read(given)
        # By identity, because `_prepare` may add messages: these are never trained on.
        weighing = {id(message) for message, weighs in zip(read, _trained(given, what), strict=True) if weighs}
        chat = self._prepare(read)
        trained = [id(message) in weighing for message in chat]
        everything = int(what is TrainOnWhat.ALL_TOKENS)
        ids = self._encode(self._begin())
        weights = [everything] * len(ids)
        for index, weighs in enumerate(trained):
            rendered = self._write(chat, index, index == len(chat) - 1)
            for segments, weight in ((rendered.header, everything), (rendered.body, int(weighs))):
                found = self._encode(segments)
                ids += found
                weights += [weight] * len(found)
        found = self._encode(self._overlap(chat))
        return Example(ids + found, weights + [int(trained[-1]) if trained else 0] * len(found))

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[MessageDict]
    ) -> list[int] | None:
        """The next prompt, beginning with exactly these ids; None where the family would write them otherwise."""
        new = self._read(new_messages)
        if not completion_ids or completion_ids[-1] not in self._stop_ids():
            return None
        answer = read_message(self.parse_response(completion_ids, prompt_ids)[0])
        chat = [ChatMessage("user"), answer, *new]
        if not self._stays(chat, prompt_ids, completion_ids):
            return None
        follows = self._encode_messages(chat, 2) + self._encode(self._open(chat, "assistant"))
        return [*prompt_ids, *completion_ids, *follows]

    def _stays(self, chat: Sequence[ChatMessage], prompt: Sequence[int], sampled: Sequence[int]) -> bool:
        """Whether the answer `chat[1]` is rendered just as it was sampled when others follow it."""
        rendered = self._write(chat, 1, False)
        header, text = self._encode(rendered.header), self.vocabulary.text
        if list(prompt[-len(header) :]) == header and text(self._encode(rendered.body)) == text(sampled):
            return True
        try:
            return rendered == self._write(chat[:2], 1, True)
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

    def _read(self, messages: Iterable[MessageDict]) -> list[ChatMessage]:
        chat = [read_message(message) for message in messages]
        for message in chat:
            if message.thinks and not self.thinks:
                raise RendererError(f"{self.name} cannot write thinking")
            if (message.calls or message.tools) and not self.calls:
                raise RendererError(f"{self.name} cannot write calls")
            if message.role != "assistant" and (message.thinks or message.calls):
                raise RendererError(f"only an assistant thinks and calls, not the {message.role}")
        return chat

    def _overlap(self, messages: Sequence[ChatMessage]) -> Segments:
        """What a model samples of the next message before sampling stops."""
        return []

    def _encode_messages(self, messages: Sequence[ChatMessage], first: int = 0) -> list[int]:
        """The ids of the messages from index `first` on, as they stand in a prompt."""
        rendered = [self._write(messages, index, False) for index in range(first, len(messages))]
        return [id for each in rendered for segments in each for id in self._encode(segments)]

    def _encode(self, segments: Segments) -> list[int]:
        """Ids: a template's token by its id, the text between two of them in one go."""
        ids: list[int] = []
        text: list[str] = []
        for segment in segments:
            if isinstance(segment, TemplateToken):
                ids += self.vocabulary.encode("".join(text)) + self.vocabulary.marker(segment)
                text.clear()
            else:
                text.append(segment)
        return ids + self.vocabulary.encode("".join(text))

    def _marked(self, text: str) -> Segments:
        """Text of the caller's own, the markers in it as tokens; of two that fit, the longer."""
        markers = [added for added in self.vocabulary.added if added in text and added.strip()]
        if not markers:
            return [text]
        found = re.split(f"({'|'.join(map(re.escape, sorted(markers, key=len, reverse=True)))})", text)
        return [TemplateToken(each) if number % 2 else each for number, each in enumerate(found)]

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
        reply, ended = self.parse_reply(ids, prompt_ids)
        return _message(reply), ended

    def parse_reply(self, ids: Sequence[int], prompt_ids: Sequence[int] | None = None) -> tuple[Reply, bool]:
        """The same as the record that the whole library has of a reply: with notices, and how it ended."""
        parser = self._parser(ids, prompt_ids)
        fold = Fold()
        for events in self._events(parser, ids):
            for event in events:
                fold.add(event)
        message = parser.message
        fold.end(message.termination)
        reply = fold.reply
        parts = tuple(
            msgspec.structs.replace(part, raw=message.raw[slice(*part.span)])
            if isinstance(part, ToolCall) and part.error is not None
            else part
            for part in reply.parts
        )
        ended = self._ended(ids, message.raw) and not any(notice.code == "after_stop" for notice in message.notices)
        return msgspec.structs.replace(reply, parts=parts), ended

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
        remover = WhitespaceRemover(self.whitespace)
        for id in ids:
            yield remover.read(parser.feed(id))
        yield remover.read(parser.finish())
        yield remover.finish()

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        return len(ids) > 0 and ids[-1] in self._stop_ids()


def _trained(messages: Sequence[MessageDict], what: TrainOnWhat) -> list[bool]:
    """Which messages carry weight."""
    marked = ["trainable" in message for message in messages]
    if what is TrainOnWhat.CUSTOMIZED:
        if not all(marked):
            raise RendererError("train_on_what='customized' needs `trainable` on every message")
        return [bool(message["trainable"]) for message in messages]
    if any(marked):
        raise RendererError(f"`trainable` is there, but train_on_what is {what.value!r}, not 'customized'")
    roles = [message.get("role") for message in messages]
    if what in (TrainOnWhat.ALL_MESSAGES, TrainOnWhat.ALL_TOKENS):
        return [True] * len(roles)
    if what is TrainOnWhat.ALL_USER_AND_SYSTEM_MESSAGES:
        return [role in ("user", "system") for role in roles]
    first = 0
    if what is TrainOnWhat.LAST_ASSISTANT_MESSAGE:
        first = _last(roles, "assistant")
    elif what is TrainOnWhat.LAST_ASSISTANT_TURN:
        first = _last(roles, "user")
    return [role == "assistant" and index >= first for index, role in enumerate(roles)]


def _last(roles: Sequence[object], role: str) -> int:
    """The index of the last message of this role; -1 where there is none."""
    return max((index for index, each in enumerate(roles) if each == role), default=-1)


def _message(reply: Reply) -> dict[str, Any]:
    """A reply as a message dictionary."""
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": part.text}
        if isinstance(part, Thinking)
        else {"type": "text", "text": part.text}
        for part in reply.parts
        if not isinstance(part, ToolCall)
    ]
    calls = [call.to_dict() for call in reply.tool_calls if call.error is None]
    unparsed = [
        {"raw": call.raw, "error": call.error, "reason": call.error_message}
        for call in reply.tool_calls
        if call.error is not None
    ]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content if reply.thoughts else _joined([part["text"] for part in content]),
    }
    if calls:
        message["tool_calls"] = calls
    if unparsed:
        message["unparsed_tool_calls"] = unparsed
    return message


def _joined(texts: Sequence[str]) -> str:
    """Texts as one; a blank line between two where neither has a line break at the joint."""
    joined = ""
    for text in texts:
        glued = joined and not joined.endswith("\n") and not text.startswith("\n")
        joined += "\n\n" + text if glued else text
    return joined
