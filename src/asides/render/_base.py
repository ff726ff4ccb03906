"""The base of every renderer: messages to ids and weights, ids back to a message. A family is a template and facts.

The template, in Jinja on the family's card, writes all messages; it is run with strings that know whose they are
(`asides._conversation`). So a template's own marker is encoded by its id, and everything that people and models wrote
as ordinary text: no text can become a token of the template. Each message has a header, which a prompt supplies and
which never carries weight, and a body, which a model would sample; the template puts it into `{% generation %}`.

Reading is `TokenParser` and nothing else: its events lose the whitespace that the family writes around its parts
(`_whitespace.py`), and are folded to a message dictionary.

    prompt = renderer.build_generation_prompt([{"role": "user", "content": "2+2?"}])     # ids; then sample
    message, ended = renderer.parse_response(sampled, prompt)
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from .._conversation._origin import NOBODY, cut_runs
from .._engine.format import Format
from .._engine.tokens import TokenParser
from .._engine.vocabulary import Vocabulary, vocabulary_of
from ..errors import UsageError
from ..events import Event
from ..families import get_format
from ..families._index import RENDERERS
from ..parts import Thinking, ToolCall
from ..policies import Start
from ..reply._fold import Fold
from ..reply._reply import Reply
from ._messages import ChatMessage, EarlierThinking, MessageDict, MessagePart, RendererError, read_message
from ._whitespace import PartWhitespace, WhitespaceRemover

if TYPE_CHECKING:
    from .._conversation._template import RenderedChat


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
    """One message in ids."""

    message: int | None
    """Its index; None for what the template writes behind the last one."""
    header: list[int]
    """What a prompt supplies. It carries no weight, except with `all_tokens`."""
    body: list[int]
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

    @cached_property
    def template(self) -> str:
        """The family's way to write, in Jinja; the card of the family has it. A body stands in `{% generation %}`."""
        module, _, _ = RENDERERS[self.name]
        return str(import_module(f"..families.{module}", __package__).FAMILY.renderers[self.name].template)

    def _variables(self) -> dict[str, Any]:
        """What the template is given beside messages."""
        return {}

    @property
    def has_extension_property(self) -> bool:
        """Whether the prompt of a longer conversation always begins with the example of the shorter one.

        Nearly everywhere only when all thinking is kept: else an earlier answer is rendered without it later on.
        """
        return self.history == "keep"

    def _turn_start(self, messages: Sequence[ChatMessage]) -> int:
        """Where the present turn starts, behind the last user's message: `history="turn"` drops thinking before it."""
        return _last([message.role for message in messages], "user") + 1

    def _keeps_thinking(self, index: int, turn_start: int, target: bool) -> bool:
        return target or self.history == "keep" or (self.history == "turn" and index >= turn_start)

    # Writing.

    def build_generation_prompt(
        self, messages: Iterable[MessageDict], role: str = "assistant", prefill: str | None = None
    ) -> list[int]:
        """The ids of a prompt. `prefill` is how the answer begins: text of the caller, so markers in it are tokens."""
        rendered, opening = self._render(self._read(messages), opens=role)
        ids = [id for each in rendered for id in (*each.header, *each.body)] + opening
        return ids + self._encode(self._marked(prefill)) if prefill else ids

    def build_supervised_example(
        self,
        messages: Iterable[MessageDict],
        train_on_what: TrainOnWhat | str = TrainOnWhat.LAST_ASSISTANT_MESSAGE,
    ) -> Example:
        """The ids of a conversation and the weight of each. What a prompt would supply carries no weight."""
        what = TrainOnWhat(train_on_what)
        given = list(messages)
        trained = trained_messages(given, what)
        rendered, opening = self._render(self._read(given), target=True)
        everything = int(what is TrainOnWhat.ALL_TOKENS)
        example = Example([], [])
        for each in rendered:
            weight = int(trained[-1 if each.message is None else each.message])
            example.ids.extend(each.header + each.body)
            example.weights.extend([everything] * len(each.header) + [weight] * len(each.body))
        return Example(example.ids + opening, example.weights + [everything] * len(opening))

    def extend(
        self, prompt_ids: Sequence[int], completion_ids: Sequence[int], new_messages: Iterable[MessageDict]
    ) -> list[int] | None:
        """The next prompt, beginning with exactly these ids; None where the family would write them otherwise."""
        new = self._read(new_messages)
        if not completion_ids or completion_ids[-1] not in self._stop_ids():
            return None
        answer = read_message(self.parse_response(completion_ids, prompt_ids)[0])
        chat = [ChatMessage("user", (MessagePart(False, "x"),)), answer, *new]
        rendered, opening = self._render(chat, opens="assistant")
        if not self._stays(rendered[1], chat[:2], prompt_ids, completion_ids):
            return None
        return [*prompt_ids, *completion_ids, *self._follows(rendered[2:]), *opening]

    def _follows(self, rendered: Sequence[RenderedMessage]) -> list[int]:
        """The ids of messages behind an answer."""
        return [id for each in rendered for id in (*each.header, *each.body)]

    def _stays(
        self, answer: RenderedMessage, chat: list[ChatMessage], prompt: Sequence[int], sampled: Sequence[int]
    ) -> bool:
        """Whether an answer is rendered just as it was sampled when others follow it."""
        text = self.vocabulary.text
        if list(prompt[-len(answer.header) :]) == answer.header and text(answer.body) == text(sampled):
            return True
        try:
            return answer == self._render(chat, target=True)[0][1]
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

    def _render(
        self, messages: Sequence[ChatMessage], *, target: bool = False, opens: str = ""
    ) -> tuple[list[RenderedMessage], list[int]]:
        """Every message that has a body, and what stands behind the last.

        `target`: an example ends with the last message. `opens`: a prompt asks this role for the next one.
        """
        Leaves, chat_template, tag_messages = _template_engine()
        leaves = Leaves()
        given = {**self._variables(), "opens": opens}
        variables: dict[str, Any] = {name: leaves.tag(value, None, NOBODY, name) for name, value in given.items()}
        turn_start, last = self._turn_start(messages), len(messages) - 1
        dictionaries = [
            _given(message, target and at == last, self._keeps_thinking(at, turn_start, target and at == last))
            for at, message in enumerate(messages)
        ]
        variables |= {
            "messages": tag_messages(leaves, dictionaries),
            "history": self.history,
            "turn_start": turn_start,
            "is_example": target,
            "bos_token": named_token(self.vocabulary, "bos"),
        }
        try:
            chat = chat_template(self.template).render(variables, leaves)
        except UsageError as error:
            raise RendererError(f"{self.name}: {str(error).rpartition('conversation: ')[2]}") from error
        rendered: list[RenderedMessage] = []
        at = 0
        for start, stop in chat.generated:
            header, body = (self._encode(self._segments(chat, *span)) for span in ((at, start), (start, stop)))
            place = chat.places[bisect_right(chat.places, start, key=itemgetter(0))][1]
            rendered.append(RenderedMessage(None if place == NOBODY else place, header, body))
            at = stop
        return rendered, self._encode(self._segments(chat, at, len(chat.text)))

    def _segments(self, chat: RenderedChat, start: int, stop: int) -> Segments:
        """A stretch of what a template wrote: markers are tokens where they are its own, and nobody else's."""
        segments: Segments = []
        at = start
        for length, leaf in cut_runs(chat.runs, start, stop) if start < stop else ():
            text = chat.text[at : start + length]
            segments += self._marked(text) if leaf == NOBODY else [text]
            at = start + length
        return segments

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
        start, stop = message.beyond or (0, 0)
        fold.end(message.termination, stop - start)
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
        return TokenParser(self.vocabulary, self.format, whitespace="exact", retype=False, seed=self.seed, **begin)

    def _events(self, parser: TokenParser, ids: Iterable[int]) -> Iterator[list[Event]]:
        remover = WhitespaceRemover(self.whitespace)
        for id in ids:
            yield remover.read(parser.feed(id))
        yield remover.read(parser.finish())
        yield remover.finish()

    def _ended(self, ids: Sequence[int], raw: str) -> bool:
        return len(ids) > 0 and ids[-1] in self._stop_ids()


def trained_messages(messages: Sequence[MessageDict], what: TrainOnWhat) -> list[bool]:
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


def _template_engine() -> tuple[Any, Any, Any]:
    """What runs templates; only who writes needs it."""
    from .._conversation._template import Leaves, chat_template, tag_messages

    return Leaves, chat_template, tag_messages


def _given(message: ChatMessage, target: bool, keeps: bool) -> dict[str, Any]:
    """A message as templates are given it, without its thinking where `history` drops that."""
    shown = message if keeps else message.without_thinking()
    return {
        "role": message.role,
        "parts": [part._asdict() for part in shown.parts],
        "text": shown.text,
        "thinks": shown.thinks,
        "keeps": keeps,
        "is_target": target,
        "calls": [call._asdict() for call in message.calls],
        "name": message.name,
        "call_id": message.call_id,
        "tools": list(message.tools),
    }


def named_token(vocabulary: Vocabulary, which: str) -> str:
    """The text of a tokenizer's `bos` or `eos` token; empty where it names none."""
    found = getattr(vocabulary.tokenizer, f"{which}_token", None)
    if isinstance(found, str):
        return found
    id = getattr(vocabulary.tokenizer, f"{which}_token_id", None)
    return vocabulary.text([id]) if isinstance(id, int) else ""


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
