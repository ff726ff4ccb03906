"""Which names of other projects' parsers and renderers `asides.get_format` does not know.

`python -m tools.peer_names` downloads the newest package of each project into a temporary folder, reads the names that
it registers off its source (nothing of it is run) and prints those that do not resolve, with where they come from. It
ends with 1 if there are any, and says which packages could not be downloaded. With file names behind it, wheels that
are at hand are read instead. It needs the network, so it is no part of the tests.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from zipfile import ZipFile

from asides import UnknownFormatError, get_format

SECONDS = 600
"""How long a download may take."""

NO_FORMATS = {
    "hf": "the response template that a checkpoint carries",
    "response_template": "the response template that a checkpoint carries",
    "auto": "whatever that project detects",
}
"""Names that stand for no format, with what they stand for."""

Names = Iterator[str]


def _assigned(pattern: str) -> Callable[[str, ast.AST], Names]:
    """The keys of a dictionary, or the items of a list, that is assigned to a name like this."""

    def find(_path: str, node: ast.AST) -> Names:
        if not isinstance(node, ast.Assign | ast.AnnAssign):
            return
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        value = node.value
        if any(isinstance(target, ast.Name) and re.fullmatch(pattern, target.id) for target in targets):
            items = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", ())
            yield from _strings(items)

    return find


def _mapped(pattern: str) -> Callable[[str, ast.AST], Names]:
    """The values of a dictionary that is assigned to a name like this."""

    def find(_path: str, node: ast.AST) -> Names:
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Dict):
            return
        if isinstance(node.target, ast.Name) and re.fullmatch(pattern, node.target.id):
            yield from _strings(node.value.values)

    return find


def _registered(_path: str, node: ast.AST) -> Names:
    """The names that a decorator registers a class under."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "register_module":
        for value in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _strings(getattr(value, "elts", (value,)))


def _compared(_path: str, node: ast.AST) -> Names:
    """What a variable `name` is compared with."""
    if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and node.left.id == "name":
        for value in node.comparators:
            yield from _strings(getattr(value, "elts", (value,)))


def _own_name(path: str, node: ast.AST) -> Names:
    """The name of a module itself."""
    if isinstance(node, ast.Module) and not path.endswith("__init__.py"):
        yield PurePosixPath(path).stem


def _strings(values: Sequence[ast.expr | None]) -> Names:
    for value in values:
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield value.value


class Peer(NamedTuple):
    """A package, the files in which it names parsers, and how."""

    package: str
    files: str
    find: Callable[[str, ast.AST], Names]


PEERS = (
    Peer("vllm", r"vllm/(?:reasoning|tool_parsers)/__init__\.py", _assigned(r"_\w+_PARSERS_TO_REGISTER")),
    Peer("sglang", r"sglang/srt/.*parser_names\.py", _assigned(r"\w+_PARSER_NAMES")),
    Peer("mlx-lm", r"mlx_lm/tool_parsers/\w+\.py", _own_name),
    Peer("lmdeploy", r"lmdeploy/serve/parsers/.*\.py", _registered),
    Peer("renderers", r"renderers/base\.py", _mapped(r"MODEL_RENDERER_MAP")),
    Peer("tinker-cookbook", r"tinker_cookbook/renderers/__init__\.py", _compared),
)


def download(package: str, folder: Path) -> Path | None:
    """The newest wheel of a package, or the one of the version that is named; None where it cannot be had."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    try:
        subprocess.run([*command, "--dest", str(folder), package], check=True, timeout=SECONDS, capture_output=True)
    except (subprocess.SubprocessError, OSError):
        return None
    return wheel_of(package, list(folder.glob("*.whl")))


def wheel_of(package: str, wheels: Sequence[Path]) -> Path | None:
    """The wheel of a package, which may be named with its version."""
    begins = package.partition("==")[0].replace("-", "_") + "-"
    return next((wheel for wheel in wheels if wheel.name.startswith(begins)), None)


def names(peer: Peer, wheel: Path) -> dict[str, str]:
    """Every name, with the file that it stands in."""
    found: dict[str, str] = {}
    with ZipFile(wheel) as archive:
        for path in archive.namelist():
            if re.fullmatch(peer.files, path):
                for node in ast.walk(ast.parse(archive.read(path))):
                    found |= {name: path for name in peer.find(path, node)}
    return found


def is_known(name: str) -> bool:
    """Whether a name resolves, or stands for no format."""
    if name in NO_FORMATS:
        return True
    try:
        get_format(name)
    except UnknownFormatError:
        return False
    return True


def main(wheels: Sequence[Path]) -> int:
    """Print what is not known; the number of packages with such names, or that were not read."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for peer in PEERS:
            wheel = wheel_of(peer.package, wheels) if wheels else download(peer.package, Path(folder))
            if wheel is None:
                wrong += 1
                print(f"{peer.package}: could not be downloaded, so nothing is known of its names")
                continue
            found = names(peer, wheel)
            missing = {name: path for name, path in found.items() if not is_known(name)}
            wrong += bool(missing) or not found
            release = "-".join(wheel.name.split("-")[:2])
            print(f"{release}: {len(found)} names, {len(missing)} of them unknown")
            for name, path in sorted(missing.items()):
                print(f"  {name}  ({path})")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main([Path(name) for name in sys.argv[1:]])))
