"""The JavaScript of others that the page ships: fetched from npm at a pinned version, and compared or written.

    python -m tools.page_vendor            # compare what is in the repository with npm; a difference is an error
    python -m tools.page_vendor --write    # fetch, check against the pinned hashes, write files, licences and README

The hash of each package's archive is pinned here, so that a release which was changed afterwards is refused. The files
are the packages' own, byte for byte, with two exceptions, both because a browser loads them as modules and our content
security policy refuses import maps and scripts by address: an import of a bare name (`from"preact"`) becomes the file
beside it, and the one global of Temml becomes its export.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

VENDOR = Path(__file__).parents[1] / "src/asides/_page/static/vendor"


class Package(NamedTuple):
    """A package at one version, and which of its files become which of ours."""

    name: str
    version: str
    sha256: str
    """Of the archive."""
    license: str
    use: str
    files: tuple[tuple[str, str], ...]
    replace: tuple[str, str] = ("", "")
    """What is changed in them."""


PACKAGES = (
    Package(
        "preact",
        "11.2.0",
        "3c4456766bd32b6b534d52bf4e9c2a29b33e7eedf6e96ed479300ba1a7888ebf",
        "MIT",
        "components and hooks",
        (("dist/preact.mjs", "preact.js"), ("hooks/dist/hooks.mjs", "hooks.js"), ("LICENSE", "preact.LICENSE")),
        ('from"preact"', 'from"./preact.js"'),
    ),
    Package(
        "htm",
        "3.1.1",
        "2425b9bee11409177bcabc7f32e319926fc6690c1701c0b257c88bdff2d5ba90",
        "Apache-2.0",
        "components' markup without a build step",
        (("dist/htm.module.js", "htm.js"), ("LICENSE", "htm.LICENSE")),
    ),
    Package(
        "marked",
        "18.2.0",
        "f8f191f70f642128653254bf4b511e7fd7d77962b4c2a186d5f192e47f93d800",
        "MIT",
        "Markdown",
        (("lib/marked.esm.js", "marked.js"), ("LICENSE", "marked.LICENSE")),
    ),
    Package(
        "dompurify",
        "3.4.17",
        "056cbdae276897208b88c21d1d779adfa09ad7be488a2f510a28e900d3bbffe7",
        "Apache-2.0 (or MPL-2.0)",
        "the sanitizer that all markup made from a model's text passes",
        (("dist/purify.min.js", "purify.js"), ("LICENSE", "purify.LICENSE")),
    ),
    Package(
        "temml",
        "0.13.5",
        "bca5b76dd26d1d6c81f8d817f6cc8bf0f0a1a7787512e281d5c22b986f8ae582",
        "MIT",
        "formulas as MathML; loaded with the first one",
        (("dist/temml.min.js", "temml.js"), ("LICENSE", "temml.LICENSE")),
        ("var temml=", "export const temml="),
    ),
    Package(
        "@highlightjs/cdn-assets",
        "11.12.0",
        "b8a006d30f45afe783072569f3d69c5b60c0e7b9ca28cd474e12f2584e2a3bd9",
        "BSD-3-Clause",
        "colours of code; loaded with the first block",
        (("es/highlight.min.js", "highlight.js"), ("LICENSE", "highlight.LICENSE")),
    ),
    Package(
        "@fontsource-variable/inter",
        "5.3.0",
        "d26710dd38e7217484a1d47ee76c024977ec550548876f26d06ed1844af09a14",
        "OFL-1.1",
        "the font, its Latin letters alone, in every weight",
        (("files/inter-latin-wght-normal.woff2", "inter.woff2"), ("LICENSE", "inter.LICENSE")),
    ),
)


def fetch(package: Package) -> dict[str, bytes]:
    """Our files of a package, by name; an archive with another hash than the pinned one is refused."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("page_vendor: npm is not here; it fetches the packages")
    wanted = f"{package.name}@{package.version}"
    with TemporaryDirectory() as folder:
        # By npm, so that packages come from where this machine's npm is told to take them from.
        subprocess.run([npm, "pack", wanted, "--silent", "--pack-destination", folder], check=True, stdout=sys.stderr)
        archive = next(Path(folder).iterdir())
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != package.sha256:
            raise SystemExit(f"page_vendor: {wanted} has the sha256 {found}, pinned is {package.sha256}")
        with tarfile.open(archive, mode="r:gz") as files:
            read = {ours: _read(files, theirs) for theirs, ours in package.files}
            return {ours: each if ours.endswith(".woff2") else _changed(package, each) for ours, each in read.items()}


def _read(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(f"package/{name}")
    assert file is not None, f"{name} is no file"
    return file.read()


def _changed(package: Package, content: bytes) -> bytes:
    before, after = package.replace
    # A map of the source is not shipped, so the browser is not sent to look for it.
    lines = [line for line in content.split(b"\n") if not line.startswith(b"//# sourceMappingURL=")]
    content = b"\n".join(lines).rstrip(b"\n") + b"\n"
    return content.replace(before.encode(), after.encode()) if before else content


def readme(files: dict[str, dict[str, bytes]]) -> str:
    """What stands beside the files: versions, licences, hashes."""
    lines = [
        "# What the page uses of others",
        "",
        "Written by `python -m tools.page_vendor --write`; `make page-vendor` fetches everything again and compares.",
        "The files are as npm has them, except that the import of `preact` names the file beside it, that Temml's one",
        "global is an export, and that the line that names a source map is left out.",
        "",
        "| package | version | licence | for | sha256 of the archive |",
        "|---|---|---|---|---|",
    ]
    for each in PACKAGES:
        lines.append(f"| {each.name} | {each.version} | {each.license} | {each.use} | `{each.sha256}` |")
    lines += ["", "| file | sha256 |", "|---|---|"]
    for contents in files.values():
        lines += [f"| {name} | `{hashlib.sha256(content).hexdigest()}` |" for name, content in contents.items()]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare or write; how many files differ is printed, and the exit code says whether any does."""
    parser = argparse.ArgumentParser(description="Compare the page's vendored files with npm, or write them.")
    parser.add_argument("--write", action="store_true", help="write what was fetched")
    write = parser.parse_args(arguments).write
    fetched = {package.name: fetch(package) for package in PACKAGES}
    wanted = {name: content for contents in fetched.values() for name, content in contents.items()}
    wanted["README.md"] = readme(fetched).encode()
    if write:
        VENDOR.mkdir(parents=True, exist_ok=True)
        for name, content in wanted.items():
            (VENDOR / name).write_bytes(content)
    here = {path.name: path.read_bytes() for path in VENDOR.iterdir()}
    wrong = sorted(name for name in wanted.keys() | here.keys() if wanted.get(name) != here.get(name))
    for name in wrong:
        print(f"page_vendor: {name} is not what npm has", file=sys.stderr)
    print(f"page_vendor: {len(wanted) - len(wrong)} of {len(wanted)} files are the pinned ones")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
