// Stats: what history keeps, in figures: the tables and charts of `asides stats`, by model and over time.

import { getJSON } from "./api.js";
import { chartFragment } from "./sanitize.js";
import { count } from "./parts.js";
import { closed, DateField, Loading, Numbers, Select, useLoaded } from "./loading.js";
import { go, parameters } from "./route.js";
import { html, useLayoutEffect, useRef } from "./ui.js";

const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.0995 ? 1 : 0)}%`;
const whole = (value) => Math.round(value).toLocaleString("en");
const tenth = (value) => value.toFixed(1);

// A title, its field in the answer, and how it is written. What is not known is a dash.
const COLUMNS = [
  ["replies", "replies", whole],
  ["think", "think", percent],
  ["words, median", "words_median", whole],
  ["words, p90", "words_p90", whole],
  ["seconds, median", "seconds_median", tenth],
  ["share", "share", percent],
  ["backtracking per 1,000 words", "turns_per_1000", tenth],
  ["repetition", "repetition", percent],
  ["looping", "loop", percent],
  ["never closed", "unclosed", percent],
];

const Section = ({ title, children }) => html`<section class="card"><h2>${title}</h2>${children}</section>`;

function Glance({ models }) {
  const known = COLUMNS.filter(([, field]) => models.some((model) => model[field] != null));
  const row = (model) => known.map(([, field, write]) => (model[field] == null ? "–" : write(model[field])));
  return html`<${Numbers} caption="Every model in a row" heads=${known.map(([title]) => title)}
    rows=${models.map((model) => [model.model || "no model named", ...row(model)])} />`;
}

function Chart({ chart: { title, lead, svg, table } }) {
  const place = useRef();
  useLayoutEffect(() => place.current.replaceChildren(chartFragment(svg)), [svg]);
  return html`<p class="muted">${lead}</p>
    <figure><div ref=${place}></div>
      <details><summary>As a table</summary><${Numbers} caption=${title} heads=${table.heads} rows=${table.rows} /></details></figure>`;
}

function Counted({ found, about }) {
  const titles = [...new Set(found.charts.map((chart) => chart.section))];
  return html`<p class="muted">${count(found.replies, "reply", "replies")}${!about.operator && " of this key"}. ${found.truncated && "There are more; the newest were counted."}</p>
    <${Section} title="At a glance"><${Glance} models=${found.models} /><//>
    <div class="charts">${titles.map((title) => html`<${Section} key=${title} title=${title}>
      ${found.charts.filter((chart) => chart.section === title).map((chart) => html`<${Chart} key=${chart.title} chart=${chart} />`)}<//>`)}</div>
    <${Section} title="What the figures mean">
      <dl class="terms">${found.definitions.map(([term, meaning]) => html`<dt>${term}</dt><dd>${meaning}</dd>`)}</dl><//>`;
}

function Open({ route, about }) {
  const chosen = Object.fromEntries(["model", "since", "until"].map((name) => [name, route.query.get(name) ?? ""]));
  const query = parameters(chosen);
  const known = useLoaded((signal) => getJSON("asides/history/filters", { signal }), []);
  const state = useLoaded((signal) => getJSON(`asides/figures?${query}`, { signal }), [query]);
  const choose = (name) => (value) => go("stats", { ...chosen, [name]: value });
  return html`<div class="filters row">
      <${Select} label="Model" all="every model" value=${chosen.model} values=${known.found?.models ?? []} onChange=${choose("model")} />
      <${DateField} label="Since" value=${chosen.since} onChange=${choose("since")} />
      <${DateField} label="Before" value=${chosen.until} onChange=${choose("until")} />
      ${query && html`<button type="button" class="plain" onClick=${() => go("stats")}>Show everything</button>`}
    </div>
    <${Loading} state=${state} />
    ${state.found &&
    (state.found.replies
      ? html`<${Counted} found=${state.found} about=${about} />`
      : html`<p class="nothing muted">${query ? "Nothing that was kept fits." : "Nothing has been kept yet."}</p>`)}`;
}

export default function Stats({ route, about }) {
  return html`<div class="stats"><h1>Stats</h1>${closed(about) ?? html`<${Open} route=${route} about=${about} />`}</div>`;
}
