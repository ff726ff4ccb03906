"""Providers of hosted models: a card for each, by the names of their hosts. Values only.

A server on one's own machine is asked what it is. A provider is not: it would see requests to paths that it does not
have, with the operator's key. So what is known of it is written down here.

    provider_of("api.anthropic.com").kind          # "anthropic"
"""

from __future__ import annotations

import ipaddress

import msgspec

from ._servers import KindName


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one provider."""

    name: str
    """Its name in messages and in the documentation."""
    hosts: tuple[str, ...]
    """The names of its hosts; hosts below one of them count too."""
    kind: KindName = "openai"
    """The API by which it is asked, where the configuration names none."""


PROVIDERS: tuple[Provider, ...] = (
    Provider(name="Anthropic", hosts=("api.anthropic.com",), kind="anthropic"),
    # Its other API, `kind: responses`, keeps reasoning between turns, but has no `n`, no `seed` and no stop strings.
    Provider(name="OpenAI", hosts=("api.openai.com",)),
    Provider(name="xAI", hosts=("api.x.ai",)),
    Provider(name="Google", hosts=("generativelanguage.googleapis.com",)),
    Provider(name="DeepSeek", hosts=("api.deepseek.com",)),
    Provider(name="OpenRouter", hosts=("openrouter.ai",)),
    Provider(name="Mistral", hosts=("api.mistral.ai",)),
    Provider(name="Groq", hosts=("api.groq.com",)),
    Provider(name="Together", hosts=("api.together.xyz", "api.together.ai")),
    Provider(name="Cerebras", hosts=("api.cerebras.ai",)),
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


def is_near(host: str) -> bool:
    """Whether a host is this machine or one of a private network, as far as its name or its number shows."""
    host = host.lower().rstrip(".")
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return "." not in host or host.endswith(_NEAR)
    return address.is_loopback or address.is_private or address.is_link_local
