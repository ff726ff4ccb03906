"""The public names, and which package may import which, read from the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import asides
from tests.support import check_each, parsed

PACKAGE = Path(asides.__file__).parent
ROOT = Path(__file__).parents[1]
MODULES = sorted(PACKAGE.rglob("*.py"))

VALUES = {"_extras", "errors", "parts", "events", "policies", "message"}
ENGINE = VALUES | {"_engine"}
READING = ENGINE | {"families"}
MAY_IMPORT = {
    # Every package and those that it may know. No more than it needs, so that a new dependency is a decision.
    "_extras": set(),
    "errors": {"events"},  # for its annotations alone
    "parts": set(),
    "events": {"parts"},
    "policies": {"errors", "events"},
    "message": {"errors", "events", "parts", "reading"},  # the last for its annotations alone
    "_engine": VALUES,
    "families": ENGINE,
    "detect": READING,
    "reply": ENGINE,
    "reading": READING | {"detect", "reply"},
    "_conversation": READING | {"detect", "reading"},
    "_api": READING | {"detect", "dialects", "reading"},
    "streamer": READING | {"reading"},
    "hf": READING | {"detect"},
    "render": READING | {"_conversation", "detect", "reply"},
    "dialects": READING | {"reply"},
    "_sdk": READING | {"detect", "dialects", "reading", "reply"},
    "openai": {"_sdk"},
    "anthropic": {"_sdk"},
    "ollama": {"_sdk"},
    "client": READING | {"dialects", "reading", "reply"},
    "_recordings": VALUES | {"dialects"},
    "_config": VALUES | {"families"},  # whether a format's name in a file is one
    "_descriptor": {"_windows"},
    "_windows": set(),
    "terminal": VALUES | {"_windows"},
    "analysis": READING | {"_api", "reply", "terminal"},  # the table printer, for reports in plain text
    "arrow": READING | {"_api", "analysis", "reading"},
    "audit": READING | {"analysis", "client", "detect", "dialects", "reading", "reply", "terminal"},
    "_history": VALUES | {"dialects", "reply"},
    "history": {"_history"},
    "plugins": READING | {"_api", "detect", "dialects", "reading", "reply"},
    "compat": READING | {"_api", "_config", "analysis", "client", "dialects", "reading", "render", "reply", "terminal"},
    "_page": READING | {"_conversation", "_history", "_recordings", "analysis", "reading", "reply"},
    "_gateway": READING
    | {"__version__", "_config", "_descriptor", "_history", "_page", "_recordings"}
    | {"detect", "dialects", "reading", "reply"},
    "__main__": {"_cli"},
}
ABOVE_ALL = "_cli"
"""The commands may know every package but `compat`, which stands beside them."""


def test_the_public_names_are_sorted_and_there() -> None:
    """`__all__` is sorted, holds no name twice, and every name is there."""
    assert asides.__all__ == sorted(set(asides.__all__))
    missing = [name for name in asides.__all__ if not hasattr(asides, name)]
    assert not missing


def test_every_public_name_is_announced() -> None:
    """What can be had from `asides` without an underscore is a module or in `__all__`."""
    packages = {module.stem if module.parent == PACKAGE else module.parent.name for module in MODULES}
    others = {name for name in vars(asides) if not name.startswith("_")} - set(asides.__all__) - packages
    assert others <= {"annotations"}


PUBLIC = sorted(
    path.stem
    for path in PACKAGE.iterdir()
    if not path.name.startswith("_") and (path.suffix == ".py" or (path / "__init__.py").exists())
)
"""The modules that are everybody's."""
PAGES = "".join(path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))])


def test_few_modules_are_public() -> None:
    """What docs do not name to users begins with an underscore."""
    assert len(PUBLIC) <= 24
    assert not [name for name in PUBLIC if not re.search(rf"`asides\.{name}\b", PAGES)]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_package_lists_its_names(name: str) -> None:
    """`__all__` is sorted and every name of it is there; a package without one has nothing but modules."""
    module = import_module(f"asides.{name}")
    listed = getattr(module, "__all__", None)
    if listed is None:
        assert not hasattr(module, "__path__") or not [
            value for value in vars(module).values() if getattr(value, "__module__", "").startswith("asides.")
        ]
        return
    assert list(listed) == sorted(set(listed))
    assert not [each for each in listed if not hasattr(module, each)]


IMPORTS = sorted(set(re.findall(r"^(?:from asides[\w.]* import [\w, ]+|import asides[\w.]*)$", PAGES, re.M)))


@pytest.mark.parametrize("line", IMPORTS)
def test_docs_import_what_is_public(line: str) -> None:
    """Examples import nothing that is gone, and nothing that is ours alone."""
    assert not re.search(r"\b_", line)
    try:
        exec(line, {})
    except ImportError as error:  # a module whose import needs its engine or host; make test-engines, make test-plugins
        if "or newer is needed" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", asides.__all__)
def test_every_public_name_says_what_it_is(name: str) -> None:
    """A public name has a docstring of its own."""
    value = getattr(asides, name)
    assert isinstance(value, str) or (value.__doc__ or "").strip()


def test_every_module_says_what_it_owns() -> None:
    """A module begins with a docstring."""
    silent = [path for path in MODULES if not ast.get_docstring(parsed(path))]
    assert not silent, "they have no docstring"


def test_imports_point_one_way() -> None:
    """A package imports only what stands below it."""
    check_each(_check_imports, MODULES)


def _check_imports(path: Path) -> None:
    package = path.relative_to(PACKAGE).with_suffix("").parts[0]
    for imported in _imports(path):
        if imported == package or package == "__init__":
            continue
        if package == ABOVE_ALL:
            assert imported != "compat"
        else:
            assert package in MAY_IMPORT, f"{package} is new: MAY_IMPORT says what it may know"
            assert imported in MAY_IMPORT[package], f"{path.name}: {package} may not know {imported}"


def _imports(path: Path) -> Iterator[str]:
    """The packages of asides that a module imports, wherever in it."""
    package = ["asides", *path.relative_to(PACKAGE).parts[:-1]]
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = base + (node.module.split(".") if node.module else [])
            names = [stem] if len(stem) > 1 else [[*stem, alias.name] for alias in node.names]
        else:
            continue
        for name in names:
            if name[0] == "asides" and len(name) > 1:
                yield name[1]
