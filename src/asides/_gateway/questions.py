"""Questions of the gateway's own to upstreams: small JSON bodies, small JSON answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..dialects._servers import OPENAI
from .bodies import off_loop, read_json
from .headers import hashed
from .refusals import Refusal
from .upstreams import Upstream

MOST_VALUES = 1_000_000
"""JSON values that are read of a small answer."""
MOST_BYTES = 16 * 1024 * 1024
NO_SUCH_PATH = (404, 405, 501)
PASSED_STATUSES = (401, 403, 429, 503)
"""Statuses of an upstream that mean the same to a client; any other says that the upstream fails."""


class JsonAnswer(NamedTuple):
    """What an upstream answers."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    data: dict[str, Any]
    """The JSON object; empty where it is anything else, or the status is not 200."""


def headers_of(upstream: Upstream, key: str) -> dict[str, str]:
    """The headers that servers of an upstream's kind want with every request, and a client's key as they read it."""
    kind = upstream.kind or OPENAI
    return {**kind.headers, **kind.credentials(key)}


async def ask_json(
    upstream: Upstream, method: str, path: str, body: bytes | None, key: str, *, most: int = MOST_BYTES
) -> JsonAnswer:
    """Ask an upstream, which is sent this key where it has none configured. `most`: bytes of an answer."""
    headers = {
        "accept": "application/json",
        "accept-encoding": "identity",
        **headers_of(upstream, key),
        **upstream.own_headers,
    }
    if body is not None:
        headers["content-type"] = "application/json"
    async with upstream.ask(method, path, body, headers, owner=hashed(key)) as answer:
        if answer.status != 200:
            return JsonAnswer(answer.status, answer.headers, {})
        data = await answer.read(most)
    try:
        found = await off_loop(len(data), read_json, data, MOST_VALUES)
    except Refusal:
        found = {}
    return JsonAnswer(answer.status, answer.headers, found)


async def fetch_json(
    upstream: Upstream, method: str, path: str, body: bytes | None, key: str, *, refuses: bool = False
) -> dict[str, Any]:
    """The JSON object at a path of an upstream.

    Empty where the server has no such path, or answers with anything else; `refuses`: a `Refusal` for the latter.
    """
    answer = await ask_json(upstream, method, path, body, key)
    if refuses:
        check_status(upstream, path, answer.status)
    return answer.data


def check_status(upstream: Upstream, path: str, status: int) -> None:
    """Raise a `Refusal` where an upstream fails."""
    if status != 200 and status not in NO_SUCH_PATH:
        told = status if status in PASSED_STATUSES else 502
        raise Refusal(told, f"the upstream {upstream.name} answers {path} with status {status}")
