// Compare: the same question to two models, side by side: thoughts and answers as they come, and what each took below.
//
// Models, effort and question stand in the address (#/compare?a=…&b=…&effort=…&question=…); asking takes a click, so that a
// link costs nobody anything.

import { getJSON } from "./api.js";
import { ask, newQuestion, newReply, subscribe } from "./conversation.js";
import { useLoaded } from "./loading.js";
import { count, countWords, CopyButton, Message, replyAsMarkdown, seconds, Timeline } from "./parts.js";
import { address, go } from "./route.js";
import { html, useEffect, useRef, useState } from "./ui.js";

const SIDES = ["a", "b"];
const EFFORTS = ["none", "low", "medium", "high"];

const wordsOf = (reply, kind) => reply.parts.reduce((sum, part) => sum + (part.kind === kind ? countWords(part.text) : 0), 0);
const timeOf = (reply, kind) => {
  const known = reply.parts.filter((part) => part.kind === kind && part.seconds != null);
  return known.length ? known.reduce((sum, part) => sum + part.seconds, 0) : null;
};
const characters = (reply, kind) => reply.parts.reduce((sum, part) => sum + (part.kind === kind ? part.text.length : 0), 0);

// What is compared: a title, the number of a reply (null where it is not known), and how it is written.
const FIGURES = [
  ["Words of thinking", (reply) => wordsOf(reply, "thinking")],
  ["Words of the answer", (reply) => wordsOf(reply, "text")],
  [
    "Share of thinking",
    (reply) => {
      const whole = characters(reply, "thinking") + characters(reply, "text");
      return whole ? characters(reply, "thinking") / whole : null;
    },
    (value) => `${Math.round(value * 100)}%`,
  ],
  ["Time thinking", (reply) => timeOf(reply, "thinking"), seconds],
  ["Time in all", (reply) => reply.seconds, seconds],
  ["Tokens", (reply) => reply.usage?.completion_tokens],
  ["Tokens of thinking", (reply) => reply.usage?.completion_tokens_details?.reasoning_tokens],
  ["Calls", (reply) => reply.parts.filter((part) => part.kind === "tool_call").length || null],
];

// The figures of both replies. The larger one fills its bar.
function Figures({ replies }) {
  const rows = FIGURES.map(([title, value, write = (number) => number.toLocaleString("en")]) => {
    const values = replies.map((reply) => value(reply) ?? null);
    return { title, values, most: Math.max(...values.map((each) => each ?? 0)), write };
  }).filter(({ values }) => values.some((each) => each !== null));
  return html`
    <section class="compared">
      <h2>Figures</h2>
      <div class="scroll" tabindex="0" role="region" aria-label="Figures of both replies">
        <table class="numbers">
          <caption>Figures of both replies</caption>
          <thead><tr><th scope="col"></th>${replies.map((reply) => html`<th scope="col">${reply.model}</th>`)}</tr></thead>
          <tbody>
            ${rows.map(
              ({ title, values, most, write }) => html`<tr key=${title}><th scope="row">${title}</th>
                ${values.map(
                  (value) => html`<td>${value === null ? "–" : write(value)}
                    <progress aria-hidden="true" max="1" value=${value && most ? value / most : 0}></progress></td>`,
                )}</tr>`,
            )}
          </tbody>
        </table>
      </div>
    </section>
  `;
}

function Column({ reply, settings, onAgain }) {
  const [, draw] = useState(0);
  useEffect(() => {
    let due = 0;
    const leave = subscribe(reply, () => {
      due ||= requestAnimationFrame(() => ((due = 0), draw((round) => round + 1)));
    });
    draw((round) => round + 1);
    return () => (leave(), cancelAnimationFrame(due));
  }, [reply]);
  const running = reply.state === "running";
  return html`
    <section class="column" aria-label=${reply.model} aria-busy=${running}>
      <h2>${reply.model}</h2>
      <${Timeline} parts=${reply.parts} running=${running && reply.now !== "waiting"} settings=${settings} />
      ${running && reply.now === "waiting" &&
      html`<p class="muted waiting"><span class="dot" aria-hidden="true"></span> Waiting… ${reply.seconds >= 1 ? seconds(Math.floor(reply.seconds)) : ""}</p>`}
      ${["lost", "refused"].includes(reply.state) &&
      html`<${Message} tone="error" title=${reply.state === "lost" ? "The connection was lost." : "No answer."} action="Try again" onAction=${onAgain}>
        ${reply.error}<//>`}
      ${!running &&
      html`<p class="actions">
        ${reply.state === "stopped" && html`<span class="badge">stopped</span>`}
        ${reply.reason === "length" && html`<span class="badge warn">out of tokens</span>`}
        ${reply.parts.length > 0 && html`<${CopyButton} label="Copy answer" text=${() => replyAsMarkdown(reply.parts, false)} />`}
        ${reply.request && html`<a class="plain-link" href=${address(`inside/request/${encodeURIComponent(reply.request)}`)}>Look inside</a>`}
      </p>`}
    </section>
  `;
}

export default function Compare({ route, settings }) {
  const listed = useLoaded((signal) => getJSON("asides/models", { signal }), []);
  const models = listed.found?.models ?? [];
  const query = route.query;
  const chosen = {
    a: query.get("a") ?? models[0]?.id ?? "",
    b: query.get("b") ?? (models[1] ?? models[0])?.id ?? "",
    effort: query.get("effort") ?? "",
  };
  const [text, setText] = useState(query.get("question") ?? "");
  const [replies, setReplies] = useState([]);
  const [, settle] = useState(0);
  const controller = useRef(null);
  const busy = replies.some((reply) => reply.state === "running");
  const choose = (changes) => go("compare", { ...chosen, question: text, ...changes }, true);

  const run = (reply, question) =>
    ask(reply, { turns: [newQuestion(question)], signal: controller.current.signal }).then(() => settle((round) => round + 1));
  const send = (event) => {
    event?.preventDefault();
    if (!text.trim() || !chosen.a || !chosen.b || busy) return;
    choose({});
    controller.current = new AbortController();
    const both = SIDES.map((side) => newReply(chosen[side], chosen.effort));
    setReplies(both);
    both.forEach((reply) => run(reply, text));
  };
  const again = (reply) => {
    controller.current = new AbortController();
    const fresh = newReply(reply.model, reply.effort);
    setReplies(replies.map((each) => (each === reply ? fresh : each)));
    run(fresh, text);
  };
  const stop = () => controller.current?.abort();
  useEffect(() => {
    const pressed = (event) => event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]") && stop();
    addEventListener("keydown", pressed);
    return () => (removeEventListener("keydown", pressed), stop());
  }, []);

  const options = (value) => (models.some((each) => each.id === value) || !value ? models : [{ id: value }, ...models]);
  const pressed = (event) => {
    if (event.key !== "Enter" || event.isComposing || event.shiftKey || (settings.send === "ctrl" && !(event.ctrlKey || event.metaKey))) return;
    send(event);
  };
  return html`
    <div class="compare">
      <h1>Compare two models</h1>
      ${listed.error && html`<${Message} tone="error" action="Try again" onAction=${listed.again}>${listed.error.message}<//>`}
      ${listed.found && models.length === 0 &&
      html`<${Message} tone="warn" title="There is no model to ask.">The gateway's upstreams list none. <a href="#/talk">Talk</a> says how to add one.<//>`}
      <form onSubmit=${send}>
        <div class="row choosers">
          ${SIDES.map(
            (side, index) => html`<label class="field" key=${side}><span>${index ? "with" : "Compare"}</span>
              <select value=${chosen[side]} onChange=${(event) => choose({ [side]: event.target.value })}>
                ${options(chosen[side]).map(({ id }) => html`<option key=${id} value=${id}>${id}</option>`)}
              </select></label>`,
          )}
          <label class="field effort"><span>Effort</span>
            <select value=${chosen.effort} onChange=${(event) => choose({ effort: event.target.value })}>
              <option value="">as the models do</option>
              ${EFFORTS.map((effort) => html`<option key=${effort} value=${effort}>${effort}</option>`)}
            </select></label>
        </div>
        <label><span class="off-screen">Your question</span>
          <textarea rows="2" data-question placeholder="Ask both the same" value=${text} onInput=${(event) => setText(event.target.value)}
            onBlur=${() => choose({})} onKeyDown=${pressed}></textarea></label>
        <p class="row end">
          ${busy
            ? html`<button type="button" onClick=${stop}>Stop both</button>`
            : html`<button class="primary" disabled=${!text.trim() || !chosen.a}>Ask both</button>`}
        </p>
      </form>
      ${replies.length > 0 &&
      html`<div class="columns">
          ${replies.map((reply, index) => html`<${Column} key=${index} reply=${reply} settings=${settings} onAgain=${() => again(reply)} />`)}
        </div>
        ${!busy && replies.some((reply) => reply.parts.length > 0) && html`<${Figures} replies=${replies} />`}`}
    </div>
  `;
}
