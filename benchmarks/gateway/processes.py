"""The programs that are measured, each started as a process of its own and stopped again."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from benchmarks.gateway.script import write_tokenizer

PATIENCE = 120.0
KEY = f"sk-{secrets.token_hex(32)}"
"""What clients show; litellm does not start without one."""
LITELLM = {"LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"}


@dataclass(frozen=True)
class Running:
    """A program that answers."""

    port: int
    pid: int
    started: float
    """Seconds until it took connections."""


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def upstream(port: int) -> list[str]:
    """The scripted model server."""
    return [sys.executable, "-m", "benchmarks.gateway.upstream", str(port)]


def pass_through(port: int, upstream: int) -> list[str]:
    """The reference."""
    return [sys.executable, "-m", "benchmarks.gateway.passthrough", f"http://127.0.0.1:{upstream}", str(port)]


def asides(port: int, upstream: int) -> list[str]:
    """The gateway itself, as a user starts it."""
    place = ["--upstream", f"http://127.0.0.1:{upstream}/v1", "--format", "qwen3", "--port", str(port)]
    return [sys.executable, "-m", "asides", "serve", *place]


def asides_by_ids(folder: Path, port: int, upstream: int) -> list[str]:
    """The gateway, which asks for the ids of tokens and reads these."""
    tokenizer, config = folder / "tokenizer.json", folder / "ids.yaml"
    write_tokenizer(tokenizer)
    settings = {
        "upstreams": [{"url": f"http://127.0.0.1:{upstream}/v1", "engine": "vllm"}],
        "defaults": {"format": "qwen3", "tokenizer": str(tokenizer)},
    }
    config.write_text(json.dumps(settings), encoding="utf-8")
    return [sys.executable, "-m", "asides", "serve", "--config", str(config), "--port", str(port)]


def litellm(program: Path, folder: Path, models: Sequence[str], port: int, upstream: int) -> list[str]:
    """litellm's proxy, told to leave reasoning in its own field."""
    entries = [
        {
            "model_name": model,
            "litellm_params": {
                "model": f"openai/{model}",
                "api_base": f"http://127.0.0.1:{upstream}/v1",
                "api_key": "none",
                "merge_reasoning_content_in_choices": False,
            },
        }
        for model in models
    ]
    config = folder / "litellm.yaml"
    config.write_text(json.dumps({"model_list": entries}), encoding="utf-8")  # JSON is YAML
    return [str(program), "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]


@contextmanager
def running(command: Sequence[str], port: int, model: str = "burst-9") -> Iterator[Running]:
    """Run a program; the block begins once it has answered a question."""
    with TemporaryDirectory() as folder:
        log = Path(folder, "log")
        with log.open("wb") as out:
            began = time.monotonic()
            process = subprocess.Popen(
                command, stdout=out, stderr=out, stdin=subprocess.DEVNULL, env={**os.environ, **LITELLM}
            )
            try:
                _wait(process, port, log)
                started = time.monotonic() - began
                while not _answers(port, model):
                    _check(process, began, log)
                    time.sleep(0.05)
                yield Running(port, process.pid, started)
            finally:
                _stop(process)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    began = time.monotonic()
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            _check(process, began, log)
            time.sleep(0.005)


def _check(process: subprocess.Popen[bytes], began: float, log: Path) -> None:
    if process.poll() is not None or time.monotonic() - began > PATIENCE:
        raise SystemExit(f"{process.args!r} does not answer:\n{log.read_text(errors='replace')[-2000:]}")


def _answers(port: int, model: str) -> bool:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "?"}]}).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/chat/completions", body)
    request.add_header("content-type", "application/json")
    request.add_header("authorization", f"Bearer {KEY}")
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return bool(reply.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for child in children:
        if child.is_running():
            child.kill()
