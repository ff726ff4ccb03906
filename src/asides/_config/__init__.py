"""The configuration of the commands: what `asides.yaml`, the environment and the flags may say. Starts nothing."""

from __future__ import annotations

import os as _os
import typing as _typing
from collections.abc import Mapping as _Mapping

if _typing.TYPE_CHECKING:
    from .loading import Loaded, load, load_all
    from .schema import Config, ModelSettings, UpstreamSettings, matches, policies_of, resolve_model
    from .showing import show
    from .values import ConfigError, Problem, hide_url

__all__ = [
    "Config",
    "ConfigError",
    "Loaded",
    "ModelSettings",
    "Problem",
    "UpstreamSettings",
    "hide_url",
    "load",
    "load_all",
    "matches",
    "own_file",
    "policies_of",
    "resolve_model",
    "show",
]

NAME = "asides.yaml"

_PLACES = {
    "Config": "schema",
    "ConfigError": "values",
    "Loaded": "loading",
    "ModelSettings": "schema",
    "Problem": "values",
    "UpstreamSettings": "schema",
    "hide_url": "values",
    "load": "loading",
    "load_all": "loading",
    "matches": "schema",
    "policies_of": "schema",
    "resolve_model": "schema",
    "show": "showing",
}
"""Where each name is: commands that read no configuration must not pay for it."""


def own_file(environ: _Mapping[str, str]) -> str | None:
    """The file that holds for a command that names none: `ASIDES_CONFIG`, else the one in the user's folder, if any."""
    if environ.get("ASIDES_CONFIG"):
        return _os.path.expanduser(environ["ASIDES_CONFIG"])
    home = environ.get("HOME") or _os.path.expanduser("~")
    own = _os.path.join(environ.get("XDG_CONFIG_HOME") or _os.path.join(home, ".config"), "asides", NAME)
    return own if _os.path.isfile(own) else None


def __getattr__(name: str) -> _typing.Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value
