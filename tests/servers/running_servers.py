"""`transformers serve` and llama.cpp's server with a parrot, each in a process of its own."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.model.llama_server import free_port, running


def main(port: str, weights: str) -> None:
    """Serve a GGUF with llama.cpp's server until the process is ended, as the recipe for it says."""
    library: Any = import_module("xllamacpp")  # only the environment of `make test-servers` has it
    parameters = library.CommonParams()
    parameters.model.path = weights
    parameters.port = int(port)
    parameters.n_ctx = 0
    parameters.n_parallel = 1
    parameters.reasoning_format = library.common_reasoning_format.COMMON_REASONING_FORMAT_NONE
    # One thread, because several wait for each other, and on a busy machine they crawl.
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = 1
    server = library.Server(parameters)
    assert server.listening_address.endswith(f":{port}")
    signal.pause()


@contextmanager
def llama_cpp(parrot: Path, log: Path) -> Iterator[str]:
    """llama.cpp's server as long as the block, and its address."""
    port = free_port()
    command = [sys.executable, "-m", "tests.servers.running_servers", str(port), str(parrot / "parrot.gguf")]
    with running(command, f"http://127.0.0.1:{port}", log) as address:
        yield address


@contextmanager
def transformers_serve(parrot: Path, log: Path) -> Iterator[str]:
    """`transformers serve` as long as the block, and its address."""
    port = free_port()
    # Its list of models fails without a cache.
    cache = log.with_name("cache")
    (cache / "hub").mkdir(parents=True)
    program = Path(sys.executable).with_name("transformers")
    command = [
        "env",
        f"HF_HOME={cache}",
        str(program),
        "serve",
        str(parrot),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--device",
        "cpu",
    ]
    with running(command, f"http://127.0.0.1:{port}", log) as address:
        yield address


if __name__ == "__main__":
    main(*sys.argv[1:])
