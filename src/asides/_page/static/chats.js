// Chats: ask a model, and watch it think. This file draws; conversation.js sends and receives.

import { getJSON, request } from "./api.js";
import { Icon } from "./icon.js";
import { ask, newQuestion, newReply, openCalls, store, stored } from "./conversation.js";
import { Composer } from "./composer.js";
import { toEnd, useFollow } from "./follow.js";
import { Ending, useGrowing, Waiting } from "./loading.js";
import { visible } from "./markdown.js";
import { CopyButton, count, editable, InspectLink, Message, replyAsMarkdown, seconds, Timeline } from "./parts.js";
import { go } from "./route.js";
import { Share } from "./share.js";
import { html, memo, useCallback, useEffect, useEvent, useLayoutEffect, useRef, useState } from "./ui.js";
import { Welcome } from "./welcome.js";

const Question = memo(({ turn, busy, onEdit }) => {
  const [draft, setDraft] = useState(null);
  const area = useRef();
  useLayoutEffect(() => {
    area.current?.focus();
    area.current?.scrollIntoView({ block: "nearest" });
  }, [draft === null]);
  if (draft !== null) {
    const send = (event) => {
      event.preventDefault();
      setDraft(null);
      onEdit(turn, draft);
    };
    const pressed = (event) => {
      if (event.key === "Escape") setDraft(null);
      else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send(event);
      else return;
      event.stopPropagation();
    };
    return html`
      <form class="turn question editing" onSubmit=${send} onKeyDown=${pressed}>
        <textarea aria-label="Your question" rows="3" value=${draft} ref=${area} onInput=${(event) => setDraft(event.target.value)}></textarea>
        <p class="row end">
          <span class="muted small">What came after it is dropped.</span>
          <button type="button" onClick=${() => setDraft(null)}>Cancel</button>
          <button class="primary" disabled=${!draft.trim()}>Send again</button>
        </p>
      </form>
    `;
  }
  return html`
    <div class="turn question">
      <h2 class="off-screen">You</h2>
      <div class="bubble">
        ${turn.images.map((url) => html`<img src=${url} alt="Attached image" />`)}
        ${visible(turn.text)}
      </div>
      <p class="actions">
        <button type="button" class="plain" disabled=${busy} onClick=${() => setDraft(turn.text)}><${Icon} name="edit" />Edit</button>
        <${CopyButton} text=${turn.text} />
      </p>
    </div>
  `;
});

// The person plays the tool: what a call gives back is typed in, and the reply goes on.
function ResultForm({ part, onResult }) {
  const send = (event) => {
    event.preventDefault();
    onResult(part, event.target.elements.result.value);
  };
  return html`
    <form class="result-form" onSubmit=${send}>
      <label class="field"><span>What the tool answers</span>
        <textarea name="result" rows="2" placeholder='{"temperature": "21 °C"}'></textarea></label>
      <p class="row end"><button class="primary">Send the result</button></p>
    </form>
  `;
}

const Reply = memo(({ turn, last, busy, settings, onAgain, onResult }) => {
  useGrowing(turn);
  const running = turn.state === "running";
  const failed = turn.state === "lost" || turn.state === "refused";
  const open = running ? [] : openCalls(turn);
  const below = (part) => last && open.includes(part) && html`<${ResultForm} part=${part} onResult=${onResult} />`;
  return html`
    <div class="turn reply" aria-busy=${running}>
      <h2 class="off-screen">${turn.model}</h2>
      <${Timeline} parts=${turn.parts} running=${running && turn.now !== "waiting"} settings=${settings} below=${below} />
      ${turn.state === "done" && !turn.parts.length && html`<p class="muted">The reply was empty.</p>`}
      ${running && turn.now === "waiting" &&
      html`<${Waiting} reply=${turn} />`}
      ${turn.state === "lost" &&
      html`<${Message} tone="error" title="The connection was lost." action="Try again" onAction=${() => onAgain(turn)}>
        ${turn.error} ${turn.parts.length > 0 && "What had come by then is kept above."}<//>`}
      ${turn.state === "refused" &&
      html`<${Message} tone="error" title=${turn.parts.length ? "The reply broke off." : "No answer."} action="Try again" onAction=${() => onAgain(turn)}>${turn.error}<//>`}
      ${!running &&
      html`<p class="actions">
        <${Ending} reply=${turn} />
        ${turn.parts.length > 0 &&
        html`<${CopyButton} label="Copy answer" text=${() => replyAsMarkdown(turn.parts, false)} />
          <${CopyButton} label="Copy with thoughts" text=${() => replyAsMarkdown(turn.parts, true)} />`}
        ${failed || html`<button type="button" class="plain" disabled=${busy} onClick=${() => onAgain(turn)}><${Icon} name="regenerate" />Regenerate</button>`}
        <${InspectLink} id=${turn.request} />
        <span class="muted figures">${figuresOf(turn)}</span>
      </p>`}
    </div>
  `;
});

// Not below the thought: as that grows, the button would move away from under a press.
function AnswerNow({ turn }) {
  useGrowing(turn);
  const [problem, setProblem] = useState("");
  const end = () =>
    request(`asides/requests/${encodeURIComponent(turn.request)}/answer-now`, { method: "POST" }).then(
      () => setProblem(""),
      (error) => setProblem(error.message),
    );
  return html`${problem && html`<${Message} tone="warn">${problem}<//>`}
    ${turn.now === "thinking" && html`<button type="button" class="newest" onClick=${end}>Answer now</button>`}`;
}

function figuresOf(turn) {
  const found = [turn.model];
  if (turn.effort) found.push(`effort ${turn.effort}`);
  if (turn.seconds != null) found.push(seconds(turn.seconds));
  if (turn.tokens) found.push(count(turn.tokens, "token"));
  return found.join(" · ");
}

function useModels(about) {
  const [models, setModels] = useState(null);
  const [error, setError] = useState(null);
  const load = useCallback(() => {
    getJSON("asides/models").then(
      (found) => (setModels(found.models), setError(null)),
      (problem) => (setModels((known) => known ?? []), setError(problem)),
    );
  }, []);
  useEffect(load, [about]);
  return { models, error, load };
}

// The conversation of this tab outlives the view: a reply goes on coming while one looks at another.
const session = { turns: null, tools: [], running: null, tooLarge: false, choices: {}, changed: () => {} };

function change(changes) {
  if (changes.turns) changes.tooLarge = !store(changes.turns);
  Object.assign(session, changes);
  session.changed();
}

// Leaving the page breaks the stream; what is stored of the reply then is that the page was left.
addEventListener("pagehide", () => {
  if (session.running) store(session.turns);
  session.running = null;
});

const stop = () => session.running?.abort();

// Ask for a reply behind these turns.
async function run(reply, before, { system, tools }) {
  stop();
  const controller = new AbortController();
  change({ running: controller, turns: [...before, reply] });
  toEnd();
  await ask(reply, { turns: before, system, tools, signal: controller.signal });
  if (session.running === controller) change({ running: null, turns: [...session.turns] });
}

export default function Chats({ route, about, settings, refresh }) {
  const { models, error, load } = useModels(about);
  const [, draw] = useState(0);
  const [sharing, setSharing] = useState(false);
  const list = useRef();
  session.turns ??= stored();
  const { turns, tools } = session;
  const busy = Boolean(session.running);
  useEffect(() => {
    session.changed = () => draw((number) => number + 1);
    // A conversation opens where it ended, with what was chosen for it.
    if (session.turns.length) toEnd();
    if (!route.query.size) go("chats", session.choices, true);
    return () => (session.changed = () => {});
  }, []);
  const follows = useFollow(list, busy);

  const query = route.query;
  const model = query.get("model") ?? models?.[0]?.id ?? "";
  const known = models?.find((each) => each.id === model);
  const effort = query.get("effort") ?? "";
  const system = query.get("system") ?? "";
  const choose = (changes) => {
    session.choices = { model, effort, system, ...changes };
    go("chats", session.choices, true);
  };

  // Handlers keep their identity, so that nothing is drawn again for them; what they need is read from here.
  const current = useRef();
  current.current = { model, effort, system, tools };
  const answer = (before, chosen = current.current) => run(newReply(chosen.model, chosen.effort), before, chosen);
  const before = (turn) => session.turns.slice(0, session.turns.indexOf(turn));
  const send = useCallback((text, images) => answer([...session.turns, newQuestion(text, images)]), []);
  const edit = useCallback((turn, text) => answer([...before(turn), newQuestion(text, turn.images)]), []);
  const again = useCallback((turn) => answer(before(turn)), []);
  const result = useCallback((part, text) => {
    const reply = session.turns.at(-1);
    reply.parts.push({ kind: "result", name: part.name, id: part.id, text, complete: true });
    if (openCalls(reply).length) change({ turns: [...session.turns] });
    else run(reply, before(reply), current.current);
  }, []);
  useEvent("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    // First it leaves a field, so that `a` is a key of the page again.
    if (editable(document.activeElement)) document.activeElement.blur();
    else stop();
  });

  const begin = ({ question, ...chosen }) => {
    if (chosen.tools) change({ tools: chosen.tools });
    if (chosen.model) choose({ model: chosen.model });
    answer([newQuestion(question)], { ...current.current, ...chosen });
  };
  return html`
    <div class="chats">
      ${turns.length > 0 &&
      html`<p class="row end chat-bar">
        <button type="button" class="plain" onClick=${() => setSharing(true)}><${Icon} name="share" />Share or print</button>
        <button type="button" class="plain" onClick=${() => (stop(), change({ running: null, tools: [], turns: [] }))}><${Icon} name="new" />New conversation</button>
      </p>`}
      ${error && html`<${Message} tone="error" action="Try again" onAction=${() => (refresh(), load())}>${error.message}<//>`}
      ${turns.length === 0 && models && html`<${Welcome} about=${about} models=${models} begin=${begin} refresh=${refresh} />`}
      <div ref=${list} class="turns">
        ${turns.map((turn, index) =>
          turn.role === "user"
            ? html`<${Question} key=${turn.id} turn=${turn} busy=${busy} onEdit=${edit} />`
            : html`<${Reply} key=${turn.id} turn=${turn} state=${turn.state} parts=${turn.parts.length} settings=${settings}
                last=${index === turns.length - 1} busy=${busy} onAgain=${again} onResult=${result} />`,
        )}
      </div>
      ${session.tooLarge && html`<p class="muted small">This conversation is too large for the browser to keep it over a reload.</p>`}
      <div class="bottom">
        ${!follows && busy && html`<button type="button" class="newest" onClick=${toEnd}>↓ To the newest</button>`}
        ${busy && known?.answer_now && html`<${AnswerNow} turn=${turns.at(-1)} />`}
        <${Composer} models=${models ?? []} known=${known} model=${model} effort=${effort} system=${system} tools=${tools}
          first=${turns.length ? "" : (query.get("question") ?? "")} busy=${busy} settings=${settings} choose=${choose}
          setTools=${(given) => change({ tools: given })} send=${send} stop=${stop} />
      </div>
      ${sharing &&
      html`<${Share} turns=${turns} choices=${{ model, effort, system }} onClose=${() => setSharing(false)} />`}
    </div>
  `;
}
