// A conversation with a model: its turns, what is sent for them, and the reply that comes. Nothing is drawn here.
//
// A turn is {role: "user", text, images} or {role: "assistant", parts, model, state, ...}: one reply, also where calls and results
// make it several messages on the wire. It is changed in place while it comes; `subscribe` serves who draws it.

import { ApiError, stream } from "./api.js";
import { announce, count, countWords, seconds, unansweredThought } from "./parts.js";

const PLACE = "asides.chats";
let lastId = 0;

export const newQuestion = (text, images = []) => ({ id: ++lastId, role: "user", text, images });
export const newReply = (model, effort) => ({ id: ++lastId, role: "assistant", model, effort, parts: [], state: "running" });

const listeners = new Map();

export function subscribe(turn, listener) {
  listeners.set(listener, turn);
  return () => listeners.delete(listener);
}
const changed = (turn) => listeners.forEach((of, listen) => of === turn && listen());

// The messages of a turn in the shape of chat completions. Thoughts go back; what becomes of them the gateway decides.
function messagesOf(turn) {
  if (turn.role === "user") {
    const images = turn.images.map((url) => ({ type: "image_url", image_url: { url } }));
    return [{ role: "user", content: images.length ? [{ type: "text", text: turn.text }, ...images] : turn.text }];
  }
  const messages = [];
  let open = null; // the assistant's message that further parts belong to
  for (const part of turn.parts) {
    if (part.kind === "result") {
      messages.push({ role: "tool", tool_call_id: part.id, content: part.text });
      open = null;
      continue;
    }
    if (!open) messages.push((open = { role: "assistant", content: "" }));
    if (part.kind === "text") open.content += part.text;
    else if (part.kind === "thinking") open.reasoning_content = (open.reasoning_content ?? "") + part.text;
    else {
      const called = { name: part.name, arguments: part.arguments || "{}" };
      (open.tool_calls ??= []).push({ id: part.id, type: "function", function: called });
    }
  }
  return messages;
}

// The calls of a reply that no result stands for yet.
export function openCalls(turn) {
  const answered = new Set(turn.parts.filter((part) => part.kind === "result").map((part) => part.id));
  return turn.parts.filter((part) => part.kind === "tool_call" && part.complete && !answered.has(part.id));
}

// Ask for a reply, or for the rest of one whose calls have their results, and follow it to its end. Never throws: how it
// ended is in the reply's `state` ("done", "stopped", "lost", "refused") and `error`.
export async function ask(reply, { turns, system, tools, signal }) {
  const messages = [...turns, reply].flatMap(messagesOf);
  if (system) messages.unshift({ role: "system", content: system });
  const body = { model: reply.model, messages, stream: true, stream_options: { include_usage: true } };
  if (reply.effort) body.reasoning_effort = reply.effort;
  if (tools?.length) body.tools = tools;
  // A reply that goes on behind results of calls goes on counting.
  const { seconds: spent = 0, tokens = 0 } = reply;
  const reading = { began: performance.now() - 1000 * spent, tokens, part: null, calls: {}, first: reply.parts.length };
  Object.assign(reply, { state: "running", error: "", now: "waiting" });
  announce("The question was sent");
  // Seconds go on while nothing comes.
  const clock = setInterval(() => (tick(reply, reading), changed(reply)), 500);
  tick(reply, reading);
  try {
    const events = stream("v1/chat/completions", {
      body,
      signal,
      // Thoughts in this field, whatever the gateway's usual one is; and kept for Inspect.
      headers: { "x-asides-inspect": "1", "x-asides-reasoning": "reasoning_content" },
      onResponse: (response) => (reply.request = response.headers.get("x-request-id")),
    });
    for await (const { data } of events) {
      if (data === "[DONE]") break;
      take(reply, reading, JSON.parse(data));
      changed(reply);
    }
    if (!reading.reason) throw new ApiError("The stream ended before the reply was complete.", { lost: true });
    reply.state = "done";
  } catch (error) {
    reply.state = error.name === "AbortError" ? "stopped" : error.lost ? "lost" : "refused";
    reply.error = reply.state === "stopped" ? "" : error.message;
  } finally {
    clearInterval(clock);
    finish(reply, reading);
    changed(reply);
  }
}

// One chunk of the stream.
function take(reply, reading, chunk) {
  if (chunk.error) throw new ApiError(chunk.error.message ?? String(chunk.error));
  if (chunk.usage) takeUsage(reply, reading, chunk.usage);
  const choice = chunk.choices?.[0];
  if (!choice) return;
  const { reasoning_content: thought, content: text, tool_calls: calls } = choice.delta ?? {};
  if (thought) grow(reply, reading, "thinking", thought);
  if (text) grow(reply, reading, "text", text);
  for (const call of calls ?? []) growCall(reply, reading, call);
  if (choice.finish_reason) reading.reason = choice.finish_reason;
  if (choice.retyped_characters) retype(reply, reading, choice.retyped_characters);
}

// The first words of this round were a thought, which the stream could not take back; or a thought was the answer, and came again.
function retype(reply, reading, length) {
  const part = reply.parts[reading.first];
  if (part.kind === "thinking") return void reply.parts.splice(reading.first, 1);
  const points = Array.from(part.text); // places count code points
  const thought = { kind: "thinking", text: points.slice(0, length).join("").trim(), complete: true };
  Object.assign(thought, { words: countWords(thought.text), tokens: thought.text.length / 4, estimated: true });
  part.text = points.slice(length).join("").trimStart();
  part.words = countWords(part.text);
  reply.parts.splice(reading.first, part.text ? 0 : 1, thought);
  if (!part.text && reading.part === part) reading.part = null;
}

function begin(reply, reading, part) {
  close(reply, reading);
  part.began = performance.now();
  reading.part = part;
  reply.parts.push(part);
  if (part.kind === "thinking") announce("The model is thinking");
  if (part.kind === "text") announce("The answer begins");
  reply.now = part.kind;
}

// The part that was growing is complete, because another begins.
function close(reply, reading) {
  const part = reading.part;
  if (!part) return;
  part.complete = true;
  tick(reply, reading);
  reading.part = null;
}

function grow(reply, reading, kind, text) {
  if (reading.part?.kind !== kind) {
    // What stands between two parts of a kind is no part of the second.
    if (!text.trim() && kind === "thinking") return;
    begin(reply, reading, { kind, text: "", words: 0, complete: false });
    reading.inWord = false;
  }
  const part = reading.part;
  // A word that goes on in the next piece counts once. (To look at the text itself would join its pieces.)
  part.words += countWords(text) - (reading.inWord && /^\S/.test(text) ? 1 : 0);
  reading.inWord = /\S$/.test(text);
  part.text += text;
  if (kind === "thinking") {
    part.tokens = part.text.length / 4;
    part.estimated = true;
    tick(reply, reading);
  }
}

function growCall(reply, reading, call) {
  let part = reading.calls[call.index];
  if (!part) {
    part = reading.calls[call.index] = { kind: "tool_call", name: "", arguments: "", id: call.id, complete: false };
    begin(reply, reading, part);
  }
  part.name += call.function?.name ?? "";
  part.arguments += call.function?.arguments ?? "";
}

function tick(reply, reading) {
  const now = performance.now();
  reply.seconds = (now - reading.began) / 1000;
  if (reading.part) reading.part.seconds = (now - reading.part.began) / 1000;
}

// What the reply cost; the thoughts of this round share its tokens by their length.
function takeUsage(reply, reading, usage) {
  reply.usage = usage;
  reply.tokens = reading.tokens + usage.completion_tokens;
  const details = usage.completion_tokens_details;
  if (!details?.reasoning_tokens) return;
  const thoughts = reply.parts.slice(reading.first).filter((part) => part.kind === "thinking");
  const length = thoughts.reduce((sum, part) => sum + part.text.length, 0);
  for (const part of thoughts) {
    part.tokens = (details.reasoning_tokens * part.text.length) / length;
    part.estimated = Boolean(details.estimated) || thoughts.length > 1;
  }
}

// Say of the part that was last whether it came to its end.
function finish(reply, reading) {
  const part = reading.part;
  tick(reply, reading);
  reply.now = "";
  reply.reason = reading.reason;
  const whole = reply.state === "done" && reading.reason !== "length";
  // Whether a thought was closed that nothing follows, the stream does not say.
  if (part) Object.assign(part, { complete: whole, ended: reply.state === "stopped" ? "stopped" : "cut off" });
  const words = reply.parts.reduce((sum, each) => sum + (each.kind === "text" ? each.words : 0), 0);
  const summary = unansweredThought(reply.parts)
    ? "It ended without an answer"
    : `The answer is complete: ${count(words, "word")}, ${seconds(reply.seconds)}`;
  announce({ done: summary, stopped: "Stopped" }[reply.state] ?? reply.error);
}

// The conversation survives a reload of this tab, and nothing else. Whether there was room for it.
export function store(turns) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(turns));
    return true;
  } catch {
    sessionStorage.removeItem(PLACE);
    return false;
  }
}

export function stored() {
  let turns = [];
  try {
    turns = JSON.parse(sessionStorage.getItem(PLACE)) ?? [];
  } catch {
    // Nothing that can be read.
  }
  for (const turn of turns) {
    lastId = Math.max(lastId, turn.id);
    // The page was left while this one was coming.
    if (turn.state !== "running") continue;
    Object.assign(turn, { state: "lost", now: "", error: "The page was left while the reply was coming." });
    if (turn.parts.length) turn.parts.at(-1).ended = "cut off";
  }
  return turns;
}
