"""Docstrings of public names: each has an example, and it does what it says.

That is every function and class of `asides` itself, the functions of its public modules, the classes with which their
users begin, and the methods that write what goes back to a server. Interfaces of other projects have pages whose
examples run (`tests/compat/test_pages.py`), plug-ins run in their hosts.
"""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

import asides
from asides.message import Message
from asides.render import _registry as renderers
from tests.client.upstream import chat, serve

MODULES = (
    *("analysis", "anthropic", "arrow", "client", "detect", "dialects", "families", "hf", "history", "message"),
    *("ollama", "openai", "reading", "render", "reply", "streamer", "terminal"),
)
BEGIN_WITH = (
    *("anthropic.AsyncSplitStream", "anthropic.SplitStream", "arrow.TableSplitter", "client.Client"),
    *("hf.ResponseParser", "reply.Reply", "streamer.Streamer"),
)
"""Classes of these modules with which their users begin."""
METHODS = ("mask", "to_anthropic", "to_dict", "to_ollama", "to_openai", "to_responses")
"""Those of a message."""
NEEDS = {"pyarrow": "import pyarrow", "splintr": "import Tokenizer"}
"""Packages that an example may need, and by which words."""


def _public() -> Iterator[tuple[str, Any]]:
    for name in asides.__all__:
        yield f"asides.{name}", getattr(asides, name)
    yield "asides.detect", import_module("asides.detect").detect  # the function of the module that has its name
    for module in MODULES:
        found = import_module(f"asides.{module}")
        names = getattr(found, "__all__", None) or [name for name in vars(found) if not name.startswith("_")]
        for name in names:
            value = getattr(found, name)
            if inspect.isfunction(value) and value.__module__.startswith("asides."):
                yield f"asides.{module}.{name}", value
    for path in BEGIN_WITH:
        module, _, name = path.partition(".")
        yield f"asides.{path}", getattr(import_module(f"asides.{module}"), name)
    for name in METHODS:
        yield f"asides.Message.{name}", getattr(Message, name)


def _once() -> dict[str, Any]:
    """Functions and classes by one of their names; unions and versions have no docstring of their own."""
    found: dict[int, tuple[str, Any]] = {}
    for name, value in _public():
        if inspect.isfunction(value) or inspect.isclass(value):
            found.setdefault(id(value), (name, value))
    return dict(found.values())


NAMES = _once()


@pytest.fixture
def _clean_renderers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_factories", "_names"):
        monkeypatch.setattr(renderers, name, getattr(renderers, name).copy())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("_clean_registry", "_clean_renderers")
def test_the_example_of_a_docstring_runs(name: str) -> None:
    docstring = inspect.getdoc(NAMES[name]) or ""
    assert ">>> " in docstring, f"the docstring of {name} has no example, below `Examples:`"
    for package, words in NEEDS.items():
        if words in docstring:
            pytest.importorskip(package)
    if not re.search(r">>> .*\burl\b|\.\.\. .*\burl\b", docstring):
        return _run(name, docstring, {"asides": asides})
    with serve(chat("<think>2+", "2</think>It is 4.")) as server:
        _run(name, docstring, {"asides": asides, "url": server.url})


def _run(name: str, docstring: str, names: dict[str, Any]) -> None:
    example = doctest.DocTestParser().get_doctest(docstring, names, name, None, None)
    report: list[str] = []
    doctest.DocTestRunner(verbose=False).run(example, out=report.append)
    assert not report, "".join(report)


def test_there_are_many() -> None:
    assert len(NAMES) > 70
    assert {"asides.parse", "asides.Parser", "asides.openai.read", "asides.detect"} <= NAMES.keys() | {
        name.replace("anthropic", "openai") for name in NAMES
    }
