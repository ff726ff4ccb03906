"""The resolved configuration on a screen: no secret in it, and it can be loaded again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides._config import Config, ModelSettings, UpstreamSettings, hide_url, load, load_all, show
from asides._config.schema import HistorySettings, Listen, RunSettings

SECRET = "hunter2"


def test_no_secret_is_shown() -> None:
    """Keys, headers, passwords in addresses and what `extra_body` names as a key are hidden; the rest is there."""
    config = Config(
        upstreams=(
            UpstreamSettings(
                url=f"http://me:{SECRET}@host/v1",
                name="gpu",
                key=SECRET,
                headers={"X-Odd": SECRET, "A": f"Bearer {SECRET}"},
            ),
        ),
        models={"m": ModelSettings(extra_body={"inner": [{"api_key": SECRET, "max_tokens": 77}]})},
        defaults=ModelSettings(extra_body={"X-Token": SECRET}),
        keys=(SECRET, SECRET),
        history=HistorySettings(store=f"postgresql://me:{SECRET}@db/x?password={SECRET}"),
        run=RunSettings(url=f"https://{SECRET}@host", key=SECRET),
    )
    shown = show(config)
    assert SECRET not in shown
    assert "max_tokens: 77" in shown
    assert "http://(hidden)@host/v1" in shown
    assert "X-Odd" in shown
    assert shown.count("(hidden)") == 12


def test_each_setting_says_where_it_came_from(tmp_path: Path) -> None:
    """The file with its line, the variable, the flag; nothing beside a built-in value."""
    path = tmp_path / "asides.yaml"
    path.write_text("listen:\n  host: localhost\nupstreams:\n  - url: http://a\n    models: [x]\n")
    loaded = load_all(path, flags={"defaults.format": "qwen3"}, environ={"ASIDES_PORT": "5"})
    lines = [line.strip() for line in show(loaded.config, loaded.origins).splitlines()]
    assert f"host: localhost  # {path}:2" in lines
    assert "port: 5  # ASIDES_PORT" in lines
    assert "format: qwen3  # --format" in lines
    assert f'- url: "http://a"  # {path}:4' in lines
    assert f"- x  # {path}:5" in lines
    assert "level: info" in lines
    loaded = load_all(path, flags={"upstreams": ["http://b"]}, environ={"ASIDES_KEYS": "k"})
    lines = [line.strip() for line in show(loaded.config, loaded.origins).splitlines()]
    assert '- url: "http://b"  # --upstream' in lines
    assert '- "(hidden)"  # ASIDES_KEYS' in lines


WORDS = st.text(st.characters(codec="utf-8"), min_size=1)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e9, 1e9).map(lambda x: round(x, 3)) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=40)
@given(
    models=st.dictionaries(WORDS, st.dictionaries(WORDS, VALUES, max_size=3), max_size=3), port=st.integers(0, 65535)
)
def test_what_is_shown_can_be_loaded_again(
    tmp_path_factory: pytest.TempPathFactory, models: dict[str, dict[str, object]], port: int
) -> None:
    """Whatever the names and values, the YAML means the configuration that it shows."""
    config = Config(
        listen=Listen(port=port),
        models={name: ModelSettings(name=name, extra_body={"inner": body}) for name, body in models.items()},
    )
    path = tmp_path_factory.getbasetemp() / "shown.yaml"
    path.write_text(show(config), encoding="utf-8", newline="")
    again = load(path, environ={})
    if "(hidden)" not in show(config):
        assert again == config


def test_an_address_is_shown_without_its_secrets() -> None:
    """User, password and the values of a query go; the rest stays."""
    assert hide_url("http://host:1/v1") == "http://host:1/v1"
    assert hide_url("http://u:p@host/v1?a=1&b=2#c") == "http://(hidden)@host/v1?a=(hidden)&b=(hidden)#c"
    assert hide_url("http://u:p@q@host/") == "http://(hidden)@host/"
