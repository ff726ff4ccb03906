"""What the user's own configuration says to the filter, `split` and `view`, under what their flags say.

    defaults     the format, its tags and the policies of reading
    terminal     the look of thoughts, and whether lines are broken at words
    think_tags   whether outputs are split, thoughts shown and replies kept

Where there is no file and no such variable, nothing is imported: that costs a look at one path. A configuration that
cannot be read is reported and left out, because whoever pipes a model's output in would lose it otherwise.
"""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from .._config import own_file
from ..errors import Error
from .streams import complain

if TYPE_CHECKING:
    from .._config import Config

VARIABLES = ("ASIDES_DEFAULTS_", "ASIDES_FORMAT", "ASIDES_START", "ASIDES_THINK_TAGS_", "ASIDES_TERMINAL_WRAP")
"""Variables of settings that count here, by how they begin."""
_POLICIES = ("start", "calls_in_thinking", "mentions", "whitespace", "repair")


def obey_settings(options: argparse.Namespace) -> None:
    """Put in what the flags left open. Fills in `format` in any case."""
    config = _load()
    if config is not None:
        _put_reading(options, config)
        _put_showing(options, config)
    options.format = options.format or "auto"


def _load() -> Config | None:
    if own_file(os.environ) is None and not any(name.startswith(VARIABLES) for name in os.environ):
        return None
    from .._config import load_all  # here, because most have none, and it takes its time

    try:
        # What only the gateway and `asides run` need may lack its secrets.
        return load_all(without=("upstreams", "keys", "run")).config
    except Error as error:
        complain(f"{error}\nthe configuration is ignored")
        return None


def _put_reading(options: argparse.Namespace, config: Config) -> None:
    defaults = config.defaults
    # What a flag says about the model stands above what the configuration says about any.
    if not options.format and not options.tags and not options.model:
        options.format = "passthrough" if defaults.format.lower() == "none" else defaults.format
        options.tags = list(defaults.tags.items())
    for name in _POLICIES:
        if getattr(options, name) is None and not (name == "start" and options.model):
            setattr(options, name, getattr(defaults, name))
    if options.calls is None and defaults.calls == "never":
        options.calls = False


def _put_showing(options: argparse.Namespace, config: Config) -> None:
    if not options.style:
        options.style = f"heading={config.terminal.heading},text={config.terminal.text}"
    if "hide" in options:  # `view` shows every thought as a line, keeps nothing and wraps as it has to
        options.wordwrap = options.wordwrap and config.terminal.wrap
        options.hide = options.hide or not (config.think_tags.display_in_ui or options.collapse)
        options.save = options.save or config.think_tags.save_to_memory
