// History: what history keeps: search, filters, conversations with their thoughts in place, exports, deleting. All of it stands
// in the address: #/history?search=…&model=…, #/history/reply/ID, #/history/conversation/ID.

import { getJSON, saveFrom } from "./api.js";
import { visible } from "./markdown.js";
import { announce, Call, CopyButton, count, Dialog, Message, replyAsMarkdown, seconds, Timeline } from "./parts.js";
import { Card, closed, DateField, Excerpt, facts, Loading, moment, Select, useLoaded } from "./loading.js";
import { address, go, parameters } from "./route.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "./ui.js";

const FILTERS = ["model", "since", "until", "client", "source"];
const MOST_MARKS = 9999;
const replies = (number) => count(number, "reply", "replies");

// The words of a search, for marking them; signs of the search's own language are none.
const wordsOf = (search) => (search.match(/[\p{L}\p{N}_]+/gu) ?? []).filter((word) => !["AND", "OR", "NOT"].includes(word));

// Mark the words of a search wherever they stand in an element, without touching its elements.
function useMarks(element, search, shown) {
  useEffect(() => {
    const words = wordsOf(search);
    if (!words.length || !element.current || !globalThis.Highlight) return undefined;
    const pattern = new RegExp(words.join("|"), "giu");
    const marks = new Highlight();
    let first;
    const walker = document.createTreeWalker(element.current, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (node.parentElement.closest("button")) continue;
      for (const { index, 0: found } of node.data.matchAll(pattern)) {
        if (marks.size === MOST_MARKS) break;
        first ??= node.parentElement;
        marks.add(new StaticRange({ startContainer: node, startOffset: index, endContainer: node, endOffset: index + found.length }));
      }
    }
    CSS.highlights.set("search", marks);
    first?.scrollIntoView({ block: "center" });
    return () => CSS.highlights.delete("search");
  }, [search, shown]);
}

// What was chosen, in words.
function describe(filters, names) {
  const { reply, conversation, model, source, client, since, until } = filters;
  const chosen = [
    reply && "this reply",
    conversation && "this conversation",
    model && `model ${model}`,
    source && `from ${source}`,
    client && `client ${clientName(names, client)}`,
    since && `since ${since}`,
    until && `before ${until}`,
  ].filter(Boolean);
  return visible(chosen.join(", ") || "everything that this key may read");
}
const clientName = (names, client) => names?.[client] ?? client?.slice(0, 8);

// For what is there only after the dialog was opened.
const focus = (element) => element?.focus();

function Purge({ filters, names, onClose, onDone }) {
  const ask = (dry_run, signal) => {
    const all = !Object.values(filters).some(Boolean);
    return getJSON("asides/history/purge", { body: { ...filters, all, dry_run }, signal });
  };
  const state = useLoaded((signal) => ask(true, signal), []);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const purge = async () => {
    setBusy(true);
    try {
      const done = await ask(false);
      announce(`${replies(done.replies)} deleted`);
      if (done.warning) return setProblem(`Deleted, but: ${done.warning}`);
      onClose();
      return onDone();
    } catch (error) {
      setBusy(false);
      return setProblem(error.message);
    }
  };
  const found = state.found;
  return html`<${Dialog} label="Delete" onClose=${onClose}>
    <h2>Delete for good?</h2>
    <${Loading} state=${state} />
    ${problem && html`<${Message} tone="error">${problem}<//>`}
    ${found &&
    html`<p><strong>${replies(found.replies)}</strong> with <strong>${count(found.thoughts, "thought")}</strong>: ${describe(filters, names)}. This cannot be undone.</p>
      <p class="row end"><button type="button" ref=${focus} onClick=${onClose}>Keep</button>
        <button type="button" class="danger" disabled=${busy || !found.replies} onClick=${purge}>Delete ${replies(found.replies)}</button></p>`}
  <//>`;
}

function Export({ filters, names, onClose }) {
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (event) => {
    event.preventDefault();
    const { form, thoughts } = event.target.elements;
    setBusy(true);
    try {
      const query = parameters({ ...filters, form: form.value, thoughts: thoughts.checked ? "1" : "0" });
      await saveFrom(`asides/history/export?${query}`, "asides.txt");
      announce("The file was saved");
      onClose();
    } catch (error) {
      setBusy(false);
      setProblem(error.message);
    }
  };
  const option = (type, name, value, text) => html`<label class="option"><input type=${type} name=${name} value=${value} defaultChecked=${value !== "markdown"} /> <span>${text}</span></label>`;
  return html`<${Dialog} label="Export" onClose=${onClose}>
    <form onSubmit=${save}>
      <h2>Export</h2>
      ${problem && html`<${Message} tone="error">${problem}<//>`}
      <p class="muted">${describe(filters, names)}</p>
      <fieldset><legend>As</legend>${option("radio", "form", "jsonl", "JSON Lines, as `asides history import` reads it")} ${option("radio", "form", "markdown", "Markdown, for reading")}</fieldset>
      ${option("checkbox", "thoughts", "1", "with the thoughts")}
      <p class="row end"><button class="primary" disabled=${busy}>${busy ? "Saving…" : "Save the file"}</button></p>
    </form>
  <//>`;
}

// Buttons that export or delete what is chosen.
function Keeping({ filters, names, onDone, what = "" }) {
  const [open, setOpen] = useState("");
  const Shown = { Export, Delete: Purge }[open];
  return html`${["Export", "Delete"].map((each) => html`<button type="button" onClick=${() => setOpen(each)}>${each}${what}</button>`)}
    ${Shown && html`<${Shown} filters=${filters} names=${names} onClose=${() => setOpen("")} onDone=${onDone} />`}`;
}

function Filters({ chosen, search, known = {}, choose }) {
  const field = useRef();
  // Not its `value`: what is being typed must outlive a drawing. Nor after one: somebody may be typing.
  useLayoutEffect(() => void (field.current.value = search), [search]);
  const select = (name, label, all, values = []) =>
    (values.length > 1 || chosen[name]) &&
    html`<${Select} label=${label} all=${all} value=${chosen[name]} values=${values} titles=${known.names} onChange=${(value) => choose({ [name]: value })} />`;
  const date = (name, label) => html`<${DateField} label=${label} value=${chosen[name]} onChange=${(value) => choose({ [name]: value })} />`;
  return html`<form role="search" onSubmit=${(event) => (event.preventDefault(), choose({ search: event.target.elements.search.value.trim() }))}>
    <div class="row search-row"><input type="search" name="search" data-question aria-label="Search inside thoughts and answers" class="grow"
      ref=${field} placeholder="Search thoughts, answers" /><button class="primary">Search</button></div>
    <div class="filters row">
      ${select("model", "Model", "every model", known.models)} ${select("source", "From", "every source", known.sources)}
      ${select("client", "Client", "every client", known.clients)} ${date("since", "Since")} ${date("until", "Before")}
      ${(search || Object.values(chosen).some(Boolean)) && html`<button type="button" class="plain" onClick=${() => go("history")}>Show everything</button>`}
    </div></form>`;
}

// A kept reply in a list; of a search, with the places where it was found.
function Listed({ reply, hits, names, search }) {
  return html`<${Card} href=${address(`history/reply/${reply.id}`, { search })} title=${reply.model}
    small=${facts(moment(reply.time), reply.source !== "gateway" && reply.source, clientName(names, reply.client), count(reply.thoughts, "thought"), reply.seconds != null && seconds(reply.seconds))}>
    <${Excerpt} kind="asked" text=${reply.question} />
    ${hits?.map(
      ({ thought, snippet }) => html`<span class="hit"><span class="muted small">${thought == null ? "in the answer" : "in a thought"}</span>
        <span class="excerpt">${snippet.map(([text, marked]) => (marked ? html`<mark>${visible(text)}</mark>` : visible(text)))}</span></span>`,
    ) ?? html`<${Excerpt} kind="muted" text=${reply.text} />`}
  <//>`;
}

// Pages of what the gateway lists, one after another.
function usePages(path, query) {
  const [pages, setPages] = useState([]);
  const ask = (more, signal) => getJSON(`${path}?${parameters({ ...query, ...more })}`, { signal });
  const first = useLoaded((signal) => (setPages([]), ask({}, signal)), [path, JSON.stringify(query)]);
  const all = first.found ? [first.found, ...pages] : [];
  const next = all.at(-1)?.next;
  const [problem, setProblem] = useState("");
  const more = () =>
    ask({ before: next }).then((page) => (setPages((before) => [...before, page]), setProblem("")), (error) => setProblem(error.message));
  return { ...first, all, next, more, problem };
}

function List({ route }) {
  const conversations = route.path[0] === "conversations";
  const chosen = Object.fromEntries(FILTERS.map((name) => [name, route.query.get(name) ?? ""]));
  const search = conversations ? "" : (route.query.get("search") ?? "");
  const labels = useLoaded((signal) => getJSON("asides/history/filters", { signal }), []);
  const names = labels.found?.names;
  const state = usePages(conversations ? "asides/history/conversations" : "asides/history", { ...chosen, search });
  const { all, next, more, problem } = state;
  const choose = (changes) => go(conversations && !changes.search ? "history/conversations" : "history", { ...chosen, search, ...changes });
  const listed = all.flatMap((page) => page.replies ?? page.conversations);
  const hits = all[0]?.hits;
  const amount = conversations ? count(listed.length, "conversation") : replies(listed.length);
  const tab = (to, title, current) => html`<a href=${address(to, chosen)} aria-current=${current ? "page" : undefined}>${title}</a>`;
  return html`<h1>History</h1>
    <nav class="tabs" aria-label="What is listed">${tab("history", "Replies", !conversations)} ${tab("history/conversations", "Conversations", conversations)}</nav>
    <${Filters} chosen=${chosen} search=${search} known=${labels.found} choose=${choose} />
    <${Loading} state=${state} />
    ${listed.length > 0 &&
    html`<div class="row list-head"><span class="muted grow" role="status">
        ${hits && `${count(hits.length, "place")} in `}${amount}${next && ", and more"}${all[0].owner === "own" && " of this key"}
        ${all[0].partial && "; there was no time to look at all answers"}</span>
      ${!hits && html`<${Keeping} filters=${chosen} names=${names} onDone=${() => (labels.again(), state.again())} what=" these" />`}</div>`}
    ${all.length > 0 && !listed.length && html`<p class="nothing muted" role="status">${search || Object.values(chosen).some(Boolean) ? "Nothing was found. Fewer words or filters find more." : "Nothing has been kept yet."}</p>`}
    <ul class="cards" aria-busy=${Boolean(state.loading)}>
      ${listed.map((each) =>
        conversations
          ? html`<${Card} key=${each.id} href=${address(`history/conversation/${each.id}`)} title=${each.model}
              small=${facts(replies(each.replies), moment(each.last), clientName(names, each.client))}><${Excerpt} kind="asked" text=${each.question} /><//>`
          : html`<${Listed} key=${each.id} reply=${each} names=${names} search=${search} hits=${hits?.filter((hit) => hit.reply === each.id)} />`,
      )}
    </ul>
    ${problem && html`<${Message} tone="error">${problem}<//>`}
    ${next && html`<p class="row more"><button type="button" onClick=${more}>Show more</button></p>`}`;
}

// One kept reply: what was asked since the model's turn before, and its parts.
function Kept({ reply, settings }) {
  return html`<div class="turn">
      ${reply.asked.map(({ role, text, call_id }) =>
        role === "tool"
          ? html`<${Call} part=${{ kind: "result", name: call_id, text }} />`
          : html`<div class="question ${role}"><h2 class=${role === "user" ? "off-screen" : "small-head"}>${role}</h2><div class="bubble">${visible(text)}</div></div>`,
      )}
    </div>
    <div class="turn reply">
      <h2 class="off-screen">${visible(reply.model)}</h2>
      <${Timeline} parts=${reply.parts} settings=${settings} />
      ${!reply.parts.length && html`<p class="muted">The reply was empty.</p>`}
      <p class="actions">
        ${reply.termination === "cut" && html`<span class="badge warn">cut off</span>`}
        <${CopyButton} label="Copy answer" text=${() => replyAsMarkdown(reply.parts, false)} />
        <${CopyButton} label="Copy with thoughts" text=${() => replyAsMarkdown(reply.parts, true)} />
        <span class="muted figures">${facts(reply.model, moment(reply.time), reply.seconds != null && seconds(reply.seconds))}</span>
      </p>
    </div>`;
}

function Opened({ kind, id, search, settings }) {
  const path = `asides/history/${kind === "reply" ? "replies" : "conversations"}/${encodeURIComponent(id)}`;
  const state = useLoaded((signal) => getJSON(path, { signal }), []);
  const found = state.found;
  const body = useRef();
  useMarks(body, search, found);
  return html`<p class="small"><a href=${address("history", { search })}>History</a>
      ${found?.conversation && html` <span class="muted">/</span> <a href=${address(`history/conversation/${found.conversation}`, { search })}>its conversation</a>`}</p>
    <${Loading} state=${state} />
    ${found &&
    html`<div class="row"><h1 class="grow">${visible(found.model || "A reply")}</h1><${Keeping} filters=${{ [kind]: id }} onDone=${() => go("history")} /></div>
      ${found.truncated && html`<${Message} tone="warn">This conversation is longer; its first ${replies(found.replies.length)} are shown.<//>`}
      <div ref=${body} class="kept-body">
        ${(found.replies ?? [found]).map((reply) => html`<${Kept} key=${reply.id} reply=${reply} settings=${wordsOf(search).length ? { ...settings, fold: "open" } : settings} />`)}
      </div>`}`;
}

export default function History({ route, about, settings }) {
  const [kind, id] = route.path;
  const none = closed(about);
  if (none) return html`<h1>History</h1>${none}`;
  // Each by itself: what one list has loaded is not drawn as the other.
  return id && ["reply", "conversation"].includes(kind)
    ? html`<${Opened} key=${path(route)} kind=${kind} id=${id} search=${route.query.get("search") ?? ""} settings=${settings} />`
    : html`<${List} key=${kind} route=${route} />`;
}
const path = (route) => route.path.join("/");
