"""The gateway as a process: its socket, the web server, signals, and the lines that are printed at its start.

The first SIGTERM or SIGINT lets open streams end, the second does not wait for them. SIGHUP reads the configuration
again (`Reload`), unless it means that the terminal was closed: then it stops the process, as users expect of one.
SIGUSR2 is for several workers alone (`workers`); here it is logged, where it would end the process by default.

    serve(config, lambda: load_all("asides.yaml").config)     # returns the exit code
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from types import FrameType

import uvicorn

from .._config.schema import Config, Listen
from .._extras import own_command
from ..errors import Error
from . import collection, workers
from .app import Gateway
from .observe import logs
from .page_access import TOKEN_PARAMETER, new_token, wants_token
from .protocol import limited
from .readiness import try_upstream
from .upstreams import HttpUpstream

log = logging.getLogger("asides.gateway")

BACKLOG = 2048
LOOK = 10
"""Ticks of the web server, ten in a second, between two looks at the memory."""
SWITCH = 0.001
"""Seconds till a thread that works on a large body lets the others run. Every read and write of a stream waits it out:
with Python's usual 5 ms, sixty streams would stand still for most of a second."""


NEEDS_RESTART = ("listen", "limits.header", "limits.shutdown")
"""Settings that belong to the process: a reload does not change them."""


ALONE = "SIGUSR2 restarts several workers one after another (listen.workers); it does nothing to one process"


class ServeError(Error):
    """The address to listen on is taken, or not there."""


def serve(
    config: Config, read_again: Callable[[], Config], flags: Sequence[str] = (), *, open_page: bool = False
) -> int:
    """Run the gateway until a signal stops it; returns the exit code. SIGHUP takes what `read_again` returns.

    `flags` are those of the command, for the workers. `open_page`: show the page in a browser.
    """
    logs.setup(config.log, secrets=logs.secrets_of(config))
    worker = workers.own_spec()
    if worker is None and config.listen.workers > 1:
        return _serve_workers(config, flags, open_page=open_page)
    if worker is None:
        listening = bind(config.listen.host, config.listen.port)
    else:
        listening = bind(config.listen.host, worker.port, shared=True)
    token = new_token() if worker is None else worker.token
    gateway = Gateway(config, worker, token)
    server = _Server(
        uvicorn.Config(
            gateway,
            http=limited(config.limits.header),
            ws="none",
            lifespan="on",
            log_config=None,
            log_level=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # clients are known by their keys, not by a header that anyone may write
            date_header=True,
            timeout_graceful_shutdown=round(config.limits.shutdown),
            timeout_keep_alive=65,  # longer than most clients keep theirs, so that they close first
            backlog=BACKLOG,
        )
    )
    url = _url(listening)
    if worker is None:
        server.announce = lambda: announce(config, url, token, open_page=open_page)
    else:
        server.announce = server.watch_supervisor
    server.leave = gateway.end_watching
    server.reload = Reload(gateway, config, read_again, lambda config: announce_page(config, url, token))
    terminal = has_terminal()
    server.hung_up = lambda: terminal and not has_terminal()
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:  # pragma: no cover  # before the server took over, or after it: no test meets the moment
        server.interrupted = True
    finally:
        listening.close()
    if server.interrupted:
        return 130
    return 0 if server.started else 1


def _serve_workers(config: Config, flags: Sequence[str], *, open_page: bool) -> int:
    """Let several processes serve the port."""
    if why := workers.refusal(config):
        raise ServeError(f"listen.workers: {config.listen.workers} workers cannot be started: {why}")
    # First alone: with a shared port, a second gateway would take half of the first one's connections unnoticed.
    bind(config.listen.host, config.listen.port).close()
    with bind(config.listen.host, config.listen.port, shared=True, listen=False) as held:
        url, token = _url(held), new_token()
        greet = partial(announce, config, url, token, open_page=open_page)
        return workers.supervise(config, flags, held.getsockname()[1], token, greet)


def _url(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):
    """Calls `announce` once it listens, and remembers which signal ended it."""

    announce = staticmethod(lambda: None)
    reload = staticmethod(lambda: None)
    hung_up = staticmethod(lambda: False)
    leave = staticmethod(lambda: None)
    """Called when it begins to stop, before it waits for open requests."""
    _signalled_early = False
    """Whether SIGHUP came while it was starting."""
    interrupted = False
    """Whether Ctrl-C ended it."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal lets open streams end; the second, whichever it is, does not wait for them."""
        self.interrupted = self.interrupted or sig == signal.SIGINT
        self.force_exit = self.should_exit
        self.should_exit = True

    def _hang_up(self) -> None:
        """SIGHUP: an operator asks for a reload, or a terminal that was closed, which ends what runs in it."""
        if not self.started:
            self._signalled_early = True
        elif self.hung_up():
            self.handle_exit(signal.SIGTERM, None)
        else:
            self.reload()

    def watch_supervisor(self) -> None:
        """Stop this worker when its supervisor is gone: then standard input, which nobody writes to, ends."""

        def end() -> None:
            loop.remove_reader(0)
            self.handle_exit(signal.SIGTERM, None)

        loop = asyncio.get_running_loop()
        loop.add_reader(0, end)

    async def on_tick(self, counter: int) -> bool:
        if counter % LOOK == 0:
            self._memory.look()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.leave()
        await super().shutdown(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        if sys.platform != "win32":  # pragma: no branch (which has no such signal)
            # First of all: what it does by default is to end the process.
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
            loop.add_signal_handler(signal.SIGUSR2, log.warning, ALONE)
        await super().startup(sockets)
        self._memory = collection.begin()
        sys.setswitchinterval(SWITCH)
        if self.started:
            self.announce()
            if self._signalled_early:
                self._hang_up()


class Reload:
    """Reads the configuration again and hands it to the gateway. A bad one is logged, and the old one stays."""

    def __init__(
        self,
        gateway: Gateway,
        config: Config,
        read_again: Callable[[], Config],
        announce_page: Callable[[Config], object],
    ) -> None:
        """`announce_page` is called where the page has another address from now on."""
        self._gateway = gateway
        self._announce_page = announce_page
        self._config = config
        self._read_again = read_again

    def __call__(self) -> None:
        """Do it, inside the event loop."""
        try:
            config = self._read_again()
            logs.setup(config.log, secrets=[*logs.secrets_of(self._config), *logs.secrets_of(config)])
            self._gateway.reload(config)
        except Error as error:
            log.error("the configuration stays as it was: %s", error, extra={"event": "reload_failed"})
            return
        for name in NEEDS_RESTART:
            read = attrgetter(name)
            if read(config) != read(self._config):
                log.warning("%s has changed: it counts from the next start on", name)
        if (config.page.show, wants_token(config)) != (self._config.page.show, wants_token(self._config)):
            self._announce_page(config)
        self._config = config
        log.info("the configuration was read again", extra={"event": "reloaded"})


def has_terminal() -> bool:
    """Whether this process belongs to a terminal that is still there."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | getattr(os, "O_NOCTTY", 0)))
    except OSError:
        return False
    return True


def bind(host: str, port: int, *, shared: bool = False, listen: bool = True) -> socket.socket:
    """A listening socket; a `ServeError` that says why there can be none. `shared`: other processes may have one too.

    One that does not listen holds the port, and takes no connection away from those that do.
    """
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        if listen:
            return socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=shared)
        if sys.platform == "win32":
            raise NotImplementedError  # see `workers.refusal`
        held = socket.socket(family)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host, port))
        return held
    except OSError as error:
        taken = "another program uses this port; name another with --port, or --port 0 for a free one"
        reason = taken if error.errno == errno.EADDRINUSE else error.strerror or str(error)
        raise ServeError(f"cannot listen on {host}:{port}: {reason}") from error


def announce(config: Config, url: str, token: str, *, open_page: bool = False) -> None:
    """Log where the gateway and its page are and what its upstreams are; without any, print how to try it.

    On a terminal each upstream is asked whether it answers: elsewhere `/readyz` reports that to those who ask.
    """
    log.info("listening on %s", url, extra={"event": "listening", "url": url})
    here = local_address(url)
    if here != url:
        there = other_address(url)
        log.info("from here it is %s%s", here, f", from other machines {there}" if there else "")
    page = announce_page(config, url, token)
    if page and open_page:
        # In a thread: some browsers run in the terminal, and return when they are closed.
        threading.Thread(target=webbrowser.open, args=(page,), daemon=True).start()
    for upstream in config.upstreams:
        log.info("upstream %s", upstream.name or upstream.url.rpartition("@")[2], extra={"event": "upstream"})
    if not config.upstreams and sys.stderr is not None:
        logs.flush()  # what follows is no line of the log, and belongs behind it
        print(logs.fitted(no_upstream(here, page)), file=sys.stderr, flush=True)
    elif config.upstreams and sys.stderr is not None and sys.stderr.isatty():
        task = asyncio.get_running_loop().create_task(_report_upstreams(config))
        _reporting.add(task)
        task.add_done_callback(_reporting.discard)


def announce_page(config: Config, url: str, token: str) -> str:
    """Log the address of the page, with the start token where that is what it is read with; empty without a page."""
    if not config.page.show:
        return ""
    page = local_address(url)
    if wants_token(config):
        page += f"/?{TOKEN_PARAMETER}={token}"
    if sys.stderr is not None and sys.stderr.isatty():
        logs.flush()
        apis = f"{local_address(url)}/v1"
        print(
            boxed(("( • ) asides", f"page  {page}", f"API   {apis}"), logs.terminal_columns()),
            file=sys.stderr,
            flush=True,
        )
    else:
        extra = {"event": "page", "url": page, logs.SHOWN: True}
        log.info("open %s in a browser to watch a model think", page, extra=extra)
    return page


def boxed(lines: Sequence[str], columns: int) -> str:
    """Lines in a box; between two rules where it would not fit, so that no address is broken by its sides."""
    widest = max(map(len, lines))
    if widest + 4 > columns:
        rule = "─" * (columns - 1)
        return "\n".join((rule, *lines, rule))
    rule = "─" * (widest + 2)
    return "\n".join((f"╭{rule}╮", *(f"│ {line:<{widest}} │" for line in lines), f"╰{rule}╯"))


_reporting: set[asyncio.Task[None]] = set()
"""Asks upstreams while the gateway already serves; a loop holds its tasks by weak references only."""


async def _report_upstreams(config: Config) -> None:
    """Log of each upstream whether it answers."""
    for settings in config.upstreams:
        upstream = HttpUpstream(settings, config.limits)
        try:
            answers, words = await try_upstream(upstream)
        finally:
            await upstream.close()
        level = logging.INFO if answers else logging.WARNING
        log.log(level, "%s", words, extra={"event": "upstream_asked"})


def local_address(url: str) -> str:
    """Where a program on this machine finds the gateway: one that listens everywhere is here too."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


def other_address(url: str) -> str:
    """Where other machines find a gateway that listens everywhere; empty where this one has no network."""
    family, far = (socket.AF_INET6, "2001:db8::1") if "[" in url else (socket.AF_INET, "192.0.2.1")
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # An address for documentation, to which nothing is sent: the system only chooses the way there.
            probe.connect((far, 9))
        except OSError:  # pragma: no cover  # a machine without any network
            return ""
        host = probe.getsockname()[0]
    return f"http://[{host}]:{url.rpartition(':')[2]}" if ":" in host else f"http://{host}:{url.rpartition(':')[2]}"


def no_upstream(url: str, page: str) -> str:
    """What to try with the recordings; `page` is the page's address, empty without one."""
    asides = own_command()
    flag = "" if url == f"http://127.0.0.1:{Listen().port}" else f" --url {url}"
    browser, place = (f"\n  {page}", ", or in a browser") if page else ("", "")
    return f"""\
No upstream is configured, so this gateway replays recordings: no model is running.
To stand in front of a server: {asides} serve --upstream http://127.0.0.1:8000/v1

Try it in another terminal{place}:
  {asides} run recorded-qwen3{flag}{browser}

  curl -N {url}/v1/chat/completions \\
    -H 'content-type: application/json' \\
    -d '{{"model": "recorded-qwen3", "stream": true,
         "messages": [{{"role": "user", "content": "What is 17 times 23?"}}]}}'

  openai.OpenAI(base_url="{url}/v1", api_key="none")
  anthropic.Anthropic(base_url="{url}", api_key="none")
  ollama.Client(host="{url}")

Models: recorded-qwen3 and others, see {url}/v1/models
"""
