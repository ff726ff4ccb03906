// The steps of a thought, while it streams: the same rules as `asides.analysis.outline`, which explains them. The rules
// themselves (outline_rules.js) are written from there, and a test compares what both make of the same thoughts.

import { BEGINS_A_STEP, END, ENDING, FENCE, FEW_BYTES, FIRST_WORDS, LONGEST, MARK, NUMBER, NUMBERED, PHRASES, SPEAKS, TITLE } from "./outline_rules.js";

const END_PATTERN = new RegExp(END, "gu");
const FENCED = new RegExp(`^(?:${FENCE})`, "u");
const NUMBERED_LINE = new RegExp(`^(?:${NUMBERED})`, "iu");
const ONLY_NUMBER = new RegExp(`^(?:${NUMBER})$`, "u");
const WORDS = new RegExp(SPEAKS, "u");
const MARKS = new RegExp(MARK, "u");
const KINDS_OF_PHRASES = PHRASES.map(([kind, pattern]) => [kind, new RegExp(pattern, "u")]);
const bytes = (text) => new TextEncoder().encode(text).length;

function kindOf(sentence) {
  if (sentence.includes("\\boxed")) return "conclude";
  const words = sentence.slice(0, FIRST_WORDS * 2).replace(MARKS, "").slice(0, FIRST_WORDS).toLowerCase().replaceAll("’", "'");
  return KINDS_OF_PHRASES.find(([, pattern]) => pattern.test(words))?.[0] ?? "unknown";
}

function shorten(sentence) {
  const title = sentence.slice(0, TITLE * 3).replace(MARKS, "").trim().replace(/\s+/gu, " ").replace(/[*_ ]+$/u, "");
  if (title.length <= TITLE) return title;
  const cut = title.slice(0, TITLE - 1);
  return `${(cut.slice(TITLE >> 1).includes(" ") ? cut.slice(0, cut.lastIndexOf(" ")) : cut).replace(/[ ,;:]+$/u, "")}…`;
}

function withoutEnding(text) {
  let end = text.length;
  while (end && ENDING.includes(text[end - 1])) end--;
  return end;
}

// `feed` what comes; `steps` are {start, end, kind, title}, the last of which may still grow.
export class Outliner {
  text = "";
  at = 0;
  seen = 0;
  done = [];
  open = null;
  fenced = false;
  fresh = true;
  lineBegins = true;

  feed(text) {
    this.text += text;
    let read = 0;
    for (let length; (length = this.nextEnd(this.text.slice(read, read + LONGEST))); read += length) {
      this.sentence(this.text.slice(read, read + length));
      this.seen = 0;
    }
    this.text = this.text.slice(read);
  }

  nextEnd(text) {
    END_PATTERN.lastIndex = this.seen;
    for (let end; (end = END_PATTERN.exec(text)); ) {
      const stop = END_PATTERN.lastIndex;
      if ((stop < text.length || end[0] === "\n") && !ONLY_NUMBER.test(text.slice(0, stop))) return stop;
    }
    if (text.length === LONGEST) return LONGEST;
    this.seen = withoutEnding(text);
    return 0;
  }

  get steps() {
    return this.open ? [...this.done, this.ended(this.at + this.text.length)] : this.done;
  }

  finish() {
    const rest = this.text;
    this.text = "";
    if (rest) this.sentence(rest);
    return this.steps;
  }

  ended(end) {
    const { start, kind, title } = this.open;
    return { start, end, kind, title: shorten(title) };
  }

  begin(start, kind, title) {
    this.open = { start, kind, title, waits: (kind === "turn" || kind === "correct") && bytes(title.trim()) <= FEW_BYTES };
  }

  sentence(sentence) {
    const start = this.at;
    this.at += sentence.length;
    const fence = this.lineBegins && FENCED.test(sentence);
    this.lineBegins = sentence.endsWith("\n");
    if (this.fenced || fence) {
      this.fenced = this.fenced !== fence;
      if (!this.open) this.begin(0, "unknown", sentence);
      this.fresh = false;
      return;
    }
    if (!WORDS.test(sentence)) {
      this.fresh ||= !sentence.trim();
      return;
    }
    const kind = kindOf(sentence);
    const { open, fresh } = this;
    this.fresh = false;
    if (open?.waits && !fresh) {
      if (kind !== "unknown") open.kind = kind;
      open.title = `${open.title.trim()} ${sentence.trim()}`;
      open.waits = false;
    } else if (!open || fresh || BEGINS_A_STEP.includes(kind) || NUMBERED_LINE.test(sentence)) {
      if (open) this.done.push(this.ended(start));
      this.begin(this.done.length ? start : 0, kind, sentence);
    }
  }
}

// The outline of a part whose text only grows; made further each time it is asked for. While it runs, its last sentence may be missing.
const outliners = new WeakMap();
export function outlineOf(part, running) {
  let known = outliners.get(part);
  if (!known || known.length > part.text.length) outliners.set(part, (known = { outliner: new Outliner(), length: 0 }));
  const { outliner } = known;
  if (part.text.length > known.length) {
    outliner.feed(part.text.slice(known.length));
    known.whole = null;
  }
  known.length = part.text.length;
  if (running) return outliner.steps;
  // A copy reads what is left: the part may still go on.
  return (known.whole ??= Object.assign(new Outliner(), outliner, { done: [...outliner.done], open: outliner.open && { ...outliner.open } }).finish());
}
