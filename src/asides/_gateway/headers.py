"""Headers that go on, in either direction, and keys: how clients show theirs, and who gets to see which."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence

from .http_request import HttpRequest
from .upstreams import Upstream

HOP_BY_HOP = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
FORWARDED = ("traceparent", "tracestate", "openai-organization", "openai-project")
"""Headers of a client that an upstream gets. All others stay here unless `forward_headers` names them: clients put ids
of sessions, devices and accounts into headers of their own."""
FORWARDED_SAME = ("anthropic-version", "anthropic-beta")
"""Those that it gets only where it speaks the client's own API."""
_NEVER = HOP_BY_HOP | {"host", "content-length", "accept-encoding", "expect", "origin", "cookie", "x-request-id"}
"""What no configuration forwards: it is about the connection to us, or written anew."""
USER_AGENT = "asides"
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_KEYS = ("authorization", "x-api-key", "api-key")
_RATES = ("retry-after", "retry-after-ms", "x-should-retry")
_NOT_BACK = HOP_BY_HOP | {
    "content-length",
    "content-type",
    "content-encoding",
    "date",
    "server",
    "x-request-id",
    "set-cookie",
}


def key_of(headers: Mapping[str, str]) -> str:
    """The key that a client sends: `Authorization: Bearer`, `x-api-key` or `api-key`. Empty where it sends none."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    return headers.get("x-api-key", "").strip() or headers.get("api-key", "").strip()


def is_known(key: str, keys: Sequence[str]) -> bool:
    """Whether a key is one of these; takes the same time whichever it is."""
    given = key.encode("latin-1")  # the bytes of the header as they came
    found = False
    for known in keys:
        found |= hmac.compare_digest(given, known.encode())
    return found


def fingerprint(headers: Mapping[str, str]) -> str:
    """Who sent a request: a hash of the key, so that the key itself is never kept. Empty without a key."""
    return hashed(key_of(headers))


def hashed(key: str) -> str:
    """The same of a key that was found in the headers before."""
    return hashlib.blake2b(key.encode(), digest_size=16).hexdigest() if key else ""


def fingerprint_of(key: str) -> str:
    """The same for a key as a configuration has it: a client's comes as the bytes of its header."""
    return fingerprint({"x-api-key": key.encode().decode("latin-1")})


def hops(headers: Mapping[str, str]) -> set[str]:
    """The names that a `Connection` header lists: headers for the next hop alone."""
    return {name.strip().lower() for name in headers.get("connection", "").split(",")}


def own_key(headers: Mapping[str, str], guarded: bool) -> str:
    """The client's key for an upstream. Where the gateway has keys of its own, the client's is for the gateway."""
    return "" if guarded else as_text(key_of(headers))


def as_text(value: str) -> str:
    """A value whose characters are bytes, as text that is sent as the same bytes."""
    return value if value.isascii() else value.encode("latin-1").decode("utf-8", "replace")


def for_upstream(
    http: HttpRequest,
    upstream: Upstream,
    key: str,
    *,
    guarded: bool,
    same: bool,
    raw: bool = False,
    more: Sequence[str] = (),
) -> dict[str, str]:
    """The headers for an upstream, with the client's key (`own_key`). `same`: it speaks the client's API; `raw`: the
    body passes as it is."""
    given = http.headers
    sent = {"user-agent": USER_AGENT}
    for name in (*FORWARDED, *(FORWARDED_SAME if same else ()), *more):
        if name in given and name not in _NEVER and name not in _KEYS and name not in hops(given):
            sent[name] = as_text(given[name])
    if _UUID.fullmatch(http.record.id):  # some servers refuse any other
        sent["x-request-id"] = http.record.id
    if not raw:
        sent["content-type"] = "application/json"
    elif "content-type" in given:
        sent["content-type"] = given["content-type"]
    sent["accept"] = given.get("accept", "*/*")
    # What is read here is asked for uncompressed: a compressed stream is flushed late, and has to be unpacked.
    sent["accept-encoding"] = given.get("accept-encoding", "identity") if raw else "identity"
    if key:
        sent["authorization"] = f"Bearer {key}"
    elif not guarded and "authorization" in given:
        sent["authorization"] = as_text(given["authorization"])  # of another scheme: not ours to read
    sent |= upstream.own_headers  # last: what the operator has configured wins
    return sent


def for_client(headers: Mapping[str, str], *, same: bool, raw: bool = False) -> list[tuple[bytes, bytes]]:
    """The headers of an upstream's answer that go back: limits always, others where both sides speak the same API."""
    back: list[tuple[bytes, bytes]] = []
    not_back = _NOT_BACK | hops(headers) if "connection" in headers else _NOT_BACK
    for name, value in headers.items():
        limits = name in _RATES or name.startswith("x-ratelimit-")
        body = raw and name in ("content-type", "content-encoding", "content-length")
        if body or limits or (same and name not in not_back and not name.startswith("access-control-")):
            back.append((name.encode(), value.encode("utf-8", "surrogateescape")))  # as the bytes that came
    return back
