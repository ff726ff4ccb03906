"""The configuration as one record: the file, then the environment, then the flags, each over the one before.

    file        found by `--config`, `ASIDES_CONFIG`, or its usual place; read with the line of every value
    variables   `ASIDES_LIMITS_BODY` for `limits.body`; a few have shorter names (`SHORT`)
    flags       by the path of a setting, as a command gives them: {"listen.port": 0}

The three are put together as plain values, each with its `Origin`, then `$NAME` is expanded, then `checks` looks at the
whole; only then is the record built. So every mistake of all three is reported at once, with its line, its variable or
its flag.

A file that merely lies in the current folder is not trusted: whoever made the folder wrote it. It looks up no `$NAME`,
keeps no history, and its upstreams get no key from the environment.

Opens one file and nothing else.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from .._extras import install_command
from ..errors import UsageError
from . import NAME, own_file
from .checks import NOT_NAMED, check, expand_secrets
from .schema import RENAMED, Config, UpstreamSettings
from .values import (
    ConfigError,
    InvalidValueError,
    Origin,
    Path,
    Problem,
    convert,
    file_error,
    is_scalar,
    is_secret_name,
    near,
    path_text,
    quoted,
    whole,
)

MOST_BYTES = 4 * 1024 * 1024
"""A configuration that is larger is another file, or a device."""
PREFIX = "ASIDES_"
SHORT = {
    "listen.host": "ASIDES_HOST",
    "listen.port": "ASIDES_PORT",
    "upstreams": "ASIDES_UPSTREAM",
    "upstreams.key": "ASIDES_UPSTREAM_KEY",
    "upstreams.kind": "ASIDES_KIND",
    "defaults.format": "ASIDES_FORMAT",
    "defaults.start": "ASIDES_START",
    "defaults.reasoning": "ASIDES_REASONING",
    "history.save": "ASIDES_SAVE",
}
"""Settings whose variable is not `ASIDES_` and their path, as `ASIDES_LIMITS_BODY` is."""
FLAGS = {
    "listen.host": "--host",
    "listen.port": "--port",
    "listen.workers": "--workers",
    "upstreams": "--upstream",
    "upstreams.key": "--upstream-key",
    "upstreams.kind": "--kind",
    "defaults.format": "--format",
    "defaults.start": "--start",
    "defaults.reasoning": "--reasoning",
    "keys": "--key",
    "cors": "--cors",
    "log.level": "--log-level",
    "log.form": "--log-json",
    "log.bodies": "--log-bodies",
    "history.save": "--save",
}
"""The flags of `asides serve`. Other commands may set any setting by its path."""
OTHERS = {"ASIDES_BROWSER", "ASIDES_CONFIG", "ASIDES_HISTORY", "ASIDES_LAWS", "ASIDES_STYLE"}
"""Variables of this project that are no settings."""
_LISTS = {"upstreams", "keys", "cors", "allowed_hosts", "pass_on", "forward_headers", "return_headers"}
_KUBERNETES = re.compile(r"ASIDES_(?:SERVICE|PORT)_.*")
"""What Kubernetes sets in every pod beside a service that is named `asides`."""
_NOT_FOR_STRANGERS = ("upstreams.key", "history.save", "history.store", "responses.store")
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
    """The configuration. `flags` gives values by the paths of settings: `{"listen.port": 0}`; None gives nothing.

    The file is `path`, else `ASIDES_CONFIG`, else `asides.yaml` in the user's configuration folder; never one that
    merely lies in the current folder. In the sections of `without` no `$NAME` is looked up, so that a command needs no
    secrets but its own. Warnings go to the log.
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
    """As `load`, with where each setting came from, and the warnings returned instead of logged.

    With `here`, an `asides.yaml` in the current folder is read where no file is named, but not trusted.
    """
    source = _find(path, environ, here=here)
    layers = _Layers()
    if source is not None:
        layers.read_file(source)
    layers.take_over_reasoning_parser()
    # Before secrets are looked up: an upstream that a flag replaces needs no variable of the file's.
    layers.override(environ, flags or {}, trusted=source is None or source.trusted)

    layers.take_over_think_tags()

    def complain(at: Path, message: str) -> None:
        layers.problems.append(Problem(layers.origin(at), path_text(at), message))

    def may_expand(at: Path) -> bool:
        # What a variable or a flag gives has been through a shell already.
        # The line is 0 for whatever does not come from a file.
        return at[0] not in without and layers.origin(at).line > 0

    trusted = source is None or source.trusted
    expand_secrets(layers.values, environ if trusted else None, may_expand, complain)
    check(layers.values, complain)
    if layers.problems:
        raise ConfigError(layers.problems)
    config = msgspec.convert(layers.values, Config)
    return Loaded(config, source.path if source else None, trusted, layers.origins, tuple(layers.warnings))


# The file.


class _FoundFile(NamedTuple):
    path: str
    named_by: str = ""
    """The flag or the variable that names it; empty where it was found."""
    trusted: bool = True


def _find(path: str | os.PathLike[str] | None, environ: Mapping[str, str], *, here: bool) -> _FoundFile | None:
    """The file that is to be read. No file at all is fine where nobody named one."""
    if path is not None:
        return _FoundFile(os.path.expanduser(os.fspath(path)), "--config")
    named = bool(environ.get("ASIDES_CONFIG"))
    if here and not named and os.path.isfile(NAME):
        return _FoundFile(NAME, trusted=False)
    own = own_file(environ)
    return None if own is None else _FoundFile(own, "ASIDES_CONFIG" if named else "")


def _read_text(path: str, shown: str, named_by: str) -> str:
    try:
        with open(path, "rb") as file:
            # Not by its size: a device or a pipe has none.
            content = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise file_error(shown, 0, f"{reason}{f' ({named_by})' if named_by else ''}") from error
    if len(content) > MOST_BYTES:
        raise file_error(shown, 0, "larger than a configuration can be (4 MiB)")
    try:
        # Editors on Windows begin a file with a byte order mark.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise file_error(shown, line, "not UTF-8; save the file as UTF-8") from error


# Variables and flags.


class Override(msgspec.Struct, frozen=True):
    """A setting that a variable or a flag gives."""

    setting: str
    """Its path, with dots."""
    value: Any
    origin: str
    """The flag or the variable."""

    @property
    def is_variable(self) -> bool:
        """Whether it is from the environment, not from a flag."""
        return self.origin.startswith(PREFIX)


@cache
def settings() -> dict[str, inspect.Type]:
    """Every setting that a variable or a flag may give, by its path; `upstreams.key` and `.kind` hold for the one."""
    of_one = {field.name: field.type for field in fields(UpstreamSettings)}
    found = dict(_settings(fields(Config), ()))
    return {**found, "upstreams.key": of_one["key"], "upstreams.kind": of_one["kind"]}


def _settings(section: Iterable[inspect.Field], path: Path) -> Iterator[tuple[str, inspect.Type]]:
    for field in section:
        here = (*path, field.name)
        setting = ".".join(map(str, here))
        if field.name == "inference_service":
            continue  # another program's section
        if isinstance(field.type, inspect.StructType):
            yield from _settings(field.type.fields, here)
        elif is_scalar(field.type) or setting in _LISTS:
            yield setting, field.type


def fields(section: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a section, with their types."""
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return info.fields


def variable(setting: str) -> str:
    """The variable of a setting."""
    return SHORT.get(setting, PREFIX + setting.replace(".", "_").upper())


def _meant(name: str, known: Iterable[str]) -> str:
    """What an unknown variable may have meant; compared without the beginning that all share."""
    meant = near(name.removeprefix(PREFIX), [other.removeprefix(PREFIX) for other in known])
    return f"; did you mean {' or '.join(PREFIX + other for other in meant)}?" if meant else ""


def _split(text: str) -> list[str]:
    """The entries of a list in a variable, between commas or whitespace."""
    return [entry for entry in re.split(r"[,\s]+", text) if entry]


def _convert(setting: str, value: Any) -> Any:
    wanted = settings()[setting]
    if setting in _LISTS:
        return [whole(entry) for entry in (_split(value) if isinstance(value, str) else value)]
    text = str(value)
    if isinstance(wanted, inspect.BoolType):
        # Variables are often `1` and `0` where a file has `true` and `false`.
        text = {"1": "true", "0": "false"}.get(text, text)
    return convert(text, wanted, secret=is_secret_name(setting.rpartition(".")[2]))


# All three together.


class _Layers:
    """The values so far, and where each came from."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[Path, Origin] = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []

    def origin(self, path: Path) -> Origin:
        """Where a setting, or what it stands in, was given."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return Origin("")

    def read_file(self, file: _FoundFile) -> None:
        """The first layer."""
        shown = file.path if file.path.isprintable() else quoted(file.path)
        text = _read_text(file.path, shown, file.named_by)
        try:
            from .reading import DocumentReader  # here, because only a file needs PyYAML
        except ImportError as error:
            raise UsageError(f"{shown} cannot be read without PyYAML: {install_command('pyyaml')}") from error
        reader = DocumentReader(shown)
        self.values = reader.read_document(text)
        self.origins = {path: Origin(shown, line) for path, line in reader.lines.items()}
        self.problems = reader.problems
        self.warnings += reader.warnings
        if not file.trusted:
            self._leave_out_choices_of_strangers()

    def _leave_out_choices_of_strangers(self) -> None:
        """Who made the folder neither chooses where thoughts are written to, nor who reads them, nor by which key they
        are sealed."""
        self.values.get("think_tags", {}).pop("save_to_memory", None)
        for section in ("history", "responses", "page", "continuity"):
            if self.values.pop(section, None) is not None:
                self.warnings.append(f"{self.origin((section,))}: {section} is not taken from a file {NOT_NAMED}")
                self._forget((section,))
        for place, entry in enumerate(self.values.get("keys", ())):
            if isinstance(entry, dict) and entry.pop("operator", False):
                self.warnings.append(f"{self.origin(('keys', place))}: no operator is taken from a file {NOT_NAMED}")
            # Who wrote the file knows its keys. Clients need one all the same, but none of them reads on the page.
            self.values["keys"][place] = {**(entry if isinstance(entry, dict) else {"key": entry}), "page": False}

    def take_over_reasoning_parser(self) -> None:
        """NexRL's setting is the default format where there is no other."""
        parser = self.values.get("inference_service", {}).get("reasoning_parser")
        defaults = self.values.setdefault("defaults", {})
        if parser and not defaults.get("format"):
            defaults["format"] = parser
            self.origins["defaults", "format"] = self.origins["inference_service", "reasoning_parser"]

    def take_over_think_tags(self) -> None:
        """SelfAI's section gives our own settings where these are not given."""
        section = self.values.get("think_tags", {})
        style = section.get("display_style")
        for given, name, (place, setting), value in (
            (section.get("enabled") is False, "enabled", ("defaults", "format"), "none"),
            (section.get("display_in_ui") is False, "display_in_ui", ("run", "hide_thinking"), True),
            (section.get("save_to_memory") is True, "save_to_memory", ("history", "save"), True),
            (bool(style), "display_style", ("terminal", "heading"), style),
        ):
            held = self.values.setdefault(place, {})
            if given and setting not in held and not (setting == "format" and held.get("tags")):
                held[setting] = value
                self.origins[place, setting] = self.origin(("think_tags", name))

    def override(self, environ: Mapping[str, str], flags: Mapping[str, Any], *, trusted: bool) -> None:
        """The second and the third layer: variables, and flags over them."""
        given: dict[str, Override] = {}
        self._add_variables(given, environ)
        for setting, value in flags.items():
            if setting not in settings():
                raise UsageError(f"there is no setting {setting!r} that a flag could give")
            if value is not None:
                self._add(given, setting, value, FLAGS.get(setting, setting))
        if not trusted and self.values.get("upstreams") and "upstreams" not in given:
            # Else the file would choose the address that the user's key or replies are handed to.
            for setting in _NOT_FOR_STRANGERS:
                if setting in given and given[setting].is_variable:
                    origin = given.pop(setting).origin
                    self.warnings.append(f"{origin} does not count for the upstreams of a file {NOT_NAMED}")
        # `upstreams` first: `upstreams.key` goes into the one that it names.
        for one in sorted(given.values(), key=lambda one: one.setting != "upstreams"):
            self._put(one)

    def _add_variables(self, given: dict[str, Override], environ: Mapping[str, str]) -> None:
        known = {variable(setting): setting for setting in settings()}
        former = {
            variable(setting.replace(now, before, 1)): setting
            for before, now in RENAMED.items()
            for setting in settings()
            if setting.startswith(f"{now}.")
        }
        # Sorted, so that problems and warnings have the same order everywhere.
        for name in sorted(environ):
            text = environ[name]
            if name in former and text:
                self.warnings.append(f"{name} is called {variable(former[name])} now")
                self._add(given, former[name], text, name)
                continue
            if not name.startswith(PREFIX) or name in OTHERS or _KUBERNETES.fullmatch(name):
                continue
            if name not in known:
                self.warnings.append(f"the environment variable {name[:80]} is not known{_meant(name, known)}")
            elif name == "ASIDES_PORT" and "://" in text:
                self.warnings.append(
                    "ASIDES_PORT looks like what Kubernetes sets for a service named asides; it is left out"
                )
            # Whoever sets it means to lock the gateway; other variables that are empty mean nothing.
            elif name == "ASIDES_KEYS" and not _split(text):
                self._complain(name, "is set but holds no key; unset it to let everyone ask")
            elif text:
                self._add(given, known[name], text, name)

    def _add(self, given: dict[str, Override], setting: str, value: Any, origin: str) -> None:
        try:
            given[setting] = Override(setting, _convert(setting, value), origin)
        except InvalidValueError as error:
            self._complain(origin, str(error))

    def _complain(self, origin: str, message: str) -> None:
        self.problems.append(Problem(Origin(origin), "", message))

    def _put(self, given: Override) -> None:
        """Let a variable or a flag win over the file."""
        section, _, name = given.setting.partition(".")
        origin = Origin(given.origin)
        if given.setting == "upstreams":
            # As a whole, with its keys and headers: none of them may go to an address that the file did not name.
            self._forget(("upstreams",))
            self.values["upstreams"] = [{"url": url} for url in given.value]
            for place in range(len(given.value)):
                self.origins["upstreams", place, "url"] = self.origins["upstreams", place] = origin
        elif section == "upstreams":
            self._put_into_upstream(given, name)
        elif not name:
            self._forget((section,))
            self.values[section] = given.value
            self.origins[section,] = origin
            if isinstance(given.value, list):
                self.origins.update({(section, place): origin for place in range(len(given.value))})
        else:
            self._prepare_models(given.setting, name)
            self.values.setdefault(section, {})[name] = given.value
            self.origins[section, name] = origin

    def _put_into_upstream(self, given: Override, name: str) -> None:
        upstreams = self.values.get("upstreams", [])
        if len(upstreams) == 1:
            upstreams[0][name] = given.value
            self.origins["upstreams", 0, name] = Origin(given.origin)
        elif upstreams or not given.is_variable:  # a variable may be set for good, also where nothing is configured
            count = "there is no upstream" if not upstreams else f"there are {len(upstreams)} upstreams"
            self._complain(given.origin, f"is for one upstream, but {count}; say `{name}` of each in the file")

    def _prepare_models(self, setting: str, name: str) -> None:
        """Let a variable's or a flag's default hold for models of the file as the help says.

        A format and a start are for models that the file does not name: the named keep the file's defaults. The
        reasoning field is for all.
        """
        models = self.values.get("models", {})
        if setting in ("defaults.format", "defaults.start"):
            # Written into each model before the default is replaced: afterwards it would not be known any more.
            before = self.values.get("defaults", {}).get(name)
            for each in models.values() if before else ():
                if name != "format" or not each.get("tags"):
                    each.setdefault(name, before)
        elif setting == "defaults.reasoning":
            for model, each in models.items():
                if each.pop("reasoning", None) is not None:
                    self._forget(("models", model, "reasoning"))

    def _forget(self, path: Path) -> None:
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]
