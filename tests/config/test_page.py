"""docs/reference/configuration.md says what is so: its tables, its example, its mistakes, its metrics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from asides._config import ConfigError, load, resolve_model
from asides._config.loading import FLAGS, settings, variable
from asides._gateway.observe.metrics import Metrics
from asides._gateway.stored_responses import ResponseCounts
from tools.settings_table import with_tables

PAGE = Path(__file__).parents[2].joinpath("docs", "reference", "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_tables_are_current() -> None:
    """Every key, its default, variable and flag stand there as the schema has them, each with a meaning."""
    assert with_tables(PAGE) == PAGE, "run: make families"
    rows = re.findall(r"^\| `\w+` \|.*\|$", PAGE.partition("<!-- settings")[2].partition("<!-- /settings")[0], re.M)
    assert len(rows) > 40
    assert not [row for row in rows if row.endswith("|  |")]


def test_every_variable_and_every_flag_is_on_the_page() -> None:
    """None is left out because it stands for no single key."""
    names = [*map(variable, settings()), *FLAGS.values(), "ASIDES_CONFIG", "--config", "--check"]
    assert not [name for name in names if f"`{name}" not in PAGE]


def test_the_example_can_be_loaded(tmp_path: Path) -> None:
    """It is a configuration without mistakes and means what its comments say."""
    path = tmp_path / "asides.yaml"
    path.write_text(EXAMPLES[0])
    config = load(path, environ={"GATEWAY_KEY": "one", "OTHER_KEY": "two"})
    assert config.keys == ("one", "two")
    assert [upstream.name for upstream in config.upstreams] == ["gpu", "laptop"]
    assert resolve_model(config, "openai/gpt-oss-20b").reasoning == "both"
    assert resolve_model(config, "small").name == "qwen3:0.6b"
    assert resolve_model(config, "small").empty_answer == "thinking"
    path.write_text(EXAMPLES[1])
    assert load(path, environ={}).defaults.format == "think_tag"


def test_the_mistakes_are_told_as_the_page_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The block of mistakes is what such a file gives."""
    monkeypatch.chdir(tmp_path)
    Path("asides.yaml").write_text(
        "listen:\n  prot: 1\nupstreams:\n  - url: http://a\n    key: $GPU_KEY\n"
        "models:\n  'Qwen/*':\n    format: qwenn3\n"
    )
    with pytest.raises(ConfigError) as caught:
        load("asides.yaml", environ={}, flags={"listen.port": "http"})
    shown = re.search(r"```text\nasides: (.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    assert shown[1] == f"{caught.value}\n"


def test_the_metrics_are_those_of_the_page() -> None:
    """Each metric of ours stands in the table, and no other."""
    metrics = Metrics()
    metrics.watch_responses(ResponseCounts)
    body = metrics.render()[0].decode()
    there = set(re.findall(r"^# TYPE (asides_\w+)", body, re.M))
    assert set(re.findall(r"^\| `(asides_\w+)` \|", PAGE, re.M)) == there
