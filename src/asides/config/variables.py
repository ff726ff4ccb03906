"""What the environment and the flags say: which variable and which flag stands for which setting. Reads no file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from ..errors import UsageError
from .problems import Origin, Path, Problem, suggestion
from .scalars import Wrong, convert, is_scalar
from .schema import Config, UpstreamSettings
from .secrets import is_secret_name

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
_LISTS = {"upstreams", "keys", "cors"}
_KUBERNETES = re.compile(r"ASIDES_(?:SERVICE|PORT)_.*")
"""What Kubernetes sets in every pod beside a service that is named `asides`."""


class Said(msgspec.Struct, frozen=True):
    """What a variable or a flag says of a setting."""

    setting: str
    """Its path, with dots."""
    value: Any
    origin: str
    """The flag or the variable."""


@cache
def settings() -> dict[str, inspect.Type]:
    """Every setting that a variable or a flag may give, by its path; `upstreams.key` and `.kind` hold for the one."""
    fields = {field.name: field.type for field in inspect.type_info(UpstreamSettings).fields}  # type: ignore[attr-defined]  # a Struct's info has fields
    found = dict(_settings(inspect.type_info(Config), ()))
    return {**found, "upstreams.key": fields["key"], "upstreams.kind": fields["kind"]}


def variable(setting: str) -> str:
    """The variable of a setting."""
    return SHORT.get(setting, "ASIDES_" + setting.replace(".", "_").upper())


def from_environment(environ: Mapping[str, str]) -> tuple[list[Said], list[Problem], list[str]]:
    """What the variables say, what is wrong with them, and what is odd."""
    known = {variable(setting): setting for setting in settings()}
    said: list[Said] = []
    problems: list[Problem] = []
    warnings: list[str] = []
    for name in sorted(environ):
        text = environ[name]
        if not name.startswith("ASIDES_") or name in OTHERS or _KUBERNETES.fullmatch(name):
            continue
        if name not in known:
            warnings.append(f"the environment variable {name[:80]} is not known{_near(name, list(known))}")
        elif name == "ASIDES_PORT" and "://" in text:
            warnings.append("ASIDES_PORT looks like what Kubernetes sets for a service named asides; it is left out")
        elif name == "ASIDES_KEYS" and not text.strip(" ,"):
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
            words = re.split(r"[,\s]+", value) if isinstance(value, str) else value
            value = [word for word in words if word]
        else:
            secret = is_secret_name(setting.rpartition(".")[2])
            value = convert(_digit_as_bool(str(value), wanted), wanted, secret=secret)
    except Wrong as error:
        problems.append(Problem(Origin(origin), "", str(error)))
    else:
        said.append(Said(setting, value, origin))


def _digit_as_bool(text: str, wanted: inspect.Type) -> str:
    """Variables are often `1` and `0` where a file says `true` and `false`."""
    return {"1": "true", "0": "false"}.get(text, text) if isinstance(wanted, inspect.BoolType) else text


def _near(name: str, known: list[str]) -> str:
    found = suggestion(name.removeprefix("ASIDES_"), [other.removeprefix("ASIDES_").lower() for other in known])
    near = re.findall(r"[a-z_]+", found.partition("did you mean ")[2])
    return f"; did you mean {' or '.join('ASIDES_' + one.upper() for one in near if one != 'or')}?" if near else ""


def _settings(info: inspect.Type, path: Path) -> Iterator[tuple[str, inspect.Type]]:
    if not isinstance(info, inspect.StructType):
        return
    for field in info.fields:
        here = (*path, field.name)
        setting = ".".join(map(str, here))
        if field.name == "inference_service":
            continue  # another program's section
        if isinstance(field.type, inspect.StructType):
            yield from _settings(field.type, here)
        elif is_scalar(field.type) or setting in _LISTS:
            yield setting, field.type
