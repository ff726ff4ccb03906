// Inside: what a model wrote, character by character: markers in colour, parts with their places, notices where they stand,
// which format and why, and what became of thoughts that came back. Of a request (#/inside/request/ID), or of pasted output.
//
// Places count code points, as the gateway does; `slicer` makes JavaScript's strings count so too.

import { getJSON } from "./api.js";
import { moment, useLoaded, useRested } from "./loading.js";
import { visible } from "./markdown.js";
import { count, CopyButton, countWords, Message, seconds, Timeline } from "./parts.js";
import { address, go } from "./route.js";
import { html, useMemo, useRef, useState } from "./ui.js";

const PLACE = "asides.inside";
const NAMES = { thinking: "Thought", text: "Answer", tool_call: "Call", marker: "Marker" };
const OUTCOMES = {
  "sent back": "The client sent the thought along, and the model got it.",
  "not sent back": "The client sent it along, or dropped it; the model did not get it.",
  "put back by the gateway": "The client had dropped it, and the gateway put it back.",
};

function slicer(text) {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (start, end) => text.slice(start, end);
  const points = Array.from(text);
  return (start, end) => points.slice(start, end).join("");
}

// Everything in order: parts that have a place, and the markers between them. Parts of a kind are numbered.
function stretchesOf({ parts, markers }) {
  const numbers = {};
  const placed = parts.map((part, index) => {
    numbers[part.kind] = (numbers[part.kind] ?? 0) + 1;
    return { ...part, index, label: `${NAMES[part.kind]} ${numbers[part.kind]}` };
  });
  const kept = placed.filter((part) => part.start != null);
  const all = [...kept, ...markers.map((marker) => ({ ...marker, kind: "marker", label: "Marker" }))];
  return { placed, all: all.sort((one, other) => one.start - other.start || one.end - other.end) };
}

// Of a part that is not whole, why.
const flaw = (part) => part.error ?? (part.complete === false ? (part.kind === "thinking" ? "never closed" : "cut off") : "");
const place = (part) => (part.start == null ? "no place known" : `${part.start}–${part.end}, ${count(part.end - part.start, "character")}`);

function Piece({ piece, pins, slice, active, point }) {
  const cuts = [piece.start, ...pins.map((pin) => Math.max(pin.at, piece.start)), piece.end];
  const shown = (text) => (piece.kind === "marker" ? visible(text).replaceAll("\n", "↵\n") : visible(text));
  return html`<span class="piece ${piece.kind} ${active ? "active" : ""}" data-part=${piece.index}
    title="${piece.label}: ${place(piece)}" onMouseEnter=${() => point(piece.index ?? null)} onMouseLeave=${() => point(null)}>${cuts
      .slice(1)
      .map((cut, at) => html`${at > 0 && html`<${Pin} pin=${pins[at - 1]} />`}${shown(slice(cuts[at], cut))}`)}</span>`;
}

function Pin({ pin }) {
  const show = () => document.getElementById(`notice-${pin.number}`)?.focus();
  return html`<button type="button" class="pin" title=${`${pin.code}: ${pin.message}`} onClick=${show}
    aria-label="Notice ${pin.number}: ${pin.message}">${pin.number}</button>`;
}

// Raw output beside its parts. What is pointed at, or has the focus, is marked on both sides.
function Dissection({ raw, choice }) {
  const [active, setActive] = useState(null);
  const board = useRef();
  const slice = useMemo(() => slicer(raw), [raw]);
  const { placed, all } = useMemo(() => stretchesOf(choice), [choice]);
  const pins = useMemo(() => choice.notices.map((notice, index) => ({ ...notice, number: index + 1 })), [choice]);
  // A notice stands in the stretch that holds its place; one at the very end, in the last.
  const pinsIn = (piece, last) =>
    pins.filter(({ at }) => at != null && at >= piece.start && (at < piece.end || (last && at >= piece.end)))
      .map((pin) => ({ ...pin, at: Math.min(pin.at, piece.end) }));
  const show = (index) => board.current.querySelector(`[data-part="${index}"]`)?.scrollIntoView({ block: "nearest" });
  return html`
    <div class="dissection">
      <section aria-label="Raw output">
        <h2>Raw output</h2>
        <p class="legend small">${Object.entries(NAMES).map(([kind, name]) => html`<span class="piece ${kind}">${name}</span> `)}</p>
        <pre class="raw" ref=${board} tabindex="0">${all.map(
          (piece, at) => html`<${Piece} key=${at} piece=${piece} pins=${pinsIn(piece, at === all.length - 1)} slice=${slice}
            active=${piece.index != null && piece.index === active} point=${setActive} />`,
        )}</pre>
      </section>
      <section aria-label="Parts">
        <h2>${count(placed.length, "part")}</h2>
        ${placed.length === 0 && html`<p class="muted">Nothing but markers and whitespace.</p>`}
        <ol class="pieces">
          ${placed.map(
            (part) => html`<li key=${part.index}>
              <button type="button" class="piece-card ${part.kind} ${part.index === active ? "active" : ""}" onClick=${() => show(part.index)}
                onFocus=${() => setActive(part.index)} onBlur=${() => setActive(null)}
                onMouseEnter=${() => setActive(part.index)} onMouseLeave=${() => setActive(null)}>
                <span class="row"><strong>${part.label}</strong>
                  ${part.kind === "tool_call" && html`<code>${visible(part.name || "unnamed")}</code>`}
                  ${flaw(part) && html`<span class="badge warn">${flaw(part)}</span>`}
                  <span class="muted small">${place(part)}</span></span>
                <span class="excerpt">${visible(part.kind === "tool_call" ? part.arguments || part.text : part.text).slice(0, 240)}</span>
              </button>
            </li>`,
          )}
        </ol>
        ${pins.length > 0 &&
        html`<h3>${count(pins.length, "notice")}</h3>
          <ol class="notices">
            ${pins.map(
              (pin) => html`<li key=${pin.number} id="notice-${pin.number}" tabindex="-1">
                <span class="pin" aria-hidden="true">${pin.number}</span>
                <span><code>${pin.code}</code> ${pin.at != null && html`<span class="muted small">at ${pin.at}</span>`}<br />${visible(pin.message)}</span>
              </li>`,
            )}
          </ol>`}
      </section>
    </div>
  `;
}

const START = { text: "in text", thinking: "in a thought", undecided: "undecided: the first marker tells" };

function Paste({ route }) {
  const format = route.query.get("format") ?? "auto";
  const start = route.query.get("start") ?? "";
  const exact = route.query.get("whitespace") === "exact";
  const [text, setText] = useState(() => sessionStorage.getItem(PLACE) ?? "");
  const rested = useRested(text, 200);
  const known = useLoaded((signal) => getJSON("asides/formats", { signal }), []);
  const choose = (changes) => go("inside", { format, start, whitespace: exact ? "exact" : "", ...changes }, true);
  const split = useLoaded(async (signal) => {
    if (!rested) return null;
    const body = { text: rested, format, ...(start && { start }), ...(exact && { whitespace: "exact" }) };
    return { raw: rested, ...(await getJSON("asides/split", { body, signal })) };
  }, [rested, format, start, exact]);
  const change = (given) => {
    setText(given);
    try {
      sessionStorage.setItem(PLACE, given);
    } catch {
      sessionStorage.removeItem(PLACE); // too large to survive a reload
    }
  };
  const formats = known.found?.formats ?? [];
  const found = split.found;
  return html`
    <section class="paste">
      <h1>Look inside</h1>
      <p class="muted">Paste what a model wrote, with its markers, and see it taken apart. It is sent to this gateway alone and kept nowhere.</p>
      <p class="row">
        <label class="row"><span class="small muted">Format</span>
          <select value=${format} onChange=${(event) => choose({ format: event.target.value === "auto" ? "" : event.target.value })}>
            <option value="auto">auto: found by the markers</option>
            ${format !== "auto" && !formats.some(({ name }) => name === format) && html`<option value=${format}>${format}</option>`}
            ${formats.map(({ name, open, close }) => html`<option key=${name} value=${name}>${name}${open && ` · ${open} ${close}`}</option>`)}
          </select></label>
        <label class="row"><span class="small muted">Starts</span>
          <select value=${start} onChange=${(event) => choose({ start: event.target.value })}>
            <option value="">as the format does</option>
            ${Object.entries(START).map(([value, meaning]) => html`<option key=${value} value=${value}>${meaning}</option>`)}
          </select></label>
        <label class="row small"><input type="checkbox" checked=${exact}
          onChange=${(event) => choose({ whitespace: event.target.checked ? "exact" : "" })} /> whitespace beside markers belongs to parts</label>
      </p>
      <label><span class="off-screen">Raw output of a model</span>
        <textarea class="mono" rows="7" spellcheck=${false} data-question value=${text} onInput=${(event) => change(event.target.value)}
          placeholder="<think>The user greets me.</think>\n\nHello!"></textarea></label>
      ${known.found?.examples?.length > 0 &&
      html`<p class="row examples-row"><span class="small muted">Recorded:</span>
        ${known.found.examples.map(
          (example) => html`<button type="button" key=${example.name} onClick=${() => (change(example.text), choose({ format: example.format, start: "" }))}>
            ${example.name}</button>`,
        )}
        ${text && html`<button type="button" class="plain" onClick=${() => change("")}>Clear</button>`}</p>`}
      ${known.error && html`<${Message} tone="error" action="Try again" onAction=${known.again}>${known.error.message}<//>`}
      ${split.error && html`<${Message} tone="error" action="Try again" onAction=${split.again}>${split.error.message}<//>`}
    </section>
    ${found &&
    html`<p class="verdict" role="status"><strong>${found.format}</strong> <span>${visible(found.why)} ${ENDS[found.termination] ?? ""}</span>
        <${CopyButton} label="Copy answer" text=${() => found.parts.filter(({ kind }) => kind === "text").map((part) => part.text).join("")} /></p>
      <${Dissection} raw=${found.raw} choice=${found} />`}
    ${!text && html`<${Requests} />`}
  `;
}

const ENDS = {
  stop: "It ended with a stop marker.",
  end: "It came to its end without a stop marker.",
  cut: "It was cut off: something was still open.",
};

// The requests that can be looked into.
function Requests() {
  const { found, error } = useLoaded((signal) => getJSON("asides/requests", { signal }), []);
  if (error || !found) return null;
  return html`
    <section class="requests">
      <h2>Requests</h2>
      ${found.requests.length === 0 &&
      html`<p class="muted">Nothing to look into yet. Ask something in <a href="#/talk">Talk</a>, or send a request with the header
        <code>X-Asides-Inspect: 1</code>; the newest ones are kept in memory, for the key that sent them.</p>`}
      <ul class="cards">
        ${found.requests.map(
          (each) => html`<li key=${each.id}><a class="card-link" href=${address(`inside/request/${encodeURIComponent(each.id)}`)}>
            <span class="row"><strong>${visible(each.model ?? "")}</strong> <span class="muted small">${moment(each.time)}</span>
              ${each.running && html`<span class="badge">running</span>`} ${each.status >= 400 && html`<span class="badge warn">${each.status}</span>`}</span>
            <span class="excerpt">${visible(each.question ?? "")}</span></a></li>`,
        )}
      </ul>
    </section>
  `;
}

const FACTS = [
  ["time", "Asked", moment],
  ["model", "Model"],
  ["upstream", "Upstream"],
  ["dialect", "API"],
  ["client", "Client"],
  ["status", "Status"],
  ["seconds", "Took", seconds],
  ["first_thought", "First thought after", seconds],
  ["first_answer", "First answer after", seconds],
  ["effort", "Effort"],
  ["budget", "Budget", (value) => (typeof value === "number" ? count(value, "token") : JSON.stringify(value))],
  ["start", "Starts in"],
];

function Facts({ request }) {
  const rows = FACTS.filter(([name]) => request[name] != null && request[name] !== "");
  const usage = Object.entries(request.usage ?? {}).filter(([, value]) => typeof value === "number");
  return html`<dl class="terms facts">
    ${rows.map(([name, title, write]) => html`<dt>${title}</dt><dd>${visible(String((write ?? String)(request[name])))}</dd>`)}
    ${usage.map(([name, value]) => html`<dt>${name.replaceAll("_", " ")}</dt><dd>${value.toLocaleString("en")}</dd>`)}
  </dl>`;
}

// Per thought of earlier turns: whether the model saw it again.
function SentBack({ sent }) {
  return html`
    <section class="sent">
      <h2>What came back to the model</h2>
      ${sent.length === 0 && html`<p class="muted">The request held no earlier thoughts, and the gateway put none back.</p>`}
      <ul class="cards">
        ${sent.map(
          (each, index) => html`<li key=${index} class="sent-thought">
            <span class="row"><span class="badge outcome ${each.outcome.split(" ")[0]}">${each.outcome}</span>
              <span class="muted small">turn ${each.turn + 1}, ${count(countWords(each.thought), "word")} shown</span></span>
            <span class="excerpt">${visible(each.thought)}</span>
            <span class="muted small">${OUTCOMES[each.outcome] ?? ""}</span>
          </li>`,
        )}
      </ul>
    </section>
  `;
}

function Request({ id, settings }) {
  const { found, error, again } = useLoaded((signal) => getJSON(`asides/requests/${encodeURIComponent(id)}`, { signal }), [id]);
  const [number, setNumber] = useState(0);
  if (error) {
    const gone = error.status === 404;
    return html`<h1>Look inside</h1>
      <${Message} tone=${gone ? "warn" : "error"} title=${gone ? "This request is not kept any more." : ""} action="Try again" onAction=${again}>
        ${gone ? "Only the newest requests are kept, in memory, for the key that sent them; a restart forgets them." : error.message}<//>
      <p><a href="#/inside">Paste raw output instead</a></p>`;
  }
  if (!found) return html`<p class="muted loading">Loading…</p>`;
  const choice = found.choices[number] ?? { parts: [], markers: [], notices: [] };
  const raw = found.raw?.[number];
  return html`
    <p class="small"><a href="#/inside">Inside</a> <span class="muted">/ request ${visible(found.id)}</span></p>
    <h1>${visible(found.model || "A request")}</h1>
    ${found.error && html`<${Message} tone="error" title="It failed.">${visible(String(found.error.message ?? found.error))}<//>`}
    ${found.format &&
    html`<p class="verdict"><strong>${found.format}</strong>
      <span>${found.format_source && `Known from: ${visible(found.format_source)}.`} ${ENDS[choice.termination] ?? ""}
        ${choice.reason && ` The server gave the reason “${visible(choice.reason)}”.`}</span></p>`}
    <${Facts} request=${found} />
    ${found.choices.length > 1 &&
    html`<p class="row" role="group" aria-label="Choices">${found.choices.map(
      (_, index) => html`<button type="button" key=${index} aria-pressed=${index === number} onClick=${() => setNumber(index)}>Choice ${index + 1}</button>`,
    )}</p>`}
    ${typeof raw === "string"
      ? html`<${Dissection} raw=${raw} choice=${choice} />`
      : choice.parts.length > 0 &&
        html`<${Message}>The upstream took this reply apart by itself, so there is no raw output to show.<//>
          <${Timeline} parts=${choice.parts} running=${false} settings=${settings} />`}
    ${found.sent && html`<${SentBack} sent=${found.sent} />`}
    <p><button type="button" onClick=${again}>Load again</button></p>
  `;
}

export default function Inside({ route, settings }) {
  const [what, id] = route.path;
  return html`<div class="inside">${what === "request" && id ? html`<${Request} key=${id} id=${id} settings=${settings} />` : html`<${Paste} route=${route} />`}</div>`;
}
