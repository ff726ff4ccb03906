"""`Prompt`: a conversation as ids up to where the model goes on, and for each id whose it is and what it is.

A prompt is made by `Conversation.prompt` from messages, or by `Turn.next` from the ids of a turn and new messages; then
it begins with these ids, whatever the tokenizer would make of their text. Ids are there at once. Owners, kinds and what
was sampled are found when they are first asked for, because they need more of the template than one rendering.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ._examples import Loss, TrainingExample, make_example
from ._layout import Kind, role_kind
from ._template import Owner, RenderedChat

if TYPE_CHECKING:
    from ._conversation import Conversation
    from ._encoding import Encoded
    from ._turn import Turn

BreakReason = Literal[
    "thinking dropped", "turn's end written otherwise", "message changed", "template rewrites the prompt"
]
"""Why a prompt does not begin with the ids before it."""


class Break(NamedTuple):
    """Why and where a prompt does not begin with the ids before it: the template writes them otherwise now."""

    reason: BreakReason
    """What the template does."""
    message: int | None
    """The index of the message that it does it to; None where it is none's."""
    offset: int
    """How many ids are still the same."""
    lost: int
    """How many ids before it the new prompt does not go on from."""


class Labels(NamedTuple):
    """What is known of ids, one entry for each."""

    owners: list[Owner | None]
    kinds: list[Kind]
    sampled: list[bool]

    def __add__(self, other: Labels) -> Labels:  # type: ignore[override] # not the tuples, what they hold
        return Labels(self.owners + other.owners, self.kinds + other.kinds, self.sampled + other.sampled)


class TextLoss(NamedTuple):
    """A text that is not in the prompt as it was given."""

    owner: Owner
    """Which."""
    reason: str
    """`not written`, `written in part`, or what wrote it without saying where it is from."""


@dataclass(frozen=True, eq=False, repr=False)
class Prompt:
    """A conversation as ids, and for each id whose it is. Nothing changes it.

    Examples:
        >>> from splintr import Tokenizer
        >>> template = (
        ...     "{% for m in messages %}<|im_start|>{{ m.role }}\\n{{ m.content }}<|im_end|>\\n{% endfor %}"
        ...     "{% if add_generation_prompt %}<|im_start|>assistant\\n{% endif %}"
        ... )
        >>> tokenizer = Tokenizer.from_pretrained("qwen3")
        >>> messages = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "Four."}]
        >>> prompt = asides.Conversation(tokenizer, template, format="qwen3").prompt(messages)
        >>> prompt.text[-26:]
        'assistant\\nFour.<|im_end|>\\n'
        >>> prompt.sampled[-4:], prompt.kind[-4:], prompt.message[-4:]
        ((True, True, True, False), ('text', 'text', 'marker', 'marker'), (1, 1, 1, 1))
    """

    conversation: Conversation
    """What it was made with."""
    messages: tuple[Mapping[str, Any], ...]
    """The messages, as they were given."""
    ids: tuple[int, ...]
    """The token ids."""
    text: str
    """The same as text."""
    protect: tuple[str, ...]
    """The roles whose words become no added token."""
    turn: Turn | None = None
    """The turn that it follows; None for a first prompt."""
    broke: Break | None = None
    """None where it begins with the ids of `turn`; otherwise why it does not."""
    _chat: RenderedChat = field(kw_only=True)
    """The messages, as the template writes them."""
    _encoded: Encoded = field(kw_only=True)
    """Its ids; where it begins with those of a turn, only what follows them."""
    _start: int = field(kw_only=True, default=0)
    """Where in the rendered text these begin."""
    _closing: int = field(kw_only=True, default=0)
    """How many characters before them close the answer of the turn."""
    _shown: tuple[int, ...] | None = field(kw_only=True, default=None)
    """Which messages were rendered; None for all of them."""

    def __repr__(self) -> str:
        return f"<Prompt of {len(self.messages)} messages, {len(self.ids)} ids>"

    def __len__(self) -> int:
        return len(self.ids)

    def add(
        self, sampled: Sequence[int], logprobs: Sequence[float] | None = None, *, finish_reason: str | None = None
    ) -> Turn:
        """What a model has sampled after this prompt. `finish_reason`: how the server says that it ended."""
        from ._turn import Turn  # here, because it is made of prompts itself

        return Turn.of(self, sampled, logprobs, finish_reason)

    def examples(self, loss: Loss = "assistant") -> list[TrainingExample]:
        """The conversation to train on: what a model writes in it counts. `loss` as in `Turn.examples`."""
        return [make_example(self.ids, self._labels, self.sampled, None, loss)]

    @property
    def _extends(self) -> Turn | None:
        """The turn whose ids it begins with."""
        return self.turn if self.broke is None else None

    @cached_property
    def _whole(self) -> RenderedChat:
        """All messages, as the template writes them."""
        if self._shown is None:
            return self._chat
        return self.conversation._render(self.messages, asks(self.messages))

    @cached_property
    def _labels(self) -> Labels:
        own = self.conversation._label(self)
        return own if self._extends is None else self._extends._labels + own

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Everyone who owns an id: messages with the path in them, tools, keywords."""
        return tuple(dict.fromkeys(owner for owner in self._labels.owners if owner is not None))

    @cached_property
    def owner(self) -> tuple[int | None, ...]:
        """For each id, who owns it: an index into `owners`. None for what belongs to no message."""
        numbers = {owner: number for number, owner in enumerate(self.owners)}
        return tuple(numbers[owner] if owner is not None else None for owner in self._labels.owners)

    @cached_property
    def message(self) -> tuple[int | None, ...]:
        """For each id the index of its message, with what the template writes around it; None where it has none."""
        return tuple(owner.message if owner is not None else None for owner in self._labels.owners)

    @cached_property
    def kind(self) -> tuple[Kind, ...]:
        """For each id, what it is."""
        return tuple(self._labels.kinds)

    @cached_property
    def sampled(self) -> tuple[bool, ...]:
        """For each id, whether a model writes it: the prompt does not supply it."""
        return tuple(self._labels.sampled)

    @cached_property
    def differs(self) -> int:
        """How many ids are others than transformers would give, because a marker was spelled out in protected words."""
        found = 0
        prompt: Prompt | None = self
        while prompt is not None:  # no recursion: an agent may take a thousand turns
            found += prompt._differing
            prompt = prompt._extends.prompt if prompt._extends is not None else None
        return found

    @cached_property
    def _differing(self) -> int:
        """Of its own ids, without those of the turn that it begins with."""
        size = self._closing + len(self._chat.text) - self._start
        lead = self.conversation._lead if self._start else ""
        theirs = self.conversation._encoder.plain(self.text[len(self.text) - size :], lead)
        if theirs.ids == self._encoded.ids:
            return 0
        ours = self._encoded.places()
        there = set(zip(theirs.ids, *theirs.places(), strict=True))
        return sum(each not in there for each in zip(self._encoded.ids, *ours, strict=True))

    @cached_property
    def losses(self) -> tuple[TextLoss, ...]:
        """The texts of messages and tools that are not in the prompt as they were given, and why."""
        leaves = self._whole.leaves
        return tuple(TextLoss(leaves.owner(leaf), reason) for leaf, reason in sorted(self._whole.losses.items()))


def asks(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a conversation asks the model for an answer: unless its last message is one."""
    return role_kind(str(messages[-1].get("role", ""))) != "assistant"
