"""The page of the comparison, in the reference: three counts that are never added up, and what was not compared."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from asides.audit._verdicts import CODES
from tests.peers.parsers import Flags
from tests.peers.turns import EACH, MOST_RECORDED, ODD, SEED, SHAPES

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "peers_compared.md"
"""Written by `--write`; not in the repository until its disagreements were looked through."""
NAMES = {"asides": "asides", "vllm": "vLLM", "sglang": "SGLang"}


class Found(NamedTuple):
    """What one reader made of one turn."""

    reader: str
    """`asides`, or the package of a peer."""
    format: str
    source: str
    name: str
    shape: str
    how: str
    code: str
    """Empty where the reading is the known one."""
    detail: str


INTRODUCTION = """\
# vLLM's and SGLang's parsers, compared

The same turns, read by the parsers of vLLM {vllm}, of SGLang {sglang}, and by asides. Made by `make test-peers` on
{date}. The servers themselves need a GPU and were not run: their own Python sources read what a model says, in ids of a
stand-in tokenizer with the format's markers, after a prompt that ends as the family's template ends it. No marker is
left out of the decoded text, as a server would do with some, where its parser does not ask for them. vLLM's parsers are
called as its handler calls them; SGLang's handler of chat completions is run itself. Grammars that a server may put on
calls take no part here.

What counts:

- Whitespace is not compared; names and arguments of calls compare as JSON.
- A turn counts where the reading is that of the table's source. What differs is put down as what a client meets (a
  thought in the answer, a call that is missing), and *by choice* where every quoted marker is read as one that acts.
- A peer reads only turns for whose parts it has a parser. The last table has the parsers that each is started with.
- The three sources are never added up, and nobody is ranked: ordinary turns are most of what models write and few of
  what is here. Where a project documents another choice, its reading is not wrong.
"""
GENERATED = f"""\
## Generated

Turns drawn by the seed {SEED}, {EACH} of each shape for each format, and written as the family writes them; so what was
thought, said and called is known without any parser. Whole / streamed where the two differ.
"""
ODD_SHAPES = """\
These are odd, though models write them. How they must be read is fixed nowhere but by what was drawn.
"""
WRITTEN = """\
## Written by us

The cases of this project (`tests/cases`), whose parts were written by hand: hard by design, and the reading is ours.
Whole / streamed where the two differ.
"""
RECORDED = f"""\
## Recorded

What models have written: at most {MOST_RECORDED} outputs of each of four public collections, the same every time.
Nobody knows what the model meant, so what counts here is the reading of asides, and the table says only how often the
three agree. The files stand beside the repository and are not part of it. Whole / streamed where the two differ.
"""


def write_page(
    found: Sequence[Found],
    versions: dict[str, str],
    formats: dict[str, dict[str, Flags]],
    gone: dict[str, dict[str, str]],
    page: Path,
) -> str:
    """The page; without recorded outputs their table stays as it is."""
    lines = [INTRODUCTION.format(date=time.strftime("%Y-%m-%d"), **versions), GENERATED]
    drawn = [each for each in found if each.source == "generated"]
    lines += _table([shape for shape in SHAPES if shape not in ODD], drawn, "shape", "shape")
    lines += ["", ODD_SHAPES, *_table(ODD, drawn, "shape", "shape")]
    lines += ["", "What the readers of generated turns meet, with the formats:", "", *_kinds(drawn)]
    by_hand = [each for each in found if each.source == "written"]
    names = sorted({each.format for each in by_hand})
    lines += ["", WRITTEN, *_table(names, by_hand, "format", "format")]
    recorded = [each for each in found if each.source == "recorded"]
    lines += ["", "<!-- recorded -->", ""]
    if recorded:
        names = sorted({each.format for each in recorded})
        lines += [RECORDED, *_table(names, recorded, "format", "format")]
    else:
        lines += [_kept(page)]
    lines += ["", "<!-- end -->", "", "## Which parsers", "", *_flags(formats), "", *_gone(gone)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _kept(page: Path) -> str:
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    match = re.search(r"<!-- recorded -->\n\n(.*?)\n\n<!-- end -->", text, re.DOTALL)
    return match[1] if match else f"{RECORDED}\nNone were at hand."


def _table(rows: Sequence[str], found: Sequence[Found], field: str, head: str) -> list[str]:
    lines = [f"| {head} | {' | '.join(NAMES.values())} |", "|---|---|---|---|"]
    for row in rows:
        mine = [each for each in found if getattr(each, field) == row]
        if mine:
            lines.append(f"| {row} | {' | '.join(_cell(mine, reader) for reader in NAMES)} |")
    return lines


def _cell(found: Sequence[Found], reader: str) -> str:
    words = []
    for how in ("whole", "streamed"):
        mine = [each for each in found if each.reader == reader and each.how == how]
        if not mine:
            return "-"
        chosen = sum(each.code == "marker_reading" for each in mine)
        same = sum(not each.code for each in mine)
        words.append(f"{same} of {len(mine)}" + (f" ({chosen} by choice)" if chosen else ""))
    return words[0] if words[0] == words[1] else " / ".join(words)


def _kinds(found: Sequence[Found]) -> list[str]:
    lines = ["| reader | what | turns | formats |", "|---|---|---|---|"]
    for reader, shown in NAMES.items():
        mine = [each for each in found if each.reader == reader and each.code]
        for code, count in sorted(Counter(each.code for each in mine).items()):
            where = sorted({each.format for each in mine if each.code == code})
            some = ", ".join(where[:12]) + (f" and {len(where) - 12} more" if len(where) > 12 else "")
            lines.append(f"| {shown} | {CODES[code].why} (`{code}`) | {count} | {some} |")
    return lines


def _flags(formats: dict[str, dict[str, Flags]]) -> list[str]:
    lines = ["`--reasoning-parser` and `--tool-call-parser`; a dash where there is none.", ""]
    lines += ["| format | vLLM | SGLang |", "|---|---|---|"]
    for name in sorted({name for each in formats.values() for name in each}):
        cells = []
        for package in ("vllm", "sglang"):
            flags = formats[package].get(name)
            cells.append("not compared" if flags is None else ", ".join(f"`{each}`" if each else "-" for each in flags))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _gone(gone: dict[str, dict[str, str]]) -> list[str]:
    lines = ["Not compared, because a parser did not start with a stand-in tokenizer or there is no turn for it:", ""]
    for package, names in gone.items():
        for name, why in sorted(names.items()):
            words = " ".join(why.split()).replace("|", "\\|").replace("`", "'").replace("<", "&lt;")[:160]
            lines.append(f"- {NAMES[package]}, {name}: {words}")
    return lines if len(lines) > 2 else []
