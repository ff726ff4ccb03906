"""The files of deploy/: what they name exists. Flags, variables and folders are those of the program as it is.

The container, the compose files and the unit themselves need a daemon each; `docs/deploying.md` names what was tried.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from asides._config import load_all
from tests.gateway.clients import get
from tests.gateway.running import gateway

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
STACKS = sorted(path for path in (DEPLOY / "compose").glob("*.yaml") if path.stem != "gateway")


def _services(path: Path) -> dict[str, Any]:
    """The services of a compose file, with those that they extend filled in."""
    services: dict[str, Any] = yaml.safe_load(path.read_text())["services"]
    found = {}
    for name, service in services.items():
        base = service.get("extends")
        if base is not None:
            service = _services(path.parent / base["file"])[base["service"]] | service
        found[name] = service
    return found


def _container() -> dict[str, str]:
    """The variables that the container file sets."""
    text = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ")
    [line] = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    return dict(pair.split("=", 1) for pair in shlex.split(line))


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_compose(path: Path) -> None:
    """The gateway of a stack starts as written, and the page behind it calls it by a name that it answers to."""
    services = _services(path)
    asides, webui = services["asides"], services["webui"]
    variables = {"ASIDES_HOST": _container()["ASIDES_HOST"], **asides["environment"]}
    server = asides["command"][asides["command"].index("--upstream") + 1]
    assert re.match(r"http://(\w+):", server)[1] in services  # type: ignore[index] # it matches, or this fails
    called = re.match(r"http://(\w+):(\d+)/v1$", webui["environment"]["OPENAI_API_BASE_URL"])
    assert called is not None
    assert called[1] in services
    assert all(port.startswith("127.0.0.1:") for port in (*asides["ports"], *webui["ports"])), "reachable from outside"
    with gateway(None, *asides["command"], variables=variables) as running:
        local = running.url.replace("0.0.0.0", "127.0.0.1")
        for host, status in ((called[1], 200), ("127.0.0.1", 200), ("evil.example", 403)):
            assert get(local, "/healthz", Host=f"{host}:{called[2]}").status_code == status


def test_container_file() -> None:
    """Its variables are settings, what it copies exists, and its port is the usual one."""
    text = (DEPLOY / "Containerfile").read_text()
    loaded = load_all(environ=_container())
    assert not loaded.warnings
    assert f"EXPOSE {loaded.config.listen.port}" in text
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert copied
    assert all((ROOT / name).exists() for line in copied for name in line.split())
    extras = re.search(r"/source\[(.*?)\]", text)
    declared = (ROOT / "pyproject.toml").read_text()
    assert extras is not None
    assert all(f"\n{extra} = [" in declared for extra in extras[1].split(","))


def test_unit(tmp_path: Path) -> None:
    """Systemd understands every line of the unit, with a program where it expects one."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    unit = (DEPLOY / "asides.service").read_text()
    assert "asides serve --config" in unit
    program = tmp_path / "asides"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    written = tmp_path / "asides.service"
    written.write_text(unit.replace("/opt/asides/bin/asides", str(program)))
    found = subprocess.run(
        ["systemd-analyze", "verify", str(written)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
