"""The table of routes: which path is answered by which handler, in which dialect, with or without a key.

Everything that depends on a path is a field of its row in `ROUTES`: the methods, the handler, whose shape an error has,
whether a key is needed, whether a request is worth a line in the log. What goes to the upstream as it is has rows too
(handler `pass_on`), and the configuration's `pass_on` adds to them: files, batches, fine-tuning and administration have
none, because with the operator's key a client could delete models or stop the server.

A path is normalised before it is looked up: runs of `/` are one, `/v1` may be missing or doubled, case does not matter.
So no spelling of a path that generates text is taken for one that is handed on unread.

    router = Router(config.pass_on)
    router.find("GET", "/v1/models/Qwen/Qwen3-8B")   # Match(route=Route(handler="model", ...), rest="Qwen/Qwen3-8B")
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple
from urllib.parse import unquote

from ..dialects import ALL, Dialect, anthropic, ollama, openai_chat
from .bounded import BoundedDict

GET, POST = ("GET",), ("POST",)
_VERSIONED = re.compile(r"(/v1)+(?=/|$)")
_SLASHES = re.compile(r"/{2,}")
_OPENAI = re.compile(
    r"/(embeddings|audio|images|moderations|files|batches|rerank|score|decisions|systemone|realtime|fine_tuning"
    r"|responses)\b"
)


class Route(NamedTuple):
    """One row of the table."""

    methods: tuple[str, ...]
    """GET stands for HEAD too."""
    path: str
    """Normalised. `/models/*` is `/models` and everything below it, `/responses/+` what is below it alone."""
    handler: str
    """Who answers; also the `route` of logs and metrics."""
    dialect: Dialect = openai_chat
    """In whose shape errors are written, and requests for a reply are read."""
    needs_key: bool = True
    """Whether a key is asked for, where there are keys, and the request counts as one of the open ones."""
    logged: bool = True
    """False for what machines ask all the time."""
    kinds: tuple[str, ...] = ()
    """How the type of an upstream's answer must begin for it to be passed on; empty: any."""
    exclusive: bool = True
    """Whether another method at this path is refused (405), also where `pass_on: all` passes on what is not known."""


class Match(NamedTuple):
    """The row for a request, and what of its path stands for the row's `*`."""

    route: Route
    rest: str = ""


def normalized(path: str) -> str:
    """A path as the table has it, except for its case: without `/v1` before it, no slash doubled or at the end."""
    return _cut_version(path)[0].rstrip("/") or "/"


def _cut_version(path: str) -> tuple[str, bool]:
    """A path with no slash doubled and without `/v1` before it, and whether it had one."""
    path = _SLASHES.sub("/", path)
    found = _VERSIONED.match(path.lower())
    return (path[found.end() :], True) if found else (path, False)


def _first_step(path: str) -> str:
    return path.lstrip("/").partition("/")[0]


def _generating() -> Iterator[Route]:
    for dialect in ALL:
        yield from (Route(POST, path, "generate", dialect) for path in dialect.PATHS)


def _kept() -> Iterator[Route]:
    """Rows for replies that are kept, each below the path at which it was asked for."""
    for dialect in ALL:
        if dialect.KEPT is not None:
            yield from (Route(("GET", "DELETE"), f"{path}/+", "stored", dialect) for path in dialect.PATHS)


def _passed_on(entries: Iterable[str], dialect: Dialect = openai_chat) -> Iterator[Route]:
    """Rows for entries such as `POST /embeddings` or `/files/*`; one without a method is for GET and POST."""
    for entry in entries:
        method, _, path = entry.rpartition(" ")
        path = normalized(path.removesuffix("*")).lower() + ("/*" if path.endswith("*") else "")
        yield Route((method,) if method else GET + POST, path, "pass_on", dialect, exclusive=False)


PAGE = (
    Route(GET, "/asides/page/+", "page", needs_key=False, logged=False),
    Route(GET, "/asides/about", "about"),
    Route(GET, "/asides/models/*", "page_models"),
    Route(GET, "/asides/formats", "formats"),
    Route(POST, "/asides/split", "split"),
    Route(POST, "/asides/template", "template"),
    Route(GET, "/asides/history/*", "history", exclusive=False),
    Route(POST, "/asides/history/purge", "purge"),
    Route(GET, "/asides/figures", "figures"),
    Route(GET, "/asides/traffic", "traffic"),
    Route(GET, "/asides/requests/*", "requests"),
    Route(POST, "/asides/requests/+", "answer_now"),
)
"""The page's files, and what it reads. Left out by `page: off`."""
ROUTES = (
    *_generating(),
    *_kept(),
    Route(POST, "/chat/completions/control", "control"),  # llama.cpp's, for a running reply of the same credential
    Route(POST, "/messages/count_tokens", "count_tokens", anthropic),
    Route(GET, "/models", "models", exclusive=False),
    Route(GET, "/models/*", "model", exclusive=False),  # DELETE is for models that were fine-tuned
    Route(GET, "/api/tags", "tags", ollama),
    Route(POST, "/api/show", "show", ollama),
    Route(GET, "/api/version", "version", ollama),
    Route(GET, "/api/ps", "running", ollama),
    Route(GET, "/healthz", "health", needs_key=False, logged=False),
    Route(GET, "/health", "health", needs_key=False, logged=False),
    Route(GET, "/readyz", "ready", needs_key=False, logged=False),
    Route(GET, "/", "home", needs_key=False, logged=False),
    Route(GET, "/metrics", "metrics", logged=False),
    *PAGE,
    *_passed_on(("POST /embeddings", "POST /rerank", "POST /v2/rerank", "POST /score", "POST /moderations")),
    *_passed_on(
        ("POST /decisions", "POST /systemone")
    ),  # SGLang's and Ollama's, for models that decide and do not write
    *_passed_on(("POST /audio/*", "POST /images/*", "POST /tokenize", "POST /detokenize")),
    # Lists of voices. A browser opens what is got: nothing else of an upstream is to be found there.
    Route(GET, "/audio/*", "pass_on", kinds=("application/json", "audio/"), exclusive=False),
    *_passed_on(("POST /api/embed", "POST /api/embeddings"), ollama),
)
MOST_FOUND = 200
LONGEST_FOUND = 100
"""Characters of a path whose row is remembered."""
EVERYWHERE = (
    Route(("OPTIONS",), "", "options", needs_key=False, logged=False),
    Route((), "", "not_allowed", needs_key=False),
    Route((), "", "pass_on"),
    Route((), "", "not_found"),
)
"""Rows for any path: a browser's preflight request, a wrong method, and paths that have no row."""
OPTIONS, NOT_ALLOWED, PASS_ON, NOT_FOUND = EVERYWHERE
_BY_FIRST_STEP = {_first_step(route.path): route.dialect for route in ROUTES}
HANDLERS = frozenset(route.handler for route in (*ROUTES, *EVERYWHERE))
"""Every handler's name: no other `route` is in logs and metrics."""


class Router:
    """Finds the row for a request."""

    def __init__(self, pass_on: Iterable[str] = (), *, page: bool = True) -> None:
        """`pass_on` is the configuration's; a path that has a row for the same method keeps it.

        `page`: whether the page is served.
        """
        own = ROUTES if page else [route for route in ROUTES if route not in PAGE]
        entries = list(pass_on)
        self._unknown = PASS_ON if "all" in entries else NOT_FOUND
        self._rows: dict[tuple[str, str], Route] = {}
        self._below: dict[tuple[str, str], Route] = {}
        """The rows with a `*`, by the path before it, which ends in a slash."""
        for route in (*own, *_passed_on(entry for entry in entries if entry != "all")):
            path = route.path.removesuffix("/*").removesuffix("/+")
            for method in route.methods:
                if not route.path.endswith("/+"):
                    self._rows.setdefault((method, path), route)
                if path != route.path:
                    self._below.setdefault((method, f"{path}/"), route)
        self._found: BoundedDict[tuple[str, str], Match] = BoundedDict(MOST_FOUND)
        """What was found for methods and paths that clients asked for."""
        self._exclusive = {route.path for route in own if route.exclusive}

    def find(self, method: str, path: str) -> Match:
        """The row that answers a method at a path; there is always one."""
        found = self._found.get((method, path))
        if found is None:
            found = self._find(method, path)
            if len(path) <= LONGEST_FOUND:
                self._found[method, path] = found
        return found

    def _find(self, method: str, path: str) -> Match:
        whole = normalized(path)
        short = whole.lower()
        # By HTTP the two are answered alike but for the body, which `HttpRequest.answer` leaves out.
        method = "GET" if method == "HEAD" else method
        if method == "OPTIONS":
            return Match(OPTIONS._replace(dialect=_dialect_of(short)))
        found = self._rows.get((method, short))
        if found is not None:
            return Match(found)
        for (known, above), route in self._below.items():
            if known == method and short.startswith(above):
                # From the path in its own case: names of models have capitals.
                return Match(route, whole[len(above) :])
        route = NOT_ALLOWED if short in self._exclusive else self._unknown
        return Match(route._replace(dialect=_dialect_of(short)))

    def allowed(self, path: str) -> str:
        """The methods that are answered at a path, as the header `Allow` lists them."""
        short = normalized(path).lower()
        methods = sorted(method for method, known in self._rows if known == short)
        return ", ".join("GET, HEAD" if method == "GET" else method for method in methods)


def _dialect_of(path: str) -> Dialect:
    """Whose clients ask at a path that has no row, so that they can read the error: those of rows that begin alike."""
    return _BY_FIRST_STEP.get(_first_step(path), openai_chat)


def is_below(path: str) -> bool:
    """Whether a path as it came stays below the root to which it is added: nobody may climb out of that."""
    # Unescaped, and with backslashes: what a server behind makes of `%2e%2e` or `\` is not known here.
    steps = re.split(r"[/\\]", unquote(path))
    return path.startswith("/") and not any(step in (".", "..") for step in steps)


def upstream_path(path: str) -> str:
    """The path under which an upstream knows what is passed on: OpenAI's under `/v1`, others as they are."""
    short, versioned = _cut_version(path)
    return f"/v1{short}" if versioned or _OPENAI.match(short.lower()) else short
