"""What the site's builder needs beside Markdown as it reads it, because pages are written for GitHub too.

- In a table GitHub wants `\\|` for a bar, also inside code; the builder wants a bare one there.
- A block of Mermaid becomes a picture when the site is built, in both themes, so that a page loads no script for it.
"""

from __future__ import annotations

import re
import zlib
from functools import cache
from typing import Any

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor

_CODE = re.compile(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class _BarsInCode(Preprocessor):  # type: ignore[misc]  # the builder is in an environment of its own
    """Takes the backslash from the bars in the code of a table's row."""

    def run(self, lines: list[str]) -> list[str]:
        changed, fence = [], ""
        for line in lines:
            if (match := _FENCE.match(line)) and (not fence or match[1].startswith(fence)):
                fence = "" if fence else match[1]
            changed.append(_CODE.sub(_unescaped, line) if line.startswith("|") and not fence else line)
        return changed


def _unescaped(code: re.Match[str]) -> str:
    return code[0].replace("\\|", "|")


class SiteMarkdown(Extension):  # type: ignore[misc]
    """The extension that mkdocs.yml names."""

    def extendMarkdown(self, md: Markdown) -> None:  # the builder's name
        md.preprocessors.register(_BarsInCode(md), "asides_bars", 35)  # before fences are taken out, at 25


def makeExtension(**options: Any) -> SiteMarkdown:  # the builder's name
    """What the builder calls."""
    return SiteMarkdown(**options)


def diagram(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **kwargs: Any) -> str:
    """A block of Mermaid as pictures, of which the style sheet shows one."""
    return "".join(
        f'<div class="{css_class} {css_class}-{name}">{_drawn(source, theme)}</div>'
        for name, theme in (("light", "default"), ("dark", "dark"))
    )


@cache
def _drawn(source: str, theme: str) -> str:
    """One picture. Its style belongs to its id, so every picture has its own."""
    import mermaidx
    from pymdownx.superfences import SuperFencesException

    name = f"diagram-{theme}-{zlib.crc32(source.encode()):x}"
    try:
        return str(mermaidx.render(source, theme=theme).svg()).replace("my-svg", name)
    except RuntimeError as error:  # any other error would leave the block as it is, and nobody would notice
        raise SuperFencesException(f"a diagram cannot be drawn: {error}") from error
