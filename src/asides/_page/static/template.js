// A chat template: what it makes of a conversation, by whose words it is.

import { getJSON } from "./api.js";
import { Loading, Select, useLoaded } from "./loading.js";
import { visible } from "./markdown.js";
import { html, useState } from "./ui.js";

const look = (origin) => (origin === "call" ? "tool_call" : origin);

export function Template() {
  const [template, setTemplate] = useState("");
  const [model, setModel] = useState("");
  const [asked, ask] = useState();
  const { found } = useLoaded((signal) => getJSON("asides/models", { signal }), []);
  const state = useLoaded(async (signal) => (asked ? getJSON("asides/template", { body: asked, signal }) : {}), [asked]);
  const models = found?.models.filter(({ tokenizer }) => tokenizer).map(({ id }) => id) ?? [];
  const { conversation, counted, sections, title } = state.found ?? {};
  return html`<h1>Chat template</h1>
    <p class="muted">What it makes of a conversation. It is kept nowhere.</p>
    ${models.length > 0 && html`<div class="filters row"><${Select} label="Tokenizer" all="none" value=${model} values=${models} onChange=${setModel} /></div>`}
    <textarea class="mono" rows="7" spellcheck=${false} aria-label="Chat template" placeholder=${model && "Empty: the model's own"} value=${template}
      onInput=${(event) => setTemplate(event.target.value)}></textarea>
    <p class="row"><button type="button" disabled=${state.loading || !(model || template.trim())}
      onClick=${() => ask({ model, ...(template.trim() && { template }) })}>Study it</button></p>
    <${Loading} state=${state.loading && asked ? {} : state} />
    ${sections &&
    html`<h2>${title}</h2><p class="muted small">${visible(counted)}. Underlined: the model samples it.</p>
      <p class="legend small">${[...new Set(conversation.map(({ origin }) => origin))].map((origin) => html`<span class="piece ${look(origin)}">${origin}</span>`)}</p>
      <pre class="raw" tabindex="0">${conversation.map(
        ({ text, origin, message = "", sampled }) => html`<span class="piece ${look(origin)} ${sampled ? "sampled" : ""}" title="${message} ${origin}">${visible(text)}</span>`,
      )}</pre>
      ${sections.map(([name, lines]) => html`<h3>${name}</h3><ul>${lines.map((line) => html`<li>${visible(line)}</li>`)}</ul>`)}`}`;
}
