"""Which server `asides run` talks to, and with which key: flag, configuration, environment, the usual places.

The first that is set is the one: a prompt never goes to another server because the one that was meant is down.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from ..._config.schema import Config
from ..._extras import own_command
from ...client._client import Client, UpstreamError, name_some
from ...errors import Error, UsageError

OLLAMA = "http://127.0.0.1:11434"


class ServerAddress(NamedTuple):
    """Where a server may be."""

    source: str
    """Who says so."""
    url: str
    key: str = ""


class NothingAnswersError(Error):
    """No server answered; says what was tried and what to do."""

    def __init__(self, tried: list[tuple[ServerAddress, str]], config: Config) -> None:
        lines = ["no model server answers; tried:"]
        lines += [f"  {address.source}: {why}" for address, why in tried]
        gateway, asides = gateway_url(config), own_command()
        lines.append("Start one, or name another with --url. To try it without a model server, start the gateway,")
        lines.append(f"`{asides} serve`, in another terminal, and then: {asides} run recorded-qwen3 --url {gateway}")
        super().__init__("\n".join(lines))


def gateway_url(config: Config) -> str:
    """Where `asides serve` listens when nothing else is said."""
    return f"http://127.0.0.1:{config.listen.port}"


def addresses(url: str | None, config: Config, environ: Mapping[str, str]) -> list[ServerAddress]:
    """The addresses to try: one that was named, else the usual ones."""
    key = environ.get("OPENAI_API_KEY", "")
    if url:
        return [ServerAddress("--url", url, key)]
    if config.run.url:
        return [ServerAddress("run.url of the configuration", config.run.url, config.run.key)]
    if base := environ.get("OPENAI_BASE_URL"):
        return [ServerAddress("OPENAI_BASE_URL", base, key)]
    if host := environ.get("OLLAMA_HOST"):
        return [ServerAddress("OLLAMA_HOST", ollama_url(host), environ.get("OLLAMA_API_KEY", ""))]
    return [
        ServerAddress("Ollama's usual address", OLLAMA),
        ServerAddress("this machine's gateway", gateway_url(config)),
    ]


def ollama_url(host: str) -> str:
    """The address that `OLLAMA_HOST` means: a host, a port, both, or a whole address."""
    host = host.strip().strip("\"'")
    scheme, _, rest = host.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"OLLAMA_HOST is {host!r}, which is not an address: {error}") from error
    # What a server listens at is not what a client calls.
    named = "127.0.0.1" if parts.hostname in (None, "0.0.0.0", "::") else parts.hostname
    if port is None:
        port = {"http": 80, "https": 443}.get(scheme, 11434)
    return f"{scheme or 'http'}://{f'[{named}]' if ':' in named else named}:{port}{parts.path}"


def find(candidates: list[ServerAddress], config: Config) -> Client:
    """The first server that answers. One whose address says what it speaks is not asked."""
    tried: list[tuple[ServerAddress, str]] = []
    for address in candidates:
        client = Client(address.url, address.key)
        try:
            client.kind  # noqa: B018  # asks, and remembers
        except UpstreamError as error:
            if error.reached:
                raise
            tried.append((address, error.message))
        else:
            return client
    raise NothingAnswersError(tried, config)


def greet(client: Client) -> None:
    """Make sure before a conversation that someone is there. A server that lists no models may still talk."""
    try:
        client.models()
    except UpstreamError as error:
        if not error.reached or error.status in (401, 403):
            raise


def unreached(error: UpstreamError, candidates: list[ServerAddress], config: Config) -> Error:
    """What to tell of a server that failed."""
    if not error.reached:
        return NothingAnswersError([(candidates[0], error.message)], config)
    if error.status in (401, 403):
        keys = {"run.url of the configuration": "run.key", "OLLAMA_HOST": "OLLAMA_API_KEY"}
        return UsageError(f"{error.message}; set the key in {keys.get(candidates[0].source, 'OPENAI_API_KEY')}")
    return error


def only_model(client: Client) -> str:
    """The model of a server that has exactly one."""
    names = client.models()
    if len(names) == 1:
        return names[0]
    if not names:
        raise UsageError(f"{client} lists no models; start one there, or name it: asides run MODEL")
    raise UsageError(f"name a model: asides run MODEL; {client} has {name_some(names)}")
