"""The look of the report: light, dark and on paper. Colours that can be told apart without seeing all of them."""

from __future__ import annotations

STYLE = """
:root {
  --page: #fbfbf9; --panel: #ffffff; --ink: #1d2328; --quiet: #5b6670; --line: #dcdfe2; --rail: #eceef0;
  --c0: #1f6f8b; --c1: #d1811f; --c2: #6a8f3a; --c3: #8a5a9e; --warning: #fff4dc;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14181b; --panel: #1c2226; --ink: #e6e9eb; --quiet: #9aa5ad; --line: #343c42; --rail: #2a3136;
    --c0: #5fb3d0; --c1: #e8a552; --c2: #9cc464; --c3: #c093d6; --warning: #3a3017;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 30px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 20px; margin: 0 0 8px; }
h3 { font-size: 16px; margin: 20px 0 6px; }
header p, section > p, figure + dl, summary, .aside { color: var(--quiet); }
.aside { margin: 24px 0 0; }
p { margin: 0 0 12px; overflow-wrap: anywhere; }
.warning { background: var(--warning); color: var(--ink); padding: 8px 12px; border-radius: 6px; }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 20px 24px;
  margin-top: 24px; }
.cards { list-style: none; display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin: 24px 0 0; padding: 0; }
.cards li { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 12px 16px; }
.cards strong { display: block; font-size: 26px; line-height: 1.2; font-variant-numeric: tabular-nums; }
.cards span { color: var(--quiet); font-size: 13px; display: block; line-height: 1.35; }
figure { margin: 12px 0 0; }
svg { display: block; width: 100%; height: auto; }
svg text { font: 13px system-ui, sans-serif; fill: var(--ink); }
svg .head, svg .tick, svg .note { fill: var(--quiet); font-size: 12px; }
svg .tick { text-anchor: middle; }
svg .note { text-anchor: end; }
svg .value { font-variant-numeric: tabular-nums; font-size: 12px; }
.grid, .axis { stroke: var(--line); }
.rail { fill: var(--rail); }
.c0 { fill: var(--c0); } .c1 { fill: var(--c1); } .c2 { fill: var(--c2); } .c3 { fill: var(--c3); }
.soft { opacity: 0.45; } .thin { opacity: 0.7; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; font-variant-numeric: tabular-nums; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
th, td { padding: 6px 5px; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
thead th { color: var(--quiet); font-weight: 500; font-size: 11px; line-height: 1.3; vertical-align: bottom; }
tbody th { text-align: left; font-weight: 600; min-width: 190px; overflow-wrap: anywhere; line-height: 1.35; }
tbody tr:last-child > * { border-bottom: 0; }
.places td:last-child, .places th { text-align: left; overflow-wrap: anywhere; }
.places th:nth-child(2) { text-align: right; }
.places tbody th { font-weight: 400; width: 34%; font-size: 13px; }
details { margin-top: 12px; font-size: 14px; }
summary { cursor: pointer; }
:focus-visible { outline: 2px solid var(--c0); outline-offset: 2px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 12px 0 0; font-size: 14px; }
dt { font-weight: 600; }
dd { margin: 0; }
@media (max-width: 640px) {
  main { padding: 20px 12px 48px; }
  section { padding: 16px 12px; }
  figure { overflow-x: auto; }
  svg { min-width: 640px; }
  dl { grid-template-columns: 1fr; }
  dd { margin-bottom: 8px; }
}
@media print {
  :root {
    --page: #ffffff; --panel: #ffffff; --ink: #000000; --quiet: #444444; --line: #bbbbbb; --rail: #eeeeee;
    --c0: #1f6f8b; --c1: #d1811f; --c2: #6a8f3a; --c3: #8a5a9e; --warning: #f3f3f3;
  }
  @page { margin: 14mm; }
  body { font-size: 11pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; margin-top: 18pt; }
  h2 { break-after: avoid; }
  figure, tr, .cards { break-inside: avoid; }
  .cards { grid-template-columns: repeat(3, 1fr); }
  .scroll { overflow: visible; }
  .numbers { font-size: 8pt; }
  .numbers th, .numbers td { padding: 3px 4px; }
  .numbers tbody th { min-width: 90px; }
  .numbers thead th { font-size: 7.5pt; }
  details { display: none; }
}
"""
