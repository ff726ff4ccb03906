"""Providers of hosted models: a card for each, by the names of their hosts. Values only.

A server on one's own machine is asked what it is. A provider is not: it would see requests to paths that it does not
have, with the operator's key. So what is known of it is written down here: which API it has, and what it does where a
thought of an earlier turn is missing, foreign or moved. What it wants back besides its proofs (`reply._items.Proof`) is
the model's own matter, and stands on the card of its family.

    provider_of("api.anthropic.com").kind          # "anthropic"
    card_of("anthropic", "127.0.0.1").recovery("... `thinking` ...")     # "without": by the kind, in front of a proxy
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import cache
from typing import Literal

import msgspec

from ._servers import KindName

Recovery = Literal["without", "drop_block", "skip_value", "empty"]
"""How a request is sent again after a provider refused it because of a thought: without the thoughts of the turns so
far; with the order to leave out what is bound to another conversation; with the value that stands for a signature that
nobody has; with an empty thought where none is known."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one provider."""

    name: str
    """Its name in messages and in the documentation."""
    hosts: tuple[str, ...]
    """The names of its hosts; hosts below one of them count too."""
    kind: KindName = "openai"
    """The API by which it is asked, where the configuration names none."""
    field: str = ""
    """The field in which it sends thoughts, where that is not the usual one of its API: so they go back under the same
    name before a reply was seen."""
    every_turn: bool = False
    """Whether each turn of a request with tools must have a thought, be it an empty one, whatever the model's name."""
    refusals: Mapping[str, Recovery] = {}
    """What stands in an error that is about a thought of an earlier turn, in small letters, and what is done then. The
    first that is found counts. No other error is answered by another try."""
    bound: tuple[str, ...] = ()
    """Patterns of the names of models whose thoughts are bound to everything before them, and that always think."""

    def recovery(self, error: str) -> Recovery | None:
        """What is done after an error of these words; None where it is not about a thought."""
        words = error.lower()
        return next((found for text, found in self.refusals.items() if text in words), None)

    def binds(self, model: str) -> bool:
        """Whether a model's thoughts are bound to everything before them."""
        return any(fnmatchcase(model.lower().replace(".", "-"), pattern) for pattern in self.bound)


_SIGNATURES: dict[str, Recovery] = {"thought_signature": "skip_value", "thought signature": "skip_value"}

PROVIDERS: tuple[Provider, ...] = (
    Provider(
        name="Anthropic",
        hosts=("api.anthropic.com",),
        kind="anthropic",
        refusals={
            "bound to a different conversation": "drop_block",
            "`thinking`": "without",
            "thinking block": "without",
            "redacted_thinking": "without",
        },
        bound=("claude-opus-5-5*", "claude-sonnet-5-5*", "claude-haiku-5-5*", "claude-fable-5-1*"),
    ),
    # Its other API, `kind: responses`, keeps reasoning between turns, but has no `n`, no `seed` and no stop strings.
    Provider(name="OpenAI", hosts=("api.openai.com",)),
    Provider(
        name="OpenAI Responses",
        hosts=(),
        kind="responses",
        refusals={
            "invalid_encrypted_content": "without",
            "encrypted content could not": "without",
            "item with id 'rs_": "without",
            "without its required 'reasoning' item": "without",
        },
    ),
    Provider(name="xAI", hosts=("api.x.ai",)),
    Provider(name="Google", hosts=("generativelanguage.googleapis.com",), refusals=_SIGNATURES),
    Provider(
        name="DeepSeek",
        hosts=("api.deepseek.com",),
        every_turn=True,
        refusals={"`reasoning_content` in the thinking mode must be passed back": "empty"},
    ),
    Provider(
        name="OpenRouter",
        hosts=("openrouter.ai",),
        field="reasoning",
        refusals={"reasoning_details": "without", **_SIGNATURES},
    ),
    Provider(name="Mistral", hosts=("api.mistral.ai",)),
    Provider(name="Groq", hosts=("api.groq.com",), field="reasoning"),
    Provider(name="Together", hosts=("api.together.xyz", "api.together.ai"), field="reasoning"),
    Provider(name="Cerebras", hosts=("api.cerebras.ai",), field="reasoning"),
    Provider(name="Z.ai", hosts=("api.z.ai", "open.bigmodel.cn")),
    Provider(name="Moonshot", hosts=("api.moonshot.ai", "api.moonshot.cn")),
    Provider(name="MiniMax", hosts=("api.minimax.io", "api.minimaxi.com")),
)
"""Every provider that is known."""
_NEAR = (".localhost", ".local", ".internal", ".lan", ".home.arpa")
"""How the names of hosts end that no public server has."""


def provider_of(host: str) -> Provider | None:
    """The provider that has a host of this name; None where none is known."""
    host = host.lower().rstrip(".")
    for provider in PROVIDERS:
        if any(host == known or host.endswith(f".{known}") for known in provider.hosts):
            return provider
    return None


@cache
def card_of(kind: KindName, host: str) -> Provider:
    """The card of a server of this kind: its host's, else what all providers of the kind have in common.

    A proxy may stand before any of them, and passes its errors on; their words tell whose they are.
    """
    found = provider_of(host)
    if found is not None and found.kind == kind:
        return found
    alike = [provider for provider in PROVIDERS if provider.kind == kind]
    refusals = {text: how for provider in alike for text, how in provider.refusals.items()}
    bound = tuple(pattern for provider in alike for pattern in provider.bound)
    return Provider(name=kind, hosts=(), kind=kind, refusals=refusals, bound=bound)


def is_near(host: str) -> bool:
    """Whether a host is this machine or one of a private network, as far as its name or its number shows."""
    host = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return "." not in host or host.endswith(_NEAR)
    return address.is_loopback or address.is_private or address.is_link_local
