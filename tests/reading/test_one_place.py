"""How a reply is read is decided in one place: nobody else makes a parser, gives a start or looks a switch up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import asides
from tests.support import parsed

PACKAGE = Path(asides.__file__).parent
OWN = ("reading/", "_engine/", "detect/", "families/")
"""Where it is decided, and where the facts are."""
MAKERS = {"Parser", "TokenParser", "Splitter"}
SWITCHES = {"find_switch", "switch_of", "read_prompt"}

EXCEPTIONS = {
    "_api.py": "the library's own functions: with a format and no model there is nothing to decide",
    "dialects/_tags.py": "reads a format of its own making: tags in the text of a request",
    "hf/_lint.py": "reads a format of its own making: the template that is linted",
    "_cli/demo/command.py": "plays a script whose scenes say where they begin",
    "_cli/formats.py": "shows the card of a format to a person",
    "analysis/_figures.py": "reads the text of a thought, which begins nowhere else than in text",
    "reply/_later_formats.py": "gives a start to a format, not to a policy: of text after something separated",
    "render/_base.py": "the renderer has written the prompt itself and knows where it ends",
    "render/_checkpoint.py": "turns thinking off in the prompt that it writes, which is read by its end",
    "compat/nexrl/_reasoning.py": "the interface that it stands in for is told where output begins",
    "compat/nexrl/_service.py": "as its detector is told",
    "compat/nexrl/_tools.py": "reads the text after the thought, which its caller has split off",
    "compat/selfai/_tags.py": "the interface that it stands in for is told where output begins",
    "compat/thinking_parser.py": "the interface that it stands in for is told where output begins",
    "compat/_source.py": "passes on what the interfaces above are told",
    "audit/_audit.py": "reads an answer that a server has separated already, in which nothing of a format may be left",
    "client/_client.py": "passes on what its caller chooses",
    "_gateway/plan.py": "passes on what a header or the configuration chooses",
    "_gateway/check.py": "tries other starts on a reply that was read wrong, to say which flag would help",
    "_cli/probe_output.py": "tries starts on an output, to say which flag reads it",
    "plugins/_sglang.py": "SGLang itself says that the prompt has opened a thought, or that a grammar begins at once",
    "plugins/_vllm.py": "asks whether the switch of a request is off, as vLLM hands it over",
    "plugins/_halves.py": "reads what stands between two parts that were read, from the state between them",
}
"""Modules that do one of these things all the same, each with its reason."""


def test_nobody_else_decides_how_a_reply_is_read() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix(): sorted(set(_decisions(parsed(path))))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    offenders = {module: what for module, what in found.items() if what and not module.startswith(OWN)}
    new = {module: what for module, what in offenders.items() if module not in EXCEPTIONS}
    assert not new, "they decide how a reply is read; asides.reading does"
    assert EXCEPTIONS.keys() == offenders.keys(), "exceptions that are no longer needed"


def _decisions(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in MAKERS | SWITCHES:
            yield f"{name}()"
        if name in ("but", "Policies", "policies_of", "parse", "talk"):
            yield from (f"{name}(start=)" for keyword in node.keywords if keyword.arg == "start")
