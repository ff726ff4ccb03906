"""Owns what is fed: prose, code, Markdown with fenced code, of any length, and the cutting of it into chunks.

Must not know asides, a peer or a clock. None of the samples holds a marker of any format.
"""

from __future__ import annotations

PROSE = (
    "The ferry leaves at nine, so whoever wants to be on the island before noon can't sleep late. It's a slow boat "
    "(forty minutes, more against the wind), and the coffee on board is better than it looks.\n\n"
    "Take the path along the shore: it is longer than the road, but flat, and there's shade. At the third bay a "
    'sign says "private"; the owner put it up in 1987 and has asked everybody in for tea ever since.\n'
)
CODE = (
    "def merge(left: list[int], right: list[int]) -> list[int]:\n"
    "    merged = []\n"
    "    while left and right:\n"
    "        source = left if left[0] <= right[0] else right\n"
    "        merged.append(source.pop(0))\n"
    "    return merged + left + right\n\n"
    "template <typename T> bool before(const vector<T>& a, int i) { return i << 1 < a.size() && a[i] < a[i + 1]; }\n"
    'html += `<li class="${kind}"><a href="/items/${id}">${name}</a></li>`;\n'
)
MARKDOWN = (
    "Sort first, then merge; `merge` takes two sorted lists:\n\n"
    "```python\n" + CODE + "```\n\n"
    "* `left` and `right` are emptied.\n"
    "* The result is sorted, because each step takes the smaller head.\n\n"
)
JSON = (
    '{"city": "Lyon", "days": [{"day": 1, "high": 21.5, "rain": false, "note": "clear \\"all\\" day"}, {"day": 2}], '
    '"units": {"temperature": "C", "wind": "km/h"}, "next": null}\n'
)
CJK = (
    "渡し船は九時に出るので、正午までに島に着きたい人は寝坊できない。風が強ければ四十分以上かかる。"
    "沿岸的小路比公路长，但是平坦，而且有树荫。第三个海湾有一块牌子，写着“私人土地”。\n\n"
)
TEXTS = {"prose": PROSE, "code": CODE, "markdown": MARKDOWN}

KINDS = {**TEXTS, "JSON": JSON, "CJK": CJK}
"""All of them; the sections that take long measure only the first three."""


def of_length(sample: str, length: int) -> str:
    """The sample again and again, up to a length."""
    return (sample * (length // len(sample) + 1))[:length]


def cut(text: str, size: int) -> list[str]:
    """The text in chunks of `size` characters, wherever that cuts."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def count(number: int) -> str:
    """A number of characters or tokens, short: `2k`, `2M`."""
    for unit, size in (("M", 1_000_000), ("k", 1_000)):
        if number >= size and number % size == 0:
            return f"{number // size}{unit}"
    return str(number)
