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
from .secrets import NOT_NAMED
from .variables import Said, from_environment, from_flags

_NOT_FOR_STRANGERS = ("upstreams.key", "history.save", "history.store")
"""Settings whose variables do not go with upstreams that the user did not name."""


class Loaded(msgspec.Struct, frozen=True):
    """A configuration, and where it came from."""

    config: Config
    file: str | None
    """The file that was read."""
    trusted: bool
    """Whether the user named that file, or it is in their own folder; False if it lies in the current folder."""
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

    The file is `path`, else `ASIDES_CONFIG`, else `asides.yaml` in the user's configuration folder; never one that
    merely lies in the current folder. In the sections of `without` no `$NAME` is looked up, so that a command needs no
    secrets but its own.
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
    here: bool = False,
) -> Loaded:
    """As `load`, with where each setting came from.

    With `here`, an `asides.yaml` in the current folder is read where no file is named. Whoever made the folder wrote
    it, so it is not trusted: it looks up no `$NAME`, keeps no history, and gets no key that the environment holds.
    """
    source = document.find(path, environ, here=here)
    trusted = source is None or source.trusted
    values: dict[str, Any] = {}
    origins: dict[Path, Origin] = {}
    problems: list[Problem] = []
    warnings: list[str] = []
    if source is not None:
        values, origins, problems = _read(document.read(source.path, source.named_by), document.shown(source.path))
        if not trusted:
            warnings += _drop_history(values, origins)

    def complain(at: Path, message: str) -> None:
        problems.append(Problem(_origin(origins, at), path_text(at), message))

    def may_expand(at: Path) -> bool:
        # What a variable or a flag says has been through a shell already.
        return at[0] not in without and _origin(origins, at).line > 0

    _take_over_reasoning_parser(values, origins)
    variables, wrong_variables, odd_variables = from_environment(environ)
    given, wrong_flags = from_flags(flags or {})
    problems += wrong_variables + wrong_flags
    warnings += odd_variables
    replaced = {one.setting: one for one in (*variables, *given)}
    if not trusted and values.get("upstreams") and "upstreams" not in replaced:
        warnings += _keep_from_strangers(replaced)
    for one in sorted(replaced.values(), key=_upstreams_first):
        _put(values, origins, problems, one)
    expand_secrets(values, environ if trusted else None, may_expand, complain)
    check(values, complain)
    if problems:
        raise ConfigError(problems)
    return Loaded(msgspec.convert(values, Config), source.path if source else None, trusted, origins, tuple(warnings))


def _drop_history(values: dict[str, Any], origins: dict[Path, Origin]) -> list[str]:
    """Leave out where a file that is not trusted would have thoughts written to."""
    if values.pop("history", None) is None:
        return []
    warning = f"{_origin(origins, ('history',))}: history is not taken from a file {NOT_NAMED}"
    _forget(origins, ("history",))
    return [warning]


def _keep_from_strangers(replaced: dict[str, Said]) -> list[str]:
    """Leave out the variables that would hand keys or replies to addresses that the user did not name."""
    kept_back = [one for one in (replaced.get(name) for name in _NOT_FOR_STRANGERS) if one and one.is_variable]
    for one in kept_back:
        del replaced[one.setting]
    return [f"{one.origin} does not count for the upstreams of a file {NOT_NAMED}" for one in kept_back]


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
        if not upstreams and said.is_variable:
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
