"""What no type can express: addresses, formats, names that must fit together, secrets from the environment.

Works on the plain values after file, variables and flags were put together and before the record is built. `$NAME` is
expanded in secrets alone, and first, because a key is checked as it will be sent. Every finding goes to `complain` with
the path of its setting; whoever passes that in knows the line, the variable or the flag. No message repeats a secret.

Reads no file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from ..errors import UnknownFormatError, UsageError
from ..families import get_format
from .values import Path, hide_url, quoted, suggestion

Complain = Callable[[Path, str], None]
Values = dict[str, Any]
NOT_NAMED = "that was only found in the current folder; if the file is yours, name it: --config asides.yaml"
"""Why such a file gets no secret, and what to do."""
_REFERENCE = re.compile(r"\$(?:\$|(?P<bare>[A-Za-z_][A-Za-z0-9_]*)|\{(?P<braced>[^}]*)\})")
_TWO_CREDENTIALS = "the address holds a user already, and only one of the two can be sent; leave one out"
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_NOT_RETURNED = (
    *("connection", "keep-alive", "proxy-.*", "te", "trailer", "transfer-encoding", "upgrade", "date", "x-request-id"),
    *("set-cookie2?", "content-security-policy.*", "x-content-type-options", "cross-origin-.*", "access-control-.*"),
    *("service-worker-allowed", "clear-site-data", "refresh", "x-asides-.*"),
)
"""Headers that no configuration lets an upstream set: they would break an answer, or what keeps it off the page."""
_HOST = re.compile(r"[^\s/\[\]@?#]+")
_HOST_AND_PORT = re.compile(r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}(?:/\S*)?")
"""An address as people type it: `localhost:8000`. Without a port it may be any word, so then it is none."""
_ENTRIES = {
    "cors": (
        re.compile(r"\*|null|[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s]+"),
        "not an origin: {}; write it as https://example.com, with no path",
    ),
    "allowed_hosts": (
        re.compile(r"\*|(?:[^\s/\[\]@?#:]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"),
        "not a host: {}; write it as chat.example or chat.example:8080",
    ),
    "pass_on": (
        re.compile(r"all|(?:[A-Z]+ )?/[^\s?#]*"),
        "not a path: {}; write /v1/files, DELETE /v1/files/* or all",
    ),
    "forward_headers": (_HEADER_NAME, "not a name that a header can have"),
    "return_headers": (
        re.compile(rf"(?i)(?!(?:{'|'.join(_NOT_RETURNED)})\Z){_HEADER_NAME.pattern}"),
        "not a header that an upstream may set here: {}; it is about the connection, or about the page's own origin",
    ),
}
"""Lists of texts: what each entry must be, and the message for one that is not."""


def expand_secrets(
    values: Values, environ: Mapping[str, str] | None, wanted: Callable[[Path], bool], complain: Complain
) -> None:
    """Put in what `$NAME` stands for, in place, in every value that may be a secret and is wanted.

    Without an environment a `$NAME` is a mistake.
    """

    def replace(held: Any, step: Any, path: Path) -> None:
        if wanted(path):
            expanded, wrong = _expand(held[step], environ)
            for message in wrong:
                complain(path, message)
            if not wrong:
                held[step] = expanded

    for place, upstream in enumerate(values.get("upstreams", ())):
        if "key" in upstream:
            replace(upstream, "key", ("upstreams", place, "key"))
        for name in upstream.get("headers", {}):
            replace(upstream["headers"], name, ("upstreams", place, "headers", name))
    for place, entry in enumerate(values.get("keys", ())):
        if not isinstance(entry, dict):
            replace(values["keys"], place, ("keys", place))
        elif "key" in entry:
            replace(entry, "key", ("keys", place, "key"))
    own = values.get("continuity", {}).get("keys", ())
    for place in range(len(own)):
        replace(own, place, ("continuity", "keys", place))
    for section, name in (("run", "key"), ("history", "store")):
        if name in values.get(section, {}):
            replace(values[section], name, (section, name))


def _expand(text: str, environ: Mapping[str, str] | None) -> tuple[str, list[str]]:
    """The text with `$NAME` and `${NAME}` from the environment, `$$` for a dollar sign; and what is wrong.

    Without an environment, because the text is not the user's own, every name is a mistake.
    """
    wrong: list[str] = []

    def replace(match: re.Match[str]) -> str:
        name = match["bare"] or match["braced"]
        if name is None:
            return "$"
        shown = re.sub(r"[^\w:.-]", "?", name)[:80]
        if environ is None:
            wrong.append(f"the environment variable {shown} is not looked up for a file {NOT_NAMED}")
            return ""
        value = environ.get(name, "")
        if not value:
            state = "set but empty" if name in environ else "not set"
            wrong.append(f"the environment variable {shown} is {state} (for a dollar sign write $$)")
        return value

    return _REFERENCE.sub(replace, text), wrong


def check(values: Values, complain: Complain) -> None:
    """Complain of everything that cannot work. Upstreams without a name get one, in place."""
    host = values.get("listen", {}).get("host", "127.0.0.1")
    if not _HOST.fullmatch(host):
        complain(("listen", "host"), f"not a host: {quoted(host)}; write a name or a number alone, as 127.0.0.1 or ::1")
    names = _check_upstreams(values, complain)
    _check_models(values, names, complain)
    _check_format(_reasoning_parser(values), ("inference_service", "reasoning_parser"), complain)
    for place, entry in enumerate(values.get("keys", ())):
        key, name = (entry.get("key", "?"), entry.get("name", "")) if isinstance(entry, dict) else (entry, "")
        _check_name(name, ("keys", place, "name"), complain)
        if key.strip():
            _check_key(key, ("keys", place), complain)
        else:
            complain(("keys", place), "is empty; a key that is empty would keep nobody out")
    run = values.get("run", {})
    _check_key(run.get("key", ""), ("run", "key"), complain)
    if run.get("url"):
        _check_url(run, ("run", "url"), complain)
    for setting, (pattern, message) in _ENTRIES.items():
        for place, entry in enumerate(values.get(setting, ())):
            if not pattern.fullmatch(entry):
                complain((setting, place), message.format(quoted(entry)))


def _check_upstreams(values: Values, complain: Complain) -> list[str] | None:
    """Complain, give a name to those that have none, and list the names; None where not all can be known."""
    names: list[str] = []
    unknown = False
    for place, upstream in enumerate(values.get("upstreams", ())):
        path: Path = ("upstreams", place)
        usable = _check_url(upstream, (*path, "url"), complain) if "url" in upstream else ""
        name = upstream.get("name") or usable
        if name and name in names:
            clash = "two upstreams have this name" if upstream.get("name") else f"two upstreams are at {quoted(name)}"
            complain((*path, "name") if upstream.get("name") else path, f"{clash}; give each a `name` of its own")
        _check_name(name, (*path, "name"), complain)
        if name:
            upstream["name"] = name
            names.append(name)
        else:
            unknown = True
        _check_key(upstream.get("key", ""), (*path, "key"), complain)
        names_user = bool(usable) and urlsplit(upstream["url"]).username is not None
        if names_user and upstream.get("key"):
            complain((*path, "key"), _TWO_CREDENTIALS)
        for header, value in upstream.get("headers", {}).items():
            if names_user and header.lower() == "authorization":
                complain((*path, "headers", header), _TWO_CREDENTIALS)
            if not _HEADER_NAME.fullmatch(header):
                complain((*path, "headers", header), "not a name that a header can have")
            _check_key(value, (*path, "headers", header), complain)
    return None if unknown else names


def _check_name(name: str, path: Path, complain: Complain) -> None:
    if not name.isprintable() or len(name) > 100:
        complain(path, "must be printable and at most 100 characters long")


def _check_models(values: Values, names: list[str] | None, complain: Complain) -> None:
    sections: list[tuple[Path, Values]] = [(("defaults",), values.get("defaults", {}))]
    sections += [(("models", name), settings) for name, settings in values.get("models", {}).items()]
    for path, settings in sections:
        if path != ("defaults",) or settings.get("format") != _reasoning_parser(values):
            _check_format(settings.get("format", ""), (*path, "format"), complain)
        _check_tags(settings, (*path, "tags"), complain)
        upstream = settings.get("upstream")
        if upstream and names is not None and upstream not in names:
            there = suggestion(upstream, names) or "; none is configured"
            complain((*path, "upstream"), f"there is no upstream {quoted(upstream)}{there}")


def _reasoning_parser(values: Values) -> str:
    parser: str = values.get("inference_service", {}).get("reasoning_parser", "")
    return parser


def _check_format(name: str, path: Path, complain: Complain) -> None:
    if not name or name == "none":
        return
    try:
        get_format(name)
    except UnknownFormatError as error:
        hint = f"did you mean {', '.join(error.near)}?" if error.near else "`asides formats` lists them"
        complain(path, f"there is no format {quoted(name)}; {hint}")


def _check_tags(settings: Values, path: Path, complain: Complain) -> None:
    if not settings.get("tags"):
        return
    from ..families._own_tags import own_tags  # here, because few have any, and it imports the markers of all families

    if settings.get("format"):
        complain(path, f"stands in place of a format, and there is one: {quoted(settings['format'])}; leave one out")
    try:
        own_tags(settings["tags"].items())
    except UsageError as error:
        complain(path, str(error))


def _check_url(section: Values, path: Path, complain: Complain) -> str:
    """The host and port of a section's address, empty where it cannot be used. `http://` is put before host and port,
    in place."""
    if _HOST_AND_PORT.fullmatch(section["url"]):
        section["url"] = f"http://{section['url']}"
    url: str = section["url"]
    shown = quoted(hide_url(url))
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        complain(path, "not an address; write it as http://127.0.0.1:8000/v1")
        return ""
    if parts.scheme not in ("http", "https") or not host or re.search(r"\s", url) or not url.isprintable():
        complain(path, f"must be an http or https address, as http://127.0.0.1:8000/v1, not {shown}")
        return ""
    if parts.query or parts.fragment:
        complain(path, f"must end with its path; what follows `?` or `#` cannot be kept: {shown}")
        return ""
    address = f"[{host}]" if ":" in host else host
    return address if port is None else f"{address}:{port}"


def _check_key(key: str, path: Path, complain: Complain) -> None:
    """A secret, or a header's value: it is never repeated."""
    if not (key.isprintable() and key == key.strip()) or any(ord(character) > 0xFF for character in key):
        complain(path, "holds characters that a header cannot carry (a line break, or space at an end?)")
