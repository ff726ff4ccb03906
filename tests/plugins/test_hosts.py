"""What holds for every plug-in: it costs nobody who does not use it, and a host that is missing or old is one line."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path

import pytest

import asides.plugins
from asides.plugins import _hosts

FOLDER = Path(asides.plugins.__file__).parent
PLUGINS = sorted(path.stem for path in FOLDER.iterdir() if not path.stem.startswith("_"))
MODULES = (
    "acp", "ag_ui", "inspect_ai", "langchain_core", "lighteval", "litellm", "lm_eval", "opentelemetry", "pydantic",
    "pydantic_ai", "sglang", "torch", "transformers", "vllm",
)  # fmt: skip


def test_asides_imports_no_host() -> None:
    code = f"import sys, asides, asides.plugins; asides.clean('a'); print([m for m in {MODULES} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("package", _hosts.LEAST)
def test_a_host_that_is_missing_or_old_is_one_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise metadata.PackageNotFoundError(package)

    needed = f"{package} {_hosts.LEAST[package]} or newer is needed"
    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(ImportError) as failure:
        _hosts.require_host(package)
    assert str(failure.value) == f"{needed} and not installed: pip install {package}"
    monkeypatch.setattr(metadata, "version", lambda _: "0.0.1")
    with pytest.raises(ImportError) as failure:
        _hosts.require_host(package)
    assert str(failure.value) == f"{needed}, this is 0.0.1: pip install --upgrade {package}"


@pytest.mark.parametrize("name", PLUGINS)
def test_a_plug_in_imports_or_names_its_host(name: str) -> None:
    error = ""
    try:
        import_module(f"asides.plugins.{name}")
    except ImportError as failure:
        error = str(failure)
    assert not error or ("or newer is needed" in error and "\n" not in error)
