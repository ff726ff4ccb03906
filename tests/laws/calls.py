"""Calls as each grammar writes them, made from the syntax's own data, for the texts that the laws are tried on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from asides import Format
from asides._engine.calls.brace_calls import BraceCalls
from asides._engine.calls.keyed_calls import KeyedCalls
from asides._engine.calls.named_calls import BodyCalls, NamedCalls
from asides._engine.calls.python_calls import PythonCalls
from asides._engine.calls.syntax import CallSyntax
from asides._engine.calls.xml_calls import Tag, XmlCalls

JSON_BODIES = (
    '{"name": "f", "arguments": {"a": 1}}',
    '{"name":"f","arguments":{}}',
    '\n{"name": "f", "arguments": {"a": "zebra7", "b": [1, {"c": null}]}}\n',
    '{"arguments": {"a": "\\u00e9\\n"}, "name": "f"}',
    '{"name": "f", "parameters": {"a": true}, "id": "call_7"}',
    '{"name": "f", "arguments": "{\\"a\\": 1}"}',
    '[{"name": "f", "arguments": {}}, {"name": "g", "arguments": {"b": 2}}]',
    '{"name": "f", "arguments": {}}\n{"name": "g", "arguments": {}}',
    '{"f": {"a": 1}}',
    '{"name": "f"}',
    '{"name": 7, "arguments": {}}',
    '{"name": "", "arguments": {}}',
    '{"name": "f", "arguments": [1]}',
    '{"name": "f", "arguments": {"a": zebra7}}',
    '{"name": "f", "arguments": {"a": "',
    '{"name": "f", "arg',
    "{}",
    "[]",
    "[",
    "{",
    "zebra7",
    "",
)
OTHER_BODIES = (
    "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>",
    '<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>',
    "f\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n",
    "f(a=1, b='x')",
    "[f(a=1), g(b=[True, None], c={'d': \"e\"})]",
    '[f(a="zebra7',
    'f\n```json\n{"a": 1}\n```',
    'functions.f:0 {"a": 1}',
)
BODIES = JSON_BODIES + OTHER_BODIES
"""Bodies of calls in several syntaxes, well formed, odd and cut off."""

ARGUMENTS = ('{"a": 1}', "{}", '{"a": "zebra7', "[1]", "zebra7", "")
VALUES = ("1", "zebra7", "\n{}\n", "", '["x"]', "a < b\n", "<")


def syntaxes(format: Format) -> list[CallSyntax]:
    """Every call syntax of a format."""
    return [*format.calls, *(format.header.calls if format.header is not None else ())]


def samples(format: Format) -> list[str]:
    """Calls as this format may write them: closed, unclosed, closed twice, in sections, a closer in a value."""
    return list(dict.fromkeys(sample for syntax in syntaxes(format) for sample in _samples(syntax)))


def _samples(syntax: CallSyntax) -> Iterator[str]:
    opener = syntax.open[0] if syntax.open else ""
    closer = syntax.close[0] if syntax.close else ""
    own = list(_bodies(syntax))
    calls = [opener + body + closer for body in own] or [opener + body + closer for body in JSON_BODIES]
    for other in syntax.open:
        yield other + (own or JSON_BODIES)[0] + closer
    yield from calls
    for body in BODIES:
        yield opener + body + closer
    yield opener + (own or JSON_BODIES)[0]
    yield calls[0] + closer
    yield opener + calls[0]
    if closer:
        yield calls[0].replace("1", f'"{closer}"')
    yield from (call[: len(call) * 2 // 3] for call in calls[:6])
    for section in syntax.section:
        for end in (*syntax.section_close, ""):
            yield section + calls[0] + end
            yield f"{section}\n{calls[0]}\n{calls[-1]}\n{end}"
            yield f"{section}{calls[0]} zebra7 {calls[0]}{end}"
            yield section + end
            yield section + closer + end


def _bodies(syntax: CallSyntax) -> Iterator[str]:
    """What this grammar puts between its markers; nothing for those that write plain JSON."""
    if isinstance(syntax, XmlCalls):
        for value in VALUES:
            close = syntax.parameter_close or f"{syntax.parameter.start[:-1]}</a>"
            parameter = _tag(syntax.parameter, "a") + value + close
            yield syntax.preface + _tag(syntax.call, "f") + parameter + syntax.call_close
            yield f"\n{_tag(syntax.call, 'f')}\n{parameter}\n{parameter}\n{syntax.call_close}\n"
            yield _tag(syntax.call, "f") + parameter[:-4]
        yield from _quoting(_tag(syntax.parameter, "a"), close, _tag(syntax.call, "f"), syntax.call_close, syntax)
    elif isinstance(syntax, KeyedCalls):
        for value in VALUES:
            pair = f"{syntax.key}a{syntax.key_close}{syntax.value}{value}{syntax.value_close}"
            yield f"f{syntax.separator}{pair}"
            yield f"f{syntax.separator}\n{pair}\n{pair}\n"
            yield f"f{syntax.separator}{pair[:-4]}"
        opener = f"{syntax.key}a{syntax.key_close}{syntax.value}"
        yield from _quoting(opener, syntax.value_close, f"f{syntax.separator}", "", syntax)
    elif isinstance(syntax, NamedCalls):
        for arguments in ARGUMENTS:
            for separator in (*syntax.separators, ""):
                name = "functions.f:0" if syntax.numbered else "f"
                yield f"{syntax.before_name}{name}{separator}{arguments}"
                yield f"{syntax.before_name}{name}\n{separator}\n```json\n{arguments}\n```"
                if syntax.call_id:
                    yield f"{name}{syntax.call_id}x7{separator}{arguments}"
    elif isinstance(syntax, BodyCalls):
        yield from ARGUMENTS
    elif isinstance(syntax, BraceCalls):
        for value in ("1", f"{syntax.quote}zebra7{syntax.quote}", "[1,{b:true}]", f"{syntax.quote}x", "zebra7", ""):
            yield f"{syntax.prefix}f{{a:{value}}}"
            yield f"{syntax.prefix}f{{a:{value},b:2"
    elif isinstance(syntax, PythonCalls):
        for value in ("1", "'zebra7'", '"a\\n"', "[True, None]", "{'b': 2}", "zebra7", "'x", "f(1)", ""):
            yield f"[f(a={value})]"
            yield f"[f(a={value}), g()]"
            yield f"f(a={value})\ng()"
            yield f"[f(a={value}"


def _quoting(opener: str, close: str, head: str, call_close: str, syntax: CallSyntax) -> Iterator[str]:
    """Calls whose value holds tags of its own syntax, or is not closed."""
    other = opener.replace("a", "b", 1) if opener.count("a") == 1 else re.sub(r"a(?=[^a-z])", "b", opener)
    region_open, region_close = ("".join(markers[:1]) for markers in (syntax.open, syntax.close))
    whole = f"{region_open}{head}{opener}1{close}{call_close}{region_close}"
    for value in (
        f"x\n{other}y",
        f"{other}y{close}\nz",
        f"x\n{whole}\nz",
        f"x\n{whole}",
        f"x{call_close}{region_close}\nz",
        f"x\n{opener}",
        f"x\n{region_open}{head}{other}",
    ):
        yield f"{head}\n{opener}{value}{close}\n{call_close}"
        yield f"{head}\n{opener}{value}\n{call_close}"
        yield f"{head}{opener}{value}{close}{other}2{close}{call_close}"


def _tag(tag: Tag, name: str) -> str:
    if tag.attribute:
        return f'{tag.start} {tag.attribute}="{name}"{tag.stop}'
    return f"{tag.start}{name}{tag.stop}"
