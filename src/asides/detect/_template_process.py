"""The process in which a stranger's template is rendered, and nothing else: one request in, one answer out, as JSON.

It is run as a script, in a process of its own whose memory and time are bounded before the template is looked at.
Knows Jinja and what templates expect of it; knows no format, and imports nothing of asides.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jinja2 import Environment, Template, nodes

SWITCH = re.compile(r"think|thought|reason|effort|deliberat")
"""Names of variables that may switch thinking."""
NO_SWITCH = re.compile(r"content|text|token|parts|prompt|budget|preserve|keep|drop|clear|truncate|include|render")
"""Names that speak of thinking but hold something else, or decide about old thoughts alone."""
MOST_SWITCHES, MOST_VALUES, MOST_LITERALS = 8, 6, 4000
LEVELS = ("high", "low")
"""What an effort may be, where the template names no values."""


def main() -> None:
    """Answer the request on standard input."""
    request = json.load(sys.stdin)
    bound(request["memory"], request["seconds"])
    # The template's Jinja is the caller's Jinja, wherever it was found.
    sys.path[:] = request["path"]
    try:
        answer = _answer(request)
    except MemoryError:
        answer = {"error": "memory"}
    except RecursionError:
        answer = {"error": "recursion"}
    # ASCII, so that no half of a surrogate pair can stand in the way.
    sys.stdout.write(json.dumps(answer))


def bound(memory: int, seconds: int) -> None:
    """Limit this process to so many bytes of address space and seconds of computing. It writes no file."""
    if sys.platform == "win32":  # where only the patience of the parent bounds us
        return
    import resource

    for what, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, seconds),
        # No file can be written; the answer goes through a pipe, which is none.
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        try:
            resource.setrlimit(what, (most, most))
        except (OSError, ValueError):  # a system that knows this limit by name only, or a lower one in force
            continue


def _answer(request: dict[str, Any]) -> dict[str, Any]:
    import jinja2

    environment = _environment()
    try:
        tree = environment.parse(request["template"])
        template = environment.from_string(request["template"])
    except jinja2.TemplateSyntaxError as error:
        return {"error": "syntax", "message": f"line {error.lineno}: {error.message}"}
    except (MemoryError, RecursionError):
        # Ours to report: they mean that the bounds were reached, not that the syntax is wrong.
        raise
    except Exception as error:  # Python's own compiler may refuse what Jinja makes of a template
        return {"error": "syntax", "message": _describe(error)}
    literals = _literals(tree)
    switches = _switches(tree)
    variants = _variants(switches)
    rendered: list[dict[str, Any]] = []
    for conversation in request["conversations"]:
        # The last has everything switched on.
        # Without any switch there is one variant, which is first and last; the slice takes it once.
        for variant in variants if conversation["switched"] else [variants[0], variants[-1]][: len(variants)]:
            variables = {**request["variables"], **variant, **conversation["variables"]}
            text, failure = _render(template, variables, request["most"])
            rendered.append({"conversation": conversation["name"], "switches": variant, "text": text, "error": failure})
    return {"switches": switches, "literals": literals, "rendered": rendered}


def _variants(switches: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Nothing set, then every value of every switch, then all of them at their first value together."""
    variants: list[dict[str, Any]] = [{}]
    variants += [{name: value} for name, values in switches.items() for value in values]
    if switches:
        variants.append({name: values[0] for name, values in switches.items()})
    return variants


def _render(template: Template, variables: dict[str, Any], most: int) -> tuple[str | None, str | None]:
    """What the template writes, or why it does not."""
    pieces: list[str] = []
    length = 0
    try:
        # Copied by way of JSON, because a template may change the lists that it is given.
        for piece in template.generate(json.loads(json.dumps(variables))):
            pieces.append(piece)
            length += len(piece)
            if length > most:
                return None, "too long"
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # a template can fail in as many ways as Python
        return None, _describe(error)
    return "".join(pieces), None


def _describe(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:300]
    except Exception:  # an error whose message is itself made by the template
        return type(error).__name__


def _environment() -> Environment:
    import jinja2
    from jinja2 import ext, nodes
    from jinja2.sandbox import SandboxedEnvironment

    class Generation(ext.Extension):
        """`{% generation %}`, which marks what a model wrote and writes nothing itself."""

        tags = {"generation"}  # noqa: RUF012 - as Jinja declares it

        def parse(self, parser: Any) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body).set_lineno(line)

    def raise_exception(message: object) -> None:
        raise jinja2.TemplateError(str(message))

    def tojson(
        value: object,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        # Jinja's own filter escapes for HTML, which templates of prompts do not want.
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    # Some templates keep lists of their own and append to them. Ours are copies, so they may.
    environment = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = _a_day
    return environment


def _a_day(form: str) -> str:
    """The same day always, so that probing gives the same answer tomorrow."""
    from datetime import datetime

    return datetime(2026, 1, 2).strftime(form[:100])


def _switches(tree: nodes.Template) -> dict[str, list[Any]]:
    """The variables that may switch thinking, and the values to try, those that switch it on first."""
    from jinja2 import meta

    values = _compared(tree)  # first, because looking for variables folds the constants in the tree
    names = sorted(name for name in meta.find_undeclared_variables(tree) if SWITCH.search(name))
    names = [name for name in names if not NO_SWITCH.search(name)]
    found: dict[str, list[Any]] = {}
    for name in names[:MOST_SWITCHES]:
        strings = values.get(name, [])
        if not strings and re.search(r"effort|strength|level", name):
            strings = list(LEVELS)
        found[name] = strings[:MOST_VALUES] or [True, False]
    return found


def _compared(tree: nodes.Template) -> dict[str, list[str]]:
    """For every name, the strings that it is compared with."""
    from jinja2 import nodes

    found: dict[str, list[str]] = {}
    for compare in tree.find_all(nodes.Compare):
        strings = [str(const.value) for const in compare.find_all(nodes.Const) if isinstance(const.value, str)]
        for name in compare.find_all(nodes.Name):
            known = found.setdefault(name.name, [])
            known += [string for string in strings if string and string not in known]
    return found


def _literals(tree: nodes.Template) -> list[str]:
    """Every string that the template's source holds, without its comments."""
    return [text for text in _strings(tree) if text.strip()][:MOST_LITERALS]


def _strings(tree: nodes.Template) -> Iterator[str]:
    from jinja2 import nodes

    wanted: Callable[[Any], Iterator[Any]] = tree.find_all
    for data in wanted((nodes.TemplateData, nodes.Const)):
        value = data.data if isinstance(data, nodes.TemplateData) else data.value
        if isinstance(value, str):
            yield value


if __name__ == "__main__":
    main()
