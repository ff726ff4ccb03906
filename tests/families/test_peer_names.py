"""The tool that looks for names of other projects: what it reads off a package, and what it says."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from tools import peer_names

SOURCES = {
    "vllm": (
        "vllm/reasoning/__init__.py",
        '_REASONING_PARSERS_TO_REGISTER = {"qwen3": ("a", "B"), "zz_parser": ("a", "B")}',
        {"qwen3", "zz_parser"},
    ),
    "sglang": (
        "sglang/srt/function_call/parser_names.py",
        'TOOL_CALL_PARSER_NAMES = ["qwen25", "hf"]',
        {"qwen25", "hf"},
    ),
    "mlx-lm": ("mlx_lm/tool_parsers/glm47.py", "", {"glm47"}),
    "lmdeploy": (
        "lmdeploy/serve/parsers/a.py",
        "@M.register_module(['qwen', 'qwen3'])\nclass A: pass\n@M.register_module(name='llama3')\nclass B: pass",
        {"qwen", "qwen3", "llama3"},
    ),
    "renderers": ("renderers/base.py", 'MODEL_RENDERER_MAP: dict[str, str] = {"a/b": "qwen3.5"}', {"qwen3.5"}),
    "tinker-cookbook": ("tinker_cookbook/renderers/__init__.py", 'if name == "llama3": pass', {"llama3"}),
}


def wheels(folder: Path) -> list[Path]:
    made = []
    for package, (path, source, _) in SOURCES.items():
        wheel = folder / f"{package.replace('-', '_')}-1.0-py3-none-any.whl"
        with ZipFile(wheel, "w") as archive:
            archive.writestr(path, source)
            archive.writestr("other/__init__.py", "name = 1")
        made.append(wheel)
    return made


@pytest.mark.parametrize("peer", peer_names.PEERS, ids=lambda peer: peer.package)
def test_what_is_read_off_a_package(peer: peer_names.Peer, tmp_path: Path) -> None:
    wheel = peer_names.wheel_of(peer.package, wheels(tmp_path))
    assert wheel is not None
    assert peer_names.names(peer, wheel).keys() == SOURCES[peer.package][2]


def test_what_is_not_known_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert peer_names.main(wheels(tmp_path)) == 1
    written = capsys.readouterr().out
    assert "vllm-1.0: 2 names, 1 of them unknown\n  zz_parser  (vllm/reasoning/__init__.py)" in written
    assert "sglang-1.0: 2 names, 0 of them unknown" in written


def test_what_could_not_be_downloaded_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(peer_names, "download", lambda package, folder: None)
    assert peer_names.main([]) == len(peer_names.PEERS)
    assert "vllm: could not be downloaded" in capsys.readouterr().out
