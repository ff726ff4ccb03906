"""Conversations in ids, for any model that has a chat template: `asides.Conversation`, `Prompt` and `Turn`.

The checkpoint's own template is run with strings that carry an origin for each character (`_origin`, `_environment`,
`_template`). So nothing about a family is written down here: whose each token is, what it is, what the model samples
and where the next prompt goes on are all read off what the template writes.
"""

from __future__ import annotations

from ._conversation import Conversation
from ._prompt import Prompt
from ._turn import Turn

__all__ = ["Conversation", "Prompt", "Turn"]
