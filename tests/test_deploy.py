"""The files of deploy/: what they name exists. Flags, variables and folders are those of the program as it is.

The container, the compose files and the unit themselves need a daemon each; `docs/how-to/deploying.md` names what was
tried. What reads such files without one (Compose, hadolint, systemd-analyze) does so here where it is installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement

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


def _compose() -> list[str]:
    """How Compose is called here; it needs no engine to read a file."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) is not None:
            found = subprocess.run([*command, "version", "--short"], capture_output=True, text=True, check=False)
            if found.returncode == 0 and not found.stdout.startswith("1."):
                return command
    pytest.skip("Docker Compose is not here")


@pytest.mark.parametrize("path", STACKS, ids=lambda path: path.stem)
def test_compose_reads_it(path: Path) -> None:
    """Compose itself understands every line, and finds the services that the stack extends."""
    command = [*_compose(), "-f", str(path), "config", "--format", "json"]
    found = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "MODEL": "./m.gguf"}, timeout=60, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    read = json.loads(found.stdout)
    assert read["name"] == f"asides-{path.stem}"
    services, ours = read["services"], _services(path)
    assert services.keys() == ours.keys()
    assert services["asides"]["environment"] == ours["asides"]["environment"]
    assert services["asides"]["build"]["dockerfile"] == "deploy/Containerfile"
    assert services["webui"]["depends_on"]["asides"]["condition"] == "service_healthy"


def test_container_file_is_sound() -> None:
    """By hadolint, which reads every instruction and the shell in it."""
    if shutil.which("hadolint") is None:
        pytest.skip("hadolint is not here")
    command = ["hadolint", str(DEPLOY / "Containerfile")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


def test_container_file() -> None:
    """Its variables are settings, what it copies exists, and its port is the usual one."""
    text = (DEPLOY / "Containerfile").read_text()
    loaded = load_all(environ=_container())
    assert not loaded.warnings
    assert f"EXPOSE {loaded.config.listen.port}" in text
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    assert copied
    assert all((ROOT / name).exists() for line in copied for name in line.split())
    bases = re.findall(r"^FROM (\S+)", text, re.MULTILINE)
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", bases[0])
    # Nothing is installed that has no hash, and nothing is fetched to build our own package.
    installs = re.findall(r"bin/pip (?:install|wheel) [^&\n]*", text)
    assert len(installs) == 4
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def _locked(name: str) -> dict[str, str]:
    """The pinned releases of a file, by name; every one has a hash, and no line has an address."""
    text = (DEPLOY / name).read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(" --hash=sha256:" in line for line in lines)
    assert "://" not in text
    return {line.split("==")[0]: line.split("==")[1].split(" ")[0] for line in lines}


def test_requirements_of_the_image() -> None:
    """Every package of its extras is pinned, to a release that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *extras["gateway"], *extras["otel"], *extras["postgres"]]
    locked = _locked("requirements.txt")
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(locked[requirement.name]), requirement
    for requirement in map(Requirement, project["build-system"]["requires"]):
        assert requirement.specifier.contains(_locked("requirements-build.txt")[requirement.name])


def test_bounds_of_what_is_used_beyond_its_promises() -> None:
    """The next minor release of these may change what the gateway hooks into, so it is not taken unseen."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for requirement in map(Requirement, extras["gateway"]):
        if requirement.name in ("uvicorn", "httptools"):
            major, minor, *_ = map(int, _locked("requirements.txt")[requirement.name].split("."))
            assert not requirement.specifier.contains(f"{major}.{minor + 1}.0"), requirement


def test_lines_that_are_to_be_pasted(tmp_path: Path) -> None:
    """Those at the top of the unit, run as they are, with other folders for those of the system. What they install is
    a configuration that loads without a warning, and the unit finds all of it."""
    unit = (DEPLOY / "asides.service").read_text()
    pasted = re.findall(r"^#   (.*)$", unit.partition("[Unit]")[0], re.MULTILINE)
    # These need root, or an index of packages.
    run_here = [line for line in pasted if "systemctl" not in line and "bin/pip" not in line]
    assert len(run_here) == len(pasted) - 3
    script = "\n".join(re.sub(r" /(etc|opt)/", rf" {tmp_path}/\1/", line) for line in run_here)
    found = subprocess.run(
        ["sh", "-e", "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert (tmp_path / "opt/asides/bin/pip").exists()
    installed = tmp_path / "etc/systemd/system/asides.service"
    assert installed.read_text() == unit
    for path in re.findall(r"(?:--config |EnvironmentFile=-)(\S+)", unit):
        assert (tmp_path / path.lstrip("/")).is_file()
    secret = tmp_path / "etc/asides/environment"
    assert secret.stat().st_mode & 0o777 == 0o600
    variables = dict(re.findall(r"^#?(\w+)=(.*)$", secret.read_text(), re.MULTILINE))
    loaded = load_all(tmp_path / "etc/asides/asides.yaml", environ=dict.fromkeys(variables, "secret-1"))
    assert not loaded.warnings
    assert [upstream.key for upstream in loaded.config.upstreams] == ["secret-1"]


def test_what_is_commented_out_in_the_sample_can_be_used(tmp_path: Path) -> None:
    """Every setting that it shows is one."""
    text = (DEPLOY / "asides.yaml").read_text()
    commented = re.compile(r"^# (?=\w+:|  \S)", re.MULTILINE)
    assert len(commented.findall(text)) >= 5
    (tmp_path / "asides.yaml").write_text(commented.sub("", text))
    loaded = load_all(tmp_path / "asides.yaml", environ={})
    assert not loaded.warnings
    assert loaded.config.history.save


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
