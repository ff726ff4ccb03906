"""vLLM: `--reasoning-parser asides --tool-call-parser asides`, or `asides_<format>` for every registered format.

vLLM finds `register` by itself, through the entry point `vllm.general_plugins`, in each of its processes. Nothing is
read or made there but a list of names: the classes behind them (`_vllm.py`) come when a server asks for one.
"""

from __future__ import annotations

import logging

from ..families import formats
from ._hosts import require_host

_CLASSES = f"{__package__}._vllm"


def parser_name(format: str) -> str:
    """What a format is called in vLLM's flags: `asides` for `auto`, else `asides_` and its name."""
    return "asides" if format == "auto" else f"asides_{format}"


def register() -> None:
    """Register every format as a reasoning parser and as a tool parser of vLLM. Calling it again does no harm.

    For formats of one's own: call `asides.register` and then this.
    """
    try:
        require_host("vllm")
    except ImportError as error:
        # An error would end a vLLM that nobody asked to use this.
        logging.getLogger(__name__).warning("not registered: %s", error)
        return
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for format in formats():
        ReasoningParserManager.register_lazy_module(parser_name(format), _CLASSES, f"reasoning {format}")
        ToolParserManager.register_lazy_module(parser_name(format), _CLASSES, f"tools {format}")
