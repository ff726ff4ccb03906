"""`Turn`: what a model sampled after a prompt, read; the next prompt that begins with it; and examples to train on.

`next` renders the whole conversation, with the answer as a message, and looks at what the template makes of it. What it
writes after the answer does not depend on the answer, so that is put after the ids that were sampled. Only where the
template writes the conversation before it otherwise than it did (it drops a thought, it ends the turn with another
token) do the ids not go on; then the prompt is rendered anew and says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .._engine.token_text import TokenPlaces
from ..errors import UsageError
from ..message import Message, Termination
from ..parts import Part, Thinking, ToolCall
from ._encoding import Encoded
from ._examples import Loss, TrainingExample, make_example
from ._given import read_ids, read_logprobs, read_messages
from ._layout import ChatLayout, Kind, role_kind
from ._prompt import Break, BreakReason, Labels, Prompt, asks
from ._template import REASONING, Owner, RenderedChat, common_length

ENOUGH = 2
"""How often what follows an answer must have been the same without the messages before, with other words each time."""
FEW = 6
"""Messages of which a rendering is quick enough."""


@dataclass(frozen=True, eq=False, repr=False)
class Turn:
    """A model's answer in ids. Nothing changes it.

    Examples:
        >>> from splintr import Tokenizer
        >>> template = (
        ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        ...     "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
        ... )
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> conversation = asides.Conversation(tokenizer, template, format="qwen3")
        >>> prompt = conversation.prompt([{"role": "user", "content": "2+2?"}])
        >>> turn = prompt.add(tokenizer.encode_with_special("Four.<|im_end|>"))
        >>> turn.message.text, turn.kinds
        ('Four.', ('text', 'text', 'marker'))
        >>> following = turn.next([{"role": "user", "content": "Sure?"}])
        >>> following.ids[: len(turn.ids)] == turn.ids, following.broke
        (True, None)
    """

    prompt: Prompt
    """What it was sampled after."""
    sampled: tuple[int, ...]
    """The ids of the answer."""
    logprobs: tuple[float, ...] | None
    """For each of these the log probability, where they were given."""
    message: Message
    """The answer, taken apart; its parts know their place in `sampled`."""

    @staticmethod
    def of(prompt: Prompt, sampled: Sequence[int], logprobs: Sequence[float] | None, finish_reason: str | None) -> Turn:
        """Read an answer."""
        ids = read_ids(sampled)
        given = read_logprobs(logprobs, len(ids))
        return Turn(prompt, ids, given, prompt.conversation._read(prompt, ids, finish_reason))

    def __repr__(self) -> str:
        return f"<Turn of {len(self.sampled)} ids after {len(self.prompt.ids)}, {self.termination}>"

    @cached_property
    def ids(self) -> tuple[int, ...]:
        """All ids so far."""
        return self.prompt.ids + self.sampled

    @cached_property
    def text(self) -> str:
        """The same as text."""
        return self.prompt.text + self.message.raw

    @property
    def parts(self) -> tuple[Part, ...]:
        """What was thought, said and called, in order."""
        return self.message.parts

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls, in order; one with an `error` may not be run."""
        return self.message.tool_calls

    @property
    def termination(self) -> Termination:
        """How the answer ended."""
        return self.message.termination

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """For each sampled id what it is."""
        return self.message.roles

    @cached_property
    def answer(self) -> Mapping[str, Any]:
        """The answer as a message for the template: `content`, `reasoning_content`, `tool_calls`."""
        return self._answer(as_text=False)

    def _answer(self, as_text: bool) -> dict[str, Any]:
        message, conversation = self.message, self.prompt.conversation
        made: dict[str, Any] = {"role": "assistant", "content": message.text}
        if message.thinking and conversation.takes_thinking:
            made["reasoning_content"] = message.thinking
        elif message.thinking:
            made["content"] = self._inline()
        if conversation.takes_only_parts:
            made["content"] = [{"type": "text", "text": made["content"]}]
        calls = [call for call in message.tool_calls if call.error is None]
        if calls:
            made["tool_calls"] = [_call(call, as_text) for call in calls]
        return made

    def _inline(self) -> str:
        """The answer's own text with thinking in it, for a template that takes no other: all but calls and the end."""
        raw = self.message.raw
        for part in reversed(self.message.parts):
            if isinstance(part, ToolCall):
                raw = raw[: part.span[0]] + raw[part.span[1] :]
        for stop in self.prompt.conversation.stops:
            raw = raw.removesuffix(stop)
        return raw

    @cached_property
    def _labels(self) -> Labels:
        index = len(self.prompt.messages)
        calls = -1
        places: dict[int, Owner] = {}
        for part in self.message.parts:
            if isinstance(part, ToolCall):
                calls += 1
                owner = Owner(index, f"tool_calls.{calls}")
            else:
                owner = Owner(index, "reasoning_content" if isinstance(part, Thinking) else "content")
            for number in range(*(part.tokens or (0, 0))):
                places.setdefault(number, owner)
        frame = Owner(index, "")
        owners: list[Owner | None] = [places.get(number, frame) for number in range(len(self.sampled))]
        own = Labels(owners, list(self.kinds), [True] * len(self.sampled))
        return self.prompt._labels + own

    # The next prompt.

    @cached_property
    def stop(self) -> str:
        """The stop token that ends the answer; empty where it was cut, or the server took it off."""
        raw = self.message.raw
        return max((stop for stop in self.prompt.conversation.stops if raw.endswith(stop)), key=len, default="")

    def next(self, new_messages: Iterable[Mapping[str, Any]], *, keep: bool = False) -> Prompt:
        """The next prompt: all ids so far, and what the template writes for the new messages.

        Where the template would write what was before otherwise, the prompt is rendered anew, and `broke` says why;
        with `keep` it goes on with the ids as they are. An answer without its stop token is closed as the template
        closes one, by the prompt.
        """
        new = read_messages(new_messages, "the next prompt needs at least one new message")
        conversation = self.prompt.conversation
        shape = self._shape(new)
        seen = conversation._local.setdefault(shape, set()) if shape is not None else None
        near = self._near(new) if seen is not None else None
        if near is not None and len(seen or ()) >= ENOUGH:
            return self._extended((*self.prompt.messages, self.answer, *new), *near)
        messages, chat = self._render(new)
        layout = conversation._layout(chat, messages)
        found = _Continuation.find(self, chat, layout, messages)
        if found.reason is not None and (not keep or found.start < 0):
            return self._anew(messages, chat, found)
        if shape is not None and near is not None and seen is not None:
            tail = chat.text[found.start :]
            same = found.reason is None and near[1].text[near[2] :] == tail
            conversation._local[shape] = seen | {tail} if same else None
        return self._extended(messages, None, chat, found.start, found.closing)

    def _extended(
        self,
        messages: tuple[Mapping[str, Any], ...],
        shown: tuple[int, ...] | None,
        chat: RenderedChat,
        start: int,
        closing: str = "",
    ) -> Prompt:
        """The prompt that goes on with what a rendered conversation has from a place on."""
        conversation = self.prompt.conversation
        tail = closing + chat.text[start:]
        origin = start - len(closing)
        rendered = messages if shown is None else [messages[index] for index in shown]
        spans = conversation._protected(chat, rendered, self.prompt.protect)
        moved = [(max(start, first) - origin, last - origin) for first, last in spans if last > start]
        encoded = conversation._encoder.encode(tail, moved, conversation._lead)
        return Prompt(
            conversation,
            messages,
            self.ids + tuple(encoded.ids),
            self.text + tail,
            self.prompt.protect,
            self,
            _chat=chat,
            _encoded=encoded,
            _start=start,
            _closing=len(closing),
            _shown=shown,
        )

    def _shape(self, new: tuple[Mapping[str, Any], ...]) -> tuple[Any, ...] | None:
        """What decides about what follows an answer in most templates; None where only all messages can show it."""
        before, answer = self.prompt.messages, self.answer
        roles = tuple(str(message.get("role", "")) for message in new)
        # A thought may stand in the content as well, where the template takes it in no field of its own.
        thinks = bool(self.message.thinking) or "thinking" in self.prompt._labels.kinds
        thinks = thinks or any(message.get(field) for message in before for field in REASONING)
        if not self.stop or (thinks and any(role_kind(role) != "tool" for role in roles)):
            return None
        calls = len(answer.get("tool_calls", ()))
        return (self.stop, roles, thinks, bool(answer["content"]), calls, before[-1].get("role"))

    def _near(self, new: tuple[Mapping[str, Any], ...]) -> tuple[tuple[int, ...], RenderedChat, int] | None:
        """The last question, the answer and the new messages alone, rendered, and where what follows the answer begins.

        None where the template cannot write them so.
        """
        before, conversation = self.prompt.messages, self.prompt.conversation
        users = (index for index in range(len(before) - 1, -1, -1) if _role(before[index]) == "user")
        question = next(users, None)
        if question is None or len(before) < FEW:
            return None
        system = (0,) if _role(before[0]) == "system" else ()
        place = len(before)
        shown = (*system, question, *range(place, place + 1 + len(new)))
        messages = [(*before, self.answer, *new)[index] for index in shown]
        try:
            chat = conversation._render(messages, asks(new))
        except UsageError:
            return None
        layout, answer = conversation._layout(chat, messages), len(system) + 1
        if answer not in layout.blocks:
            return None
        end = conversation._region(layout, chat.text, messages, answer)[1]
        return (shown, chat, end) if chat.text.endswith(self.stop, 0, end) else None

    def _render(self, new: tuple[Mapping[str, Any], ...]) -> tuple[tuple[Mapping[str, Any], ...], RenderedChat]:
        conversation = self.prompt.conversation
        generates = asks(new)
        messages = (*self.prompt.messages, self.answer, *new)
        try:
            return messages, conversation._render(messages, generates)
        except UsageError:
            # Templates differ in whether the arguments of a call are an object or its JSON.
            messages = (*self.prompt.messages, self._answer(as_text=True), *new)
            if not self.answer.get("tool_calls"):
                raise
            return messages, conversation._render(messages, generates)

    def _anew(self, messages: tuple[Mapping[str, Any], ...], chat: RenderedChat, found: _Continuation) -> Prompt:
        conversation = self.prompt.conversation
        spans = conversation._protected(chat, messages, self.prompt.protect)
        encoded: Encoded = conversation._encoder.encode(chat.text, spans)
        same = next(
            (place for place, (one, other) in enumerate(zip(encoded.ids, self.ids, strict=False)) if one != other),
            min(len(encoded.ids), len(self.ids)),
        )
        lost = len(self.ids) - same
        assert found.reason is not None
        return Prompt(
            conversation,
            messages,
            tuple(encoded.ids),
            chat.text,
            self.prompt.protect,
            self,
            Break(found.reason, found.message, same, lost) if lost else None,
            _chat=chat,
            _encoded=encoded if lost else _after(encoded, same),
            _start=0 if lost else encoded.places().firsts[same],
        )

    # Training.

    def examples(self, loss: Loss = "assistant") -> list[TrainingExample]:
        """The conversation up to here to train on: one example, or one for each stretch between two breaks.

        Each id that was sampled is in exactly one of them as such. `loss` says what counts of it: `"assistant"` all,
        a list of kinds those, a function gives a weight for a kind and an owner.
        """
        turns: list[Turn] = [self]
        while (before := turns[-1].prompt.turn) is not None:
            turns.append(before)
        turns.reverse()
        found: list[TrainingExample] = []
        stretch: list[Turn] = []
        for turn in turns:
            if stretch and turn.prompt.broke is not None:
                found.append(_example(stretch, loss))
                stretch = []
            stretch.append(turn)
        return [*found, _example(stretch, loss)]

    def to_trl(self, loss: Loss = "assistant") -> list[dict[str, Any]]:
        """The same as rows of TRL's `rollout_func`."""
        return [example.to_trl() for example in self.examples(loss)]


def _example(stretch: Sequence[Turn], loss: Loss) -> TrainingExample:
    last = stretch[-1]
    sampled = [False] * len(last.ids)
    logprobs: list[float | None] = [None] * len(last.ids)
    for turn in stretch:
        first, end = len(turn.prompt.ids), len(turn.ids)
        sampled[first:end] = [True] * (end - first)
        if turn.logprobs is not None:
            logprobs[first:end] = turn.logprobs
    return make_example(last.ids, last._labels, sampled, logprobs, loss)


def _after(encoded: Encoded, first: int) -> Encoded:
    """The ids from one on, with their places counted from there."""

    def places() -> TokenPlaces:
        firsts, stops = encoded.places()
        return TokenPlaces(*([place - firsts[first] for place in each[first:]] for each in (firsts, stops)))

    return Encoded(encoded.ids[first:], places)


def _role(message: Mapping[str, Any]) -> str:
    return role_kind(str(message.get("role", "")))


def _call(call: ToolCall, as_text: bool) -> dict[str, Any]:
    arguments = call.arguments if as_text else json.loads(call.arguments)
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


@dataclass(frozen=True)
class _Continuation:
    """Where in a rendered conversation the text begins that follows an answer, and whether the ids may go on so."""

    start: int
    """-1 where the answer is not to be found in it."""
    closing: str = ""
    """What closes an answer that was cut in a thought, where the template would leave that thought out."""
    reason: BreakReason | None = None
    message: int | None = None

    @staticmethod
    def find(
        turn: Turn, chat: RenderedChat, layout: ChatLayout, messages: tuple[Mapping[str, Any], ...]
    ) -> _Continuation:
        prompt, index = turn.prompt, len(turn.prompt.messages)
        if index not in layout.blocks:
            return _Continuation(-1, "", "message changed", index)
        conversation, text = prompt.conversation, chat.text
        begin, end = conversation._region(layout, text, messages, index)
        written = prompt._whole.text
        if text.startswith(written) and layout.blocks[index][0] <= len(written):
            body = layout.bodies.get(index)
            begin = len(written) if body is None else min(len(written), body[0])
        marker = next((stop for stop in conversation.stops if text.endswith(stop, begin, end)), "")
        otherwise = marker != turn.stop
        if turn.stop and not marker:
            # The template ends an earlier answer with a marker at which no model stops.
            frame = conversation._encoder.markers(text[end : layout.blocks[index][1]], ())
            end = end + frame[0][1] if frame else end
        start, closing = end, ""
        if not turn.stop:
            start, closing = _cut(turn, chat, begin, end - len(marker), layout.blocks[index][1])
            otherwise = False
        broken = _rewritten(turn, chat, begin) or _dropped(turn, chat, index)
        if broken is None and otherwise:
            broken = "turn's end written otherwise", index
        return _Continuation(start, closing, *(broken or (None, None)))


def _cut(turn: Turn, chat: RenderedChat, begin: int, end: int, most: int) -> tuple[int, str]:
    """Where what closes an answer begins that has no stop token, and what is to be put before it."""
    if not turn.sampled:
        return begin, ""
    index = len(turn.prompt.messages)
    if chat.text.startswith(turn.text) and (chat.last_words(index) or 0) <= len(turn.text) <= most:
        # So far it is what the template writes, be it in the middle of a header.
        return len(turn.text), ""
    last = turn.parts[-1] if turn.parts else None
    if not isinstance(last, Thinking) or last.complete:
        return end, ""
    if stops := _thought_ends(chat, index):
        return stops[-1], ""
    # The template leaves this thought out of an earlier answer; how it closes one shows where the answer is the last.
    conversation = turn.prompt.conversation
    messages = (*turn.prompt.messages, turn.answer)
    try:
        alone = conversation._render(messages, False)
    except UsageError:
        return end, ""
    layout = conversation._layout(alone, messages)
    stops = _thought_ends(alone, index)
    if not stops or index not in layout.blocks:
        return end, ""
    last_end = conversation._region(layout, alone.text, messages, index)[1]
    closing = alone.text[stops[-1] : last_end]
    return end, closing.removesuffix(next((stop for stop in conversation.stops if closing.endswith(stop)), ""))


def _thought_ends(chat: RenderedChat, index: int) -> list[int]:
    return [stop for stop, field in _written(chat, index) if field == "reasoning_content"]


def _written(chat: RenderedChat, index: int) -> list[tuple[int, str]]:
    """The fields of a message that are in a rendered conversation, each with where it ends, in their order."""
    leaves = chat.leaves
    return [
        (stop, leaves.field(leaf))
        for stop, leaf in chat.runs
        if leaf >= 0 and leaves.message(leaf) == index and leaves.field(leaf) != "role"
    ]


def _dropped(turn: Turn, chat: RenderedChat, index: int) -> tuple[BreakReason, int] | None:
    """What the template leaves out of the answer."""
    fields = {field for _, field in _written(chat, index)}
    answer = turn.answer
    if "reasoning_content" in answer and "reasoning_content" not in fields:
        return "thinking dropped", index
    if turn.message.thinking and "reasoning_content" not in answer:
        leaves = chat.leaves
        if any(leaves.owner(leaf) == (index, "content") for leaf in chat.losses):
            return "thinking dropped", index
    for field in ("content", "tool_calls"):
        if answer.get(field) and field not in fields:
            return "message changed", index
    return None


def _rewritten(turn: Turn, chat: RenderedChat, begin: int) -> tuple[BreakReason, int | None] | None:
    """What the template writes otherwise of what was the prompt, as a reason and a message."""
    prompt = turn.prompt
    old, new = prompt._whole.text, chat.text
    if new.startswith(old):
        return None
    same = common_length(old, new)
    if same >= begin and not prompt.conversation._words(old[begin:]):
        # Of what the template wrote to ask for the answer, the empty thought is gone.
        return "thinking dropped", len(prompt.messages)
    layout = prompt.conversation._layout(prompt._whole, prompt.messages)
    owner = next((stretch.owner for stretch in layout.stretches if stretch.stop > same), None)
    for index in range(len(prompt.messages)):
        before = {field for _, field in _written(prompt._whole, index)}
        after = {field for _, field in _written(chat, index)}
        gone = before - after
        if gone & {"reasoning_content", "thinking", "reasoning"}:
            return "thinking dropped", index
        if gone:
            return "message changed", index
    if owner is not None and owner.message is not None and owner.part:
        return "message changed", owner.message
    return "template rewrites the prompt", owner.message if owner is not None else None
