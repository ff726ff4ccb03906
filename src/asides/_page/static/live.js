// Live: what clients send through this gateway, live, with the thoughts as they come.
//
// `Traffic` takes the events of GET asides/traffic and holds the MOST last requests, and those that run. It outlives the view;
// what it has not seen, the gateway holds. Drawing rests between pieces, and while the person has paused.

import { ApiError, getJSON, key, stream } from "./api.js";
import { visible } from "./markdown.js";
import { announce, count, countWords, InspectLink, Message, seconds, Timeline } from "./parts.js";
import { closed, Excerpt, facts, moment, Select } from "./loading.js";
import { go } from "./route.js";
import { html, memo, useEffect, useRef, useState } from "./ui.js";

const MOST = 200; // as many as the gateway holds
const REST = 60; // milliseconds between drawings
const AGAIN = 3000; // until a lost connection is tried again

// Clients choose their ids: two may have the same.
const keyOf = ({ client, id }) => `${client} ${id}`;

class Traffic {
  requests = new Map();
  missed = 0;

  // What was seen with one key is not shown with another.
  ask(credential) {
    if (this.credential !== credential) this.requests.clear();
    this.credential = credential;
  }
  take(event, data) {
    const running = () => [...this.requests.values()].map(({ summary }) => summary).filter((summary) => summary.running);
    if (event === "hello") {
      // What ran when the connection was lost may have ended unseen.
      for (const summary of running()) this.end({ ...summary, running: false, unseen: true });
      [...data.recent.reverse(), ...data.running].forEach((summary) => this.meet(summary));
    } else if (event === "begin") this.begin(data);
    else if (event === "delta") this.grow(data);
    else if (event === "end") this.end(data);
    else if (event === "lost") {
      this.missed += data.missed;
      for (const summary of running()) summary.partial = true;
    }
  }
  // A request whose beginning, or end, was not seen here.
  meet(summary) {
    const known = this.requests.get(keyOf(summary))?.summary;
    if (known?.time !== summary.time) this.begin({ ...summary, partial: true });
    else if (known.unseen) this.end({ ...summary, unseen: false, partial: true });
  }
  begin(summary) {
    const request = { summary, choices: [], version: 0 };
    this.requests.delete(keyOf(summary));
    this.requests.set(keyOf(summary), request);
    for (const [id, each] of this.requests) {
      if (this.requests.size > MOST && !each.summary.running) this.requests.delete(id);
    }
    return request;
  }
  grow({ id, client, choice = 0, part: place, kind, text = "", name }) {
    const request = this.requests.get(keyOf({ client, id }));
    if (!request) return;
    const parts = (request.choices[choice] ??= []);
    let part = parts.find((each) => each.place === place);
    if (!part) {
      finish(parts.at(-1), true);
      part = { place, kind, text: "", arguments: "", words: 0, complete: false, began: performance.now() };
      parts.push(part);
    }
    part.name ||= name;
    // A word that goes on in the next piece counts once.
    part.words += countWords(text) - (/\S$/.test(part.text.slice(-1)) && /^\S/.test(text) ? 1 : 0);
    part[kind === "tool_call" ? "arguments" : "text"] += text;
    part.seconds = (performance.now() - part.began) / 1000;
    request.version++;
  }
  end(summary) {
    const request = this.requests.get(keyOf(summary)) ?? this.begin(summary);
    request.summary = { ...request.summary, ...summary };
    request.choices.forEach((parts) => finish(parts.at(-1), summary.termination !== "cut" && !summary.unseen));
    request.version++;
  }
}

function finish(part, whole) {
  if (part) Object.assign(part, { complete: whole, ended: "cut off", seconds: (performance.now() - part.began) / 1000 });
}

const traffic = new Traffic();

// How the connection is.
function useTraffic(paused) {
  const [connection, setConnection] = useState({});
  const [, draw] = useState(0);
  const held = useRef();
  held.current = paused;
  useEffect(() => {
    const controller = new AbortController();
    let due, timer;
    traffic.ask(key.get());
    const connect = async () => {
      try {
        for await (const { event, data } of stream("asides/traffic", { signal: controller.signal })) {
          const news = JSON.parse(data);
          if (event === "hello") traffic.ask(key.get()); // it may just have been given
          traffic.take(event, news);
          if (event === "hello") setConnection({ open: true });
          if (event === "begin" && !held.current) announce(`A request to ${news.model} began`);
          due ??= setTimeout(() => ((due = null), held.current || draw((round) => round + 1)), REST);
        }
        throw Object.assign(new Error("The gateway closed it."), { lost: true });
      } catch (error) {
        if (controller.signal.aborted) return;
        setConnection({ error });
        // What was refused stays refused; what was lost may come back.
        if (error.lost || error.status >= 500) timer = setTimeout(connect, AGAIN);
      }
    };
    connect();
    return () => (controller.abort(), clearTimeout(timer), clearTimeout(due));
  }, []);
  return connection;
}

// All that a request has written, as the gateway holds it.
async function loadAll(request) {
  const { id, time } = request.summary;
  const found = await getJSON(`asides/requests/${encodeURIComponent(id)}`);
  if (found.time !== time) throw new ApiError("The gateway does not hold it any more.");
  request.choices = found.choices.map(({ parts }) => parts);
  request.summary.partial = false;
}

const Watched = memo(({ request, settings }) => {
  const { summary, choices } = request;
  const [{ problem }, setLoaded] = useState({});
  const load = () => loadAll(request).then(() => setLoaded({}), (error) => setLoaded({ problem: error.message }));
  const { id, model, client, name, agent, dialect, time, running, status, usage, unseen } = summary;
  const warning = unseen ? "its end was not seen" : status >= 400 ? `status ${status}` : summary.cancelled ? "the client left" : !running && summary.termination === "cut" && "cut off";
  return html`<article class="watched" aria-label="Request to ${model}" aria-busy=${Boolean(running)}>
    <header class="row"><h2>${visible(model || "no model named")}</h2>
      ${running && html`<span class="badge live"><span class="dot" aria-hidden="true"></span> running</span>`}
      ${warning && html`<span class="badge warn">${warning}</span>`}
      <span class="muted small grow">${facts(name || client?.slice(0, 8), agent, dialect, moment(time), !running && summary.seconds != null && seconds(summary.seconds), usage?.output_tokens && count(usage.output_tokens, "token"))}</span>
      <${InspectLink} id=${id} />
    </header>
    <${Excerpt} kind="asked" text=${summary.question} />
    ${summary.error && html`<p class="message error"><span><strong>It failed.</strong> ${visible(summary.error)}</span></p>`}
    ${summary.partial && running && html`<p class="muted small">What it wrote while you did not watch can be looked into.</p>`}
    ${choices.map((parts, index) => html`<${Timeline} key=${index} parts=${parts} running=${running} settings=${settings} />`)}
    ${!running && (summary.partial && summary.termination
      ? html`<p><button type="button" onClick=${load}>Show all that it wrote</button> <span class="muted small">${problem}</span></p>`
      : !choices.length && html`<p class="muted small">Nothing was written.</p>`)}
  </article>`;
});

function Requests({ route, about, settings }) {
  const [paused, setPaused] = useState(false);
  const { open, error } = useTraffic(paused);
  const model = route.query.get("model") ?? "";
  // While paused the list stays as it was: what is new would push away what is being read.
  const list = useRef();
  if (!paused) list.current = [...traffic.requests.values()].reverse().map((request) => ({ request, version: request.version }));
  const models = [...new Set(list.current.map(({ request }) => request.summary.model))].sort();
  const shown = list.current.filter(({ request }) => !model || request.summary.model === model);
  const pause = () => (setPaused(!paused), announce(paused ? "Goes on" : "Paused"));
  return html`<h1>Live</h1>
    <div class="filters row">
      <${Select} label="Model" all="every model" value=${model} values=${models} onChange=${(value) => go("live", { model: value }, true)} />
      <button type="button" aria-pressed=${paused} onClick=${pause}>${paused ? "Go on" : "Pause"}</button>
      <span class="muted small" role="status">${open ? html`<span class="dot" aria-hidden="true"></span> ${about.keys && (about.watch !== "all" || !about.operator) ? "What is asked with this key" : "Everything that passes this gateway"}, as it comes` : !error && "Connecting…"}
        ${paused && "; paused, and nothing is lost"}</span>
    </div>
    ${error && html`<${Message} tone="error" title=${error.lost && "The connection was lost."}>${error.message} ${error.lost && "It is tried again every few seconds."}<//>`}
    ${traffic.missed > 0 && html`<${Message} tone="warn">This browser was too slow: ${count(traffic.missed, "piece")} left out.<//>`}
    ${open && !shown.length && html`<p class="nothing muted">${model ? "Nothing has come for this model yet." : "Nothing has come yet. Requests of any client appear here while they run."}</p>`}
    <div class="cards">${shown.map(({ request, version }) => html`<${Watched} key=${keyOf(request.summary)} request=${request} version=${version} settings=${settings} />`)}</div>`;
}

export default function Live({ route, about, settings }) {
  const none = closed(about, false);
  if (!none && about.watch !== "off") return html`<${Requests} route=${route} about=${about} settings=${settings} />`;
  return html`<h1>Live</h1>
    ${none ??
    html`<section class="card"><h2>Live is off</h2>
      <p>This view shows, live, what clients send through the gateway and what models think about it. One line of the gateway's configuration turns it on:</p>
      <pre tabindex="0">page: {watch: own}</pre>
      <p class="muted small">With <code>own</code> a key watches its own requests; with <code>all</code> an operator's key watches everything.</p></section>`}`;
}
