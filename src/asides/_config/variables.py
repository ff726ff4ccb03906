"""What the environment and the flags say: which variable and which flag stands for which setting. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from ..errors import UsageError
from .problems import Origin, Path, Problem, near
from .scalars import Wrong, convert, is_scalar, whole
from .schema import Config, UpstreamSettings
from .secrets import is_secret_name

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
_LISTS = {"upstreams", "keys", "cors", "allowed_hosts", "pass_on", "forward_headers"}
_KUBERNETES = re.compile(r"ASIDES_(?:SERVICE|PORT)_.*")
"""What Kubernetes sets in every pod beside a service that is named `asides`."""


class Said(msgspec.Struct, frozen=True):
    """What a variable or a flag says of a setting."""

    setting: str
    """Its path, with dots."""
    value: Any
    origin: str
    """The flag or the variable."""

    @property
    def is_variable(self) -> bool:
        """Whether the environment says it, not a flag."""
        return self.origin.startswith(PREFIX)


@cache
def settings() -> dict[str, inspect.Type]:
    """Every setting that a variable or a flag may give, by its path; `upstreams.key` and `.kind` hold for the one."""
    of_one = {field.name: field.type for field in fields(UpstreamSettings)}
    found = dict(_settings(fields(Config), ()))
    return {**found, "upstreams.key": of_one["key"], "upstreams.kind": of_one["kind"]}


def fields(section: type[msgspec.Struct]) -> tuple[inspect.Field, ...]:
    """The fields of a section, with their types."""
    info = inspect.type_info(section)
    assert isinstance(info, inspect.StructType)
    return info.fields


def variable(setting: str) -> str:
    """The variable of a setting."""
    return SHORT.get(setting, PREFIX + setting.replace(".", "_").upper())


def from_environment(environ: Mapping[str, str]) -> tuple[list[Said], list[Problem], list[str]]:
    """What the variables say, what is wrong with them, and what is odd."""
    known = {variable(setting): setting for setting in settings()}
    said: list[Said] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    for name in sorted(environ):
        text = environ[name]
        if not name.startswith(PREFIX) or name in OTHERS or _KUBERNETES.fullmatch(name):
            continue
        if name not in known:
            warnings.append(f"the environment variable {name[:80]} is not known{_meant(name, known)}")
        elif name == "ASIDES_PORT" and "://" in text:
            warnings.append("ASIDES_PORT looks like what Kubernetes sets for a service named asides; it is left out")
        elif name == "ASIDES_KEYS" and not split_words(text):
            problems.append(Problem(Origin(name), "", "is set but holds no key; unset it to let everyone ask"))
        elif text:
            _add(said, problems, known[name], text, name)
    return said, problems, warnings


def from_flags(flags: Mapping[str, Any]) -> tuple[list[Said], list[Problem]]:
    """What the flags say, by the paths of settings; None says nothing."""
    said: list[Said] = []
    problems: list[Problem] = []
    for setting, value in flags.items():
        if setting not in settings():
            raise UsageError(f"there is no setting {setting!r} that a flag could give")
        if value is not None:
            _add(said, problems, setting, value, FLAGS.get(setting, setting))
    return said, problems


def _add(said: list[Said], problems: list[Problem], setting: str, value: Any, origin: str) -> None:
    wanted = settings()[setting]
    try:
        if setting in _LISTS:
            words = split_words(value) if isinstance(value, str) else value
            value = [whole(word) for word in words]
        else:
            secret = is_secret_name(setting.rpartition(".")[2])
            value = convert(_digit_as_bool(str(value), wanted), wanted, secret=secret)
    except Wrong as error:
        problems.append(Problem(Origin(origin), "", str(error)))
    else:
        said.append(Said(setting, value, origin))


def split_words(text: str) -> list[str]:
    """The words of a list in a variable, between commas or whitespace."""
    return [word for word in re.split(r"[,\s]+", text) if word]


def _digit_as_bool(text: str, wanted: inspect.Type) -> str:
    """Variables are often `1` and `0` where a file says `true` and `false`."""
    return {"1": "true", "0": "false"}.get(text, text) if isinstance(wanted, inspect.BoolType) else text


def _meant(name: str, known: Iterable[str]) -> str:
    """What an unknown variable may have meant; compared without the beginning that all share."""
    meant = near(name.removeprefix(PREFIX), [other.removeprefix(PREFIX) for other in known])
    return f"; did you mean {' or '.join(PREFIX + other for other in meant)}?" if meant else ""


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
