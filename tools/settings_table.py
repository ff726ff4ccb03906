"""The tables of settings in docs/reference/configuration.md, made from the schema: keys, values, flags, meanings.

`python -m tools.settings_table` prints them; with `--write` they go into docs/reference/configuration.md. Run it from
the top of the repository. A test fails while the page is not what this writes.
"""

from __future__ import annotations

import ast
import inspect as python_inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from asides._config import schema
from asides._config.loading import FLAGS, fields, settings, variable
from asides._config.values import is_scalar, kinds
from tools.blocks import main, with_blocks

PAGE = Path("docs", "reference", "configuration.md")
_SECTIONS: dict[str, type[msgspec.Struct]] = {
    "listen": schema.Listen,
    "upstreams": schema.UpstreamSettings,
    "models": schema.ModelSettings,
    "budget": schema.BudgetSettings,
    "limits": schema.Limits,
    "replay_cache": schema.ReplayCacheSettings,
    "continuity": schema.ContinuitySettings,
    "responses": schema.ResponsesSettings,
    "log": schema.Log,
    "history": schema.HistorySettings,
    "page": schema.PageSettings,
    "key": schema.KeySettings,
    "telemetry": schema.Telemetry,
    "run": schema.RunSettings,
    "terminal": schema.Terminal,
    "think_tags": schema.ThinkTagsSection,
}


_PLACES = {
    "models": ("`models` and `defaults`", "defaults."),
    "budget": ("`budget` of a model", "defaults.budget."),
    "key": ("An entry of `keys`", "keys."),
}
"""Titles of sections that are not the configuration's own keys, and where their settings stand."""


def markdown_tables() -> str:
    """A table for the keys that stand in no section, and one for each section."""
    words = _words()
    plain = [field for field in fields(schema.Config) if not _holds_settings(field)]
    tables = [f"### Keys in no section\n\n{_table(schema.Config, plain, '', words)}"]
    for name, section in _SECTIONS.items():
        title, prefix = _PLACES.get(name, (f"`{name}`", f"{name}."))
        about = (section.__doc__ or "").strip()
        tables.append(f"### {title}\n\n{about}\n\n{_table(section, fields(section), prefix, words)}")
    return "\n".join(tables)


def with_tables(text: str) -> str:
    """A document with the tables between its two comments brought up to date."""
    return with_blocks(text, BLOCKS)


def _holds_settings(field: inspect.Field) -> bool:
    return field.name in (*_SECTIONS, "defaults", "inference_service")


def _table(
    section: type[msgspec.Struct],
    keys: Iterable[inspect.Field],
    prefix: str,
    words: dict[tuple[str, str], str],
) -> str:
    rows = [("key", "values", "default", "variable", "flag", "meaning"), ("---",) * 6]
    for field in keys:
        setting = prefix + field.name
        if setting == "upstreams.url":
            setting = "upstreams"  # flags and variables name an upstream by its address
        given = setting in settings()
        rows.append(
            (
                f"`{field.name}`",
                _values(field.type),
                _default(field),
                f"`{variable(setting)}`" if given else "",
                f"`{FLAGS[setting]}`" if given and setting in FLAGS else "",
                words[section.__name__, field.name],
            )
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _values(wanted: inspect.Type) -> str:
    found: list[str] = []
    for kind in kinds(wanted):
        match kind:
            case inspect.LiteralType():
                found += [f"`{value}`" for value in kind.values]
            case inspect.BoolType():
                found += ["`true`", "`false`"]
            case inspect.IntType():
                found.append("whole number")
            case inspect.FloatType():
                found.append("number")
            case inspect.VarTupleType():
                found.append("list" + (" of texts" if is_scalar(kind.item_type) else ""))
            case inspect.DictType():
                found.append("map of texts" if isinstance(kind.value_type, inspect.StrType) else "JSON object")
            case inspect.StructType():
                found.append("section")
            case _:
                found.append("text")
    return ", ".join(found)


def _default(field: inspect.Field) -> str:
    if field.required:
        return "(required)"
    value: Any = field.default
    if value is msgspec.NODEFAULT or value in (None, "", ()) or isinstance(value, msgspec.Struct):
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _words() -> dict[tuple[str, str], str]:
    """The text under each attribute of the schema, which Python does not keep."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(python_inspect.getsource(schema)).body:
        if isinstance(node, ast.ClassDef):
            for field, after in zip(node.body, node.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                    text = str(after.value.value) if explained else ""  # type: ignore[attr-defined]  # looked at above
                    found[node.name, field.target.id] = " ".join(text.split())
    return found


BLOCKS = {"settings": markdown_tables}

if __name__ == "__main__":
    main(PAGE, BLOCKS)
