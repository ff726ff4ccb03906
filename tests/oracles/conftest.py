"""openai-harmony would download its vocabulary; bpe-openai carries the same file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import vocabulary


@pytest.fixture(scope="session", autouse=True)
def _vocabulary() -> Iterator[None]:
    content = vocabulary.o200k_base()
    if content is None or "TIKTOKEN_ENCODINGS_BASE" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, vocabulary.FILE_NAME).write_bytes(content)
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = folder
        yield
        del os.environ["TIKTOKEN_ENCODINGS_BASE"]
