"""Chat templates that mean harm: each would take hours or gigabytes if what it does were not counted.

As a program it renders those whose names come in on standard input and writes for each how it ended.
"""

# ruff: noqa: E501 - a line of a template is not to be broken

from __future__ import annotations

import json
import sys
from pathlib import Path

BIG = "{% set a = 'a' * 999999 %}"
DEEP = "{% set ns = namespace(a=('x',)) %}{% for b in range(60) %}{% set ns.a = (ns.a, ns.a) %}{% endfor %}"
"""A tuple that is short to hold and would take a universe to go through."""
KEPT = "{% set ns = namespace(a=[], t='') %}"
LONG = "{% set ns = namespace(a=('x',)) %}{% for b in range(9) %}{% for c in range(9999) %}{% set ns.a = (ns.a,) %}{% endfor %}{% endfor %}"
"""A tuple that is so deep that Python's stack would end in it."""
VALUES = DEEP + "{% set v = {1: ns.a} %}"
TEMPLATES = {
    # Loops, calls and recursion.
    "loops in loops": "{% for a in range(9999) %}{% for b in range(9999) %}{% for c in range(9999) %}{% endfor %}{% endfor %}{% endfor %}",
    "a body of many statements": "{% for a in range(99999) %}" + "{% set b = 1 %}" * 5000 + "{% endfor %}",
    "a macro of many statements": "{% macro f() %}"
    + "{% set b = 1 %}" * 5000
    + "{% endmacro %}{% for a in range(99999) %}{{ f() }}{% endfor %}",
    "a macro that calls itself twice": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    "a block that calls itself twice": "{% set ns = namespace(n=0) %}{% block a %}{% set ns.n = ns.n + 1 %}{% if ns.n % 90 %}{{ self.a() }}{{ self.a() }}{% endif %}{% endblock %}",
    "a loop that calls itself": "{% for a in [1, 2] recursive %}{% if loop.depth < 60 %}{{ loop([1, 2]) }}{% endif %}{% endfor %}",
    "a call block": "{% macro f() %}{{ caller() }}{{ caller() }}{% endmacro %}"
    + "{% call f() %}" * 40
    + "x"
    + "{% endcall %}" * 40,
    "the length of loops over letters": BIG
    + "{% for c in range(9999) %}{% for b in a %}{{ loop.length }}{% break %}{% endfor %}{% endfor %}",
    "conditions of loops": "{% for a in range(99999) %}{% for b in range(99999) if false %}{% endfor %}{% endfor %}",
    "filters over filters": "{{ range(99999)" + " | select" * 150 + " | list | length }}",
    "attributes over attributes": "{{ range(99999)" + " | map(attribute='real')" * 150 + " | list | length }}",
    "a path of attributes": "{{ range(99999) | map(attribute='" + "real." * 9999 + "real') | list | length }}",
    "a filter for each": "{{ range(99999)" + " | map('abs')" * 150 + " | sum }}",
    # Texts that grow, or are copied again and again, or are kept.
    "texts kept by plus": KEPT + BIG + "{% for b in range(9999) %}{% set ns.a = [ns.a, a + b | string] %}{% endfor %}",
    "texts kept by tilde": KEPT + BIG + "{% for b in range(9999) %}{% set ns.a = [ns.a, a ~ b] %}{% endfor %}",
    "texts kept by slices": KEPT + BIG + "{% for b in range(9999) %}{% set ns.a = [ns.a, a[1:]] %}{% endfor %}",
    "texts kept by macros": KEPT
    + BIG
    + "{% macro f(x) %}{{ a }}{{ x }}{% endmacro %}{% for b in range(9999) %}{% set ns.a = [ns.a, f(b)] %}{% endfor %}",
    "texts kept by blocks of set": KEPT
    + BIG
    + "{% for b in range(9999) %}{% set c %}{{ a }}{{ b }}{% endset %}{% set ns.a = [ns.a, c] %}{% endfor %}",
    "texts kept by upper": KEPT
    + BIG
    + "{% for b in range(9999) %}{% set ns.a = [ns.a, (a ~ b) | upper] %}{% endfor %}",
    "four bytes for a letter": KEPT
    + "{% set a = '🤔' * 999999 %}{% for b in range(9999) %}{% set ns.a = [ns.a, a ~ b] %}{% endfor %}",
    "a sum of many": BIG + "{{ (" + "a~" * 9999 + "a) | length }}",
    "a sum of many, escaped": BIG + "{% autoescape true %}{{ (" + "a~" * 9999 + "a) | length }}{% endautoescape %}",
    "a text that is written by pieces": "{% set ns = namespace(t='') %}{% for b in range(99999) %}{% set ns.t = ns.t + 'xxxxxxxx' %}{% endfor %}",
    "repetition": "{{ 'x' * 99999999999 }}",
    "repetition of lists": KEPT + "{% for b in range(9999) %}{% set ns.a = [ns.a, [1] * 999999] %}{% endfor %}",
    "repetition of origins": KEPT
    + "{% set c = messages[0].content ~ 'x' %}{% for b in range(99) %}{% set ns.a = [ns.a, c * 300000] %}{% endfor %}",
    "origins in each letter": KEPT
    + "{% set c = ('x' * 300000) | replace('', messages[0].content) %}{% for b in range(99) %}{% set ns.a = [ns.a, c ~ b] %}{% endfor %}",
    "letters backwards": "{% set c = (messages[0].content ~ 'x') * 300000 %}{% for b in range(999) %}{% set d = c[::-1] %}{% endfor %}",
    "letters as a list": KEPT + BIG + "{% for b in range(99) %}{% set ns.a = [ns.a, a | list] %}{% endfor %}",
    "pieces": KEPT
    + "{% set c = 'x,' * 400000 %}{% for b in range(99) %}{% set ns.a = [ns.a, c.split(',')] %}{% endfor %}",
    "words": KEPT + "{% set c = 'x ' * 400000 %}{% for b in range(99) %}{% set ns.a = [ns.a, c.split()] %}{% endfor %}",
    "lists of lists": KEPT
    + "{% for b in range(99999) %}{% set ns.a = ns.a + [[1, 2, 3, 4, 5, 6, 7, 8]] %}{% endfor %}",
    "dictionaries": KEPT
    + "{% for b in range(99999) %}{% set ns.a = [ns.a, dict.fromkeys(range(99999))] %}{% endfor %}",
    "namespaces": "{% set ns = namespace(n=namespace(a=1)) %}{% for b in range(60) %}{% set m = namespace() %}{% set m.a = ns.n %}{% set m.b = ns.n %}{% set ns.n = m %}{% endfor %}{{ '%s' % ns.n }}",
    "a namespace in an error": "{% set ns = namespace(n=namespace(a=1)) %}{% for b in range(60) %}{% set m = namespace() %}{% set m.a = ns.n %}{% set m.b = ns.n %}{% set ns.n = m %}{% endfor %}{{ {}[ns.n].x }}",
    "bytes": "{{ 'x'.encode().ljust(99999999999) | length }}",
    "bytes kept": KEPT + BIG + "{% for b in range(9999) %}{% set ns.a = [ns.a, a.encode()] %}{% endfor %}",
    # What goes through structures.
    "a hash": DEEP + "{{ {ns.a: 1} | length }}",
    "a key": DEEP + "{{ {1: 2}[ns.a] }}",
    "a key that is looked for": DEEP + "{{ ns.a in {1: 2} }}",
    "a key that is asked for": DEEP + "{{ {1: 2}.get(ns.a) }}",
    "unique": DEEP + "{{ [ns.a, 1] | unique | list | length }}",
    "a test": DEEP + "{{ [ns.a] is eq([ns.a]) }}{{ ns.a is in({1: 2}) }}",
    "a comparison in select": DEEP + "{{ [ns.a] | select('eq', ns.a) | list | length }}",
    "a count": DEEP + "{{ [ns.a].count(ns.a) }}",
    "an exception": DEEP + "{{ raise_exception(ns.a) }}",
    "keys out of an iterator": DEEP + "{{ dict.fromkeys([ns.a] | select) | length }}",
    "unique out of an iterator": DEEP + "{{ [ns.a] | select | unique | list | length }}",
    "unique backwards": DEEP + "{{ [ns.a] | reverse | unique | list | length }}",
    "unique values": VALUES + "{{ v.values() | unique | list | length }}",
    "unique by a path": DEEP
    + "{% set n = namespace() %}{% set c = cycler(n) %}{% set n.a = ns.a %}{{ [c] | unique(attribute='current.a') | list | length }}",
    "values of a dictionary": VALUES + "{{ v.values() }}",
    "values in a list": VALUES + "{{ [v.values()] }}",
    "values in a text": VALUES + "{{ v.items() ~ 'x' }}",
    "values in a format": VALUES + "{{ '%s' % (v.items(),) }}",
    "values that are compared": VALUES + "{% set w = {1: (ns.a[0], ns.a[1])} %}{{ v.items() == w.items() }}",
    "all of a dictionary": VALUES + "{{ v.keys().mapping }}",
    "an address out of an iterator": DEEP + "{{ [('a', ns.a)] | select | urlencode }}",
    "a deep key": LONG + "{{ {ns.a: 1} | length }}",
    "a deep key that is looked for": LONG + "{{ ns.a in {1: 2} }}",
    "namespaces in each other": "{% set ns = namespace(a=1) %}{% for i in range(9999) %}{% set ns.a = namespace(a=ns.a) %}{% endfor %}",
    "comparisons of texts": BIG
    + "{% set c = a ~ 'b' %}{% set d = a ~ 'c' %}{% for b in range(99999) %}{% set e = c == d %}{% endfor %}",
    "a search": BIG + "{% for b in range(99999) %}{% set e = 'b' in a %}{% endfor %}",
    # Methods and filters that are slower than they look.
    "a search backwards": BIG + "{{ a.rfind('ab' + 'a' * 400000) }}",
    "strip": BIG + "{{ a.strip('bcdefgh' * 99999 + 'a') | length }}",
    "punycode": "{% set c = 'ü€𐍈' * 99999 %}{{ c.encode('punycode') | length }}",
    "comments in tags": "{{ ('<!---->' * 99999) | striptags }}",
    "comments in safe tags": "{{ (('<!---->' * 99999) | safe).striptags() }}",
    "urlize": "{{ ('a.b@' * 199999) | urlize }}",
    "wordwrap": BIG + "{{ a | wordwrap(1) }}",
    "wordwrap with a long break": "{{ ('a ' * 9999) | wordwrap(1, wrapstring='x' * 99999) }}",
    "pprint": "{% set ns = namespace(a=[1] * 99999) %}{% for b in range(150) %}{% set ns.a = [ns.a] %}{% endfor %}{{ ns.a | pprint }}",
    "sum of lists": "{{ ([[1]] * 999999) | sum(start=[]) | length }}",
    "sort": "{% set a = 'a' * 499999 %}{{ ([a ~ 'c', a ~ 'b'] * 99999) | sort | length }}",
    "groupby": BIG + "{% for b in range(9999) %}{{ a | groupby('x') | length }}{% endfor %}",
    "batch": KEPT + "{% for b in range(9999) %}{% set ns.a = [ns.a, [1] | batch(999999, 0) | list] %}{% endfor %}",
    "slice": KEPT + "{% for b in range(9999) %}{% set ns.a = [ns.a, [1] | slice(999999) | list] %}{% endfor %}",
    "json with a wide indent": "{{ ([[[[1] * 9999]]] * 9) | tojson(indent=999) }}",
    "json with a text as indent": "{{ ([1] * 9999) | tojson(indent='x' * 99999) }}",
    "json with long separators": "{{ ([1] * 9999) | tojson(separators=(',' * 99999, ':')) }}",
    "indent with a text": "{{ ('a\n' * 9999) | indent('x' * 99999) }}",
    "join": "{{ range(99999) | join('x' * 99999) }}",
    "join of lists": "{{ ([[1] * 9999] * 9999) | map('default', 1) | join }}",
    "replace": BIG + "{{ a | replace('a', a) }}",
    "replace in a loop": BIG + "{% for b in range(99999) %}{% set c = a | replace('b', 'c') %}{% endfor %}",
    "center": "{% for b in range(9999) %}{% set c = 'x' | center(999999) %}{% endfor %}",
    "xmlattr": BIG + "{% for b in range(9999) %}{% set c = {'a': a} | xmlattr %}{% endfor %}",
    "escape": "{% set a = '<' * 999999 %}{{ a | escape | escape | escape }}",
    "title": BIG + "{% for b in range(9999) %}{% set c = a | title %}{% endfor %}",
    "a format that takes it many times": BIG + "{{ '{0}' * 9999 }}{{ ('{0}' * 9999).format(a) }}",
    "a map that takes it many times": BIG + "{{ ('{a}' * 9999).format_map({'a': a}) }}",
    "a percent that takes it many times": BIG + "{{ ('%(a)s' * 9999) % {'a': a} }}",
    "a filter that takes it many times": BIG + "{{ ('%(a)s' * 9999) | format(a=a) }}",
    "many widths": "{{ ('%999d' * 9999) % ((1,) * 9999) }}",
    "the date": "{{ strftime_now('%c' * 99999) | length }}",
    "lorem ipsum": "{% for b in range(9999) %}{% set c = lipsum(n=999) %}{% endfor %}",
    # Numbers.
    "a power": "{{ 9 ** 99999999 }}",
    "bytes out of true": "{{ true.to_bytes(99999999999, 'big') | length }}",
    "a product": "{% set ns = namespace(a=7) %}{% for b in range(60) %}{% set ns.a = ns.a * ns.a %}{% endfor %}",
    "a number out of letters": "{{ ('f' * 999999) | int(base=16) // 3 }}",
    "a number out of bytes": "{{ (1).from_bytes(('x' * 999999).encode(), 'big') // 3 }}",
    "a number in the source": "{% set c = 0x"
    + "f" * 60000
    + " %}{% for b in range(99999) %}{% set d = c // (c - 1) %}{% endfor %}",
    # The source itself.
    "a long source": "{{ a }}" * 30000,
    "many conditions": "{% if 0 %}" + "{% elif 0 %}x" * 8000 + "{% endif %}",
}


MEMORY = 256 << 20
"""Bytes that all of them together may take beside what the program has."""


def main() -> None:
    """Each in this process."""
    import resource

    from asides._conversation import _template
    from asides._conversation._environment import ChatEnvironment
    from asides._conversation._template import Leaves, chat_template, tag_messages
    from asides.errors import UsageError

    # An eighth of the work that a short conversation has: what is counted is the same, and ends sooner.
    _template.LEAST_WORK >>= 3
    ChatEnvironment()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    for line in sys.stdin:
        leaves = Leaves()
        messages = tag_messages(leaves, [{"role": "user", "content": "hi"}])
        try:
            chat_template(TEMPLATES[line.strip()]).render({"messages": messages}, leaves)
            ended = "it was rendered"
        except UsageError as error:
            ended = str(error)
        print(json.dumps([line.strip(), ended]), flush=True)


if __name__ == "__main__":
    main()
