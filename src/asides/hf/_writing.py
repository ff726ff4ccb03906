"""`template_for`: a response template for a format of ours, for one of the programs that read templates.

What goes in: the thinking markers as one field, the calls as another (`_call_fields.py`), and the rest as the implicit
field, whose closers are every marker that must reach nobody: stops, wrappers, strays, sections of calls. No template
serves every consumer, so there are targets:

    transformers   also TRL: several thoughts and texts are joined (`repeats` and `join`), whitespace before openers
    vllm, sglang   thinking is called `thinking`; nothing is joined, because these stream every region
    portable       only what all of them take, Rust's reader included: patterns begin with a literal, no look-around

    tokenizer.response_template = asides.hf.template_for(tokenizer=tokenizer)

The result is a plain dict that also knows what its consumer loses against our own reading (`loses`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal, get_args

from .._engine.calls.named_calls import BodyCalls
from .._engine.calls.syntax import CallSyntax
from .._engine.calls.xml_calls import XmlBody
from .._engine.format import END, HEADER, OUTSIDE, TEXT, THINKING, Format, Header, State
from ..detect import Detection, detect
from ..detect._markers import with_suffix_of
from ..errors import UsageError
from ..families import get_format
from ._call_fields import CallField, call_field
from ._losses import LOSSES, Loss
from ._patterns import SPACE, SPACE_BEFORE, any_literal, escape
from ._template import TemplateError

Target = Literal["transformers", "vllm", "sglang", "portable"]
"""Who reads the template."""
TARGETS: tuple[Target, ...] = get_args(Target)

JOIN = "\n\n"
"""What stands between two thoughts, and between two texts, in one message."""
_NO_HEADER = r"\A[\s\S]*?(?={}\Z)"
"""A start anchor for formats that name no assistant header: the whole prompt, up to an opener that ends it."""


class WrittenTemplate(dict[str, Any]):
    """A response template, and what its consumer loses against our own reading."""

    def __init__(self, template: dict[str, Any], loses: Iterable[Loss], target: Target) -> None:
        super().__init__(template)
        self.loses: tuple[Loss, ...] = tuple(loses)
        """What the consumer does not read as asides does."""
        self.target: Target = target
        """For whom it was written."""

    @property
    def template(self) -> dict[str, Any]:
        """The same as a plain dict."""
        return dict(self)


def template_for(
    format: str | Format | None = None,
    *,
    tokenizer: Any = None,
    chat_template: str | os.PathLike[str] | None = None,
    target: Target = "transformers",
) -> WrittenTemplate:
    """A response template for a format, or for what a tokenizer or a chat template is detected to write.

    Give exactly one of the three. Raises a `TemplateError` where nothing is detected, or where no template can say it.

    Examples:
        >>> from asides.hf import template_for
        >>> sorted(template_for("qwen3").template)
        ['defaults', 'fields', 'start_anchor', 'version']
    """
    if sum(given is not None for given in (format, tokenizer, chat_template)) != 1:
        raise UsageError("template_for needs exactly one of format, tokenizer and chat_template")
    if target not in TARGETS:
        raise UsageError(f"no target is called {target!r}; there are {', '.join(TARGETS)}")
    if format is None:
        return written_template(detect(tokenizer=tokenizer, chat_template=chat_template), target)
    return _Writer(get_format(format), target, "").write()


def written_template(found: Detection, target: Target) -> WrittenTemplate:
    """A response template for what was detected."""
    # Where only the calls are open, any of those that it may be reads its thoughts.
    format = found.equals[0] if found.format == "auto" and found.equals else found.format
    if format == "auto":
        raise TemplateError("format", "nothing that is known writes like this: " + "; ".join(found.reasons))
    known = with_suffix_of(get_format(format), (*(found.tokens or ()), found.open or "", found.close or ""))
    return _Writer(known, target, found.field or "").write()


class _Writer:
    """Writes one template."""

    def __init__(self, format: Format, target: Target, field: str) -> None:
        if format.settle is not None:
            raise TemplateError("format", f"{format.name} is settled while reading; no one template says that")
        self._format = format
        self._target: Target = target
        self._joins = target == "transformers"
        self._portable = target == "portable"
        self._thinking = (field or "reasoning_content") if self._joins else "thinking"
        self._losses: dict[str, None] = {}

    def write(self) -> WrittenTemplate:
        format = self._format
        fields = self._header_fields(format.header) if format.header is not None else self._fields()
        template = {"version": 1, "defaults": {"role": "assistant"}, **self._anchor(), "fields": fields}
        self._lose("quoted")
        return WrittenTemplate(template, (LOSSES[code] for code in LOSSES if code in self._losses), self._target)

    def _lose(self, *codes: str) -> None:
        self._losses.update(dict.fromkeys(codes))

    def _anchor(self) -> dict[str, Any]:
        """What opens the assistant's turn."""
        headers = self._format.assistant
        if not headers:
            if self._portable:
                raise TemplateError(
                    "start_anchor", f"{self._format.name} names nothing that opens the assistant's turn"
                )
            openers = self._openers(THINKING)
            opened = rf"(?:{any_literal(openers)}\s*)?" if openers else ""
            return {"start_anchor_pattern": _NO_HEADER.format(opened)}
        return {"start_anchor": headers[0] if len(headers) == 1 else list(headers)}

    def _openers(self, state: State) -> tuple[str, ...]:
        return tuple(marker for marker, leads in self._format.states.get(TEXT, {}).items() if leads == state)

    # Fields of formats with tags.

    def _fields(self) -> dict[str, Any]:
        format = self._format
        fields: dict[str, Any] = {}
        stops = self._openers(END)
        closers = tuple(format.states.get(THINKING, {}))
        calls = self._calls(format.calls, stops)
        if openers := self._openers(THINKING):
            fields[self._thinking] = self._text_field(self._thinking_open(openers), closers, calls)
            self._lose("start", "echo")
        outside = {*self._openers(TEXT), *stops, *format.strays, *(closer for closer in closers if closer not in stops)}
        if format.ignored:
            self._lose("citations")
        if calls is not None:
            fields["tool_calls"], around = calls
            outside.update(around)
            if self._joins:
                self._lose("spacing")
        fields["content"] = self._text_field({}, sorted(outside), None)
        return fields

    def _thinking_open(self, openers: tuple[str, ...]) -> dict[str, Any]:
        format = self._format
        openers = self._distinct(openers)
        if not self._joins and not format.ignore_case and not format.attributes:
            if format.leading:
                self._lose("leading")
            # Portable readers cannot see where output begins, and a common word must not open anything elsewhere.
            known = [each for each in openers if each not in format.leading or each not in format.partial]
            return {"open": known[0] if len(known) == 1 else known}
        leading = [opener for opener in openers if opener in format.leading]
        others = [opener for opener in openers if opener not in format.leading]
        ways = []
        if others:
            ways.append(self._spelled(others))
        if leading:
            ways.append(rf"\A{SPACE_BEFORE}{any_literal(leading)}")
        before = SPACE_BEFORE if self._joins and others else ""
        return {"open_pattern": before + (ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})")}

    def _distinct(self, markers: Iterable[str]) -> tuple[str, ...]:
        """Markers without those that others begin with: which of them is met would depend on how a stream is cut."""
        every = tuple(markers)
        found = tuple(
            marker for marker in every if not any(other != marker and other.startswith(marker) for other in every)
        )
        if len(found) < len(every):
            self._lose("partial")
        return found

    def _spelled(self, markers: Iterable[str]) -> str:
        """Markers in the spellings that the format allows."""
        format = self._format
        pattern = any_literal(markers)
        if format.attributes:
            pattern = pattern.replace(">", r"(?:\s[^<>\n]{0,200})?>")
        return f"(?i:{pattern})" if format.ignore_case else pattern

    def _text_field(
        self, opened: dict[str, Any], closers: Iterable[str], calls: tuple[dict[str, Any], Any] | None
    ) -> dict[str, Any]:
        field = dict(opened)
        if closers := self._distinct(closers):
            closed = self._spelled(closers) + SPACE
            before = SPACE_BEFORE if self._joins and not opened else ""
            field["close_pattern"] = before + closed
            if calls is not None and self._format.calls_in_thinking == "always" and not self._portable:
                opener = calls[0].get("open_pattern") or escape(calls[0]["open"])
                field["close_pattern"] += f"|(?={_without_names(opener)})"
        field["content"] = "text"
        if self._joins:
            field |= {"repeats": True, "join": JOIN}
        elif self._portable:
            self._lose("replaced")
        return field

    # The field of calls.

    def _calls(
        self, syntaxes: tuple[CallSyntax, ...], stops: tuple[str, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]] | None:
        own = [syntax for syntax in syntaxes if not syntax.sibling]
        found = next(((syntax, call) for syntax in own if (call := call_field(syntax, self._portable))), None)
        if len(syntaxes) > 1:
            self._lose("syntaxes")
        if found is None:
            self._lose(*(["bare"] if own else []))
            return None
        call = found[1]
        self._lose(*call.loses)
        if not call.open:
            return None
        self._lose_broken(call.content)
        if THINKING in self._format.states:
            always = self._format.calls_in_thinking == "always"
            self._lose("draft" if always else "unclosed")
        field = {"open_pattern": (SPACE_BEFORE if self._joins else "") + call.open, **self._call_close(call, stops)}
        around = (*call.around, *(closer for closer in found[0].strays if closer not in stops))
        return field | ({} if call.each else {"repeats": True}) | call.content, around

    def _lose_broken(self, content: dict[str, Any]) -> None:
        """A call that is malformed or cut off: parameters in tags are taken as far as they go, by all but SGLang."""
        tagged = content["content"] == "xml-inline"
        if tagged and self._target != "sglang":
            self._lose("cut_call")
        elif self._joins or self._portable:
            self._lose("broken_raises")
        if self._target in ("sglang", "portable") or (self._target == "vllm" and not tagged):
            self._lose("broken_dropped")

    def _call_close(self, call: CallField, stops: tuple[str, ...]) -> dict[str, Any]:
        """What closes a call: its own marker; where it has none, a stop marker, the next call or the end."""
        stopped = any_literal(stops) if stops else ""
        if call.close.endswith(r"\}\s*") and stopped:
            return {"close_pattern": f"{call.close}(?:{stopped}|$){SPACE}"}
        ways = [call.close + SPACE] if call.close else []
        if ways and call.stops and stopped:
            ways.append(stopped + SPACE)
        if not ways:
            if call.around and (closing := call.around[-1]):
                ways.append(escape(closing) + SPACE)
            if stopped:
                ways.append(stopped + SPACE)
            if call.again and not call.each and not self._portable:
                ways.append(f"(?={call.again})")
            elif not call.each:
                self._lose("several")
        return {"close_pattern": "|".join(ways)} if ways else {}

    # Fields of formats whose messages have headers.

    def _header_fields(self, header: Header) -> dict[str, Any]:
        format = self._format
        ends = [marker for marker, leads in format.states[TEXT].items() if leads in (OUTSIDE, END)]
        again = [marker for marker, leads in format.states[TEXT].items() if leads == HEADER]
        closed = any_literal(ends) + SPACE
        if not self._portable:
            closed += f"|(?={any_literal(again)})"
        fields: dict[str, Any] = {}
        for name, state in ((self._thinking, THINKING), ("content", TEXT)):
            field: dict[str, Any] = {"open_pattern": self._header_open(header, state), "close_pattern": closed}
            field["content"] = "text"
            if self._joins:
                field |= {"repeats": True, "join": JOIN}
            elif self._portable:
                self._lose("replaced")
            fields[name] = field
        self._lose("headers", "outside")
        if header.tools:
            self._lose("syntaxes")
        if header.calls and isinstance(header.calls[0], BodyCalls | XmlBody):
            fields["tool_calls"] = self._body_calls(header, header.calls[0])
            self._lose_broken(fields["tool_calls"])
        elif (calls := self._calls(format.calls, tuple(ends))) is not None:
            fields["tool_calls"] = calls[0]
        return fields

    def _header_open(self, header: Header, state: State) -> str:
        """The header of a message that holds this."""
        kinds = [marker for marker, leads in self._format.states.get(HEADER, {}).items() if leads == state]
        if kinds:
            return any_literal(kinds)
        channels = [channel for channel, leads in header.channels.items() if leads == state]
        if channels:
            named = escape(header.channel_marker) + any_literal(channels)
            if header.default == state and header.roles and not self._portable:
                named = f"(?:{named}|{any_literal(header.roles)})"
            return named + escape(header.body)
        recipients = [f" to={name}" for name, leads in header.recipients.items() if leads == state]
        ways = any_literal(recipients) if recipients else ""
        if header.default == state and not self._portable:
            ways = f"(?:{ways}|{any_literal(header.roles)}|\\A)"
        return ways + escape(header.body)

    def _body_calls(self, header: Header, calls: BodyCalls | XmlBody) -> dict[str, Any]:
        """Messages to a function: the recipient stands before the channel or behind it."""
        between = "".join(f"(?:{escape(marker)}[^<]*)?" for marker in (header.channel_marker, header.type_marker))
        body = rf"(?:\s[^<]*)?{between}{escape(header.body)}"  # not bare `[^<]*`: beside the name it costs a square
        transform = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
        content: dict[str, Any] = {"content": "json", "transform": transform}
        if isinstance(calls, XmlBody) and (field := call_field(calls, self._portable)) is not None:
            content = field.content
        prefix = escape(calls.prefix) if isinstance(calls, BodyCalls) else ""
        return {
            "open_pattern": rf"to={prefix}(?P<name>[^\s<]+){body}",
            "close_pattern": any_literal(calls.close[:3]) + SPACE,
            "repeats": True,
            **content,
        }


def _without_names(pattern: str) -> str:
    """A pattern whose groups capture nothing: for a look-ahead at what another field opens with."""
    return pattern.replace("(?P<name>", "(?:").replace("(?P<id>", "(?:").removeprefix(SPACE_BEFORE)
