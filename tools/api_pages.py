"""The pages of docs/reference/api: which names of which public module a page shows, with their docstrings.

`python -m tools.api_pages` prints what the pages list; with `--write` it goes into the pages, and a page that is
missing is made. Run it from the top of the repository. A test fails while a page is not what this writes.

A module is public if its name has no underscore and, below the top, if a page of the docs names it. It is read, not
imported, because a plug-in's import needs its host. A name of `asides` that another public module has is shown there.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from tools.blocks import with_blocks

PACKAGE = Path("src", "asides")
FOLDER = Path("docs", "reference", "api")
_FIRST = ("parse", "clean", "split", "asplit", "Parser", "TokenParser")
"""What people look for in `asides`, in the order in which they need it. All else comes behind, by name."""
_BLANK = "# {title}\n\n<!-- api: written by `python -m tools.api_pages --write` -->\n<!-- /api -->\n"


def pages() -> dict[Path, str]:
    """What every page of the API lists, between its two comments, by the page's path."""
    found = {FOLDER / "asides.md": _root()}
    for path in sorted(PACKAGE.iterdir()):
        if _is_module(path) and not path.name.startswith("_"):
            found[FOLDER / f"{path.stem}.md"] = "\n".join(_directives(path))
    return found


def with_list(page: Path, listed: str) -> str:
    """A page with its list brought up to date; a new one where there is none."""
    title = "asides" if page.stem == "asides" else f"asides.{page.stem}"
    text = page.read_text(encoding="utf-8") if page.exists() else _BLANK.format(title=title)
    return with_blocks(text, {"api": lambda: listed})


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").exists()


def _tree(path: Path) -> ast.Module:
    source = path if path.suffix == ".py" else path / "__init__.py"
    return ast.parse(source.read_text(encoding="utf-8"))


def _public(path: Path) -> list[str]:
    """The names in `__all__`, else those that the module itself defines."""
    tree = _tree(path)
    own: list[str] = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List() as listed):
                return list(ast.literal_eval(listed))
            case ast.ImportFrom(names=[ast.alias(name="*")], module=str(module), level=1):
                return _public(path.parent / module)
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                own.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                own.append(name)
    return [name for name in own if not name.startswith("_")]


def _directives(path: Path) -> list[str]:
    """What shows a public module: its names, the modules among them (all alike, so bare), those that pages name."""
    names = _public(path)
    below = {name: file for name in _named_below(path.stem) if (file := _file(path, name))}
    alike = {name for name in names if _file(path, name)}
    shown = [_directive(f"asides.{path.stem}", [name for name in names if name not in alike])]
    for name in sorted(below.keys() | alike):
        shown.append(
            _directive(f"asides.{path.stem}.{name}", [] if name in alike else _public(below[name]), below=True)
        )
    return shown


def _named_below(package: str) -> set[str]:
    """What pages name below a package. Those that explain how asides is built name internals too and do not count."""
    folders = [folder for folder in sorted(Path("docs").iterdir()) if folder.name != "explanation"]
    files = [page for folder in folders for page in sorted(folder.rglob("*.md")) if page.parent != FOLDER]
    written = "".join(page.read_text(encoding="utf-8") for page in files)
    return set(re.findall(rf"\basides\.{package}\.([a-z]\w*)", written))


def _file(package: Path, name: str) -> Path | None:
    """The file or the folder of a module of a package."""
    return next((path for path in (package / f"{name}.py", package / name) if path.exists() and _is_module(path)), None)


def _directive(path: str, names: list[str] | None, *, below: bool = False) -> str:
    """What shows a module or a name with these members (None: all of them)."""
    heading = ["      show_root_heading: true"] if below else []
    members = [] if names is None else ["      members:" if names else "      members: false"]
    listed = [f"        - {name}" for name in names or ()]
    return "\n".join([f"::: {path}", "    options:", *heading, *members, *listed, ""])


def _root() -> str:
    """`asides` itself: what is there alone, and a table of what another public module has."""
    elsewhere: dict[str, str] = {}
    for node in ast.walk(_tree(PACKAGE)):
        if isinstance(node, ast.ImportFrom) and node.level == 1 and not (node.module or "_").startswith("_"):
            elsewhere |= {alias.name: str(node.module) for alias in node.names}
    names = _public(PACKAGE)
    rows = ["| also in `asides` | shown with |", "|---|---|"]
    for module in sorted(set(elsewhere.values())):
        shown = ", ".join(f"`{name}`" for name in names if elsewhere.get(name) == module)
        rows.append(f"| {shown} | [`asides.{module}`]({module}.md) |")
    own = sorted((name for name in names if name not in elsewhere), key=_place)
    directives = [_directive(f"asides.{name}", None, below=True) for name in own]
    return "\n".join([_directive("asides", []), *rows, "", *directives])


def _place(name: str) -> tuple[int, str]:
    return (_FIRST.index(name) if name in _FIRST else len(_FIRST), name)


def _main(arguments: list[str]) -> None:
    for page, listed in pages().items():
        if arguments == ["--write"]:
            FOLDER.mkdir(exist_ok=True)
            page.write_text(with_list(page, listed), encoding="utf-8")
        else:
            sys.stdout.write(f"{page}\n\n{listed}\n")


if __name__ == "__main__":
    _main(sys.argv[1:])
