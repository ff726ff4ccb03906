"""What plug-ins share that wrap a host's model: what stays the wrapped model's."""

from __future__ import annotations

from abc import update_abstractmethods
from operator import attrgetter


def delegate(wrapper: type, base: type) -> None:
    """Give a class that wraps an object of `base` all methods and properties of `base` that it does not define itself.

    They are those of its `_wrapped`, also the ones that later releases of a host add.
    """
    for name, member in vars(base).items():
        ours = name.startswith("_") or name in vars(wrapper)
        if not ours and (callable(member) or isinstance(member, property)):
            setattr(wrapper, name, property(attrgetter(f"_wrapped.{name}")))
    update_abstractmethods(wrapper)
