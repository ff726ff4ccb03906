"""What plug-ins share that wrap a host's model: how its replies are read, and what stays the wrapped model's."""

from __future__ import annotations

from abc import update_abstractmethods
from operator import attrgetter

from .._api import for_whole
from .._engine.format import Format
from .._engine.parser import Parser
from ..policies import Policies
from ..reply import Splitter


def make_splitter(format: Format, policies: Policies, *, whole: bool) -> Splitter:
    """What reads a reply that a server has perhaps taken apart already; `whole`: it comes in one piece."""
    own = for_whole(policies, format) if whole else policies

    def make(found: Format) -> Parser:
        # Another format: behind what the server has split off comes the answer, wherever output would begin.
        return Parser(found, own if found is format else policies.but(start=None, prompt=None))

    return Splitter(format, make, seed=policies.seed)


def delegate(wrapper: type, base: type) -> None:
    """Give a class that wraps an object of `base` all methods and properties of `base` that it does not define itself.

    They are those of its `_wrapped`, also the ones that later releases of a host add.
    """
    for name, member in vars(base).items():
        ours = name.startswith("_") or name in vars(wrapper)
        if not ours and (callable(member) or isinstance(member, property)):
            setattr(wrapper, name, property(attrgetter(f"_wrapped.{name}")))
    update_abstractmethods(wrapper)
