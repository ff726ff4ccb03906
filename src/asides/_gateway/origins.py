"""Who may ask, by the names that a browser cannot forge: the `Host` that was called and the `Origin` of a page.

A gateway is reachable from every page that the user opens. Two checks keep pages out, whatever else they send:

- `Host`: a page whose own name was pointed to this machine (DNS rebinding) calls the gateway by that name. So a
  loopback listener answers to loopback names alone, any other without `keys` to names that no public name server
  gives (`is_private`), and both to those of `allowed_hosts`.
- `Origin`: the page must come from the host that it calls, from a host of `allowed_hosts`, or be named in `cors`; or
  the browser says that it calls its own origin, and shows the start token that it got there (`PageAccess.is_own_page`).
  Programs that are no browsers send none.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from .._config.schema import Config, matches
from .bounded import BoundedDict
from .refusals import Refusal

_PORTS = {"http": 80, "https": 443}
_LOOPBACK = re.compile(r"(?:.+\.)?localhost|127(?:\.[0-9]{1,3}){3}|::1", re.IGNORECASE)
_PRIVATE = re.compile(r"[^.]+|.+\.(?:localhost|local|internal|home\.arpa|svc|cluster\.local)", re.IGNORECASE)
"""Names without a dot, and those below what is reserved for one machine, one network or one cluster."""
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,253}")
"""A name that may be copied into a configuration as it is."""
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


def is_private(name: str) -> bool:
    """Whether no public name server can point a name here: an address, or a name of one machine or network."""
    if _PRIVATE.fullmatch(name):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


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
        self._hosts = [host for host in map(read_host, config.allowed_hosts) if host is not None]
        self._known: BoundedDict[str, bool] = BoundedDict(MOST_KNOWN)
        """Whether a `Host` header is one of ours, for those that were seen."""
        here = is_loopback(config.listen.host)
        self._own_names = set() if here else {socket.gethostname().lower(), config.listen.host.lower()}
        # With keys, a page that calls us by its own name has none: then every name may be ours.
        self._any_host = "*" in config.allowed_hosts or bool(config.keys and not here and not self._hosts)
        self._is_usual = is_loopback if here or config.keys else is_private
        """Which names are ours without being in `allowed_hosts`."""

    def check(self, host: str, origin: str, is_own_page: Callable[[], bool] = lambda: False) -> None:
        """Refuse a request that a page should not be able to send.

        `is_own_page`: whether something else proves that it is the gateway's page, behind a proxy that calls it by
        another name than the browser does.
        """
        # Browsers always send a `Host`; what sends none is no page.
        if host and not self._is_known_host(host):
            called = read_host(host)
            name = called.name if called is not None and _PLAIN.fullmatch(called.name) else "NAME"
            line = f"if it shall be, add this line to its configuration: `allowed_hosts: [{name}]`"
            raise Refusal(403, f"this gateway is not called {host[:200]!r}; {line}", code="host_not_allowed")
        if origin and not self.allows(origin) and not self.is_own(origin, host) and not is_own_page():
            message = (
                f"web pages of {origin[:200]!r} may not ask here; if they shall, name that origin in `cors`, "
                "or its host in `allowed_hosts` where it is this gateway behind a proxy"
            )
            raise Refusal(403, message, code="origin_not_allowed")

    def allows(self, origin: str) -> bool:
        """Whether `cors` lets pages of this origin ask and read the answers; `*` stands for any run of characters."""
        return any(matches(origin, pattern) for pattern in self._cors)

    def _is_known_host(self, text: str) -> bool:
        if self._any_host:
            return True
        known = self._known.get(text)
        if known is None:
            host = read_host(text)
            known = host is not None and self._is_one_of_ours(host)
            if len(text) <= LONGEST_KNOWN:
                self._known[text] = known
        return known

    def _is_one_of_ours(self, host: Host) -> bool:
        return self._is_usual(host.name) or host.name in self._own_names or self._is_allowed(host)

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
