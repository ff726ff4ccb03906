"""Which settings hold for a model of a name that a client sent. Reads the records and nothing else."""

from __future__ import annotations

from fnmatch import fnmatchcase

import msgspec

from .schema import Config, ModelSettings

_BUILT_IN = ModelSettings()


def resolve_model(config: Config, name: str) -> ModelSettings:
    """The settings of an exact name, else of the first pattern that matches, over `defaults`, field by field.

    A field that has its built-in value counts as not said. The fields of the two `extra_body` are put together.
    """
    own = config.models.get(name)
    if own is None:
        own = next((settings for pattern, settings in config.models.items() if matches(name, pattern)), None)
    if own is None:
        return config.defaults
    said = {
        field: value
        for field in ModelSettings.__struct_fields__
        if (value := getattr(own, field)) != getattr(_BUILT_IN, field)
    }
    if "extra_body" in said:
        said["extra_body"] = {**config.defaults.extra_body, **own.extra_body}
    return msgspec.structs.replace(config.defaults, **said)


def matches(name: str, pattern: str) -> bool:
    """Whether a model's name matches: `*` is any run of characters, `?` is one; all else is itself."""
    return fnmatchcase(name, pattern.replace("[", "[[]"))
