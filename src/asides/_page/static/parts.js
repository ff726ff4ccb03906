// The parts of a reply, for every view: thoughts that fold, calls, answers, and what stands around them.
//
// A part is a record as the read API has it: {kind: "thinking" | "text" | "tool_call" | "result", text, complete, seconds?,
// name?, arguments?, id?, error?}. A running one may grow: draw again with the same part whenever it did. Optional fields that
// a view may set on a thought: `words` (else counted), `tokens` and `estimated` (for tokens a second), `ended` (why it is not
// complete: "cut off", "stopped"; else "never closed"). The text of one and the same part object may only grow.
//
//   <${Timeline} parts=${reply.parts} running=${false} settings=${settings} />

import { following, stay } from "./follow.js";
import { Icon } from "./icon.js";
import { copyText, Markdown, Plain, visible } from "./markdown.js";
import { address } from "./route.js";
import { mapOf, Outline, Ribbon } from "./thought_map.js";
import { html, useLayoutEffect, useMemo, useRef, useState } from "./ui.js";

// Figures as people read them.
export const count = (number, one, many = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
export const seconds = (value) =>
  value < 0.1 ? "under 0.1 s" : value < 9.95 ? `${value.toFixed(1)} s` : duration(Math.round(value));
const duration = (value) => (value < 60 ? `${value} s` : `${Math.floor(value / 60)} min ${value % 60} s`);
export const countWords = (text) => text.match(/\S+/g)?.length ?? 0;

// One sentence for screen readers: events, never tokens.
export function announce(sentence) {
  const region = document.getElementById("live");
  if (region) region.textContent = sentence;
}

// Whether keys that are pressed there are text.
export const editable = (element) => element?.closest?.("input, textarea, select");

// Every thought on the page, so that one key can fold or open all of them.
const thoughts = new Set();
export function toggleAll() {
  const open = ![...thoughts].some((thought) => thought.open);
  thoughts.forEach((thought) => thought.set(open));
  if (thoughts.size) announce(open ? "All thoughts opened" : "All thoughts folded");
}

let lastId = 0;

// The figures of a thought's heading, in order: only what is known.
function figuresOf(part, words) {
  const found = [];
  if (part.seconds != null) found.push(seconds(part.seconds));
  found.push(count(words, "word"));
  if (part.tokens && part.seconds >= 0.2) {
    const speed = part.tokens / part.seconds;
    found.push(`${part.estimated ? "about " : ""}${speed < 10 ? speed.toFixed(1) : Math.round(speed)} tokens/s`);
  }
  return found.join(" · ");
}

// A thought: a heading that sticks and folds, the text, a margin and an end that fold too.
export function Thought({ part, running, unanswered, answer, settings }) {
  const [chosen, setChosen] = useState(null); // what the person wants; null: what the setting says
  const id = useMemo(() => `thought-${++lastId}`, []);
  const section = useRef();
  const body = useRef();
  // A thought does not fold under the eyes of somebody who has scrolled up to read it.
  const was = useRef({ running, read: false });
  if (was.current.running && !running) was.current.read = !following();
  was.current.running = running;
  const automatic = settings.fold === "auto" && (running || unanswered || was.current.read);
  const open = chosen ?? (settings.fold === "open" || automatic);
  const words = useMemo(() => part.words ?? countWords(part.text), [part.words ?? part.text]);

  const handle = useMemo(() => ({}), []);
  handle.open = open;
  handle.set = setChosen;
  // As it is drawn: a key may come as soon as it is seen.
  useLayoutEffect(() => {
    thoughts.add(handle);
    return () => thoughts.delete(handle);
  }, []);

  const toggle = () => {
    setChosen(!open);
    if (!open) stay();
    announce(open ? "Thought folded" : "Thought opened");
  };
  // Folded from its middle, a long thought would leave the reader far below: its heading comes into view.
  const wasOpen = useRef(open);
  useLayoutEffect(() => {
    const element = section.current;
    if (wasOpen.current && !open && chosen !== null && element.getBoundingClientRect().top < 0) {
      element.scrollIntoView({ block: "start" });
    }
    wasOpen.current = open;
  }, [open]);

  const Text = settings.thoughts === "markdown" ? Markdown : Plain;
  const map = open && mapOf(part, running, answer);
  const ended = part.complete === false && !running ? (part.ended ?? "never closed") : "";
  return html`
    <section ref=${section} class="thought ${open ? "open" : "folded"} ${running ? "running" : ""}">
      <h3 class="thought-head">
        <button type="button" aria-expanded=${String(open)} aria-controls=${id} onClick=${toggle}>
          <span class="chevron" aria-hidden="true"></span>
          <span class="thought-title">
            <span class="thought-name">${running ? "Thinking" : "Thought"}</span>${" "}
            <span class="figures">${figuresOf(part, words)}</span>
            ${ended && html`<span class="badge warn">${ended}</span>`}
          </span>
        </button>
      </h3>
      <div id=${id} class="thought-body" hidden=${open ? false : "until-found"} onbeforematch=${() => setChosen(true)}>
        <button type="button" class="thought-margin" tabindex="-1" aria-hidden="true" title="Fold this thought"
          onClick=${toggle}></button>
        <div class="thought-inner ${map ? "mapped" : ""}">
          ${map && html`<${Ribbon} part=${part} map=${map} running=${running} body=${body} /><${Outline} part=${part} map=${map} running=${running} body=${body} />`}
          <div class="thought-text" ref=${body}><${Text} source=${part} text=${part.text} running=${running} /></div>
          ${!running &&
          html`<button type="button" class="thought-end plain" onClick=${toggle}>
            <span class="chevron up" aria-hidden="true"></span> Fold this thought
          </button>`}
        </div>
      </div>
    </section>
  `;
}

// The arguments of a call, laid out where they are JSON, else as they are.
function laidOut(text) {
  try {
    const laid = JSON.stringify(JSON.parse(text), null, 2);
    return laid.length > 9 * text.length ? text : laid; // indents of thousands of brackets are megabytes
  } catch {
    return text;
  }
}

export function Call({ part, running, children }) {
  const result = part.kind === "result";
  const written = (result ? part.text : part.arguments) ?? "";
  const shown = running || result ? written : laidOut(written);
  const cut = part.complete === false && !running ? "cut off" : "";
  return html`
    <section class="call ${result ? "result" : ""}">
      <h3 class="call-head">
        <span class="call-word">${result ? "Result" : "Call"}</span> <code>${visible(part.name || "unnamed")}</code>
        ${(part.error || cut) && html`<span class="badge warn">${visible(part.error || cut)}</span>`}
      </h3>
      ${shown && shown !== "{}" && html`<pre tabindex="0">${visible(shown)}</pre>`}
      ${children}
    </section>
  `;
}

export function Answer({ part, running }) {
  return html`<div class="answer"><${Markdown} source=${part} text=${part.text} running=${running} /></div>`;
}

const KINDS = { thinking: Thought, tool_call: Call, result: Call, text: Answer };

// The thought that nothing was written after.
export function unansweredThought(parts) {
  const last = parts.findLast((part) => part.kind !== "text" || part.text.trim());
  return last?.kind === "thinking" ? last : null;
}

// Parts in the order in which they were written. `running`: the last one still grows. `below(part)`: what stands below a call.
export function Timeline({ parts, running, settings, below }) {
  const several = parts.length > 2 || parts.some((part) => part.kind === "tool_call");
  const thought = running ? null : unansweredThought(parts);
  const last = parts.at(-1);
  const answer = !running && last?.kind === "text" ? last.text : ""; // a thought's map says where it is first mentioned
  return html`
    <ol class="timeline ${several ? "several" : ""}">
      ${parts.map(
        (part, index) => html`<li key=${index} class="part-${part.kind}">
          <${KINDS[part.kind]} part=${part} running=${Boolean(running) && index === parts.length - 1}
            unanswered=${part === thought} answer=${answer} settings=${settings}>${below?.(part)}<//>
        </li>`,
      )}
    </ol>
    ${thought && !(thought.complete === false && thought.ended) && html`<p class="muted unanswered">It ended without an answer.</p>`}
  `;
}

// A button that copies a text, or what a function gives, and says so.
export function CopyButton({ text, label = "Copy" }) {
  const [done, setDone] = useState("");
  const copy = async () => {
    const copied = await copyText(typeof text === "function" ? text() : text);
    setDone(copied ? "Copied" : "Not copied");
    announce(copied ? "Copied" : "The browser does not let this page copy");
    setTimeout(() => setDone(""), 2000);
  };
  return html`<button type="button" class="plain" onClick=${copy}><${Icon} name="copy" />${done || label}</button>`;
}

export const InspectLink = ({ id }) => id && html`<a class="plain-link" href=${address(`inspect/request/${encodeURIComponent(id)}`)}><${Icon} name="inspect" />Inspect</a>`;

// What happened, and what can be done about it.
export function Message({ tone = "info", title, children, action, onAction }) {
  return html`
    <div class="message ${tone}" role=${tone === "error" ? "alert" : "status"}>
      <div>${title && html`<strong>${title} </strong>`}${children}</div>
      ${action && html`<button type="button" onClick=${onAction}>${action}</button>`}
    </div>
  `;
}

// The browser's own dialog keeps the focus inside and closes with Escape.
export function Dialog({ children, onClose, label }) {
  const element = useRef();
  useLayoutEffect(() => element.current.showModal(), []);
  return html`
    <dialog ref=${element} aria-label=${label} onClose=${onClose}
      onClick=${(event) => event.target === element.current && element.current.close()}>
      <div class="dialog-body">
        <button type="button" class="plain dialog-close" aria-label="Close" onClick=${() => element.current.close()}>×</button>
        ${children}
      </div>
    </dialog>
  `;
}

// A reply as Markdown, for the clipboard, a file or a share; thoughts as quotes, only if wanted.
export function replyAsMarkdown(parts, withThoughts) {
  const quote = (text) => text.trim().replace(/^/gm, "> ");
  const written = parts.map((part) => {
    if (part.kind === "text") return part.text.trim();
    if (part.kind === "thinking") return withThoughts ? `> **Thought**\n>\n${quote(part.text)}` : "";
    const [word, text] = part.kind === "result" ? ["Result", part.text] : ["Call", part.arguments ?? ""];
    return withThoughts ? `**${word}** \`${part.name ?? ""}\`\n\n\`\`\`\n${text}\n\`\`\`` : "";
  });
  return written.filter(Boolean).join("\n\n");
}
