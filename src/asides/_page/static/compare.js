// Compare: the same question to two models, side by side, and what each took below.
//
// All of it stands in the address; asking takes a click, so that a link costs nobody anything.

import { getJSON } from "./api.js";
import { ask, newQuestion, newReply } from "./conversation.js";
import { CopyButton, countWords, InspectLink, Message, replyAsMarkdown, seconds, Timeline } from "./parts.js";
import { Ending, Loading, Numbers, Select, useGrowing, useLoaded, Waiting } from "./loading.js";
import { go } from "./route.js";
import { html, useEffect, useEvent, useRef, useState } from "./ui.js";

const sum = (reply, kind, value) => reply.parts.reduce((all, part) => all + (part.kind === kind ? value(part) : 0), 0);
const length = (part) => part.text.length;
const words = (kind) => (reply) => sum(reply, kind, (part) => countWords(part.text));
const share = (reply) => sum(reply, "thinking", length) / (sum(reply, "thinking", length) + sum(reply, "text", length));

// What is compared: a title, the number of a reply (none where it is not known), and how it is written.
const FIGURES = [
  ["Words of thinking", words("thinking")],
  ["Words of the answer", words("text")],
  ["Share of thinking", share, (value) => `${Math.round(value * 100)}%`],
  ["Time thinking", (reply) => sum(reply, "thinking", (part) => part.seconds), seconds],
  ["Time in all", (reply) => reply.seconds, seconds],
  ["Tokens", (reply) => reply.usage?.completion_tokens],
  ["Tokens of thinking", (reply) => reply.usage?.completion_tokens_details?.reasoning_tokens],
  ["Calls", (reply) => sum(reply, "tool_call", () => 1) || null],
];

// The figures of both replies; the larger one fills its bar.
function Figures({ replies }) {
  const rows = FIGURES.map(([title, value, write = (number) => number.toLocaleString("en")]) => {
    const values = replies.map(value);
    const most = Math.max(...values.map((each) => each || 0));
    return [title, ...values.map((each) => (Number.isFinite(each) ? html`${write(each)}<progress aria-hidden="true" max=${most || 1} value=${each}></progress>` : "–"))];
  });
  return html`<section class="compared"><h2>Figures</h2>
    <${Numbers} caption="Figures of both replies" heads=${replies.map(({ model }) => model)} rows=${rows.filter((row) => row.slice(1).some((cell) => cell !== "–"))} /></section>`;
}

function Column({ reply, settings, onAgain }) {
  useGrowing(reply);
  const running = reply.state === "running";
  const waiting = running && reply.now === "waiting";
  return html`<section class="column" aria-label=${reply.model} aria-busy=${running}>
    <h2>${reply.model}</h2>
    <${Timeline} parts=${reply.parts} running=${running && !waiting} settings=${settings} />
    ${waiting && html`<${Waiting} reply=${reply} />`}
    ${reply.error && html`<${Message} tone="error" title="No answer." action="Try again" onAction=${onAgain}>${reply.error}<//>`}
    ${!running &&
    html`<p class="actions">
      <${Ending} reply=${reply} />
      ${reply.parts.length > 0 && html`<${CopyButton} label="Copy answer" text=${() => replyAsMarkdown(reply.parts, false)} />`}
      <${InspectLink} id=${reply.request} />
    </p>`}
  </section>`;
}

export default function Compare({ route: { query }, settings }) {
  const listed = useLoaded((signal) => getJSON("asides/models", { signal }), []);
  const models = listed.found?.models.map(({ id }) => id) ?? [];
  const chosen = { a: query.get("a") ?? models[0] ?? "", b: query.get("b") ?? models[1] ?? models[0] ?? "", effort: query.get("effort") ?? "" };
  const [text, setText] = useState(query.get("question") ?? "");
  const [replies, setReplies] = useState([]);
  const [, settle] = useState(0);
  const running = useRef(null);
  const busy = replies.some((reply) => reply.state === "running");
  const choose = (changes) => go("compare", { ...chosen, question: text, ...changes }, true);
  const field = (name) => (value) => choose({ [name]: value });

  const run = (reply) => {
    const asked = ask(reply, { turns: [newQuestion(text)], signal: running.current.signal });
    asked.then(() => settle((round) => round + 1));
    return reply;
  };
  const send = (event) => {
    event.preventDefault();
    if (!text.trim() || !chosen.a || !chosen.b || busy) return;
    choose({});
    running.current = new AbortController();
    setReplies([chosen.a, chosen.b].map((model) => run(newReply(model, chosen.effort))));
  };
  const again = (reply) => {
    if (!busy) running.current = new AbortController();
    setReplies(replies.map((each) => (each === reply ? run(newReply(reply.model, reply.effort)) : each)));
  };
  const stop = () => running.current?.abort();
  useEvent("keydown", (event) => event.key === "Escape" && !document.querySelector("dialog[open]") && stop());
  useEffect(() => stop, []);
  const pressed = (event) => {
    const wanted = event.key === "Enter" && !event.isComposing && !event.shiftKey;
    if (wanted && (settings.send !== "ctrl" || event.ctrlKey || event.metaKey)) send(event);
  };
  return html`<div class="compare">
    <h1>Compare</h1>
    <${Loading} state=${listed} />
    ${listed.found && !models.length && html`<${Message} tone="warn">The gateway's upstreams list no model.<//>`}
    <form onSubmit=${send}>
      <div class="filters row">
        <${Select} label="Compare" value=${chosen.a} values=${models} onChange=${field("a")} />
        <${Select} label="with" value=${chosen.b} values=${models} onChange=${field("b")} />
        <${Select} label="Effort" value=${chosen.effort} values=${["none", "low", "medium", "high"]} all="default" onChange=${field("effort")} />
      </div>
      <textarea rows="2" data-question aria-label="Your question" placeholder="Ask both the same" value=${text}
        onInput=${(event) => setText(event.target.value)} onBlur=${() => choose({})} onKeyDown=${pressed}></textarea>
      <p class="row end">${busy
        ? html`<button type="button" onClick=${stop}>Stop both</button>`
        : html`<button class="primary" disabled=${!text.trim() || !chosen.a}>Ask both</button>`}</p>
    </form>
    <div class="columns">${replies.map((reply, index) => html`<${Column} key=${index} reply=${reply} settings=${settings} onAgain=${() => again(reply)} />`)}</div>
    ${!busy && replies.some((reply) => reply.parts.length) && html`<${Figures} replies=${replies} />`}
  </div>`;
}
