"""What the sources say, put together: of those that disagree the more direct wins.

A less direct source decides among formats that fit the more direct equally well. Who only reads output imports nothing
of this: `asides.detect` does, when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._engine.format import Format
from .._engine.vocabulary import Vocabulary
from ..errors import UsageError
from ..families import get_format
from . import _from_name as from_name
from . import _from_prompt as from_prompt
from . import _from_template as from_template
from . import _from_tokenizer as from_tokenizer
from ._facts import Facts, choose_template, read
from ._files import read_text
from ._markers import closers, literals, openers, with_suffix_of
from ._result import BEGIN_NAMES, Begin, Confidence, Detection, Finding, own_begin, start_of

_SOURCE_NAMES = {"prompt": "prompt", "template": "chat template", "tokenizer": "tokenizer", "name": "name"}


def combine(
    model: str | None,
    tokenizer: Any,
    chat_template: str | os.PathLike[str] | None,
    prompt: str | None,
    prompt_ids: Sequence[int] | None,
) -> Detection:
    """What `asides.detect` answers."""
    if all(given is None for given in (model, tokenizer, chat_template, prompt, prompt_ids)):
        raise UsageError("detect needs a model's name, a tokenizer, a chat template or a prompt")
    facts = read(tokenizer) if tokenizer is not None else Facts()
    template = _template(chat_template) if chat_template is not None else facts.template
    if prompt_ids is not None and prompt is None:
        prompt = Vocabulary(facts.loaded()).text(prompt_ids)
    findings: list[Finding] = []
    if prompt is not None:
        findings.append(from_prompt.probe(prompt))
    if template is not None:
        findings.append(from_template.probe(template, begin=facts.begin, stop=facts.stop))
    if facts.added is not None:
        findings.append(from_tokenizer.probe(facts.added))
    elif tokenizer is not None and template is None:
        reason = "shows no added tokens, so it says nothing"
        findings.append(Finding(source="tokenizer", reasons=(reason,)))
    findings += _named(model, facts)
    format, equals, disputes = _choose_format(findings)
    reasons = [f"{_SOURCE_NAMES[finding.source]}: {reason}" for finding in findings for reason in finding.reasons]
    thinks = _thinks(findings)
    begin, confidence, why = _begin(get_format(format), findings, thinks, prompt, prompt_ids, facts)
    markers, how = _markers(_speaks(get_format(format), equals), thinks, facts)
    details = {key: value for finding in reversed(findings) for key, value in finding.details.items()}
    if template is None and thinks is not False:  # a template that shows no switch has none
        details |= _switch(format, findings)
    return Detection(
        format=format,
        thinks=thinks,
        start=start_of(begin),
        confidence=confidence,
        equals=equals,
        reasons=(*reasons, *disputes, *why, *how),
        **markers,
        **details,
    )


def _template(given: str | os.PathLike[str]) -> str:
    if isinstance(given, os.PathLike):
        return read_text(Path(given))
    text = choose_template(given)
    if text is None or "{" not in text:
        raise UsageError("this is no chat template: no Jinja is in it (to read a file, give a pathlib.Path)")
    return text


def _named(model: str | None, facts: Facts) -> list[Finding]:
    """What names say. One that the caller gives comes first; those found in files count only if they are known."""
    findings: list[Finding] = []
    names = facts.names if model is None else (model, *facts.names)
    for place, name in enumerate(names):
        found = from_name.probe(name)
        given = model is not None and place == 0
        if given or (found.formats and not any(finding.formats for finding in findings)):
            findings.append(found)
        if from_name.is_newer(name):
            break  # what the files call it besides may be the older model that it was made from
    return findings


def _choose_format(findings: list[Finding]) -> tuple[str | Format, tuple[str, ...], list[str]]:
    """The format of the most direct source that has one; less direct ones decide among its equals, or are overruled."""
    findings = [finding for finding in findings if finding.formats and finding.formats != ("auto",)]
    if not findings:
        return "auto", (), []
    leading = findings[0]
    fitting = list(leading.formats)
    disputes: list[str] = []
    for finding in findings[1:]:
        # Sources are in the order of directness: a later one may narrow what the first allows, never replace it.
        shared = [format for format in fitting if format in finding.formats]
        if shared:
            fitting = shared
            continue
        disputes.append(
            f"the {_SOURCE_NAMES[finding.source]} speaks for {_name(finding.formats[0])}, "
            f"but the {_SOURCE_NAMES[leading.source]} is more direct"
        )
    return fitting[0], tuple(format for format in fitting[1:] if isinstance(format, str)), disputes


def _name(format: str | Format) -> str:
    return format if isinstance(format, str) else format.name


def _switch(format: str | Format, findings: list[Finding]) -> dict[str, Any]:
    """How thinking is switched, by the card of the family, where a name tells which model it is."""
    switch = next(
        (finding.switch for finding in findings if finding.source == "name" and format in finding.formats), None
    )
    if switch is None or switch.on is switch.off is None:  # at most an effort can be asked for
        return {}
    return {"switch": switch.keyword, "on": switch.on, "off": switch.off}


def _thinks(findings: list[Finding]) -> bool | None:
    """Whether the model thinks.

    What shows thinking beats what shows none, with one exception: tokens are shared by whole families, so a template
    that never uses them is believed before a tokenizer that has them.
    """
    found = {finding.source: finding.thinks for finding in reversed(findings)}
    for source in ("prompt", "template", "tokenizer", "name"):
        if found.get(source) and not (source == "tokenizer" and "template" in found):
            return True
    if "template" in found:
        return found["template"]
    return False if False in found.values() else None


def _begin(
    format: Format,
    findings: list[Finding],
    thinks: bool | None,
    prompt: str | None,
    prompt_ids: Sequence[int] | None,
    facts: Facts,
) -> tuple[Begin, Confidence, list[str]]:
    """Where output begins, from the most direct source that knows, and how well it is known."""
    if prompt_ids is not None:
        return from_prompt.begin_of_ids(format, facts.loaded(), prompt_ids), "known", []
    if prompt is not None:
        return from_prompt.begin(format, prompt), "known", []
    for finding in findings:
        # A beginning that was found for another format, which lost, is in terms of that format.
        if finding.begin is not None and format.name in map(_name, finding.formats):
            return finding.begin, "near" if finding.near else "known", []
    begin = own_begin(format, thinks)
    if thinks is False:
        return begin, "guess", []
    place = BEGIN_NAMES[begin]
    return (
        begin,
        "guess",
        [f"the generation prompt is not known, so output is expected to begin in {place}, as in this format"],
    )


def _speaks(format: Format, candidates: tuple[str, ...]) -> Format:
    """The format whose thinking markers are reported: where calls are open, a candidate whose pair all of them have."""
    if format.settle is None or not candidates:
        return format
    first, *others = map(get_format, candidates)
    shared = all(
        set(openers(first)) <= set(openers(other)) and set(closers(first)) <= set(closers(other)) for other in others
    )
    return first if shared else format


def _markers(format: Format, thinks: bool | None, facts: Facts) -> tuple[dict[str, Any], list[str]]:
    """The markers of thinking, and what they are in the tokenizer."""
    if thinks is False or format.settle is not None or not (openers(format) or closers(format)):
        return {}, []
    added = {text.strip(): id for text, id in (facts.added or {}).items()}
    format = with_suffix_of(format, added)
    opener, closer = _first(openers(format), added), _first(closers(format), added)
    found: dict[str, Any] = {"open": opener, "close": closer}
    if facts.added is None:
        return found, []
    used = "\0".join(literals(format))
    found |= {
        "open_id": added.get(opener.strip()),
        "close_id": added.get(closer.strip()),
        "open_is_token": opener.strip() in added,
        "close_is_token": closer.strip() in added,
        "tokens": {text: id for text, id in added.items() if len(text) > 2 and text in used},
    }
    return found, _ordinary([marker for marker in (opener, closer) if marker and marker.strip() not in added], facts)


def _first(markers: tuple[str, ...], added: dict[str, int]) -> str:
    """The marker that is a token, or else the first."""
    return next((marker for marker in markers if marker.strip() in added), markers[0] if markers else "")


def _ordinary(markers: list[str], facts: Facts) -> list[str]:
    """For markers that have no token of their own, what they are instead."""
    several = [marker for marker in markers if any(len(text) > 2 and text in marker for text in facts.added or ())]
    plain = [marker for marker in markers if marker not in several]
    reasons = [f"tokenizer: {marker!r} is made of several tokens" for marker in several]
    pieces = facts.pieces(plain) if plain else []
    for place, marker in enumerate(plain):
        split = f": {', '.join(map(repr, pieces[place]))}" if pieces else ""
        reasons.append(f"tokenizer: {marker!r} is ordinary text here, with no token of its own{split}")
    return reasons
