"""A training template beside what a model samples: which tokens carry loss that no model writes.

TRL trains what stands in `{% generation %}`, and has for some templates a twin that differs from it in these tags. The
twin is found by the exact text of the template, as TRL finds it; its files are read, TRL itself is not imported.
"""

from __future__ import annotations

import re
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

from ..detect._files import read_text
from ..errors import UsageError
from ._conversation import Conversation
from ._prompt import Prompt
from ._report_subject import RESULT, SECOND, Subject, TwinDifference, TwinReport, make_answer, token_spans
from ._template import common_length

GENERATION = re.compile(r"\{%-?\+?\s*generation\b")
SUFFIX = "_training.jinja"
SUPPLIED = "the prompt supplies it"
AFTER = "it follows the end of the turn, where sampling has stopped"
OTHERWISE = "it ends an earlier turn; the model ends its turn with another token"
NO_STOP = "it follows the answer; it is not known at which token the model stops"
NOT_TRAINED = "the model writes it"


def find_twin(template: str) -> tuple[tuple[str, str] | None, str]:
    """The name and source of the training template of a template, and where there is none, why."""
    if GENERATION.search(template):
        return ("the template itself, which has {% generation %}", template), ""
    spec = find_spec("trl")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        return None, "TRL is not installed here, so no training template was looked for; --twin FILE names one"
    for path in sorted(Path(folders[0], "chat_templates").glob(f"*{SUFFIX}")):
        own = path.with_name(path.name.removesuffix(SUFFIX) + ".jinja")
        if own.is_file() and read_text(own).strip() == template.strip():
            return (f"TRL's {path.name}", read_text(path)), ""
    return None, "the TRL that is installed has no training template for this one"


def compare_twin(subject: Subject, name: str, source: str, field: str) -> TwinReport:
    """What a training template trains in a conversation of two questions, and what of it a model samples."""
    plain = subject.plain
    loop = [subject.call(field), RESULT] if subject.takes_calls else []
    messages = [*subject.lead, *loop, make_answer(field), SECOND, make_answer(field, "No, it is not.", "It is cold.")]
    messages = [*map(subject.shaped, messages)]
    try:
        own = (subject.tooled if loop else plain).prompt(messages)
        # Read as the template's own answers: both are for the same model.
        twin = Conversation(
            plain._source,
            source,
            tools=subject.tooled.tools if loop else None,
            format=plain.reading.format,
            **plain.template_kwargs,
        ).prompt(messages)
    except UsageError as error:
        return TwinReport(name=name, trained=0, mistaken=0, missing=0, error=str(error))
    if not twin._chat.generated:
        why = "it marks nothing with {% generation %} that can be followed"
        return TwinReport(name=name, trained=0, mistaken=0, missing=0, error=why)
    same = common_length(own.text, twin.text)
    otherwise = "" if own.text == twin.text else twin.text[max(0, same - 20) : same + 40]
    return _compare(subject, name, twin, otherwise)


def _compare(subject: Subject, name: str, twin: Prompt, otherwise: str) -> TwinReport:
    spans = token_spans(twin)
    trained = _trained(twin, spans)
    counted: Counter[tuple[str, bool, str]] = Counter()
    sizes: Counter[str] = Counter()
    at = 0
    while at < len(spans):
        end = at + 1
        # Neighbours that differ in the same way are one text.
        same = (trained[at], twin.sampled[at], twin.message[at])
        while end < len(spans) and (trained[end], twin.sampled[end], twin.message[end]) == same:
            end += 1
        text = twin.text[spans[at][0] : spans[end - 1][1]]
        size = len(text) if subject.characters else end - at
        sizes["trained"] += size if trained[at] else 0
        if trained[at] != twin.sampled[at]:
            sizes["mistaken" if trained[at] else "missing"] += size
            why = _why(twin, at) if trained[at] else NOT_TRAINED
            counted[text, trained[at], why] += 1
        at = end
    differences = [
        TwinDifference(text=text, trained=wrongly, why=why, times=times)
        for (text, wrongly, why), times in sorted(counted.items(), key=lambda item: (not item[0][1], -item[1]))
    ]
    return TwinReport(
        name=name,
        trained=sizes["trained"],
        mistaken=sizes["mistaken"],
        missing=sizes["missing"],
        otherwise=otherwise,
        differences=differences,
    )


def _trained(twin: Prompt, spans: list[tuple[int, int]]) -> list[bool]:
    """For each id whether a character of it stands in `{% generation %}`."""
    found = [False] * len(spans)
    at = 0
    for start, stop in twin._chat.generated:
        while at < len(spans) and spans[at][1] <= start:
            at += 1
        while at < len(spans) and spans[at][0] < stop:
            found[at] = True
            at += 1
    return found


def _why(twin: Prompt, at: int) -> str:
    """Why a model does not write what is trained."""
    owner = twin.message[at]
    before = [place for place in range(at) if twin.sampled[place] and twin.message[place] == owner]
    if not before:
        return SUPPLIED
    if not twin.conversation.stops:
        return NO_STOP
    spans = token_spans(twin)
    last = twin.text[slice(*spans[before[-1]])]
    ended = any(last.endswith(stop) for stop in twin.conversation.stops)
    return AFTER if ended else OTHERWISE
