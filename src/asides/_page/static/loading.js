// What the views that read have in common: loading, filters, tables, cards, and what stands where there is nothing.

import { subscribe } from "./conversation.js";
import { visible } from "./markdown.js";
import { Message, seconds } from "./parts.js";
import { html, useEffect, useState } from "./ui.js";

// What `load` gives, asked again when one of `inputs` changes; what comes too late is left out.
export function useLoaded(load, inputs) {
  const [state, setState] = useState({});
  const [round, setRound] = useState(0);
  useEffect(() => {
    const controller = new AbortController();
    const set = (next) => controller.signal.aborted || setState(next);
    set((before) => ({ ...before, loading: true }));
    load(controller.signal).then((found) => set({ found }), (error) => set({ error }));
    return () => controller.abort();
  }, [...inputs, round]);
  return { ...state, again: () => setRound((last) => last + 1) };
}

// Draw again when a reply has grown, once for each picture that the screen shows.
export function useGrowing(reply) {
  const [, draw] = useState(0);
  useEffect(() => {
    let due = 0;
    const wake = () => (due ||= requestAnimationFrame(() => ((due = 0), draw((round) => round + 1))));
    const leave = subscribe(reply, wake);
    wake(); // it may have grown since it was drawn
    return () => (leave(), cancelAnimationFrame(due));
  }, [reply]);
}

// The error of what was loaded, or that it is still coming.
export function Loading({ state: { error, found, again } }) {
  if (error) return html`<${Message} tone="error" action="Try again" onAction=${again}>${error.message}<//>`;
  return !found && html`<p class="muted loading">Loading…</p>`;
}

// Of a reply that was asked for here: that nothing has come yet, and why it is not whole.
export const Waiting = ({ reply }) => html`<p class="muted waiting"><span class="dot" aria-hidden="true"></span>
  Waiting for ${reply.model}… ${reply.seconds >= 1 ? seconds(Math.floor(reply.seconds)) : ""}</p>`;
// Of a model that replays recordings (`asides serve` without an upstream).
const Recorded = ({ model }) => model?.startsWith("recorded-") && html`<span class="badge">recorded</span>`;
export const Ending = ({ reply }) => html`<${Recorded} model=${reply.model} /> ${ended(reply)}`;
const ended = (reply) =>
  reply.state === "stopped" ? html`<span class="badge">stopped</span>` : reply.reason === "length" && html`<span class="badge warn">out of tokens</span>`;

export const moment = (time) => new Date(time).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });

// Facts in a row; each stays on one line.
export const facts = (...known) => visible(known.filter(Boolean).map((fact) => String(fact).replaceAll(" ", "\u00a0")).join(" · "));

export function Card({ href, title, children, small }) {
  return html`<li><a class="card-link" href=${href}>
    <span class="row"><strong>${visible(title || "no model named")}</strong> <span class="muted small">${small}</span></span>
    ${children}</a></li>`;
}

export const Excerpt = ({ text, kind = "" }) => text && html`<span class="excerpt ${kind}">${visible(text)}</span>`;

// A choice among `values`; `all` stands for none of them. One that is chosen already is there in any case.
export function Select({ label, value, values, titles = {}, all, onChange }) {
  return html`<label class="field"><span>${label}</span>
    <select value=${value} onChange=${(event) => onChange(event.target.value)}>
      ${all && html`<option value="">${all}</option>`}
      ${(!value || values.includes(value) ? values : [value, ...values]).map((each) => html`<option key=${each} value=${each}>${visible(Object.hasOwn(titles, each) ? titles[each] : each)}</option>`)}
    </select></label>`;
}

export function DateField({ label, value, onChange }) {
  return html`<label class="field"><span>${label}</span>
    <input type="date" value=${value} onChange=${(event) => onChange(event.target.value)} /></label>`;
}

// A table of figures; the first cell of a row names it.
export function Numbers({ caption, heads, rows }) {
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table class="numbers"><caption>${caption}</caption>
      <thead><tr><td></td>${heads.map((head) => html`<th scope="col">${visible(head)}</th>`)}</tr></thead>
      <tbody>${rows.map(([name, ...cells]) => html`<tr><th scope="row">${visible(name)}</th>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody>
    </table></div>`;
}

// Why nothing can be read here; null where it can.
export function closed(about, history = true) {
  if (about.access === "none") {
    return html`<section class="card"><h2>Open the printed address</h2>
      <p>What was asked is shown at the address with <code>?token=…</code> that <code>asides serve</code> prints. With keys, each reads its own:</p>
      <pre tabindex="0">keys:${"\n"}  - "a-secret"${"\n"}  - key: "another"${"\n"}    operator: true  # reads all</pre></section>`;
  }
  if (!history || about.history) return null;
  return html`<section class="card"><h2>This gateway keeps no history</h2>
    <p>Replies and thoughts are kept only where somebody asks for it: with <code>asides serve --save</code> or, in the configuration,</p>
    <pre tabindex="0">history:${"\n"}  save: true</pre>
    <p class="muted small">It begins with what comes then. A key reads only what was asked with that key.</p></section>`;
}
