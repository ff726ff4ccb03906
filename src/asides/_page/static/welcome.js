// Before the first question: examples, and the way to a model where none is connected.

import { Message } from "./parts.js";
import { WEATHER } from "./composer.js";
import { html } from "./ui.js";

const RECORDED = [
  { question: "What is 17 times 23?" },
  { question: "How many r are in strawberry?" },
  { question: "Write a Python function that finds palindromes." },
  { question: "For which k do A(k, 3), B(3, 1) and C(6, k) form an isosceles triangle?", about: "maths, 567 words" },
  { question: "Write an LRU cache, without OrderedDict.", about: "code, 484 words" },
  { question: "How long must Jason walk each day to break in his new shoes in three weeks?", about: "a loop" },
  { question: "How many portals are integrated within the HAL infrastructure?", about: "1,914 words" },
  { question: "What does the German word Fernweh mean, and how would you say it in French?", about: "two languages" },
  { question: "What is the weather in Lisbon?", model: "recorded-tools", tools: WEATHER, about: "with a call" },
];
const ASKED = [
  { question: "How many r are in strawberry?" },
  { question: "A bat and a ball cost 1.10 together. The bat costs 1.00 more than the ball. What does the ball cost?" },
];

export function Welcome({ about, models, begin, refresh }) {
  const unreachable = about.upstreams.filter((upstream) => !upstream.reachable);
  const none = about.upstreams.length > 0 && unreachable.length === about.upstreams.length;
  const examples = about.recorded ? RECORDED.filter(({ model }) => !model || models.some(({ id }) => id === model)) : ASKED;
  return html`
    <section class="welcome">
      <h1>Watch a model think</h1>
      <p class="muted">The thought appears while it comes, above the answer, and folds when the answer begins.</p>
      ${about.recorded &&
      html`<div class="card">
        <h2>No model server is connected yet</h2>
        <p>Until then this gateway replays recordings, so that you can look around. For a model of your own, start it like this:</p>
        <pre tabindex="0">asides serve --upstream http://127.0.0.1:8000/v1</pre>
      </div>`}
      ${none &&
      html`<${Message} tone="warn" title="No model server answers." action="Check again" onAction=${refresh}>
        ${unreachable.map(({ name, url }) => `${name} at ${url}`).join(", ")}. Questions will fail until one is back.<//>`}
      <h2 class="small-head">${about.recorded ? "Try a recording" : "Try a question"}</h2>
      <ul class="examples">
        ${examples.map(
          (each) => html`<li key=${each.question}><button type="button" disabled=${!models.length} onClick=${() => begin(each)}>
            ${each.question}${each.about && html` <span class="badge">${each.about}</span>`}</button></li>`,
        )}
      </ul>
    </section>
  `;
}
