"""What a response template cannot express, one record for each kind of loss, with the reason a user reads.

A template is a flat description: a region runs from one anchor to another, and nothing inside it counts. What our own
parser does beyond that (quotes, drafts, repair) no key of the standard can say; the record names the key that would
have to. `template_for` names for each template which of these a consumer loses; `docs/how-to/response_templates.md` has
the same list, made from here.
"""

from __future__ import annotations

from typing import NamedTuple


class Loss(NamedTuple):
    """One thing that a consumer of a template does not read as asides does."""

    code: str
    """A short name of the loss, as in the table of the documentation."""
    text: str
    """What the consumer reads instead, as a sentence."""
    key: str
    """The key of the standard that cannot express it."""

    def __str__(self) -> str:
        return self.text


_SENTENCES = {
    "quoted": ("close", "a marker that is quoted or stands in a code block acts as a marker"),
    "unclosed": ("close", "a call after thinking that was never closed stays thinking"),
    "draft": ("open", "a call that was only drafted in thinking is run"),
    "broken_raises": (
        "content",
        "a malformed or cut-off call raises an error; TRL then returns the whole output as content",
    ),
    "broken_dropped": ("content", "a malformed or cut-off call is dropped"),
    "cut_call": ("close", "a call that was cut off is run with the arguments that were there"),
    "replaced": (
        "repeats",
        "in transformers and TRL a second thought or text replaces the first; vLLM and SGLang stream both",
    ),
    "cut_value": ("close", "an argument that holds the closing marker is cut there"),
    "untyped": ("content_args", "arguments are strings where the request gives no tools"),
    "several": ("content", "of several calls between one pair of markers only one is read, or none"),
    "syntaxes": ("fields", "other call syntaxes that models of this family write are not read"),
    "unwrapped": ("open_pattern", "a call without the markers around it is text"),
    "partial": ("open", "a marker that lacks its end, where another begins like it, is text"),
    "echo": ("open", "an opener that the output repeats after the prompt's stays in the thought"),
    "nested": ("content_args", "arguments that are objects or lists are not taken apart"),
    "start": ("start_anchor", "thinking that neither the prompt nor the output opens is content"),
    "leading": ("open_pattern", "an opening sentence acts anywhere, not only where the output begins"),
    "key_names": ("transform", "calls that spell their keys in another way raise an error or are dropped"),
    "unfenced": ("open_pattern", "calls without the code block around them are not read"),
    "keyed_names": ("transform", "calls are not read: the name is a key, which no transform can reach"),
    "headers": (
        "open_pattern",
        "messages with headers in another order, to other recipients or in unknown channels are read in part",
    ),
    "outside": ("fields", "text outside of any message is left out"),
    "citations": ("content", "citation marks stay in the text"),
    "bare": ("open_pattern", "a call without markers is read only where the output begins, and in one spelling"),
    "id": ("transform", "ids that the model gives its calls are left out"),
    "spacing": ("join", "texts before and after a call are joined by an empty line, whatever was between them"),
}

LOSSES: dict[str, Loss] = {code: Loss(code, text, key) for code, (key, text) in _SENTENCES.items()}
"""Every kind of loss, by its code."""
