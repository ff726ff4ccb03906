"""Who may ask, by the names that a browser cannot forge: the `Host` that was called and the `Origin` of a page.

A gateway on the loopback is reachable from every page that the user opens. Two checks keep pages out, whatever else
they send:

- `Host`: on a loopback listener only loopback names, and those of `allowed_hosts`. A page whose own name was pointed to
  this machine (DNS rebinding) calls the gateway by that name and is refused.
- `Origin`: the page must come from the host that it calls, from a host of `allowed_hosts`, or be named in `cors`.
  Programs that are no browsers send none.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import urlsplit

from .._config.schema import Config, matches
from .bounded import BoundedDict
from .refusals import Refusal

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = re.compile(r"(?:.+\.)?localhost|127(?:\.[0-9]{1,3}){3}|::1", re.IGNORECASE)


MOST_KNOWN = 100
LONGEST_KNOWN = 100
"""Characters of a header that is remembered."""


class Host(NamedTuple):
    """A name and a port."""

    name: str
    port: int | None


def is_loopback(name: str) -> bool:
    """Whether a name is this machine's own, whatever a name server says."""
    return _LOOPBACK.fullmatch(name) is not None


def read_host(text: str, scheme: str = "") -> Host | None:
    """A `Host` header, or the host of an address, with the scheme's own port where it names none; None if it is odd."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    # Whatever else an address may hold is no host, and `http://localhost@evil.example` is not localhost.
    if not name or parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        return None
    # `localhost.` is the same name as `localhost`.
    return Host(name.rstrip("."), port if port is not None else _PORTS.get(scheme))


class Origins:
    """The checks of one configuration."""

    def __init__(self, config: Config) -> None:
        self._cors = config.cors
        self._any_host = "*" in config.allowed_hosts
        self._hosts = [host for host in map(read_host, config.allowed_hosts) if host is not None]
        self._known: BoundedDict[str, bool] = BoundedDict(MOST_KNOWN)
        """Whether a `Host` header is one of ours, for those that were seen."""
        self._loopback_only = is_loopback(config.listen.host)

    def check(self, host: str, origin: str) -> None:
        """Refuse a request that a page should not be able to send."""
        # Browsers always send a `Host`; what sends none is no page.
        if host and not self._is_known_host(host):
            message = f"this gateway is not called {host[:200]!r}; if it shall be, name it in `allowed_hosts`"
            raise Refusal(403, message, code="host_not_allowed")
        if origin and not self.allows(origin) and not self.is_own(origin, host):
            message = f"web pages of {origin[:200]!r} may not ask here; if they shall, name that origin in `cors`"
            raise Refusal(403, message, code="origin_not_allowed")

    def allows(self, origin: str) -> bool:
        """Whether `cors` lets pages of this origin ask and read the answers; `*` stands for any run of characters."""
        return any(matches(origin, pattern) for pattern in self._cors)

    def _is_known_host(self, text: str) -> bool:
        if self._any_host or not (self._loopback_only or self._hosts):
            return True
        known = self._known.get(text)
        if known is None:
            host = read_host(text)
            known = host is not None and (is_loopback(host.name) or self._is_allowed(host))
            if len(text) <= LONGEST_KNOWN:
                self._known[text] = known
        return known

    def is_own(self, origin: str, host: str) -> bool:
        """Whether an origin is that of the gateway itself, by the host that was called."""
        scheme, _, rest = origin.partition("://")
        page = read_host(rest, scheme)
        if page is None:
            return False
        # Behind a proxy that ends TLS, the scheme of the page is the one that the host was called by.
        return page == read_host(host, scheme) or self._is_allowed(page)

    def _is_allowed(self, host: Host) -> bool:
        return any(host.name == known.name and known.port in (None, host.port) for known in self._hosts)
