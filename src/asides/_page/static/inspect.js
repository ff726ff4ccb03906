// Inspect: what a model wrote, with markers in colour, the places of parts and notices, which format and why, and what became of
// earlier thoughts. Of a request (#/inspect/request/ID), or of pasted output.

import { getJSON } from "./api.js";
import { visible } from "./markdown.js";
import { count, Message, seconds, Timeline } from "./parts.js";
import { Card, Excerpt, facts, Loading, moment, Select, useLoaded } from "./loading.js";
import { address, go } from "./route.js";
import { Template } from "./template.js";
import { html, memo, useCallback, useEffect, useMemo, useRef, useState } from "./ui.js";

const PLACE = "asides.inspect";
const NAMES = { thinking: "Thought", text: "Answer", tool_call: "Call", marker: "Marker", beyond: "Beyond the turn" };
const ENDS = {
  stop: "The model ended its turn.",
  end: "It came to its end without a stop marker.",
  cut: "It was cut off.",
};

// Places count code points; JavaScript's strings count units of 16 bits.
function slicer(text) {
  if (!/[\ud800-\udbff][\udc00-\udfff]/.test(text)) return (start, end) => text.slice(start, end);
  const points = Array.from(text);
  return (start, end) => points.slice(start, end).join("");
}

const flaw = (part) => part.error || (part.complete === false && (part.kind === "thinking" ? "never closed" : "cut off"));
const place = ({ start, end }) => (start == null ? "no place known" : `${start}–${end}, ${count(end - start, "character")}`);

// A stretch of the raw output with its notices. There may be thousands: only what changes is drawn again.
const Piece = memo(({ piece, slice, active, point }) => {
  const cuts = [piece.start, ...piece.pins.map((pin) => pin.at), piece.end];
  const show = (at) => {
    const text = visible(slice(cuts[at], cuts[at + 1]));
    return piece.kind === "marker" ? text.replaceAll("\n", "↵\n") : text;
  };
  return html`<span class="piece ${piece.kind} ${active ? "active" : ""}" data-part=${piece.index} title="${piece.label}: ${place(piece)}"
    onMouseEnter=${() => point(piece.index)} onMouseLeave=${() => point()}>${show(0)}${piece.pins.map(
      ({ number, message }, at) => html`<button type="button" class="pin" title=${message} aria-label="Notice ${number}: ${message}"
        onClick=${() => document.getElementById(`notice-${number}`).focus()}>${number}</button>${show(at + 1)}`,
    )}</span>`;
});

const PartCard = memo(({ part, active, point, show }) => {
  const enter = () => point(part.index);
  const leave = () => point();
  return html`<li><button type="button" class="piece-card ${part.kind} ${active ? "active" : ""}"
    onClick=${() => show(part.index)} onFocus=${enter} onBlur=${leave} onMouseEnter=${enter} onMouseLeave=${leave}>
    <span class="row"><strong>${part.label}</strong> ${part.kind === "tool_call" && html`<code>${visible(part.name || "unnamed")}</code>`}
      ${flaw(part) && html`<span class="badge warn">${flaw(part)}</span>`} <span class="muted small">${place(part)}</span></span>
    <${Excerpt} text=${((part.kind === "tool_call" && part.arguments) || part.text || "").slice(0, 240)} /></button></li>`;
});

// Parts with their names, all stretches in order, and the notices: each stands in the stretch that holds its place, one at the
// very end in the last.
function arrange({ parts, markers, notices }) {
  const numbers = {};
  const named = parts.map((part, index) => {
    numbers[part.kind] = (numbers[part.kind] ?? 0) + 1;
    return { ...part, index, label: `${NAMES[part.kind]} ${numbers[part.kind]}`, pins: [] };
  });
  const between = markers.map((marker) => ({ kind: "marker", ...marker, label: NAMES[marker.kind ?? "marker"], pins: [] }));
  const pieces = [...named.filter((part) => part.start != null), ...between].sort((one, other) => one.start - other.start);
  const pins = notices.map((notice, index) => ({ ...notice, message: visible(notice.message), number: index + 1 }));
  for (const pin of pins) (pieces.find(({ end }) => pin.at < end) ?? pieces.at(-1))?.pins.push(pin);
  return { named, pieces, pins };
}

// Raw output beside its parts. What is pointed at, or has the focus, is marked on both sides.
function Dissection({ raw, choice }) {
  const [active, setActive] = useState();
  const board = useRef();
  const slice = useMemo(() => slicer(raw), [raw]);
  const { named, pieces, pins } = useMemo(() => arrange(choice), [choice]);
  const show = useCallback((index) => board.current.querySelector(`[data-part="${index}"]`)?.scrollIntoView({ block: "nearest" }), []);
  return html`<div class="dissection">
    <section aria-label="Raw output">
      <h2>Raw output</h2>
      <p class="legend small">${Object.entries(NAMES).map(([kind, name]) => (kind !== "beyond" || pieces.at(-1)?.kind === kind) && html`<span class="piece ${kind}">${name}</span>`)}</p>
      <pre class="raw" ref=${board} tabindex="0">${pieces.map(
        (piece, at) => html`<${Piece} key=${at} piece=${piece} slice=${slice} active=${active != null && piece.index === active} point=${setActive} />`,
      )}</pre>
    </section>
    <section aria-label="Parts">
      <h2>${count(named.length, "part")}</h2>
      ${!named.length && html`<p class="muted">Nothing but markers and whitespace.</p>`}
      <ol class="cards">${named.map((part) => html`<${PartCard} key=${part.index} part=${part} active=${part.index === active} point=${setActive} show=${show} />`)}</ol>
      ${pins.length > 0 && html`<h3>${count(pins.length, "notice")}</h3>`}
      <ol class="cards">
        ${pins.map(
          ({ number, code, at, message }) => html`<li key=${number} class="notice" id="notice-${number}" tabindex="-1"><span class="pin" aria-hidden="true">${number}</span>
            <span><code>${code}</code> <span class="muted small">at ${at}</span><br />${message}</span></li>`,
        )}
      </ol>
    </section>
  </div>`;
}

function Verdict({ format, why, choice }) {
  return html`<p class="verdict" role="status"><strong>${format}</strong>
    <span>${visible(why)} ${ENDS[choice.termination]} ${choice.reason && `The server gave the reason “${visible(choice.reason)}”.`}</span></p>`;
}

const STARTS = { text: "in text", thinking: "in a thought", undecided: "undecided" };

function Paste({ query }) {
  const chosen = Object.fromEntries(["format", "start", "whitespace"].map((name) => [name, query.get(name) ?? ""]));
  const [text, setText] = useState(() => sessionStorage.getItem(PLACE) ?? "");
  const [rested, setRested] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setRested(text), 200);
    return () => clearTimeout(timer);
  }, [text]);
  const known = useLoaded((signal) => getJSON("asides/formats", { signal }), []);
  const split = useLoaded(async (signal) => {
    if (!rested) return {};
    const given = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));
    return { raw: rested, ...(await getJSON("asides/split", { body: { text: rested, ...given }, signal })) };
  }, [rested, ...Object.values(chosen)]);
  const choose = (changes) => go("inspect", { ...chosen, ...changes }, true);
  const write = (given) => {
    setText(given);
    try {
      sessionStorage.setItem(PLACE, given);
    } catch {
      sessionStorage.removeItem(PLACE); // too large to survive a reload
    }
  };
  // The first visit shows an example, unless somebody is already writing.
  useEffect(() => {
    if (known.found && sessionStorage.getItem(PLACE) === null && !document.activeElement.matches("textarea")) write(known.found.examples[0].text);
  }, [known.found]);
  const formats = known.found?.formats.filter(({ name }) => name !== "auto") ?? [];
  const found = split.found;
  return html`<h1>Inspect</h1>
    <p class="muted">Paste what a model wrote, with its markers, and see it taken apart. It is kept nowhere. Or study a <a href="#/inspect/template">chat template</a>.</p>
    <div class="filters row">
      <${Select} label="Format" all="auto: by the markers" value=${chosen.format} values=${formats.map(({ name }) => name)} onChange=${(format) => choose({ format })}
        titles=${Object.fromEntries(formats.map(({ name, open, close }) => [name, open ? `${name} · ${open} ${close}` : name]))} />
      <${Select} label="Starts" all="default" value=${chosen.start} values=${Object.keys(STARTS)} titles=${STARTS} onChange=${(start) => choose({ start })} />
      <${Select} label="Whitespace beside markers" all="belongs to markers" value=${chosen.whitespace} values=${["exact"]}
        titles=${{ exact: "belongs to parts" }} onChange=${(whitespace) => choose({ whitespace })} />
    </div>
    <textarea class="mono" rows="7" spellcheck=${false} data-question aria-label="Raw output of a model" value=${text}
      onInput=${(event) => write(event.target.value)} placeholder=${"<think>The user greets me.</think>\n\nHello!"}></textarea>
    <p class="row examples-row">
      ${known.found?.examples.map(({ name, format, text: example }) => html`<button type="button" key=${name} onClick=${() => (write(example), choose({ format, start: "" }))}>${name}</button>`)}
      ${text && html`<button type="button" class="plain" onClick=${() => write("")}>Clear</button>`}</p>
    ${known.error && html`<${Loading} state=${known} />`}
    <${Loading} state=${split} />
    ${found?.parts && html`<${Verdict} format=${found.format} why=${found.why} choice=${found} /><${Dissection} raw=${found.raw} choice=${found} />`}
    <${Requests} />`;
}

// The requests that can be looked into.
function Requests() {
  const state = useLoaded((signal) => getJSON("asides/requests", { signal }), []);
  const requests = state.found?.requests ?? [];
  return html`<h2>Requests</h2>
    ${state.error?.code !== "no_access" && html`<${Loading} state=${state} />`}
    ${!requests.length && html`<p class="muted">None yet. Ask something in <a href="#/chats">Chats</a>, or send a request with the header${" "}
      <code>X-Asides-Inspect: 1</code>; the newest are kept in memory, for the key that sent them.</p>`}
    <ul class="cards">${requests.map(
      (each) => html`<${Card} key=${each.id} href=${address(`inspect/request/${encodeURIComponent(each.id)}`)} title=${each.model}
        small=${facts(moment(each.time), each.running && "running", each.status >= 400 && `status ${each.status}`)}><${Excerpt} text=${each.question} /><//>`,
    )}</ul>`;
}

const FACTS = [
  ["time", "Asked", moment],
  ["upstream", "Upstream"],
  ["dialect", "API"],
  ["client", "Client"],
  ["status", "Status"],
  ["seconds", "Took", seconds],
  ["first_thought", "First thought after", seconds],
  ["first_answer", "First answer after", seconds],
  ["effort", "Effort"],
  ["budget", "Budget", ({ tokens, by, outcome }) => [tokens && count(tokens, "token"), by, outcome].filter(Boolean).join(", ")],
  ["thoughts", "Earlier thoughts"],
  ["begins", "Begins in", ({ start, sure, reason }) => `${start ?? "a header"}${sure ? "" : " (a guess)"}: ${reason}`],
];

function Request({ id, settings }) {
  const state = useLoaded((signal) => getJSON(`asides/requests/${encodeURIComponent(id)}`, { signal }), [id]);
  const [number, setNumber] = useState(0);
  const { found, error } = state;
  if (!found || error) {
    return html`<h1>Inspect</h1><${Loading} state=${state} />
      ${error?.status === 404 && html`<p>Only the newest requests are kept, in memory, for the key that sent them. <a href="#/inspect">Paste raw output instead</a></p>`}`;
  }
  const choice = found.choices[number] ?? { parts: [], markers: [], notices: [] };
  const raw = found.raw?.[number];
  const usage = Object.entries(found.usage ?? {}).filter(([, value]) => typeof value === "number");
  const known = [
    ...FACTS.filter(([name]) => found[name] != null && found[name] !== "").map(([name, title, write = String]) => [title, write(found[name])]),
    ...usage.map(([name, value]) => [name.replaceAll("_", " "), value.toLocaleString("en")]),
  ];
  return html`<p class="small"><a href="#/inspect">Inspect</a> <span class="muted">/ ${visible(found.id)}</span></p>
    <h1>${visible(found.model || "A request")}</h1>
    ${found.error && html`<${Message} tone="error" title="It failed.">${visible(String(found.error.message ?? found.error))}<//>`}
    ${found.format && html`<${Verdict} format=${found.format} why=${found.format_source && `Known from: ${found.format_source}.`} choice=${choice} />`}
    <dl class="terms facts">${known.map(([title, value]) => html`<dt>${title}</dt><dd>${visible(value)}</dd>`)}</dl>
    ${found.choices.length > 1 &&
    html`<p class="row">${found.choices.map((_, index) => html`<button type="button" aria-pressed=${index === number} onClick=${() => setNumber(index)}>Choice ${index + 1}</button>`)}</p>`}
    ${typeof raw === "string"
      ? html`<${Dissection} raw=${raw} choice=${choice} />`
      : html`<${Message}>There is no raw output to show: ${found.choices.length ? "the upstream took this reply apart by itself." : "it was passed on untouched, if anything came."}<//><${Timeline} parts=${choice.parts} settings=${settings} />`}
    ${found.truncated && html`<${Message} tone="warn">There was more than is kept; this is its beginning.<//>`}
    <h2>What came back to the model</h2>
    ${!found.sent?.length && html`<p class="muted">The request held no earlier thoughts, and the gateway put none back.</p>`}
    <ul class="cards">${found.sent?.map(
      ({ outcome, turn, thought }) => html`<li class="card-link"><span class="row"><span class="badge ${{ s: "live", p: "warn" }[outcome[0]]}">${outcome}</span>
        <span class="muted small">the thought of turn ${turn + 1}</span></span><${Excerpt} text=${thought} /></li>`,
    )}</ul>
    <p><button type="button" onClick=${state.again}>Load again</button></p>`;
}

export default function Inspect({ route, settings }) {
  const [what, id] = route.path;
  return html`<div class="inspect">${what === "template" ? html`<${Template} />` : what === "request" && id ? html`<${Request} key=${id} id=${id} settings=${settings} />` : html`<${Paste} query=${route.query} />`}</div>`;
}
