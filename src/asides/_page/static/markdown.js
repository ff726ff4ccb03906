// Model text on the screen: plain, or Markdown that has passed the sanitizer. It becomes markup in no other way, and nothing of
// it is loaded by itself.
//
// - Characters that act (bidi overrides, control characters) are made visible, as the terminal's sanitizer does.
// - HTML is shown as text: the renderer escapes it. What comes out still passes the sanitizer.
// - Formulas are no Markdown: their backslashes, stars and underscores stay. They are drawn by formulas.js.
// - An image becomes a link; a link is one only for http, https and mailto, and names its destination when pointed at.
//
// Text may grow, and each frame costs as much as what is new: plain text is appended to its last block, and of Markdown only
// the last blocks are read again (no later one can change a finished block).

import { colourCode } from "./code_colours.js";
import { drawFormulas } from "./formulas.js";
import { ADDRESS, markdownFragment, visible } from "./sanitize.js";
import { Lexer, Marked, Tokenizer } from "./vendor/marked.js";
import { Component, html } from "./ui.js";

export { visible };

const escaped = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (text) => text.replace(/[&<>"']/g, (character) => escaped[character]);

// A link; of one that must not be followed, what it says.
const linked = (href, text) => (ADDRESS.test(href) ? `<a href="${escape(href)}">${text}</a>` : `${text} (${escape(href)})`);

// A formula in a line; and, where its signs stand alone, the backslashes that are more often TeX's than Markdown's.
const INLINE_FORMULA = /^(?:\\\(.{1,999}?\\\)|\\\[.{1,999}?\\\]|\$\$[^$\n]+\$\$|\$(?![\s$])(?:\\.|[^$\\\n])+(?<!\s)\$(?!\w)|\\[!"%&'(),/:;=?@[\\\]^{}])/;
// Where a formula begins that has lines of its own. It ends with its other sign at the end of a line, or with its paragraph.
const OPENS = /^ {0,3}(?:\$\$(?!\$)|\\\[)/;
const FORMULA = /^\s*(?:\$\$[^]*?\$\$|\\\[[^]*?\\\])[.,;:]?[ \t]*(?=\n|$)/;
const CLOSED = /^(?:\$\$[^]+\$\$|\\\[[^]+\\\])$/;
const CLOSES = /\$\$[^]*\$\$|\\\]/;
const paragraphOf = (source) => /^[^]*?(?=\n[ \t]*(?:\n|$)|$)/.exec(source)[0];

const BRACKETED = /\\\(.{1,999}?\\\)|\\\[.{1,999}?\\\]/g;
// The renderer looks for emphasis in a copy of a line whose brackets `\(` are masked already, so its formulas are found in
// the line itself, which the copy is as long as.
let line = "";
const readLine = Lexer.prototype.inlineTokens;
Lexer.prototype.inlineTokens = function (source, tokens) {
  line = source;
  return readLine.call(this, source, tokens);
};
// A copy in which no star of a formula ends what was begun before it.
function withoutStars(masked) {
  const text = masked.replace(/\$(?![\s$])[^$\n]+(?<!\s)\$(?!\w)/g, (found) => "a".repeat(found.length));
  if (line.length !== masked.length || !/\\[([]/.test(line)) return text;
  let [found, at] = ["", 0];
  for (const { 0: formula, index } of line.matchAll(BRACKETED)) {
    if (masked[index] !== "+") continue; // in code nothing is masked
    found += text.slice(at, index) + "a".repeat(formula.length);
    at = index + formula.length;
  }
  return found + text.slice(at);
}

const formula = {
  name: "formula",
  level: "block",
  start(source) {
    const found = paragraphOf(source).search(/(?<=\n) {0,3}(?:\$\$(?!\$)|\\\[)/);
    return found < 0 ? undefined : found;
  },
  tokenizer(source) {
    if (!OPENS.test(source)) return undefined;
    const paragraph = paragraphOf(source);
    const raw = FORMULA.exec(paragraph)?.[0] ?? (CLOSES.test(paragraph) ? "" : paragraph);
    return raw ? { type: "formula", raw } : undefined;
  },
  renderer({ raw }) {
    const [, tex, rest] = /^([^]*?)([.,;:]?)$/.exec(raw.trim());
    if (!CLOSED.test(tex)) return `<p>${escape(raw.trim()).replaceAll("\n", "<br>")}</p>`;
    return `<p><code class="tex-block">${escape(tex)}</code>${rest}</p>`;
  },
};
// A formula in a line, that the tokenizer of escapes found.
const inlineFormula = { name: "inline_formula", renderer: ({ raw }) => `<code class="tex-${/^(?:\$\$|\\\[)/.test(raw) ? "block" : "inline"}">${escape(raw)}</code>` };

const marked = new Marked({
  gfm: true,
  breaks: true, // models mean the line ends that they write
  extensions: [formula, inlineFormula],
  hooks: { emStrongMask: withoutStars },
  tokenizer: {
    escape(source) {
      const raw = INLINE_FORMULA.exec(source)?.[0];
      if (!raw) return false;
      return raw.length > 2 ? { type: "inline_formula", raw } : { type: "escape", raw, text: raw };
    },
    // Text ends where a formula may begin; looked for nearby first, because each amount of money is such a place.
    inlineText(source) {
      const text = Tokenizer.prototype.inlineText;
      const near = source.slice(0, 999).indexOf("$", 1);
      const found = text.call(this, near > 0 ? source.slice(0, near) : source);
      const end = found?.raw.indexOf("$", 1);
      return end > 0 ? text.call(this, source.slice(0, end)) : found;
    },
  },
  renderer: {
    html: ({ text, block }) => (block ? `<pre><code>${escape(text.trimEnd())}</code></pre>` : escape(text)),
    link({ href, tokens }) {
      return linked(href, this.parser.parseInline(tokens));
    },
    image: ({ href, text }) => linked(href, `image: ${escape(text)}`),
    checkbox: ({ checked }) => (checked ? "\u2611 " : "\u2610 "),
  },
});

const element = (name, properties) => Object.assign(document.createElement(name), properties);

// The blocks of a text. Markdown can be written so that reading it takes time with the square of its length: a long text is
// first read in pieces, ever longer ones, and is null where one took too long twice (once may have been the machine).
function lex(source) {
  for (let size = 4000; size < source.length; size *= 4) {
    for (let at = 0, slow = 0; at < source.length; ) {
      const began = performance.now();
      marked.lexer(source.slice(at, at + size));
      if (performance.now() - began < 150 + size / 2000) [at, slow] = [at + size, 0];
      else if (slow++) return null;
    }
  }
  return marked.lexer(source);
}

// A fragment of safe elements for tokens of the renderer. Each element knows where in the text its token begins (`offset`), so
// that the map of a thought leads to it.
function fragmentOf(tokens, offset) {
  const fragment = markdownFragment(tokens.map((token) => `<div>${marked.parser([token])}</div>`).join(""));
  [...fragment.children].forEach((block, index) => {
    for (const child of block.children) child.offset = offset;
    offset += tokens[index].raw.length;
    block.replaceWith(...block.childNodes);
  });
  fragment.querySelectorAll("pre").forEach(addCodeHead);
  fragment.querySelectorAll("table").forEach((table) => {
    // A wide table scrolls by itself, so that the page does not.
    const scroller = element("div", { className: "scroll", tabIndex: 0, offset: table.offset });
    table.replaceWith(scroller);
    scroller.append(table);
  });
  drawFormulas(fragment);
  colourCode(fragment);
  return fragment;
}

// The language of a code block, and a button that copies it.
function addCodeHead(block) {
  const code = block.querySelector("code") ?? block;
  const figure = element("div", { className: "code", offset: block.offset });
  const head = element("div", { className: "code-head" });
  const language = element("span", { textContent: /language-(\S+)/.exec(code.className)?.[1] ?? "" });
  const button = element("button", { type: "button", className: "plain", textContent: "Copy", ariaLabel: "Copy code" });
  button.addEventListener("click", () => {
    copyText(code.textContent).then((done) => (button.textContent = done ? "Copied" : "Not copied"));
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  head.append(language, button);
  block.tabIndex = 0; // it may scroll sideways, also by keyboard
  block.replaceWith(figure);
  figure.append(head, block);
}

// Put a text on the clipboard; whether that was possible. Without a secure origin only the old way is.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = element("textarea", { value: text, className: "off-screen" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// Whether a text goes on from what was taken of it. The text of one `source` (a part) only grows, so that it need not be
// compared: that would cost more with every token of a long thought.
const goesOn = (before, next, taken) =>
  (next.source && next.source === before.source && next.text.length >= taken.length) || next.text.startsWith(taken);

const frame = (work) => (document.hidden ? setTimeout(work, 50) : requestAnimationFrame(work));

// Markdown that may grow. It works on its own element, so that finished blocks are never touched again.
export class Markdown extends Component {
  constructor() {
    super();
    this.taken = ""; // the text that was read
    this.offset = 0; // where in it the tail begins
    this.source = ""; // of it, what may still change, as it is shown
    this.rests = 0; // when the next drawing is due
    this.tooMuch = false;
  }
  render() {
    return html`<div class="markdown" ref=${(element) => (this.element = element)}></div>`;
  }
  componentDidMount() {
    this.draw();
  }
  componentWillUnmount() {
    this.element = null;
  }
  shouldComponentUpdate(next) {
    if (!goesOn(this.props, next, this.taken)) this.restart();
    this.props = next;
    if (next.text !== this.taken || next.running !== this.wasRunning) this.schedule();
    return false;
  }
  schedule() {
    if (!this.props.running) return this.draw(); // its end, at once
    if (this.scheduled) return;
    this.scheduled = true;
    // A drawing that took long is followed by a longer rest, so that a huge table cannot make the page stand still.
    const wait = this.rests - performance.now();
    const work = () => this.scheduled && this.draw();
    if (wait > 16) setTimeout(work, wait);
    else frame(work);
  }
  draw() {
    this.scheduled = false;
    if (!this.element) return;
    const began = performance.now();
    const { text, running } = this.props;
    this.wasRunning = running;
    this.source += visible(text.slice(this.taken.length));
    this.taken = text;
    if (!this.tail) this.element.append((this.tail = element("div")));
    try {
      if (!this.tooMuch && !this.read(running)) this.tooMuch = true;
    } catch {
      this.tooMuch = true; // nested too deeply to be read
    }
    this.tail.classList.toggle("too-much", this.tooMuch);
    if (this.tooMuch) this.tail.replaceChildren(this.source);
    // Text that comes is never less high than it was: an address that becomes a link would pull up all that follows it.
    if (running) this.element.style.minHeight = `${this.element.offsetHeight}px`;
    else if (this.element.hasAttribute("style")) this.element.removeAttribute("style"); // removed unseen, Chromium leaves it empty
    this.rests = performance.now() + 4 * (performance.now() - began);
  }
  // Read and draw the tail; whether that could be done in time.
  read(running) {
    const tokens = lex(this.source);
    if (!tokens) return false;
    // A definition of a link may stand anywhere, so the end of a text that has one reads all of it again.
    this.defines ||= Object.keys(tokens.links).length > 0;
    if (!running && this.defines && this.element.childElementCount > 1) {
      this.restart();
      this.draw();
      return true;
    }
    this.settle(tokens, running);
    this.tail.replaceChildren(fragmentOf(tokens, this.offset));
    return true;
  }
  restart() {
    this.element.replaceChildren();
    this.tail = null;
    this.defines = this.tooMuch = false;
    this.taken = this.source = "";
    this.offset = 0;
  }
  // Move blocks that can no longer change out of the tail: all but the last two that are more than whitespace.
  settle(tokens, running) {
    const solid = tokens.flatMap((token, index) => (token.type === "space" ? [] : [index]));
    if (!running || solid.length < 3) return;
    const done = tokens.splice(0, solid.at(-2));
    const settled = element("div");
    settled.append(fragmentOf(done, this.offset));
    const length = done.reduce((sum, token) => sum + token.raw.length, 0);
    this.source = this.source.slice(length);
    this.offset += length;
    this.tail.before(settled);
  }
}

const BLOCK = 2000; // characters after which a block ends at the next line end
const LONGEST = 8000; // and, where no line ends, at the next space

// Plain text that may grow. Blocks are bounded, because the browser lays out all of a block that changes.
export class Plain extends Component {
  constructor() {
    super();
    this.taken = "";
  }
  render() {
    return html`<div class="plain-text" ref=${(element) => (this.element = element)}></div>`;
  }
  componentDidMount() {
    this.append(this.props.text);
  }
  shouldComponentUpdate(next) {
    if (!goesOn(this.props, next, this.taken)) {
      this.element.replaceChildren();
      this.taken = "";
      this.last = null;
    }
    this.append(next.text);
    return false;
  }
  append(text) {
    if (text.length === this.taken.length) return;
    let fresh = visible(text.slice(this.taken.length));
    this.taken = text;
    while (fresh) {
      if (!this.last) {
        this.element.append(element("div", { className: "block" }));
        this.last = this.element.lastChild.appendChild(document.createTextNode(""));
      }
      const end = this.blockEnd(fresh);
      this.last.appendData(end < 0 ? fresh : fresh.slice(0, end));
      if (end < 0) return;
      // The line end, or the space, is what stands between two blocks.
      fresh = fresh.slice(end + 1);
      this.last = null;
    }
  }
  // Where in the new text the block ends; -1 where it goes on.
  blockEnd(fresh) {
    const line = fresh.indexOf("\n", Math.max(0, BLOCK - this.last.length));
    const space = fresh.indexOf(" ", Math.max(0, LONGEST - this.last.length));
    return line < 0 || space < 0 ? Math.max(line, space) : Math.min(line, space);
  }
}
