"""Audits of model servers and parsers: cases as data for programs in any language, and parrots.

The cases and the table of formats are data; docs/how-to/cases.md describes them, and how a runner sends cases to a
program. A parrot is a checkpoint whose next token depends on the position alone (`_parrot`), so a server that loads it
writes the scripts inside, token by token. `manifest.json` beside it says where each begins and how it must be read.

    from asides import audit

    for case in audit.cases():
        case["formats"], case["raw"], case["parts"]
    audit.export_data("vendor/asides")
"""

from __future__ import annotations

from ._answers import answer_case
from ._cases import DATA_VERSION, cases, export_data, format_table
from ._manifest import Manifest, ParrotFile, ParrotScript, TokenizerSource, read_manifest

__all__ = [
    "DATA_VERSION",
    "Manifest",
    "ParrotFile",
    "ParrotScript",
    "TokenizerSource",
    "answer_case",
    "cases",
    "export_data",
    "format_table",
    "read_manifest",
]
