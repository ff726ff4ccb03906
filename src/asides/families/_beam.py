"""Reflection's Beam: harmony's messages, with arguments in tags.

It takes no part in `auto`: its markers are harmony's own, and what differs is the body of a call, long after harmony is
settled. There its calls are parts with an error, and are never run. Name the format, or let detection find it: the
tags stand in its chat template.
"""

from __future__ import annotations

from msgspec.structs import replace

from .._engine.calls.xml_calls import Tag, XmlBody
from ._family import Family, Model
from ._harmony import HARMONY, HARMONY_BODY, HARMONY_HEADER

BEAM_BODY = XmlBody(
    close=HARMONY_BODY.close,
    call=Tag("<rfl:invoke", "name"),
    call_close="</rfl:invoke>",
    parameter=Tag("<rfl:parameter", "name"),
    parameter_close="</rfl:parameter>",
    framed=True,
    anywhere=True,
)
"""`<rfl:parameter name="a">`, a line with the value, `</rfl:parameter>`; the header has named the function."""

BEAM = HARMONY.but(
    name="beam",
    source="Beam as SGLang reads it: harmony's headers; a message to a tool holds parameters in tags",
    header=replace(HARMONY_HEADER, calls=(BEAM_BODY, HARMONY_BODY), bare=None),
)
FAMILY = Family(
    name="Beam",
    formats=(BEAM,),
    models=(Model(r"\bbeam-?{}", "beam", True, "1 1.0"),),
)
