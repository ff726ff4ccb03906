// Sends every case of asides to a program and compares what it answers: node run.mjs --data FOLDER -- PROGRAM ARGUMENTS
//
// One JSON object on each line to the program's standard input, one on each line from its standard output.
// docs/how-to/cases.md has the protocol and the rules of comparison. Nothing but Node is needed.

import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

const USAGE = `usage: node run.mjs [options] -- PROGRAM [ARGUMENT...]

  --data FOLDER      the folder with cases.jsonl and formats.json (default: .)
  --format NAME      only cases of this format; may be given several times
  --case TEXT        only cases whose id holds this text
  --plain            only cases without policies
  --no-calls         only cases in which nothing is called
  --cut WAY          characters, whole or both (default): how the text is cut into chunks
  --timeout SECONDS  how long an answer may take (default: 10)
  --show NUMBER      how many failures are explained (default: 10)
  --json             write one line of JSON instead of the table

exit codes: 0 all passed, 1 a case failed, 2 wrong usage, or nothing was compared`;
const MOST_STARTS = 5; // a program that ends at each case is not started for ever

function fail(message) {
  console.error(`run.mjs: ${message}`);
  process.exit(2);
}

function readOptions(given) {
  const found = { data: ".", formats: [], case: "", plain: false, noCalls: false, cut: "both", timeout: 10, show: 10, json: false };
  const end = given.indexOf("--");
  const own = end < 0 ? given : given.slice(0, end);
  found.program = end < 0 ? [] : given.slice(end + 1);
  for (let at = 0; at < own.length; at++) {
    const name = own[at];
    if (name === "--help") (console.log(USAGE), process.exit(0));
    else if (name === "--plain") found.plain = true;
    else if (name === "--no-calls") found.noCalls = true;
    else if (name === "--json") found.json = true;
    else if (!["--data", "--format", "--case", "--cut", "--timeout", "--show"].includes(name))
      fail(`there is no option ${name}\n${USAGE}`);
    else if (++at >= own.length) fail(`${name} needs a value`);
    else if (name === "--format") found.formats.push(own[at]);
    else if (name === "--timeout" || name === "--show") {
      const number = Number(own[at]);
      if (!(number >= 0 && number < 1e6)) fail(`${name} needs a number, not ${own[at]}`);
      found[name.slice(2)] = number;
    } else found[name.slice(2)] = own[at];
  }
  if (!found.program.length) fail(`no program is given\n${USAGE}`);
  if (!["characters", "whole", "both"].includes(found.cut)) fail("--cut must be characters, whole or both");
  return found;
}

// Comparing. Each function returns nothing where both sides agree.

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);

function same(one, other) {
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length && one.every((item, at) => same(item, other[at]));
  if (!isObject(one)) return one === other;
  const keys = Object.keys(one);
  return (
    isObject(other) &&
    keys.length === Object.keys(other).length &&
    keys.every((key) => Object.hasOwn(other, key) && (key === "arguments" ? sameArguments : same)(one[key], other[key]))
  );
}

function sameArguments(one, other) {
  if (typeof one !== "string" || typeof other !== "string") return same(one, other);
  if (one === other) return true;
  try {
    return same(JSON.parse(one), JSON.parse(other));
  } catch {
    return false;
  }
}

/** What is compared of a part: usual values are left out, and an id counts only where the case has one. */
function usualPart(part, expected) {
  if (!isObject(part)) return part;
  const kept = { ...part };
  if (kept.complete === true) delete kept.complete;
  if (kept.error === null) delete kept.error;
  if (!(isObject(expected) && "id" in expected)) delete kept.id;
  return kept;
}

/** Events with all neighbours of one kind joined, without gaps, without empty deltas. */
function joined(events) {
  const found = [];
  for (const event of events) {
    if (!isObject(event)) return events;
    const { gap, ...rest } = event;
    const kind = ["thinking", "text", "arguments"].find((key) => typeof rest[key] === "string");
    const last = found.at(-1);
    if (kind && rest[kind] === "") continue;
    if (kind && last && typeof last[kind] === "string" && last.call === rest.call) last[kind] += rest[kind];
    else found.push(rest);
  }
  return found;
}

/** What is compared of an API's reply: the keys that count, where they hold something. */
function pruned(value, keys) {
  if (Array.isArray(value)) return value.map((item) => pruned(item, keys));
  if (!isObject(value)) return value;
  const found = {};
  for (const [key, item] of Object.entries(value)) {
    const own = key === "arguments" || key === "input";
    const kept = own ? item : pruned(item, keys);
    const empty = kept === null || kept === "" || (typeof kept === "object" && !Object.keys(kept).length);
    if (keys.has(key) && (own || !empty)) found[key] = kept;
  }
  return found;
}

function* differences(expected, answer, keys) {
  const list = (name) => (Array.isArray(answer[name]) ? answer[name] : [answer[name]]);
  if ("parts" in answer) {
    const wanted = expected.parts;
    const found = list("parts").map((part, at) => usualPart(part, expected.parts[at]));
    if (!same(wanted, found)) yield ["parts", wanted, found];
  }
  if ("events" in answer) {
    const wanted = joined(expected.events);
    const found = joined(list("events")).map((event, at) => {
      if (!isObject(event) || (isObject(wanted[at]) && "id" in wanted[at])) return event;
      const { id, ...rest } = event;
      return rest;
    });
    if (!same(wanted, found)) yield ["events", wanted, found];
  }
  for (const [name, usual] of [["notices", []], ["termination", ""], ["beyond", ""]])
    if (name in answer && !same(expected[name] ?? usual, answer[name]))
      yield [name, expected[name] ?? usual, answer[name]];
  for (const [name, reply] of Object.entries(isObject(answer.apis) ? answer.apis : {}))
    if (!same(expected.apis[name], pruned(reply, keys))) yield [`apis.${name}`, expected.apis[name], pruned(reply, keys)];
}

/** Why an answer fails; null where it passes, and a reason where it is skipped. */
function judge(expected, line, keys) {
  let answer;
  try {
    answer = JSON.parse(line);
  } catch {
    return { failed: "the answer is no JSON", found: line };
  }
  if (!isObject(answer)) return { failed: "the answer is no object", found: answer };
  if ("skip" in answer) return { skipped: String(answer.skip) };
  if ("error" in answer) return { failed: "the program reports an error", found: answer.error };
  if (!("parts" in answer) && !("events" in answer)) return { failed: "the answer has neither parts nor events" };
  for (const [what, wanted, found] of differences(expected, answer, keys)) return { failed: what, wanted, found };
  return {};
}

// The program at the other end of the pipe.

class Peer {
  starts = 0;

  constructor(command, timeout) {
    this.command = command;
    this.timeout = timeout;
  }

  start() {
    if (++this.starts > MOST_STARTS) return false;
    this.child = spawn(this.command[0], this.command.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
    this.child.on("error", (error) => fail(`${this.command[0]} cannot be run: ${error.message}`));
    this.child.stdin.on("error", () => {}); // it has ended; that no answer comes says so
    const child = this.child;
    child.on("exit", () => child === this.child && (this.gone = true));
    this.gone = false;
    this.lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return true;
  }

  /** Its answer to a line; null where it gave none. */
  async ask(line) {
    if ((!this.child || this.gone) && !this.start()) return null;
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, this.timeout * 1000, null)));
    this.child.stdin.write(line + "\n");
    const answer = await Promise.race([this.lines.next().then((next) => (next.done ? null : next.value)), late]);
    clearTimeout(timer);
    if (answer === null) this.stop();
    return answer;
  }

  stop() {
    this.child?.stdin.end();
    this.child?.kill();
    this.gone = true;
  }
}

function readData(folder) {
  try {
    const lines = readFileSync(join(folder, "cases.jsonl"), "utf8").split("\n").filter(Boolean);
    const table = JSON.parse(readFileSync(join(folder, "formats.json"), "utf8"));
    if (table.version !== 1) fail(`the data in ${folder} is of version ${table.version}; this runner reads version 1`);
    return { cases: lines.map((line) => JSON.parse(line)), keys: new Set(table.compared) };
  } catch (error) {
    return fail(`the data in ${folder} cannot be read: ${error.message}`);
  }
}

async function main() {
  const options = readOptions(process.argv.slice(2));
  const { cases, keys } = readData(options.data);
  const peer = new Peer(options.program, options.timeout);
  const rows = new Map();
  const failures = [];
  for (const expected of cases) {
    if (!expected.id.includes(options.case) || (options.plain && expected.policies)) continue;
    if (options.noCalls && expected.parts.some((part) => "call" in part)) continue;
    for (const format of expected.formats) {
      if (options.formats.length && !options.formats.includes(format)) continue;
      const { id, raw, start, prompt, tools, policies, ended } = expected;
      const ways = { characters: Array.from(raw), whole: raw ? [raw] : [] };
      let verdict = {};
      for (const way of options.cut === "both" ? ["characters", "whole"] : [options.cut]) {
        const line = await peer.ask(JSON.stringify({ id, format, chunks: ways[way], start, prompt, tools, policies, ended }));
        verdict = line === null ? { failed: "no answer" } : judge(expected, line, keys);
        if (verdict.failed) failures.push({ id, format, cut: way, raw, ...verdict });
        if (verdict.failed || verdict.skipped) break;
      }
      const row = rows.get(format) ?? rows.set(format, { passed: 0, failed: 0, skipped: 0 }).get(format);
      row[verdict.failed ? "failed" : verdict.skipped ? "skipped" : "passed"]++;
    }
  }
  peer.stop();
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const row of rows.values()) for (const name in total) total[name] += row[name];
  if (options.json) {
    const short = failures.map(({ id, format, cut, failed }) => ({ id, format, cut, failed }));
    console.log(JSON.stringify({ ...total, failures: short }));
  } else {
    const width = Math.max(6, ...[...rows.keys()].map((name) => name.length));
    const write = (name, ...cells) => console.log(name.padEnd(width) + cells.map((cell) => String(cell).padStart(9)).join(""));
    write("format", "passed", "failed", "skipped");
    for (const [name, row] of [...rows].sort(([a], [b]) => (a < b ? -1 : 1))) write(name, ...Object.values(row));
    write("all", ...Object.values(total));
    for (const { id, format, cut, raw, failed, wanted, found } of failures.slice(0, options.show)) {
      console.log(`\nfailed: ${id}\n  format ${format}, cut ${cut}: ${failed}\n  raw       ${JSON.stringify(raw)}`);
      if (wanted !== undefined) console.log(`  expected  ${JSON.stringify(wanted)}`);
      if (found !== undefined) console.log(`  found     ${JSON.stringify(found)}`);
    }
    if (failures.length > options.show) console.log(`\n${failures.length - options.show} more failed`);
  }
  if (!total.passed && !total.failed) fail("nothing was compared");
  process.exit(total.failed ? 1 : 0);
}

await main();
