"""The look of the report: the theme that the page has too, and what only a report needs, on a screen and on paper."""

from __future__ import annotations

from functools import cache
from importlib import resources

REPORT = """
.warning { background: var(--warning); color: var(--ink); padding: 8px 12px; border-radius: 6px; }
.tiles { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 24px 0 0; padding: 0; }
.tiles li { background: var(--panel); border: 1px solid var(--line); border-radius: var(--radius); padding: 12px 16px; }
.tiles strong { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.tiles span { color: var(--muted); font-size: var(--small); display: block; line-height: 1.35; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }
header p, section > p, figure + dl { color: var(--muted); }
.aside { margin: 24px 0 0; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: var(--radius); padding: 20px 24px;
  margin-top: 24px; }
figure { margin: 12px 0 0; }
figure + p { margin-top: 28px; }
.places td:last-child, .places th { text-align: left; overflow-wrap: anywhere; }
.places th:nth-child(2) { text-align: right; }
.places tbody th { font-weight: 400; width: 34%; }
details { margin-top: 12px; font-size: 14px; }
@media (max-width: 640px) {
  main { padding: 20px 12px 48px; }
  section { padding: 16px 12px; }
}
@media print {
  @page { margin: 14mm; }
  body { font-size: 11pt; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; margin-top: 18pt; }
  h2 { break-after: avoid; }
  .chart svg, tr, .tiles { break-inside: avoid; }
  .tiles { grid-template-columns: repeat(3, 1fr); }
  .scroll { overflow: visible; }
  .numbers { font-size: 8pt; }
  .numbers th, .numbers td { padding: 3px 4px; }
  .numbers tbody th { min-width: 90px; }
  .numbers thead th { font-size: 7.5pt; }
  details { display: none; }
}
"""


@cache
def style() -> str:
    """The whole style sheet."""
    theme = resources.files("asides").joinpath("_page", "static", "theme.css").read_text(encoding="utf-8")
    return theme + REPORT
