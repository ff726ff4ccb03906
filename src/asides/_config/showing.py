"""A configuration as YAML that a person can read and `load` can load, with every secret hidden."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from .schema import BUILT_IN, Config, ModelSettings, UpstreamSettings
from .values import HIDDEN, Origin, Path, hide_url, is_secret_name, quoted

_BARE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:[./][A-Za-z0-9_-]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""Texts that YAML would take for something else."""


def show(config: Config, origins: Mapping[Path, Origin] | None = None, *, changed: bool = False) -> str:
    """The whole configuration; with `changed` only what differs from the defaults, which may be nothing.

    With `origins`, each setting that was given has where it came from in a comment.
    """
    values = _plain(config)
    if changed:
        values["upstreams"] = [
            {"url": upstream["url"], **_changed(upstream, _plain(UpstreamSettings(url=upstream["url"])))}
            for upstream in values["upstreams"]
        ]
        values["models"] = {name: _changed(own, _plain(BUILT_IN)) for name, own in values["models"].items()}
        values = _changed(values, _plain(Config()))
    return "".join(_lines(values, (), origins or {}))


def _plain(record: Config | ModelSettings | UpstreamSettings) -> dict[str, Any]:
    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    return _without_secrets(values) if isinstance(record, Config) else values


def _changed(values: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Those that are not as in the defaults."""
    return {
        name: _changed(value, defaults[name]) if isinstance(value, dict) and defaults.get(name) else value
        for name, value in values.items()
        if name not in defaults or value != defaults[name]
    }


def _without_secrets(values: dict[str, Any]) -> dict[str, Any]:
    del values["inference_service"]  # what it holds is in `defaults`
    values["keys"] = [{**entry, "key": HIDDEN} if isinstance(entry, dict) else HIDDEN for entry in values["keys"]]
    values["continuity"]["keys"] = [HIDDEN for _ in values["continuity"]["keys"]]
    for upstream in values["upstreams"]:
        upstream["url"] = hide_url(upstream["url"])
        upstream["key"] = upstream["key"] and HIDDEN
        # Any header may be a credential, whatever its name.
        upstream["headers"] = dict.fromkeys(upstream["headers"], HIDDEN)
    for settings in (values["defaults"], *values["models"].values()):
        settings["extra_body"] = _hide_named(settings["extra_body"])
    values["history"]["store"] = hide_url(values["history"]["store"])
    values["run"]["url"] = hide_url(values["run"]["url"])
    values["run"]["key"] = values["run"]["key"] and HIDDEN
    return values


def _hide_named(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: HIDDEN if is_secret_name(name) and isinstance(held, str) and held else _hide_named(held)
            for name, held in value.items()
        }
    return [_hide_named(held) for held in value] if isinstance(value, list) else value


def _lines(value: Any, path: Path, origins: Mapping[Path, Origin]) -> list[str]:
    """The lines of a section or a list, which is not empty."""
    lines: list[str] = []
    indent = "  " * len(path)
    steps = value.items() if isinstance(value, dict) else enumerate(value)
    for step, held in steps:
        here = (*path, step)
        lead = f"{indent}{_scalar(step)}:" if isinstance(value, dict) else f"{indent}-"
        if held and isinstance(held, dict | list):
            inner = _lines(held, here, origins)
            if isinstance(value, dict):
                lines += [f"{lead}\n", *inner]
            else:
                lines += [f"{lead} {inner[0].lstrip(' ')}", *inner[1:]]
        else:
            origin = f"  # {origins[here]}" if here in origins else ""
            lines.append(f"{lead} {_scalar(held)}{origin}\n")
    return lines


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _BARE.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return quoted(value, len(value))
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    return msgspec.json.encode(value).decode()
