// The map of a thought: a ribbon of the whole, coloured by what its steps do, and an outline that leads to each step.

import { visible } from "./markdown.js";
import { outlineOf } from "./outline.js";
import { KINDS } from "./outline_rules.js";
import { stay } from "./follow.js";
import { html, useState } from "./ui.js";

const FEWEST = 4; // steps: a shorter thought is its own map
const MOST = 400; // steps that are listed
const TURNS = ["turn", "correct"];

// Neighbours of one kind are one stretch, so that a long thought is few elements.
function stretches(steps) {
  const found = [];
  for (const { start, end, kind } of steps) {
    if (found.at(-1)?.kind === kind) found.at(-1).end = end;
    else found.push({ start, end, kind });
  }
  return found;
}

// Scroll to the character at `offset` of a thought that is shown as plain text: blocks, and a character between each two.
function lead(body, offset) {
  const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
  for (let passed = 0; walker.nextNode(); passed += walker.currentNode.data.length + 1) {
    if (passed + walker.currentNode.data.length <= offset) continue;
    const range = new Range();
    range.setStart(walker.currentNode, offset - passed);
    range.setEnd(walker.currentNode, Math.min(offset - passed + 1, walker.currentNode.data.length));
    stay();
    const { top } = range.getBoundingClientRect();
    scrollBy(0, top - innerHeight / 3);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return;
  }
}

function summary(steps) {
  const number = (kinds) => steps.filter(({ kind }) => kinds.includes(kind)).length;
  const turns = number(TURNS);
  const checks = number(["check"]);
  return [`${steps.length} steps`, turns && `${turns} ${turns === 1 ? "turn" : "turns"}`, checks && `${checks} ${checks === 1 ? "check" : "checks"}`].filter(Boolean).join(" · ");
}

// `body` is a ref to the element that the thought's text stands in; without one (Markdown) steps lead nowhere and are not buttons.
export function ThoughtMap({ part, running, body }) {
  const [open, setOpen] = useState(false);
  const [only, setOnly] = useState(false);
  const steps = outlineOf(part, running);
  if (steps.length < FEWEST) return null;
  const length = steps.at(-1).end;
  const listed = open ? steps.filter(({ kind }) => !only || TURNS.includes(kind)) : [];
  const title = (step) => html`<span class="step-kind step-${step.kind}">${step.kind === "unknown" ? "" : step.kind}</span> <span>${visible(step.title)}</span>`;
  return html`<div class="thought-map">
    <svg class="ribbon" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true">
      ${stretches(steps).map(({ start, end, kind }) => html`<rect key=${start} class="step-${kind}" x=${(start / length) * 1000} width=${((end - start) / length) * 1000} height="8"><title>${KINDS[kind]}</title></rect>`)}
    </svg>
    <details open=${open} onToggle=${(event) => setOpen(event.target.open)}><summary>${summary(steps)}</summary>
      ${open && html`<label class="option small"><input type="checkbox" checked=${only} onChange=${(event) => setOnly(event.target.checked)} /> <span>only the turns</span></label>
      <ol class="outline">${listed.slice(0, MOST).map((step) => html`<li key=${step.start}>
        ${body ? html`<button type="button" class="plain" onClick=${() => lead(body.current, step.start)}>${title(step)}</button>` : title(step)}</li>`)}</ol>
      ${listed.length > MOST && html`<p class="muted small">and ${listed.length - MOST} more</p>`}
      ${!listed.length && html`<p class="muted small">It takes no turn.</p>`}`}
    </details></div>`;
}
