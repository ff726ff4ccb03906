"""Which settings hold for a model's name."""

from __future__ import annotations

import pytest

from asides._config import Config, ModelSettings, matches, resolve_model

CONFIG = Config(
    defaults=ModelSettings(format="kimi", extra_body={"a": 1, "b": 1}, replay="tags"),
    models={
        "qwen*": ModelSettings(format="qwen3", start="thinking"),
        "qwen3:8b": ModelSettings(name="exact", extra_body={"b": 2}),
        "*": ModelSettings(start="text"),
    },
)


def test_an_exact_name_wins_over_a_pattern_that_stands_first() -> None:
    """Only the exact entry holds, over the defaults; fields of `extra_body` are put together."""
    settings = resolve_model(CONFIG, "qwen3:8b")
    assert settings == ModelSettings(format="kimi", name="exact", extra_body={"a": 1, "b": 2}, replay="tags")


def test_the_first_pattern_that_matches_holds() -> None:
    """Its own settings win, the others come from the defaults."""
    settings = resolve_model(CONFIG, "qwen2")
    assert (settings.format, settings.start, settings.replay) == ("qwen3", "thinking", "tags")
    assert resolve_model(CONFIG, "llama").start == "text"


def test_a_name_that_nothing_matches_has_the_defaults() -> None:
    """No entry, no change."""
    config = Config(defaults=ModelSettings(format="kimi"), models={"a": ModelSettings(format="qwen3")})
    assert resolve_model(config, "b") == config.defaults
    assert resolve_model(Config(), "anything") == ModelSettings()


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("qwen3:8b", "qwen3:*", True),
        ("qwen3:8b", "QWEN3:*", False),
        ("qwen3:8b", "qwen?:8b", True),
        ("qwen3:8b", "qwen3", False),
        ("a[b]", "a[b]", True),
        ("ab", "a[b]", False),
        ("org/model", "*model", True),
        ("line\nbreak", "*", True),
    ],
)
def test_only_two_signs_mean_something(name: str, pattern: str, expected: bool) -> None:
    """`*` and `?` match as usual, a bracket is a bracket, and case counts."""
    assert matches(name, pattern) is expected


def test_tags_and_a_format_replace_each_other() -> None:
    """A model's own word on its markers wins over the defaults, whichever of the two it is."""
    tags = {"<a>": "</a>"}
    config = Config(defaults=ModelSettings(format="kimi"), models={"a": ModelSettings(tags=tags)})
    assert resolve_model(config, "a") == ModelSettings(tags=tags)
    config = Config(defaults=ModelSettings(tags=tags), models={"a": ModelSettings(format="kimi")})
    assert resolve_model(config, "a") == ModelSettings(format="kimi")
    assert resolve_model(config, "b").tags == tags
