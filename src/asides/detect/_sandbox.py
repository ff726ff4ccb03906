"""Rendering a stranger's chat template within bounds: a process of its own, with little memory and little time.

Jinja's sandbox keeps a template from Python's objects. It bounds neither memory nor time, and a thread that renders
cannot be ended; a process can.

Starts that process and turns its failures into errors. What is rendered, and what it means, is decided elsewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from .._extras import install_command
from ..errors import UsageError

MOST_SOURCE = 1 << 20
"""Characters that a template may have. The longest in use have some twenty thousand."""
MOST_OUTPUT = 1 << 17
"""Characters that one rendering may have. A short conversation needs a few thousand."""
MEMORY = 512 << 20
"""Bytes of address space for the process that renders."""
SECONDS = 2
"""Seconds of computing for all renderings of one template. A real template needs a few hundredths."""
PATIENCE = 30.0
"""Seconds on the clock, for a machine that is busy with other things."""


_GO = re.compile(r"\{\{-? *(?:(?:range|if|with|and|or|not|else|eq) *\(*)*\$?\.[A-Z]")
"""What Go writes and Jinja never does: a field that begins with a dot."""

_FAILURES = {
    "memory": f"needs more memory than the {MEMORY >> 20} MiB allowed",
    "recursion": "calls itself too deeply",
}


class SampleChat(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation to render, by name."""

    name: str
    variables: dict[str, Any]
    switched: bool = False
    """Whether to render it with every value of every switch, and not just with none and with all."""


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a conversation, with these switches set."""

    conversation: str
    switches: dict[str, Any]
    text: str | None
    error: str | None


class Rendered(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that one template gave."""

    switches: dict[str, list[Any]] = {}
    """The variables that may switch thinking, with the values that were tried."""
    literals: list[str] = []
    """The strings in its source."""
    rendered: list[Rendering] = []
    error: str = ""
    message: str = ""


def render(template: str, conversations: list[SampleChat], variables: dict[str, Any]) -> Rendered:
    """Render every conversation with a template, or raise a `UsageError` with the reason."""
    check_source(template)
    request = {
        "template": template,
        "conversations": conversations,
        "variables": variables,
        "most": MOST_OUTPUT,
        "memory": MEMORY,
        "seconds": SECONDS,
    }
    return _judge(run_apart(Path(__file__).with_name("_template_process.py"), request))


def check_source(template: str) -> None:
    """Refuse what is no chat template by its looks."""
    if len(template) > MOST_SOURCE:
        raise UsageError(f"the chat template has {len(template):,} characters; at most {MOST_SOURCE:,} are read")
    if _GO.search(template):
        raise UsageError("this looks like a Go template, as Ollama has them; chat templates are read in Jinja")


def run_apart(script: Path, request: dict[str, Any], patience: float = PATIENCE) -> bytes:
    """What a script of ours answers to a request, in a process of its own; a `UsageError` where it is ended.

    The request says too where to import from (`path`).
    """
    # Looked for, not imported: only the other process needs it.
    if find_spec("jinja2") is None:
        raise UsageError(f"reading a chat template needs jinja2: {install_command('jinja2')}")
    if not sys.executable:
        raise UsageError("a chat template is rendered in a process of its own, and this program cannot start Python")
    code, answer = _run(script, _encode({"path": sys.path, **request}), patience)
    if code != 0:
        # Killed by its limit of time, or by a stack that overflowed in C: either way the template did it.
        raise UsageError(
            f"the chat template was given up: it took more than {request['seconds']} seconds of computing "
            "or brought down the process that rendered it"
        )
    return answer


def _encode(request: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(request)
    except UnicodeEncodeError as error:
        raise UsageError(
            "the chat template holds half a character (a lone surrogate) and cannot be rendered"
        ) from error


def _run(script: Path, request: bytes, patience: float) -> tuple[int, bytes]:
    # Isolated, and with an environment that holds only what a process needs to start on every system.
    kept = {name: value for name, value in os.environ.items() if name in ("SYSTEMROOT", "LD_LIBRARY_PATH", "TMPDIR")}
    try:
        done = subprocess.run(
            # `-I`: neither the environment nor the current folder decides what it imports while it starts.
            [sys.executable, "-I", "-X", "utf8", str(script)],
            input=request,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=patience,
            env=kept,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(f"the chat template was not rendered within {patience:.0f} seconds") from error
    except OSError as error:
        raise UsageError(f"the process that renders chat templates could not be started: {error}") from error
    return done.returncode, done.stdout


def _judge(answer: bytes) -> Rendered:
    try:
        rendered = msgspec.json.decode(answer, type=Rendered)
    except msgspec.DecodeError as error:
        raise UsageError("the process that renders chat templates gave no answer that can be read") from error
    if rendered.error == "syntax":
        raise UsageError(f"the chat template is not valid Jinja: {rendered.message}")
    if rendered.error:
        raise UsageError(f"the chat template {_FAILURES.get(rendered.error, rendered.error)}")
    # One is enough to refuse it: what writes so much for a few words is no chat template.
    if any(rendering.error == "too long" for rendering in rendered.rendered):
        raise UsageError(f"the chat template writes more than {MOST_OUTPUT:,} characters for a short conversation")
    for rendering in rendered.rendered:
        if (rendering.error or "").startswith("SecurityError"):
            raise UsageError(f"the chat template reaches for what no template needs: {rendering.error}")
    return rendered
