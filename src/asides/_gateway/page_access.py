"""Who may read what on the page, and how the answers of its read API are sent.

Everything under `/asides/` but the files is for the page alone: a page of another origin is refused even where `cors`
lets it ask models. Who asks is a `Visitor`, and whatever shows texts of requests or replies asks `PageAccess.owner`:

    a key of the gateway           reads what was asked with that key; an operator's key reads everything
    no keys, called by a name of the loopback      reads everything, unless a proxy is in between
    no keys otherwise              reads nothing: nobody can be told from anybody else
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from .._config.schema import Config, Limits, keys_of
from .._page import files
from ..dialects.framing import to_json
from . import headers
from .bodies import off_loop, read_json
from .http_request import HttpRequest
from .origins import Origins, is_loopback, read_host
from .refusals import Refusal
from .state import State

NO_STORE = ((b"cache-control", b"no-store"), *files.HEADERS[:-1])
"""The headers of what is read: a browser opens it as no page, and keeps none of it."""
PROXIED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers that a proxy adds."""


class Visitor(NamedTuple):
    """Who asks for what was asked before."""

    credential: str
    """The hash of the key; empty without one."""
    operator: bool
    """Whether everything may be read, and not only what belongs to this credential."""


def find_visitor(http: HttpRequest, config: Config) -> Visitor | None:
    """Who asks; None where nobody can be told from anybody else."""
    credential = headers.fingerprint(http.headers)
    if config.keys:
        operators = [entry.key for entry in keys_of(config) if entry.operator]
        return Visitor(credential, headers.is_known(headers.key_of(http.headers), operators))
    # A proxy before a loopback listener hands on the name that others call it by, or names itself (nginx calls its
    # upstream by that one's own name): who asks is not this machine's user.
    called = read_host(http.headers.get("host", ""))
    local = called is not None and is_loopback(called.name) and is_loopback(config.listen.host)
    local = local and not any(name in http.headers for name in PROXIED)
    return Visitor(credential, True) if local else None


class PageAccess:
    """What a reload replaces, asked for anew by each request; and the checks of who asks."""

    def __init__(self, state: Callable[[], State], origins: Callable[[], Origins]) -> None:
        self._state = state
        self._origins = origins

    def open(self, http: HttpRequest) -> State:
        """The state, for a request that may read: one of this page, or of a program that is no browser."""
        origin, site = http.headers.get("origin", ""), http.headers.get("sec-fetch-site", "none")
        own = not origin or self._origins().is_own(origin, http.headers.get("host", ""))
        if not own or site not in ("none", "same-origin"):
            raise Refusal(403, "only the gateway's own page may read this", code="origin_not_allowed")
        return self._state()

    def owner(self, http: HttpRequest, state: State, client: str = "") -> str | None:
        """Whose texts this request may read: one credential's, or everybody's (None). `client`: whose it asks for."""
        visitor = find_visitor(http, state.config)
        if visitor is None:
            message = "without `keys` a gateway that others reach cannot tell whose this is, so it shows nothing of it"
            raise Refusal(403, message, code="no_access")
        if not visitor.operator and client not in ("", visitor.credential):
            raise Refusal(403, "only an operator's key may read what other keys asked", code="no_access")
        return None if visitor.operator else visitor.credential


def names_of(config: Config) -> dict[str, str]:
    """What the clients of keys are called, by their fingerprints."""
    return {headers.fingerprint_of(entry.key): entry.name for entry in keys_of(config) if entry.name}


async def read_object(http: HttpRequest, limits: Limits) -> dict[str, Any]:
    """The JSON object that a request's body must be."""
    body = await http.read(limits)
    return await off_loop(len(body), read_json, body, limits.values, True)


def read_query(http: HttpRequest) -> dict[str, str]:
    """The query of an address; of several values of one name the last."""
    return {name: values[-1] for name, values in parse_qs(http.query.decode("latin-1"), keep_blank_values=True).items()}


def check_query(query: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that means nothing here: it may have been meant to narrow something down."""
    for name in query:
        if name not in known:
            there = f"there are: {', '.join(known)}" if known else "none is known here"
            raise Refusal(400, f"there is no parameter {name[:100]!r}; {there}", param=name[:100])


async def answer(http: HttpRequest, found: Any) -> None:
    """Send what was read."""
    await http.answer(200, to_json(found), headers=NO_STORE)
