"""Hugging Face response templates: read one, write one, test one, and a drop-in for the parser that reads them.

A checkpoint may carry `response_template`, a description of how its output is read. transformers, TRL, vLLM and SGLang
read it.

    tokenizer.response_template = asides.hf.template_for(tokenizer=tokenizer)   # for transformers and TRL
    asides.hf.parse_response(text, tokenizer.response_template, prefix=prompt)  # the drop-in
"""

from __future__ import annotations

from ._lint import TemplateFinding, lint_template
from ._losses import Loss
from ._reading import format_from
from ._response_parser import ResponseParser, parse_response
from ._template import TemplateError
from ._writing import WrittenTemplate, template_for

__all__ = [
    "Loss",
    "ResponseParser",
    "TemplateError",
    "TemplateFinding",
    "WrittenTemplate",
    "format_from",
    "lint_template",
    "parse_response",
    "template_for",
]
