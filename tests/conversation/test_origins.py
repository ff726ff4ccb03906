"""Strings with origins: every operation gives the text that Python gives, and each character its own origin."""

# ruff: noqa: E501 - a line of a template is not to be broken

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asides._conversation import _origin as origin
from asides._conversation._origin import NOBODY, OriginText, join, plain, runs_of, tagged
from asides._conversation._template import Leaves, chat_template, tag_messages
from asides._conversation._writing import percent, write, write_json
from asides.errors import UsageError
from tests.conversation.support import MARKED, conversations, plainly
from tests.conversation.templates import TEMPLATES

LETTERS = st.text(st.sampled_from("ab \n\tßİÉ,x\"'\\\x07é你"), max_size=8)


@st.composite
def origins(draw: st.DrawFn) -> str:
    """A string of several leaves. Each leaf has letters of its own place, so a wrong one shows."""
    return join([tagged(draw(LETTERS), leaf) if draw(st.booleans()) else draw(LETTERS) for leaf in range(3)])


def owners(text: str) -> list[int]:
    """The leaf of each character."""
    found: list[int] = []
    for end, leaf in runs_of(text):
        found += [leaf] * (end - len(found))
    assert len(found) == len(text)
    return found


OPERATIONS: dict[str, Any] = {
    "strip": lambda text, other: text.strip(),
    "strip of": lambda text, other: text.strip(" ab"),
    "lstrip": lambda text, other: text.lstrip(),
    "rstrip": lambda text, other: text.rstrip("\n"),
    "slice": lambda text, other: text[1:-1],
    "backwards": lambda text, other: text[::-1],
    "every second": lambda text, other: text[1::2],
    "first": lambda text, other: text[:1],
    "add": lambda text, other: text + other,
    "radd": lambda text, other: "x" + text,
    "times": lambda text, other: text * 2,
    "partition": lambda text, other: list(text.partition("a")),
    "rpartition": lambda text, other: list(text.rpartition("a")),
    "split": lambda text, other: text.split(),
    "split at": lambda text, other: text.split("a"),
    "split once": lambda text, other: text.split("a", 1),
    "rsplit": lambda text, other: text.rsplit(None, 1),
    "rsplit at": lambda text, other: text.rsplit("b", 1),
    "splitlines": lambda text, other: text.splitlines(),
    "splitlines kept": lambda text, other: text.splitlines(True),
    "join": lambda text, other: text.join([other, "x", other]),
    "replace": lambda text, other: text.replace("a", other),
    "replace once": lambda text, other: text.replace("a", other, 1),
    "replace nothing": lambda text, other: text.replace("", "-"),
    "removeprefix": lambda text, other: text.removeprefix("a"),
    "removesuffix": lambda text, other: text.removesuffix("a"),
    "upper": lambda text, other: text.upper(),
    "lower": lambda text, other: text.lower(),
    "title": lambda text, other: text.title(),
    "capitalize": lambda text, other: text.capitalize(),
    "swapcase": lambda text, other: text.swapcase(),
    "center": lambda text, other: text.center(12),
    "ljust": lambda text, other: text.ljust(12, "x"),
    "rjust": lambda text, other: text.rjust(12),
    "letters": lambda text, other: list(text),
    "str": lambda text, other: str(text),
    "format": lambda text, other: f"{text}",
}
MOVES = {"strip", "strip of", "lstrip", "rstrip", "slice", "backwards", "every second", "first", "add", "partition",
         "rpartition", "split", "split at", "split once", "rsplit", "rsplit at", "splitlines", "splitlines kept",
         "removeprefix", "removesuffix", "letters", "str", "format"}  # fmt: skip
"""Operations that make no character, so that each keeps its own leaf; a character here is its leaf's letter."""


@pytest.mark.parametrize("name", OPERATIONS)
@settings(max_examples=30)
@given(text=origins(), other=origins())
def test_the_text_is_what_python_makes(name: str, text: str, other: str) -> None:
    done = OPERATIONS[name](text, other)
    wanted = OPERATIONS[name](plain(text), plain(other))
    assert done == wanted
    for piece in done if isinstance(done, list) else [done]:
        owners(piece)


@pytest.mark.parametrize("name", sorted(MOVES))
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(0, 3), min_size=3, max_size=3), data=st.data())
def test_characters_keep_their_origin(name: str, sizes: list[int], data: st.DataObject) -> None:
    # Every leaf writes letters that no other has.
    alphabets = ("abA\n", "cd \t", "ef,é")
    parts = [
        data.draw(st.text(st.sampled_from(alphabets[leaf]), min_size=size, max_size=size))
        for leaf, size in enumerate(sizes)
    ]
    text = join([tagged(part, leaf) for leaf, part in enumerate(parts)])
    done = OPERATIONS[name](text, text)
    for piece in done if isinstance(done, list) else [done]:
        for letter, leaf in zip(plain(piece), owners(piece), strict=True):
            assert letter in alphabets[leaf]


def test_what_an_operation_makes_is_owned_by_what_it_is_made_of() -> None:
    name, place = tagged("straße", 1), tagged("Ulm", 2)
    assert owners(join((name, " ", place)).upper()) == [1] * 7 + [NOBODY] + [2] * 3
    assert owners("a-a".replace("a", "b")) == [NOBODY] * 3
    assert owners(origin.replace("a-a", "a", place)) == [2, 2, 2, NOBODY, 2, 2, 2]
    assert owners(percent("%s in %5s%%", (name, place))) == [1] * 6 + [NOBODY] * 4 + [2] * 5 + [NOBODY]
    assert owners(origin.join_with(", ", (name, place))) == [1] * 6 + [NOBODY] * 2 + [2] * 3


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), LETTERS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(LETTERS, inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=80)
@given(value=JSON, ascii=st.booleans(), indent=st.sampled_from([None, 0, 2, "\t"]), sort=st.booleans(), data=st.data())
def test_json_and_repr_are_pythons(value: Any, ascii: bool, indent: Any, sort: bool, data: st.DataObject) -> None:
    separators = data.draw(st.sampled_from([None, (",", ":")]))
    given = Leaves().tag(value, 0, NOBODY, "content")
    options = {"ensure_ascii": ascii, "indent": indent, "sort_keys": sort, "separators": separators}
    assert write_json(given, **options) == json.dumps(value, **options)
    assert write(given) == str(value)
    owners(write_json(given, **options))
    owners(write(given))


def test_json_of_a_message_is_the_messages() -> None:
    leaves = Leaves()
    call = tag_messages(leaves, [{"role": "assistant", "arguments": {"place": 'U"lm', "n": 3, "ok": True}}])[0]
    written = write_json(call["arguments"])
    assert written == '{"place": "U\\"lm", "n": 3, "ok": true}'
    parts = [leaves.owner(leaf).part for leaf in owners(written)]
    assert parts[written.index("3")] == "arguments.n"
    assert parts[written.index("U")] == "arguments.place"
    assert set(parts) == {"arguments", "arguments.place", "arguments.n"}


# Templates.


def render(source: str, messages: list[dict[str, Any]], **variables: Any) -> Any:
    leaves = Leaves()
    tagged_messages = tag_messages(leaves, messages)
    given = {name: leaves.tag(value, None, NOBODY, name) for name, value in variables.items()}
    return chat_template(source).render({"messages": tagged_messages, "documents": None, **given}, leaves)


@pytest.mark.parametrize("name", TEMPLATES)
@settings(max_examples=30, deadline=None)
@given(messages=conversations(MARKED), asked=st.booleans(), tools=st.booleans())
def test_a_template_writes_what_jinja_writes(name: str, messages: list[Any], asked: bool, tools: bool) -> None:
    from tests.conversation.support import TOOLS

    variables = {"add_generation_prompt": asked, "tools": TOOLS if tools else None, "bos_token": "<s>"}
    try:
        wanted = plainly(TEMPLATES[name], messages, **variables)
    except Exception:
        with pytest.raises(UsageError):
            render(TEMPLATES[name], messages, **variables)
        return
    assert render(TEMPLATES[name], messages, **variables).text == wanted


SMALL = [
    "{% for m in messages %}{% generation %}{{ m.content | trim }}{% endgeneration %}{% if loop.last %}{% break %}{% endif %}{% endfor %}",
    "{{ messages[0].content | upper | title | replace('E', messages[0].content) }}",
    "{{ messages | map(attribute='content') | join(', ') }}{{ messages | join('; ', attribute='role') }}",
    "{{ '%s and %s' % (messages[0].content, 3) }}{{ '%-8s|' | format(messages[0].content) }}",
    "{{ 'x {} {a!s} {0[0]}'.format(messages[0].content, a=messages[0].role) if false else 'x {} {a}'.format(messages[0].content, a=2) }}",
    "{{ messages[0].content | indent(2, true) }}{{ messages[0].content | wordwrap(3) }}{{ messages[0].content | truncate(3) }}",
    "{{ (messages[0].content | safe) + '<b>' }}{{ messages[0].content | e }}{{ messages[0].content | safe }}",
    "{{ messages[0] }}{{ messages[0].items() | list }}{{ [messages[0].content, 1.5, none] }}",
    "{% set ns = namespace(a='') %}{% for c in messages[0].content %}{% set ns.a = c ~ ns.a %}{% endfor %}{{ ns.a }}",
    "{{ dict(a=messages[0].content) | tojson(indent=2) }}{{ messages | tojson(separators=(',', ':'), sort_keys=true) }}",
    "{% macro f(x) %}[{{ x }}|{{ caller() if caller }}]{% endmacro %}{% call f(messages[0].content) %}in{% endcall %}{{ f('y') }}",
    "{% filter upper %}a{{ messages[0].content }}{% endfilter %}{% set b %}{{ messages[0].content }}!{% endset %}{{ b }}",
    "{{ messages[0].content.split('\\n') | first }}{{ messages[0].content | list | last }}{{ ' '.join(messages[0].content.split()) }}",
    "{% for m in messages recursive %}{{ m.content }}{% if m.more %}{{ loop(m.more) }}{% endif %}{% endfor %}{{ strftime_now('%Y') }}",
    "{{ messages[0].content | length }}{{ messages[0].content | urlencode }}{{ messages[0].content.encode('utf-8') | length }}",
    "{{ undefined_name }}{{ messages[0].nothing }}{{ messages[0].content is string }}{{ messages[0].content in 'abc' }}{{ 2 ** 3 * 2 }}",
    "{{ messages[0].content | reverse }}{{ messages[0].content[-2:] }}{{ messages[0].content * 2 }}{{ messages[0].content.center(9) }}",
    "{{ messages[0].leaf }}{{ messages[0].message }}{{ messages[0].content.runs }}{{ messages.leaf }}{{ messages[0].content.upper() }}{{ messages[0].get('x', 1) }}",
    "{{ [{'leaf': 1, 'items': 2}][0].leaf }}{{ messages[1].more[0].leaf }}{{ messages[1].more | tojson }}{{ messages[1].more | tojson }}{{ messages[1].more | tojson(indent=1) }}",
    "{{ messages[0].content | pprint }}{{ messages[0].content | striptags }}{{ messages[0].content | capitalize }}",
    "{{ messages[0]['message'] }}{{ messages[0]['leaf'] }}{{ messages[0].content['runs'] }}{{ messages | map(attribute='message') | list }}{{ messages | selectattr('leaf') | list }}",
    "{% set ns = namespace(a=1) %}{{ ns }}{{ [ns] }}{{ ns ~ 'x' }}{{ '%s' % ns }}{{ (messages[0].content | safe).runs }}{{ (messages[0].content | safe)['of'] }}",
    "{{ messages[0].values() | unique | list | length }}{{ messages[0].items() | sort | list | length }}{{ dict.fromkeys(messages | map(attribute='role')) }}{{ [3, 1] | select | max }}",
]


@pytest.mark.parametrize("source", SMALL)
@settings(max_examples=15, deadline=None)
@given(content=MARKED)
def test_what_templates_do_gives_the_same_text(source: str, content: str) -> None:
    messages: list[Any] = [
        {"role": "user", "content": content},
        {"role": "assistant", "content": "so", "more": [{"content": "x"}]},
    ]
    try:
        wanted = plainly(source, messages)
    except Exception:
        with pytest.raises(UsageError):
            render(source, messages)
        return
    assert render(source, messages).text == wanted


REACHED = """\
{%- macro m() %}{{ caller() if caller }}{% endmacro %}
{%- set ns = namespace(a=1) %}
{%- for x in messages recursive %}
{{- reach([x, loop, m, ns, namespace, dict, range, cycler, cycler(1), joiner, joiner(), lipsum, self, raise_exception,
    strftime_now, messages | select, messages | reverse, x.items(), x.keys(), x.content | safe, x.content.encode(),
    nothing, true, 1.5, messages | groupby('role') | first]) }}
{%- endfor %}"""


def test_a_template_reaches_values_and_nothing_that_runs_it() -> None:
    """From all that a template can name, by every attribute that it may ask for."""
    template = chat_template(REACHED)
    environment, leaves = template._environment, Leaves()
    seen: dict[int, Any] = {}

    def reach(found: list[Any]) -> str:
        waiting = list(found)
        while waiting and len(seen) < 20_000:
            value = waiting.pop()
            if id(value) in seen:
                continue
            seen[id(value)] = value
            # What is made anew at every look has no new class to show.
            for name in dir(type(value)) + dir(value):
                try:
                    inner = environment.getattr(value, name)
                except Exception:
                    continue
                if type(inner) not in {type(each) for each in seen.values()} or isinstance(inner, type):
                    waiting.append(inner)
        return ""

    # `range`: a thing of builtins; the rest are what the sandbox itself gives to templates.
    template.render({"messages": tag_messages(leaves, [{"role": "user", "content": "x"}]), "reach": reach}, leaves)
    kinds = {type(value) for value in seen.values()}
    assert len(kinds) > 20
    ours = (type(environment), type(template), type(environment.state), type(json))
    assert not [value for value in seen.values() if isinstance(value, ours) or value in ours]


def test_a_number_that_python_does_not_read() -> None:
    with pytest.raises(UsageError, match="not valid Jinja: Exceeds the limit"):
        chat_template("{{ " + "9" * 5000 + " }}")


def test_an_exception_names_the_types_that_a_template_knows() -> None:
    with pytest.raises(UsageError, match="of 'str' object is unsafe"):
        render("{{ messages[0].content.__class__.x }}", [{"role": "user", "content": "x"}])


def test_a_lost_origin_is_said() -> None:
    chat = render(
        "{{ (messages[0].content ~ messages[1].content) | wordwrap(3) }}", [{"content": "abcd"}, {"content": "efgh"}]
    )
    assert {chat.leaves.owner(leaf).message: reason for leaf, reason in chat.losses.items()} == {
        0: "the filter wordwrap",
        1: "the filter wordwrap",
    }
    assert owners(OriginText(chat.text, chat.runs)) == [NOBODY] * len(chat.text)


NESTED = (
    "{% set ns = namespace(a=['x'], b=['x']) %}{% for b in range(60) %}"
    "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}"
)
"""A list that is short to hold and would take a universe to write."""


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "loops, calls and copies"),
        ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "too deeply"),
        ("{{ 'x' * 999999999 }}", "characters"),
        (
            "{% set ns = namespace(a='xxxxxxxx') %}{% for b in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
            "characters",
        ),
        (
            "{% set ns = namespace(a='xxxxxxxx') %}{% for b in range(60) %}{% set ns.a = ns.a ~ ns.a %}{% endfor %}",
            "characters",
        ),
        ("{% for a in range(99999) %}{{ 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx' }}{% endfor %}", "characters"),
        ("{{ 9 ** 99999999 }}", "number"),
        ("{% set ns = namespace(a=7) %}{% for b in range(60) %}{% set ns.a = ns.a * ns.a %}{% endfor %}", "number"),
        ("{% set a = 9 ** 1024 %}{% set b = a ** 1024 %}{{ b ** 1024 > 1 }}", "number"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
            "loops, calls and copies",
        ),
        (
            "{% set ns = namespace(a=[1]) %}{% for b in range(60) %}{% set ns.a = ns.a + ns.a %}{% endfor %}",
            "characters",
        ),
        (f"{NESTED}{{{{ ns.a }}}}", "characters"),
        (f"{NESTED}{{{{ ns.a ~ 'x' }}}}", "characters"),
        (f"{NESTED}{{{{ ns.a | tojson }}}}", "characters"),
        (f"{NESTED}{{{{ ns.a | upper }}}}", "characters"),
        (f"{NESTED}{{{{ '{{}}'.format(ns.a) }}}}", "characters"),
        (f"{NESTED}{{{{ ns.b == ns.a }}}}", "characters"),
        (
            "{% set n = namespace(a=1) %}{% for b in range(60) %}{% set n.a = namespace(a=n.a, b=n.a) %}{% endfor %}{{ n }}",
            "characters",
        ),
        ("{% set n = namespace() %}{% set n.a = n %}{{ n }}", "too deeply"),
        ("{% set a = 'a' * 999999 %}{{ a.replace('a', a) }}", "characters"),
        ("{% set a = 'a' * 999999 %}{{ a | replace('a', a) }}", "characters"),
        ("{% set a = 'a' * 999999 %}{{ a.join(a) }}", "characters"),
        ("{% set a = 'a' * 999999 %}{{ a | join(a) }}", "loops, calls and copies"),
        ("{% set a = 'a' * 999999 %}{{ a.translate({97: a}) }}", "characters"),
        ("{% set a = 'a' * 999999 %}{{ a | wordwrap(1) }}", "characters"),
        (
            "{% set ns = namespace(a='\\\\') %}{% for b in range(60) %}{% set ns.a = ns.a | tojson %}{% endfor %}",
            "characters",
        ),
        ("{% for a in range(99) %}{% set b = 'a' * 999999 %}{% endfor %}", "loops, calls and copies"),
        ("{{ 'x'.ljust(9999999) | length }}", "characters"),
        ("{{ 'x' | center(9999999) | length }}", "characters"),
        ("{{ '\\t'.expandtabs(9999999) | length }}", "characters"),
        ("{{ '%9999999d' % 1 }}", "characters"),
        ("{{ '%*d' % (9999999, 1) }}", "characters"),
        ("{{ '%9999999d' | format(1) }}", "characters"),
        ("{{ '{:9999999}'.format(1) }}", "characters"),
        ("{{ '{:{}}'.format(1, 9999999) }}", "characters"),
        ("{{ 'a\nb' | indent(9999999) }}", "characters"),
        ("{{ [1] | tojson(indent=9999999) }}", "characters"),
        ("{{ [1] | batch(9999999, 0) | list | length }}", "characters"),
        ("{{ lipsum(n=9999999) | length }}", "characters"),
        ("{% break %}", "not valid Jinja"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("{{ namespace(_a=1) }}", "underscore"),
        ("{{ raise_exception('no ' + messages[0].content) }}", "refuses this conversation: no hi"),
        ("{{ 1 / 0 }}", "fails on this conversation: ZeroDivisionError"),
        ("{% if %}", "not valid Jinja: line 1"),
        ("{{ messages[0] | tojson(1, 2, 3, 4, 5, 6, 7) }}", "TypeError"),
    ],
)
def test_a_bad_template_is_an_error_in_words(source: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason.replace("(", r"\(")):
        render(source, [{"role": "user", "content": "hi"}])


def test_a_megabyte_has_few_runs() -> None:
    words = "many words " * 50_000
    chat = render(TEMPLATES["chatml"], [{"role": "user", "content": words}, {"role": "assistant", "content": words}])
    assert len(chat.text) > 1_000_000
    assert len(chat.runs) < 12


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ [1, 'a'] }}{{ [1] == [1] }}{{ 'a' in ('a', 'b') }}", "[1, 'a']TrueTrue"),
        ("{{ 1700000000 | default(5) }}{{ none | default(1700000000, true) }}", "17000000001700000000"),
        ("{{ '{} {:>4}'.format(1700000000, 'x') }}{{ '%d' % 1700000000 }}", "1700000000    x1700000000"),
        ("{{ messages[0].content | truncate(50000) }}{{ 'a b' | replace(' ', '', 5000000) }}", "hiab"),
        ("{% for m in messages if m.role == 'user' and not loop is none %}{{ loop.index }}{% endfor %}", "1"),
        ("{% for a in [3, 1] | sort if a > 1 %}{{ a }}{% else %}none{% endfor %}", "3"),
        ("{{ 2 ** 64 }} {{ 3 * 'ab' }} {{ [0] * 3 }} {{ 2 ** -1 }} {{ 'a' * -1 }}", f"{2**64} ababab [0, 0, 0] 0.5 "),
    ],
)
def test_bounds_leave_alone_what_templates_do(source: str, text: str) -> None:
    assert render(source, [{"role": "user", "content": "hi"}]).text == text
