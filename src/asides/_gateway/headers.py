"""Headers that go on, in either direction, and keys: how clients show theirs, and who gets to see which.

Both directions have an allow list, and the configuration adds to it. An upstream gets no id of a session, device or
account, no cookie, and no key but the one that is for it. A client gets what is about its limits and, where both sides
speak the same API, what is about the reply; nothing that would be about the page, whose origin every answer has.

    for_upstream(http, upstream, key, guarded=True, same=True)      # the headers of a request
    for_client(answer.headers, same=True, raw=True)                 # those of its answer that go back
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Collection, Mapping, Sequence

from ..dialects._servers import OPENAI
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
TOKEN = "x-asides-token"
"""The header in which programs send the start token, see `page_access`."""
_NEVER = HOP_BY_HOP | {
    "host",
    "content-length",
    "accept-encoding",
    "expect",
    "origin",
    "cookie",
    "x-request-id",
    TOKEN,
}
"""What no configuration forwards: it is about the connection to us, or written anew."""
USER_AGENT = "asides"
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")
_KEYS = ("authorization", "x-api-key", "api-key")
_RATES = ("retry-after", "retry-after-ms", "x-should-retry")
_LIMITS = ("x-ratelimit-", "anthropic-ratelimit-")
_BACK = frozenset({*_RATES, "cache-control", "request-id"})
_BACK_BEGIN = ("openai-", "anthropic-", "x-")
"""Headers of an upstream's answer that a client gets, and how the names of others begin. All else stays here unless
`return_headers` names it: an answer has the page's origin, where cookies, policies and service workers are ours."""
_NOT_BACK = frozenset({"x-content-type-options", "x-frame-options", "x-request-id"})
_NOT_BACK_BEGIN = ("x-accel-", "x-asides-", "x-sendfile")
"""What of these is the gateway's own, or tells a proxy in between to send a file."""
_OF_BODY = frozenset(
    {
        *("content-type", "content-length", "content-encoding", "content-range", "content-disposition"),
        *("accept-ranges", "etag", "last-modified"),
    }
)
"""What is true of a body that passes as it is, and of no other."""
_RUNS = re.compile(r"html|xml|xsl|svg|script|mixed-replace", re.IGNORECASE)
"""In the type of what a browser would run. Searched for anywhere in the header, because of several types that stand in
one header browsers disagree which counts."""
NO_TYPE = "application/octet-stream"


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
    kind = upstream.kind or OPENAI
    sent = {"user-agent": USER_AGENT, **kind.headers}
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
        sent |= kind.credentials(key)
    elif not guarded and "authorization" in given:
        sent["authorization"] = as_text(given["authorization"])  # of another scheme: not ours to read
    sent |= upstream.own_headers  # last: what the operator has configured wins
    return sent


def for_client(
    headers: Mapping[str, str], *, same: bool, raw: bool = False, more: Collection[str] = ()
) -> list[tuple[bytes, bytes]]:
    """The headers of an upstream's answer that go back: limits always, others where both sides speak the same API.

    `raw`: its body passes as it is; `more`: what the configuration adds.
    """
    back: list[tuple[bytes, bytes]] = []
    not_back = hops(headers) if "connection" in headers else ()
    for name, value in headers.items():
        if name in not_back:
            continue
        limits = name in _RATES or name.startswith(_LIMITS)
        if name in _OF_BODY:  # also where the configuration names it: a second length would end the answer elsewhere
            goes = raw
        else:
            goes = limits or (same and (_goes_back(name) or name in more))
        if goes:
            value = safe_media_type(value) if name == "content-type" else value
            back.append((name.encode(), value.encode("utf-8", "surrogateescape")))  # as the bytes that came
    if raw and "content-type" not in headers:
        back.append((b"content-type", NO_TYPE.encode()))  # or a browser would guess
    return back


def _goes_back(name: str) -> bool:
    if name in _BACK:
        return True
    return name.startswith(_BACK_BEGIN) and name not in _NOT_BACK and not name.startswith(_NOT_BACK_BEGIN)


def safe_media_type(media_type: str) -> str:
    """The type of an upstream's body; of one that a browser would run, only that it is bytes."""
    return NO_TYPE if _RUNS.search(media_type) else media_type
