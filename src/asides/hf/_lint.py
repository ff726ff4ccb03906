"""`lint_template`: what is wrong with a response template, found by looking at it and by reading with it.

Three sources of findings: the template itself (keys that lose text or make the reference slow, which `_growth.py`
also measures), outputs that the caller has (regions that cannot be read, text that is in no field, parts that our own
format reads otherwise), and the model's chat template, whose own rendering of an answer must come back as it went in.
With transformers installed its reader takes part too: where it raises, or gives something else when the same output is
cut in two, that is a finding.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from .._engine.format import TEXT, Format
from .._engine.parser import Parser
from ..detect import detect
from ..detect._sandbox import SampleChat, render
from ..families import get_format
from ..message import Message
from ..parts import Text
from ._anchors import SPACE_LIMIT, Anchor
from ._growth import measured_growth, pumped_growth
from ._reading import THINKING_NAMES
from ._response_parser import UNPARSED, ResponseParser
from ._template import Template, TemplateError, TemplateField

MOST_CUTS = 200
"""In how many places a sample is cut, evenly spread."""
_THOUGHT, _ANSWER, _CITY = "A quiet thought.", "The plain answer.", "Oslo"
_CALL = {"type": "function", "id": "call00001", "function": {"name": "get_weather", "arguments": {"city": _CITY}}}


class TemplateFinding(NamedTuple):
    """One thing that is wrong with a template."""

    code: str
    """The kind of problem: `invalid`, `replaces`, `chunking`, `cost`, `raises`, `unparsed`, `lost`, `differs` or
    `round_trip`."""
    key: str
    """The key at fault, with dots (`fields.content.open_pattern`); or the name of the sample, or of the chat
    template."""
    text: str
    """What is wrong, as a sentence."""

    def __str__(self) -> str:
        return f"{self.key}: {self.text} ({self.code})"


def lint_template(
    template: Mapping[str, Any], *, chat_template: str | None = None, samples: Sequence[str] = ()
) -> list[TemplateFinding]:
    """Everything that is found wrong. `samples` are outputs, each from the assistant's header on or without it.

    Examples:
        >>> from asides.hf import lint_template, template_for
        >>> lint_template(template_for("qwen3").template)
        []
    """
    try:
        loaded = Template.load(template)
    except TemplateError as error:
        return [TemplateFinding("invalid", error.key, error.reason)]
    loaded.check_runs()
    findings = [finding for field in loaded.fields.values() for finding in _look(field, loaded)]
    findings += _measure(template)
    format = detect(chat_template=chat_template).format if samples and chat_template is not None else "auto"
    for number, sample in enumerate(samples, 1):
        findings += _try(template, loaded, sample, f"sample {number}")
        findings += _beside(loaded, format, sample, f"sample {number}")
    if chat_template is not None:
        findings += _round_trip(template, loaded, chat_template)
    return list(dict.fromkeys(findings))


# What the template itself shows.


def _look(field: TemplateField, template: Template) -> Iterator[TemplateFinding]:
    scope = f"fields.{field.name}"
    if field.content == "text" and not field.repeats:
        yield TemplateFinding("replaces", scope, "a second region replaces the first; repeats and join would keep both")
    if field.name == template.implicit and field.close is not None and field.close.simple and not field.close.skip:
        reason = "a newline behind the end marker opens an empty region, which replaces the answer; add \\s*"
        if not field.repeats:
            yield TemplateFinding("lost", f"{scope}.close", reason)
    for name, anchor in (("open", field.open), ("close", field.close)):
        if anchor is not None:
            yield from _look_at(anchor, f"{scope}.{name}")


def _look_at(anchor: Anchor, key: str) -> Iterator[TemplateFinding]:
    if anchor.ahead:
        yield TemplateFinding(
            "cost", f"{key}_pattern", "looks ahead over the rest of the output at every chunk: n^2 and more"
        )
    if anchor.before >= SPACE_LIMIT:
        yield TemplateFinding(
            "cost", f"{key}_pattern", "begins with unbounded whitespace: long runs of it cost their square"
        )
    begun = [
        each for each in anchor.literals if any(other != each and other.startswith(each) for other in anchor.literals)
    ]
    if begun and anchor.simple:
        reason = f"{begun[0]!r} begins another alternative: which is met depends on how the stream is cut"
        yield TemplateFinding("chunking", key, reason)


def _measure(template: Mapping[str, Any]) -> Iterator[TemplateFinding]:
    """Patterns whose cost, measured, grows with more than the text."""
    for key, pattern in _patterns(template):
        # Only anchors are searched for in all of the text, chunk after chunk.
        searched = measured_growth(pattern) if key.endswith((".open_pattern", ".close_pattern")) else None
        for growth in (searched, pumped_growth(pattern)):
            if growth is not None:
                yield TemplateFinding("cost", key, str(growth))


def _patterns(template: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every pattern, with its key."""
    if "start_anchor_pattern" in template:
        yield "start_anchor_pattern", template["start_anchor_pattern"]
    for name, field in template["fields"].items():
        for key in ("open_pattern", "close_pattern"):
            if key in field:
                yield f"fields.{name}.{key}", field[key]
        yield from _tag_patterns(field.get("content_args"), f"fields.{name}.content_args")


def _tag_patterns(arguments: Any, scope: str) -> Iterator[tuple[str, str]]:
    """The patterns of a content parser, and of the parser that it gives values to."""
    if not isinstance(arguments, Mapping):
        return
    if isinstance(arguments.get("tag_pattern"), str):
        yield f"{scope}.tag_pattern", arguments["tag_pattern"]
    inner = arguments.get("value_parser")
    if isinstance(inner, Mapping):
        yield from _tag_patterns(inner.get("args"), f"{scope}.value_parser.args")


# What reading shows.


def _read(loaded: Template, text: str) -> tuple[dict[str, Any], ResponseParser]:
    parser = ResponseParser(loaded, "")
    parser.feed(text)
    return parser.finalize()[0], parser


def _try(template: Mapping[str, Any], loaded: Template, text: str, name: str) -> Iterator[TemplateFinding]:
    message, parser = _read(loaded, text)
    for key, value in message.items():
        if key.startswith(UNPARSED):
            for broken in value:
                yield TemplateFinding("unparsed", name, f"{key.removeprefix(UNPARSED)}: {broken['error']}")
    for notice in parser.notices:
        if "given up" in notice:
            yield TemplateFinding("cost", name, notice)
    lost = next((each.strip() for each in "\n".join(parser.left_out).splitlines() if " " in each.strip()), "")
    if lost:  # single words are headers
        yield TemplateFinding("lost", name, f"{lost[:60]!r} is in no field and vanishes")
    yield from _reference(template, text, name)


def _beside(loaded: Template, format: str | Format, text: str, name: str) -> Iterator[TemplateFinding]:
    """Where our own format reads another thought, text or call; only of an output in which it finds more than text."""
    message, own = _read(loaded, text)[0], _parse(text, get_format(format))
    if all(isinstance(part, Text) for part in own.parts):
        return
    thinking = next((field for field in THINKING_NAMES if field in loaded.fields), "")
    for kind, theirs, ours in (
        ("thought", message.get(thinking), own.thinking),
        ("text", message.get("content"), own.text),
    ):
        if _squeezed(theirs) != _squeezed(ours):
            yield TemplateFinding("differs", name, f"asides reads another {kind}: {ours[:60]!r}")
    called = [(call.name, sorted(json.loads(call.arguments))) for call in own.tool_calls if call.error is None]
    functions = [(each.get("name"), sorted(each.get("arguments") or ())) for each in _functions(message)]
    if functions != called:
        names = ", ".join(call for call, _ in called) or "none that may be run"
        yield TemplateFinding("differs", name, f"asides reads other calls: {names}")


def _parse(text: str, format: Format) -> Message:
    """The output as `asides.parse` reads it."""
    parser = Parser(format, start="undecided") if format.start == TEXT else Parser(format)
    parser.feed(text)
    parser.finish()
    return parser.message


def _squeezed(text: Any) -> str:
    """Without whitespace, which texts are joined with."""
    return "".join(str(text or "").split())


def _functions(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The functions that a message calls."""
    found = [call.get("function") for call in message.get("tool_calls") or () if isinstance(call, dict)]
    return [function for function in found if isinstance(function, dict)]


def _reference(template: Mapping[str, Any], text: str, name: str) -> Iterator[TemplateFinding]:
    """What the reader of transformers makes of it, where that is installed."""
    if any(pumped_growth(pattern) for _, pattern in _patterns(template)):
        return  # one of them may search for ever there, and nothing could stop it
    try:
        reader: Callable[..., Any] = import_module("transformers.utils.chat_parsing").ResponseParser
    except ImportError:
        return

    def read(*chunks: str) -> Any:
        parser = reader(dict(template), prefix="")
        for chunk in chunks:
            parser.feed(chunk)
        return parser.finalize()[0]

    try:
        whole = read(text)
        for place in range(1, len(text), 1 + len(text) // MOST_CUTS):
            if read(text[:place], text[place:]) != whole:
                yield TemplateFinding("chunking", name, f"transformers reads something else when it is cut at {place}")
                return
    except Exception as error:  # whatever it raises is what is reported
        yield TemplateFinding(
            "raises", name, f"transformers raises {type(error).__name__}: {str(error).splitlines()[0]}"
        )


# What the chat template shows.


def _round_trip(template: Mapping[str, Any], loaded: Template, source: str) -> Iterator[TemplateFinding]:
    """An answer, a thought with an answer, and a call, as the chat template writes them, must come back."""
    thinking = next((name for name in THINKING_NAMES if name in loaded.fields), "")
    turns: dict[str, dict[str, Any]] = {"an answer": {"content": _ANSWER}}
    if thinking:
        turns["a thought"] = {"content": _ANSWER, thinking: _THOUGHT}
    if "tool_calls" in loaded.fields:
        turns["a call"] = {"content": "", "tool_calls": [_CALL]}
    user = {"role": "user", "content": "The question."}
    chats = [SampleChat(name="prompt", variables={"messages": [user], "add_generation_prompt": True})]
    for name, turn in turns.items():
        messages = [user, {"role": "assistant", **turn}]
        chats.append(SampleChat(name=name, variables={"messages": messages, "add_generation_prompt": False}))
    texts = {each.conversation: each.text for each in render(source, chats, {}).rendered if each.text is not None}
    for name, turn in turns.items():
        if (text := texts.get(name)) is None:
            continue  # a template may refuse a conversation
        start, problem = loaded.behind_start(text)
        if problem:
            problem = problem.replace("in the prompt", f"in what the chat template writes for {name}")
            yield TemplateFinding("round_trip", "start_anchor", problem)
            continue
        found = _read(loaded, start)[0]
        wanted = _missing(turn, found, thinking, text)
        if wanted:
            yield TemplateFinding(
                "round_trip", f"chat template, {name}", f"{wanted} does not come back; found {str(found)[:200]}"
            )
        yield from _reference(template, start, f"chat template, {name}")


def _missing(turn: Mapping[str, Any], found: Mapping[str, Any], thinking: str, text: str) -> str:
    """Which part of a turn was not read back; a thought that the template does not write is not expected."""
    if turn["content"] and found.get("content") != turn["content"]:
        return "the content"
    if thinking in turn and _THOUGHT in text and found.get(thinking) != _THOUGHT:
        return "the thought"
    calls = turn.get("tool_calls")
    if not calls or _CALL["function"]["name"] not in text:  # type: ignore[index]
        return ""
    return "" if _functions(found) == [_CALL["function"]] else "the call"
