"""The configuration as one record: the file, then the environment, then the flags, each over the one before.

Every mistake of all three is told at once. Opens one file and nothing else.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from . import document
from .checks import check, expand_secrets
from .problems import ConfigError, Origin, Path, Problem, path_text
from .schema import Config
from .variables import Said, from_environment, from_flags


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and where it came from."""

    config: Config
    file: str | None
    """The file that was read."""
    origins: dict[Path, Origin]
    """Which line, variable or flag gave a setting; built-in values are not in it."""
    warnings: tuple[str, ...]
    """What is odd but no mistake."""


def load(
    path: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    without: Collection[str] = (),
) -> Config:
    """The configuration. `flags` gives values by the paths of settings: `{"listen.port": 0}`; None says nothing.

    The file is `path`, else `ASIDES_CONFIG`, else `asides.yaml` here or in the user's configuration folder. In the
    sections of `without` no `$NAME` is looked up, so that a command needs no secrets but its own.
    """
    loaded = load_all(path, flags=flags, environ=environ, without=without)
    for warning in loaded.warnings:
        logging.getLogger("asides").warning("%s", warning)
    return loaded.config


def load_all(
    path: str | os.PathLike[str] | None = None,
    *,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] = os.environ,
    without: Collection[str] = (),
) -> Loaded:
    """As `load`, with where each setting came from."""
    file, named_by = document.find(path, environ)
    values: dict[str, Any] = {}
    origins: dict[Path, Origin] = {}
    problems: list[Problem] = []
    if file is not None:
        values, origins, problems = _read(document.read(file, named_by), document.shown(file))

    def complain(at: Path, message: str) -> None:
        problems.append(Problem(_origin(origins, at), path_text(at), message))

    def may_expand(at: Path) -> bool:
        # What a variable or a flag says has been through a shell already.
        return at[0] not in without and _origin(origins, at).line > 0

    _take_over_reasoning_parser(values, origins)
    variables, wrong_variables, warnings = from_environment(environ)
    given, wrong_flags = from_flags(flags or {})
    problems += wrong_variables + wrong_flags
    replaced = {one.setting: one for one in (*variables, *given)}
    for one in sorted(replaced.values(), key=_upstreams_first):
        _put(values, origins, problems, one)
    expand_secrets(values, environ, may_expand, complain)
    check(values, complain)
    if problems:
        raise ConfigError(problems)
    return Loaded(msgspec.convert(values, Config), file, origins, tuple(warnings))


def _read(text: str, file: str) -> tuple[dict[str, Any], dict[Path, Origin], list[Problem]]:
    node = document.compose(text, file)
    if node is None:
        return {}, {}, []
    from .reading import NOTHING, Reader  # here, because it needs PyYAML, which is there once a document is

    reader = Reader(file)
    values = reader.read(node, inspect.type_info(Config), ())
    origins = {path: Origin(file, line) for path, line in reader.lines.items()}
    return {} if values is NOTHING else values, origins, reader.problems


def _origin(origins: Mapping[Path, Origin], path: Path) -> Origin:
    """Where a setting, or what it stands in, was written."""
    for length in range(len(path), 0, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    return Origin("")


def _upstreams_first(said: Said) -> bool:
    return said.setting != "upstreams"


def _put(values: dict[str, Any], origins: dict[Path, Origin], problems: list[Problem], said: Said) -> None:
    """Let a variable or a flag win over the file."""
    section, _, name = said.setting.partition(".")
    if said.setting == "upstreams":
        _forget(origins, ("upstreams",))
        values["upstreams"] = [{"url": url} for url in said.value]
        for place in range(len(said.value)):
            origins["upstreams", place, "url"] = origins["upstreams", place] = Origin(said.origin)
    elif section == "upstreams":
        upstreams = values.get("upstreams", [])
        if not upstreams and not said.origin.startswith("-"):
            return  # a variable may be set for good, also where nothing is configured
        if len(upstreams) != 1:
            count = "there is no upstream" if not upstreams else f"there are {len(upstreams)} upstreams"
            problems.append(
                Problem(Origin(said.origin), "", f"is for one upstream, but {count}; say `{name}` of each in the file")
            )
            return
        upstreams[0][name] = said.value
        origins["upstreams", 0, name] = Origin(said.origin)
    elif not name:
        _forget(origins, (section,))
        values[section] = said.value
        origins[section,] = Origin(said.origin)
        if isinstance(said.value, list):
            origins.update({(section, place): Origin(said.origin) for place in range(len(said.value))})
    else:
        if said.setting in ("defaults.format", "defaults.start"):
            _keep_for_named_models(values, name)
        if said.setting == "defaults.reasoning":
            for model, settings in values.get("models", {}).items():
                if settings.pop("reasoning", None) is not None:
                    _forget(origins, ("models", model, "reasoning"))
        values.setdefault(section, {})[name] = said.value
        origins[section, name] = Origin(said.origin)


def _keep_for_named_models(values: dict[str, Any], name: str) -> None:
    """A flag's format and start are for models that the file does not name: the named keep the file's defaults."""
    said = values.get("defaults", {}).get(name)
    if said:
        for settings in values.get("models", {}).values():
            settings.setdefault(name, said)


def _forget(origins: dict[Path, Origin], path: Path) -> None:
    for known in [known for known in origins if known[: len(path)] == path]:
        del origins[known]


def _take_over_reasoning_parser(values: dict[str, Any], origins: dict[Path, Origin]) -> None:
    parser = values.get("inference_service", {}).get("reasoning_parser")
    defaults = values.setdefault("defaults", {})
    if parser and not defaults.get("format"):
        defaults["format"] = parser
        origins["defaults", "format"] = origins["inference_service", "reasoning_parser"]
