"""Training examples: ids, what each weighs in the loss, log probabilities and kinds.

Knows nothing of prompts and turns but their ids and labels. `labels` is what trainers of Hugging Face take, with
`IGNORED` where nothing is learned; `to_trl` is a row of TRL's `rollout_func`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..errors import UsageError
from ._layout import KINDS, Kind
from ._template import Owner

if TYPE_CHECKING:
    from ._prompt import Labels

IGNORED = -100
"""The label of an id that is not learned."""
Loss = Literal["assistant"] | Collection[Kind] | Callable[[Kind, Owner | None], float]
"""What counts of what a model wrote: all of it, some kinds, or a weight for each id by its kind and owner."""


class TrainingExample(msgspec.Struct, frozen=True):
    """Ids to train on, and what each of them counts."""

    ids: tuple[int, ...]
    """The token ids."""
    weights: tuple[float, ...]
    """For each id what it counts in the loss."""
    logprobs: tuple[float | None, ...]
    """For each id the log probability with which it was sampled; None where it was not, or nobody said."""
    kinds: tuple[Kind, ...]
    """For each id what it is."""
    sampled: tuple[bool, ...]
    """For each id whether the model wrote it in this very example."""

    @property
    def labels(self) -> list[int]:
        """The ids, -100 for those that do not count."""
        return [id if weight else IGNORED for id, weight in zip(self.ids, self.weights, strict=True)]

    def to_trl(self) -> dict[str, Any]:
        """A row as TRL's `rollout_func` gives it: prompt, completion, log probabilities, and a mask of what counts."""
        first = self.sampled.index(True) if True in self.sampled else len(self.ids)
        return {
            "prompt_ids": list(self.ids[:first]),
            "completion_ids": list(self.ids[first:]),
            "logprobs": [0.0 if each is None else each for each in self.logprobs[first:]],
            "env_mask": [int(weight != 0) for weight in self.weights[first:]],
        }


def make_example(
    ids: Sequence[int],
    labels: Labels,
    sampled: Sequence[bool],
    logprobs: Sequence[float | None] | None,
    loss: Loss,
) -> TrainingExample:
    """An example of ids, of which those count that were sampled and that `loss` names."""
    weigh = weight_of(loss)
    weights = tuple(
        weigh(kind, owner) if written else 0.0
        for kind, owner, written in zip(labels.kinds, labels.owners, sampled, strict=True)
    )
    given = tuple(logprobs) if logprobs is not None else (None,) * len(ids)
    return TrainingExample(tuple(ids), weights, given, tuple(labels.kinds), tuple(sampled))


def weight_of(loss: Loss) -> Callable[[Kind, Owner | None], float]:
    """What an id weighs, by its kind and owner."""
    if callable(loss):
        return loss
    if loss == "assistant":
        return lambda kind, owner: 1.0
    kinds = (loss,) if isinstance(loss, str) else tuple(loss) if isinstance(loss, Collection) else (loss,)
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown:
        raise UsageError(f"loss must be 'assistant', a function or some of {', '.join(KINDS)}; not {unknown[0]!r}")
    return lambda kind, owner: float(kind in kinds)
