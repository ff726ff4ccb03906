"""Who may read what on the page, and how the answers of its read API are sent.

Everything under `/asides/` but the files is for the page alone: a page of another origin is refused even where `cors`
lets it ask models. Who asks is a `Visitor`, and whatever shows texts of requests or replies asks `PageAccess.owner`:

    a key of the gateway           reads what was asked with that key; an operator's key reads everything
    no keys, with the start token  reads everything
    no keys otherwise              reads nothing: nobody can be told from anybody else

The start token is made when the gateway starts and is part of the address that it prints, so who has it reads the
terminal or the log of the gateway. Where a request comes from proves nothing: a proxy on this machine sends everybody's
from here, under our own name. The address gives a browser a cookie; programs send a header.
"""

from __future__ import annotations

import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from .._config.schema import Config, Limits, keys_of
from ..dialects._framing import to_json
from . import headers
from .bodies import off_loop, read_json
from .http_request import HttpRequest
from .origins import Origins, read_host
from .refusals import Refusal
from .state import State

NO_STORE = ((b"cache-control", b"no-store"),)
"""The headers of what is read: a browser keeps none of it."""
TOKEN_COOKIE = "asides-token"
TOKEN_PARAMETER = "token"
"""In the address that is printed."""


class Visitor(NamedTuple):
    """Who asks for what was asked before."""

    credential: str
    """The hash of the key; empty without one."""
    operator: bool
    """Whether everything may be read, and not only what belongs to this credential."""


def new_token() -> str:
    """A start token: 32 random bytes, as an address can hold them."""
    return secrets.token_urlsafe(32)


def wants_token(config: Config) -> bool:
    """Whether the start token is what the page is read with: where no key is."""
    return not any(entry.page for entry in keys_of(config))


class PageAccess:
    """What a reload replaces, asked for anew by each request; and the checks of who asks."""

    def __init__(self, state: Callable[[], State], origins: Callable[[], Origins], token: str) -> None:
        """`token`: the start token."""
        self._state = state
        self._origins = origins
        self._token = token

    def visitor(self, http: HttpRequest, config: Config) -> Visitor | None:
        """Who asks; None where nobody can be told from anybody else."""
        credential = headers.fingerprint(http.headers)
        if wants_token(config):
            shown = [http.headers.get(headers.TOKEN, ""), *_cookies(http)]
            return Visitor(credential, True) if any(map(self._is_token, shown)) else None
        readers = [entry for entry in keys_of(config) if entry.page]
        key = headers.key_of(http.headers)
        if not headers.is_known(key, [entry.key for entry in readers]):
            return None
        return Visitor(credential, headers.is_known(key, [entry.key for entry in readers if entry.operator]))

    def is_own_page(self, http: HttpRequest) -> bool:
        """Whether a browser calls the origin of its page and has the start token from there.

        A proxy with nothing but `proxy_pass` calls the gateway by the gateway's name, so host and origin differ. What
        the browser says of the site alone proves nothing: a page whose name was pointed to the proxy calls its own
        origin too. But it has no cookie of ours, which belongs to the name by which the page was opened.
        """
        same = http.headers.get("sec-fetch-site") == "same-origin"
        return same and wants_token(self._state().config) and any(map(self._is_token, _cookies(http)))

    def _is_token(self, shown: str) -> bool:
        return shown.isascii() and hmac.compare_digest(shown, self._token)

    def let_in(self, http: HttpRequest, config: Config) -> Iterable[tuple[bytes, bytes]]:
        """The headers of the answer to the printed address: a browser keeps the token, and is sent to the page without
        it, so that it stays in no list of visited addresses. None for any other request."""
        if not wants_token(config) or not self._is_token(read_query(http).get(TOKEN_PARAMETER, "")):
            return ()
        # A browser has one set of cookies for all ports of a host, and each may be another gateway's.
        called = read_host(http.headers.get("host", ""))
        name = TOKEN_COOKIE if called is None or called.port is None else f"{TOKEN_COOKIE}-{called.port}"
        cookie = f"{name}={self._token}; HttpOnly; SameSite=Strict; Path=/"
        return ((b"set-cookie", cookie.encode()), (b"location", b"./"), (b"referrer-policy", b"no-referrer"), *NO_STORE)

    def open(self, http: HttpRequest) -> State:
        """The state, for a request that may read: one of this page, or of a program that is no browser."""
        origin, site = http.headers.get("origin", ""), http.headers.get("sec-fetch-site", "none")
        own = not origin or self._origins().is_own(origin, http.headers.get("host", "")) or self.is_own_page(http)
        if not own or site not in ("none", "same-origin"):
            raise Refusal(403, "only the gateway's own page may read this", code="origin_not_allowed")
        return self._state()

    def owner(self, http: HttpRequest, state: State, client: str = "") -> str | None:
        """Whose texts this request may read: one credential's, or everybody's (None). `client`: whose it asks for."""
        visitor = self.visitor(http, state.config)
        if visitor is None:
            message = "this key may not read on the page"
            if wants_token(state.config):
                message = (
                    "this is shown to whoever opens the address with a token that `asides serve` printed at its start; "
                    f"programs send that token in the header `{headers.TOKEN}`"
                )
            raise Refusal(403, message, code="no_access")
        if not visitor.operator and client not in ("", visitor.credential):
            raise Refusal(403, "only an operator's key may read what other keys asked", code="no_access")
        return None if visitor.operator else visitor.credential


def _cookies(http: HttpRequest) -> Iterator[str]:
    """The start tokens that a browser has kept: of this gateway, or of others on this host."""
    # Several headers of that name are joined by commas, which no token holds.
    for cookie in re.split("[;,]", http.headers.get("cookie", "")):
        name, _, value = cookie.strip().partition("=")
        if name.startswith(TOKEN_COOKIE):
            yield value


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
