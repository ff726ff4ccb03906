"""`Policies`: one record, the same fields as keywords, what it refuses, and which surface exposes which of them."""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import asides
from asides import Format, policies
from asides._cli import COMMANDS, main
from asides._cli.options import Arguments
from asides._config import ModelSettings, policies_of
from asides._config.schema import Limits
from asides._engine import parser as engine
from asides._gateway.app import CORS_HEADERS
from asides.dialects._request import Request
from asides.policies import DEFAULTS, Policies, PolicyOptions
from tests.client.upstream import chat, serve


def test_the_record_and_the_keywords_have_the_same_fields() -> None:
    """`PolicyOptions` names every field of `Policies`, in its order, with its type."""
    keywords = get_type_hints(PolicyOptions)
    assert list(keywords) == list(Policies.__struct_fields__)
    assert keywords == get_type_hints(Policies)


def test_every_policy_says_what_it_decides() -> None:
    """A docstring stands below every field."""
    tree = ast.parse(inspect.getsource(policies))
    (record,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Policies")
    below = dict(zip(record.body, record.body[1:], strict=False))
    fields = [node for node in record.body if isinstance(node, ast.AnnAssign)]
    assert [ast.unparse(field.target) for field in fields] == list(Policies.__struct_fields__)
    for field in fields:
        docstring = below[field]
        assert isinstance(docstring, ast.Expr), f"{ast.unparse(field.target)} has no docstring"
        assert isinstance(docstring.value, ast.Constant)


def test_keywords_change_the_record_that_they_stand_beside() -> None:
    """A record and keywords together are the record with those fields changed."""
    text = "  <think> a </think> b </think>"
    exact = Policies(whitespace="exact")
    assert asides.parse(text, "qwen3", exact) == asides.parse(text, "qwen3", whitespace="exact")
    assert asides.parse(text, "qwen3", exact, whitespace="tidy") == asides.parse(text, "qwen3")
    assert asides.clean(text, "qwen3", exact) == asides.clean(text, "qwen3", whitespace="exact")
    events = list(asides.split([text], "qwen3", whitespace="exact"))
    assert list(asides.split([text], "qwen3", exact)) == events
    parser = asides.Parser("qwen3", exact)
    assert parser.feed(text) + parser.finish() == events
    assert exact.but(limit=5) == Policies(whitespace="exact", limit=5)
    assert Policies() == DEFAULTS


def test_the_record_is_frozen() -> None:
    """A record that several parsers share cannot change under them."""
    with pytest.raises(AttributeError):
        DEFAULTS.limit = 5  # type: ignore[misc]


MAKERS: list[Callable[..., object]] = [Policies, DEFAULTS.but, lambda **options: asides.Parser("qwen3", **options)]
"""How a policy comes in: as a record, as a change of a record, as a keyword."""

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"start": "middle"}, "start must be one of 'text', 'thinking', 'undecided', not 'middle'"),
    ({"calls_in_thinking": "x"}, "calls_in_thinking must be one of 'resolve', 'never', 'always', not 'x'"),
    ({"mentions": None}, "mentions must be one of 'literal', 'marker', not None"),
    ({"whitespace": "exakt"}, "whitespace must be one of 'tidy', 'exact', not 'exakt'"),
    ({"limit": 0}, "limit must be at least 1, not 0"),
    ({"strict": {"stray_close", "b", "a"}}, "strict names unknown notices: a, b"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=lambda value: next(iter(value), ""))
def test_what_is_no_choice_is_refused(options: dict[str, Any], message: str) -> None:
    """However the policy comes in."""
    for make in MAKERS:
        with pytest.raises(asides.UsageError) as caught:
            make(**options)
        assert str(caught.value) == message


def test_a_policy_that_does_not_exist_is_refused() -> None:
    """As Python refuses an argument that a function does not have."""
    for make in MAKERS:
        with pytest.raises(TypeError, match="mention"):
            make(mention="marker")
    with pytest.raises(TypeError, match="there is no policy 'strat'; did you mean 'start'"):
        asides.parse("x", strat="text")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"there is no policy 'zork'; there are .*whitespace"):
        asides.parse("x", zork=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("tools", ["abc", {"name": "f"}, [None], ["f"]])
def test_tools_that_are_no_list_of_definitions_are_refused(tools: Any) -> None:
    with pytest.raises(asides.UsageError, match="tools is a list of tool definitions"):
        asides.Parser("qwen3", tools=tools)


# Which surface exposes which policy. A policy that is new must find its places here.

READING = {"start", "calls_in_thinking", "mentions", "whitespace", "tools", "limit", "repair", "calls"}
"""What every command that reads a model's output has a flag for."""
EXPOSED: dict[str, set[str]] = {
    "asides": {*READING, "strict"},
    "asides split": {*READING, "strict"},
    "asides view": READING,
    "asides stats": READING,
    "asides batch": READING,
    "asides run": READING,
    "asides history import": READING,
    "asides probe": {"prompt"},
    "asides serve": {"start"},
    "configuration: models, defaults": {
        "start",
        "calls_in_thinking",
        "mentions",
        "whitespace",
        "repair",
        "calls",
    },
    "configuration: limits": {"limit"},
    "request: headers": {"start"},
    "request: body": {"tools", "prompt"},
}
OURS = {
    "retype": "the library's callers; a command or a server that cannot take back what it sent turns it off",
    "seed": "the library's callers; `run` and the gateway draw one for each reply",
    "collect": "the library's callers; the commands collect where they keep a reply",
}
"""Policies that no surface but the library exposes, and who sets them."""


def test_every_policy_has_its_places() -> None:
    """Each is on some surface, or it is said who sets it."""
    everywhere = set().union(*EXPOSED.values())
    assert everywhere | OURS.keys() == set(Policies.__struct_fields__)
    assert not everywhere & OURS.keys()


def test_which_command_exposes_which_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read from the commands' own argument parsers."""
    found: dict[str, set[str]] = {}
    for command in ("", *COMMANDS):
        for parser in _parsers(command, monkeypatch):
            exposed = _policies_of(parser)
            if exposed:
                found[parser.prog] = exposed
    assert found == {surface: exposed for surface, exposed in EXPOSED.items() if surface.startswith("asides")}


def test_what_the_gateway_exposes() -> None:
    """Read from the schema of the configuration and from the headers that browsers may send."""
    fields = set(Policies.__struct_fields__)
    assert fields & set(ModelSettings.__struct_fields__) == EXPOSED["configuration: models, defaults"]
    assert Limits().held == DEFAULTS.limit
    names = re.findall(r"x-asides-([a-z-]+)", CORS_HEADERS.decode())
    assert fields & {name.replace("-", "_") for name in names} == EXPOSED["request: headers"]
    assert {"tools", "prompt"} <= set(Request.__struct_fields__)


@pytest.mark.parametrize("name", sorted(EXPOSED["configuration: models, defaults"] - {"calls"}))
def test_the_configuration_becomes_the_record(name: str) -> None:
    """A setting is the policy of its name; one that is not given leaves the default."""
    assert policies_of(ModelSettings()) == DEFAULTS
    for value in _choices(name):
        settings = ModelSettings(**{name: value})
        assert getattr(policies_of(settings), name) == value
        other = _choices(name)[0]
        assert getattr(policies_of(settings, **{name: other}), name) == other


FLAGS: dict[str, tuple[list[str], object]] = {
    "start": (["--start", "thinking"], "thinking"),
    "calls_in_thinking": (["--calls-in-thinking", "never"], "never"),
    "mentions": (["--mentions", "marker"], "marker"),
    "whitespace": (["--exact"], "exact"),
    "limit": (["--limit", "77"], 77),
    "repair": (["--repair"], True),
    "calls": (["--no-calls"], False),
    "strict": (["--strict"], True),
    "tools": (["--tools", "tools.json"], [{"type": "function", "function": {"name": "find"}}]),
}


@pytest.mark.parametrize("command", [name for name, exposed in EXPOSED.items() if exposed >= READING])
def test_flags_reach_the_parser(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a flag says is in the record that the parser of the output is given."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "reply.txt").write_text("So.")
    (tmp_path / "lines.jsonl").write_text('{"text": "So."}\n')
    (tmp_path / "tools.json").write_text('[{"type": "function", "function": {"name": "find"}}]')
    given = _record_policies(monkeypatch)
    with serve(chat("So.")) as upstream:
        arguments = {
            "asides view": ["reply.txt"],
            "asides stats": ["reply.txt"],
            "asides batch": ["lines.jsonl", "-o", "out.jsonl", "--force"],
            "asides run": ["m", "Why?", "--url", upstream.url],
            "asides history import": ["lines.jsonl", "--store", "store.db"],
        }.get(command, [])
        for policy in sorted(EXPOSED[command]):
            flags, value = FLAGS[policy]
            if command == "asides batch":
                flags = ["--held-limit" if flag == "--limit" else flag for flag in flags]
            given.clear()
            _run([*command.split()[1:], *arguments, *flags], tmp_path / "reply.txt")
            assert getattr(given[-1], policy) == value, f"{command} {flags}"


def test_run_reads_as_the_configuration_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model's policies of the file hold for `run`; a flag wins."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    settings = "models: {m: {mentions: marker, repair: true, calls_in_thinking: never, start: thinking}}"
    (tmp_path / "asides.yaml").write_text(settings)
    given = _record_policies(monkeypatch)
    with serve(chat("So.")) as upstream:
        arguments = ["run", "m", "Why?", "--url", upstream.url, "--config", str(tmp_path / "asides.yaml")]
        _run([*arguments, "--start", "text"], Path(os.devnull))
    read = given[-1]
    assert (read.mentions, read.repair, read.calls_in_thinking, read.start) == ("marker", True, "never", "text")


class _Caught(BaseException):
    """Carries an argument parser out of the command that made it."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _parsers(command: str, monkeypatch: pytest.MonkeyPatch) -> list[argparse.ArgumentParser]:
    """The argument parser of a command, or those of its own commands."""

    def catch(parser: argparse.ArgumentParser, *arguments: object) -> None:
        raise _Caught(parser)

    with monkeypatch.context() as patch:
        patch.setattr(Arguments, "parse_args", catch)
        patch.setattr(Arguments, "parse_intermixed_args", catch)
        with pytest.raises(_Caught) as caught:
            main([command] if command else [])
    parser = caught.value.parser
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [inner for group in groups for inner in group.choices.values()] or [parser]


def _policies_of(parser: argparse.ArgumentParser) -> set[str]:
    """The policies that the flags of a command are stored under."""
    return {action.dest for action in parser._actions if action.option_strings} & set(Policies.__struct_fields__)


def _choices(name: str) -> list[Any]:
    """The values of a policy: those of its literal, or of a flag."""
    hint = get_type_hints(Policies)[name]
    members = [hint, *get_args(hint)]
    return [value for member in members for value in get_args(member) if isinstance(value, str)] or [True, False]


def _record_policies(monkeypatch: pytest.MonkeyPatch) -> list[Policies]:
    """The record of every parser that is made from here on."""
    given: list[Policies] = []
    make = engine.Parser.__init__

    def made(self: engine.Parser, format: Format, policies: Policies = DEFAULTS, **options: Any) -> None:
        given.append(policies.but(**options))
        make(self, format, policies, **options)

    monkeypatch.setattr(engine.Parser, "__init__", made)
    # The shortcut for whole texts makes no parser, and laws hold it equal to one.
    monkeypatch.setattr("asides._api.parse_ordinary", lambda text, format, policies: None)
    monkeypatch.setattr("asides.reading._reading.parse_ordinary", lambda text, format, policies: None)
    monkeypatch.setattr("asides.reading._reading.shortcut_of", lambda format, policies: None)
    return given


def _run(arguments: list[str], stdin: Path) -> None:
    """A command in this process, which ends well."""
    own = os.dup(0)
    try:
        with open(stdin, "rb") as file:
            os.dup2(file.fileno(), 0)
        assert main(arguments) == 0
    finally:
        os.dup2(own, 0)
        os.close(own)
