"""docs/how-to/application.md: its programs are those of examples/, and its shorter examples do what they assert."""

from __future__ import annotations

import re

import pytest

from tests.gateway.upstream import upstream
from tests.sdk.clients import serve
from tools.blocks import BLOCK, with_blocks
from tools.example_blocks import BLOCKS, EXAMPLES, PAGE

TEXT = (EXAMPLES.parent / PAGE).read_text(encoding="utf-8")
SHORT = re.findall(r"^```python\n(.*?)^```$", BLOCK.sub("", TEXT), re.M | re.S)


def test_the_programs_are_those_that_are_run() -> None:
    """`test_programs.py` runs what stands in examples/; here it is what can be copied from the page."""
    assert with_blocks(TEXT, BLOCKS) == TEXT, "run: make families"


SERVERS = {"anthropic": "ANTHROPIC_BASE_URL", "ollama": "OLLAMA_HOST"}
"""By the SDK that an example imports, and the API of its server: the variable with its address."""
ASKING = [(api, code) for api in SERVERS for code in SHORT if f"import {api}\n" in code]
ALONE = [code for code in SHORT if code not in [code for _, code in ASKING]]


@pytest.mark.parametrize("code", ALONE, ids=range(len(ALONE)))
def test_an_example_holds(code: str) -> None:
    run(code)


@pytest.mark.parametrize("separates", [False, True], ids=["raw", "separated"])
@pytest.mark.parametrize(("api", "code"), ASKING, ids=[api for api, _ in ASKING])
def test_an_example_that_asks_a_server_holds(
    api: str, code: str, separates: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the server separates."""
    with upstream() as server:
        serve(server, api, separates, "<think>\nTwo and two.\n</think>\n\nIt is 4.")
        monkeypatch.setenv(SERVERS[api], server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        run(code)


def test_both_sdks_have_an_example() -> None:
    assert [api for api, _ in ASKING] == list(SERVERS)


def run(code: str) -> None:
    """Run an example by itself, as it would be copied."""
    assert "assert " in code
    exec(compile(code, str(PAGE), "exec"), {"__name__": "__main__"})
