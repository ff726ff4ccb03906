"""Markdown drawn as it comes: the same rows and looks whatever pieces it comes in, and nothing lost that is none."""

from __future__ import annotations

from functools import partial

import pytest

from asides.terminal._markdown import LONGEST_SPAN, MarkdownLines
from tests.terminal.emulator import in_pieces

TEXT = """\
# A heading with `names`

Some **bold words** and *emphasis*, `code`, snake_case_name, 2 * 3 * 4 = 24, a**b and __init__.py.
**Bold at the start** of a line that goes on so that it is **broken in bold type**, and `a b`.

- an item with **bold `inner` type** in it and more words so that it is broken
  * nested _item_
1. numbered

> quoted

---

```python
def f(x):  # **not bold**
    return x ** 2
```
日本語の**太字**です, the end *is"""


shown = partial(in_pieces, MarkdownLines)


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_pieces_do_not_matter(columns: int) -> None:
    """One character at a time gives the rows and the looks of the whole."""
    whole = shown(TEXT, columns, len(TEXT))
    for size in (1, 3, 7):
        assert shown(TEXT, columns, size).lines == whole.lines
        for words in ("bold words", "emphasis", "names", "in bold", "Some", "return", "the end", "太字", "です"):
            assert shown(TEXT, columns, size).look_of(words) == whole.look_of(words)
    assert shown(TEXT, columns, 1, cursor=False).lines == whole.lines


def test_what_it_looks_like() -> None:
    """Marks are gone where they act, and stay where they do not."""
    screen = shown(TEXT, 60, 5)
    assert screen.lines == [
        "A heading with names",
        "",
        "Some bold words and emphasis, code, snake_case_name, 2 * 3",
        "* 4 = 24, a**b and __init__.py.",
        "Bold at the start of a line that goes on so that it is",
        "broken in bold type, and a b.",
        "",
        "• an item with bold inner type in it and more words so that",
        "  it is broken",
        "  • nested item",
        "1. numbered",
        "",
        "│ quoted",
        "",
        "─" * 40,
        "",
        "def f(x):  # **not bold**",
        "    return x ** 2",
        "日本語の太字です, the end *is",
    ]
    looks = {
        "A heading": "0;1", "names": "0;1;33", "bold words": "0;1", "emphasis": "0;3", "Some": "", "code": "0;33",
        "broken in bold": "0;1", "inner": "0;1;33", "return": "0;33", "numbered": "",
    }  # fmt: skip
    assert {words: screen.look_of(words) for words in looks} == looks


def test_a_mark_without_its_other_end_does_not_hold_up_an_answer() -> None:
    """It waits to the end of its line, and not for long."""
    layout = MarkdownLines(lambda: 80, cursor=True)
    assert layout.feed("a *b c\n") == "a *b c\n"
    layout.feed("an **open mark ")
    assert "open mark" in layout.feed("word " * (LONGEST_SPAN // 5))
    assert layout.feed("\n```\nco") == "\n"
    assert layout.finish() == "\x1b[0;33mco\x1b[0m"  # someone else writes here, or it is the end
    assert layout.feed("de\n") == "\x1b[0;33mde\x1b[0m\n"


FORMULAS = r"""The sum \(a_1 + b*c*d\), with $\hat{y}_i = m_{1}\,x$ and $a*b*c$, is *known*.
It costs \$5, or $6 to $7 with *much* luck; \\ and \, stay, and $ too.
It follows that
\[
\begin{aligned}
- a &= b \\
# c &= *d* \,
\end{aligned}
\]
- from **this**
$$
* x
$$
$$ y*z*w $$ and *on*
\[
> never closed

- so *what*
"""


def test_formulas_stay_as_they_were_written() -> None:
    """In a line and in lines of their own, in any pieces; an amount of money is none."""
    for size in (1, 2, 5, len(FORMULAS)):
        assert shown(FORMULAS, 100, size).lines == [
            r"The sum \(a_1 + b*c*d\), with $\hat{y}_i = m_{1}\,x$ and $a*b*c$, is known.",
            r"It costs \$5, or $6 to $7 with much luck; \\ and \, stay, and $ too.",
            "It follows that",
            *FORMULAS.splitlines()[3:9],
            "• from this",
            "$$",
            "* x",
            "$$",
            "$$ y*z*w $$ and on",
            r"\[",
            "> never closed",
            "",
            "• so what",
        ]
