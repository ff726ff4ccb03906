// The map of a thought: a ribbon of the whole, coloured by what its steps do; an outline that leads to each step and grows while it
// streams; find in the thought; what repeats itself; where the answer is first mentioned.
//
// `Ribbon` stands above the text and `Outline` beside it (style.css), so they are two components over the same steps.

import { loopAtEnd } from "./loops.js";
import { outlineOf } from "./outline.js";
import { KINDS } from "./outline_rules.js";
import { findAll, lead, show } from "./places.js";
import { visible } from "./sanitize.js";
import { html, memo, useEffect, useRef, useState } from "./ui.js";

const FEWEST = 4; // steps: a shorter thought is its own map
const MOST = 400; // steps that are listed
const TURNS = ["turn", "correct"];
const SPEAKING = 5; // seconds that a loop goes on before it is said

// What the map shows of a part; null where the part is too short to have one.
export function mapOf(part, running, answer) {
  const steps = outlineOf(part, running);
  if (steps.length < FEWEST) return null;
  return { steps, length: steps.at(-1).end, loop: loopAtEnd(part.text), mention: mentionOf(part.text, answer) };
}

// What the answer comes to, in the words in which a thought would say it: what is boxed, the one bold stretch, a short answer, a number.
function keyOf(answer) {
  const boxed = /\\boxed\{([^{}]{1,60})\}/.exec(answer)?.[1];
  if (boxed) return boxed.trim();
  const bold = [...answer.matchAll(/\*\*([^*\n]{1,40})\*\*/g)];
  if (bold.length === 1) return bold[0][1].replace(/[.:!]$/, "");
  const short = answer.trim().replace(/[.!]$/, "");
  if (short.length <= 40 && !short.includes("\n") && short) return short;
  const numbers = answer.match(/\d[\d.,]*\d|\d/g) ?? [];
  return new Set(numbers).size === 1 ? numbers[0] : "";
}

// Where a thought first says what the answer comes to, as {at, key}; null where it does not, or nothing says what that is.
function mentionOf(thought, answer) {
  const key = answer ? keyOf(answer) : "";
  if (key.length < 2) return null;
  const whole = key.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const found = new RegExp(`(?<![\\p{L}\\p{N}])${whole}(?![\\p{L}\\p{N}])`, "iu").exec(thought);
  return found && { at: found.index, key };
}

// Neighbours of one kind are one stretch, so that a long thought is few elements.
function stretches(steps) {
  const found = [];
  for (const { start, end, kind } of steps) {
    if (found.at(-1)?.kind === kind) found.at(-1).end = end;
    else found.push({ start, end, kind });
  }
  return found;
}

const some = (number, one) => number > 0 && `${number} ${number === 1 ? one : `${one}s`}`;
function summary(steps) {
  const number = (kinds) => steps.filter(({ kind }) => kinds.includes(kind)).length;
  return [`${steps.length} steps`, some(number(TURNS), "turn"), some(number(["check"]), "check")].filter(Boolean).join(" · ");
}

// How long the loop has lasted: as much of the thought's time as it has of its characters.
function loopSeconds(part, loop) {
  return part.seconds ? (part.seconds * (part.text.length - loop.start)) / part.text.length : 0;
}

function Find({ body, shown }) {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const [ranges, setRanges] = useState([]);
  useEffect(() => {
    const found = findAll(body.current, wanted);
    setRanges(found);
    if (!globalThis.Highlight || !wanted) return undefined;
    CSS.highlights.set("find", new Highlight(...found));
    return () => CSS.highlights.delete("find");
  }, [wanted, wanted && shown]);
  const number = ranges.length;
  const step = (by) => {
    if (!number) return;
    const next = (at + by + number) % number;
    setAt(next);
    show(ranges[next]);
  };
  const pressed = (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape" && wanted) setWanted("");
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return html`<span class="find"><input type="search" aria-label="Find in this thought" placeholder="Find in this thought" value=${wanted}
    onInput=${(event) => (setWanted(event.target.value), setAt(0))} onKeyDown=${pressed} />
    ${wanted && html`<span class="muted" role="status">${number ? `${Math.min(at + 1, number)} of ${number}` : "not found"}</span>`}</span>`;
}

// The ribbon, and what is to be said of the whole.
export function Ribbon({ part, map, running, body }) {
  const { steps, length, loop, mention } = map;
  const place = (at) => (at / length) * 1000;
  const follow = (event) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const offset = ((event.clientX - left) / width) * length;
    const step = steps.findLast(({ start }) => start <= offset) ?? steps[0];
    lead(body.current, step.start, step.title);
  };
  const looped = loop && loopSeconds(part, loop);
  const alarm = loop && (!running || looped >= SPEAKING || !part.seconds);
  return html`<svg class="ribbon" viewBox="0 0 1000 8" preserveAspectRatio="none" aria-hidden="true" onClick=${follow}>
      ${stretches(steps).map(({ start, end, kind }) => html`<rect key=${start} class="step-${kind}" x=${place(start)} width=${place(end - start)} height="8"><title>${kind}: ${KINDS[kind]}</title></rect>`)}
      ${alarm && html`<rect key="loop" class="ribbon-loop" x=${place(loop.start)} width=${place(length - loop.start)} y="5" height="3"><title>It repeats itself here.</title></rect>`}
      ${mention && html`<rect key="mention" class="ribbon-mention" x=${Math.min(place(mention.at), 997)} width="3" height="8"><title>The answer is first mentioned here: ${visible(mention.key)}</title></rect>`}
    </svg>
    ${(alarm || mention) && html`<div class="thought-notes">${alarm && html`<p class="loop-alarm badge warn" role=${running ? "alert" : undefined}>${running ? "repeats" : "repeated"} itself${looped >= 1 ? ` for ${Math.round(looped)} s` : ""}, ${loop.rounds} times</p>`}
    ${mention && html`<p class="muted small mention"><button type="button" class="plain" onClick=${() => lead(body.current, mention.at, mention.key)}>First says “${visible(mention.key)}”</button> after ${Math.round((mention.at / length) * 100)}% of the thought</p>`}</div>`}`;
}

const Row = memo(({ start, kind, title, body }) => html`<button type="button" class="plain" onClick=${() => lead(body.current, start, title)}>
  <span class="step-kind step-${kind}">${kind === "unknown" ? "" : kind}</span> <span>${visible(title)}</span></button>`);

const WIDE = matchMedia("(min-width: 1100px)");

export function Outline({ part, map, running, body }) {
  const [chosen, setChosen] = useState(null); // what the person wants; null: open where there is room for it
  const [only, setOnly] = useState(false);
  const list = useRef();
  const open = chosen ?? WIDE.matches;
  const { steps } = map;
  const listed = open ? steps.filter(({ kind }) => !only || TURNS.includes(kind)) : [];
  // The list follows what comes, unless somebody has scrolled it.
  const atEnd = !list.current || list.current.scrollTop + list.current.clientHeight >= list.current.scrollHeight - 40;
  useEffect(() => {
    if (running && atEnd && list.current) list.current.scrollTop = list.current.scrollHeight;
  }, [running && listed.length]);
  return html`<aside class="thought-outline" aria-label="Outline of this thought"><details open=${open} onToggle=${(event) => event.target.open !== open && setChosen(event.target.open)}>
    <summary>${summary(steps)}</summary>
    ${open && html`<div class="row outline-tools"><${Find} body=${body} shown=${part.text.length} />
      <label class="option small"><input type="checkbox" checked=${only} onChange=${(event) => setOnly(event.target.checked)} /> <span>only the turns</span></label></div>
    <ol class="outline" ref=${list} tabindex="0">${listed.slice(0, MOST).map((step) => html`<li key=${step.start}><${Row} ...${step} body=${body} /></li>`)}</ol>
    ${listed.length > MOST && html`<p class="muted small">and ${listed.length - MOST} more</p>`}
    ${!listed.length && html`<p class="muted small">It takes no turn.</p>`}`}
  </details></aside>`;
}
