// What the page asks of the gateway: the key, errors in words, streams over fetch.
//
// The key is kept for this tab and sent as a header, never in an address. A request waits until it was given (`askForKey`).
//
//   const about = await getJSON("asides/about");
//   for await (const { event, data } of stream("v1/chat/completions", { body, signal })) ...

import { visible } from "./markdown.js";

const KEY = "asides.key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

// What went wrong, in words for a person. `lost` where nothing answered, so that asking again may help.
export class ApiError extends Error {
  constructor(message, { status = 0, code = null, lost = false } = {}) {
    super(visible(String(message))); // it may be an upstream's
    this.status = status;
    this.code = code;
    this.lost = lost;
  }
}

const LOST = "The gateway does not answer. It may have been stopped, or the connection is gone.";

// Set by app.js: shows the prompt and gives a promise of whether a key was given.
let askForKey = async () => false;
export function onKeyNeeded(ask) {
  askForKey = ask;
}

// Send a request and give its response; what is not a success is an ApiError. `body` is sent as JSON.
export async function request(path, { method, body, headers = {}, signal } = {}) {
  for (;;) {
    const sent = key.get();
    const response = await fetchOrLost(new URL(path, document.baseURI), {
      method: method ?? (body === undefined ? "GET" : "POST"),
      body: body === undefined ? undefined : JSON.stringify(body),
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(sent ? { authorization: `Bearer ${sent}` } : {}),
        ...headers,
      },
      cache: "no-store",
      credentials: "same-origin",
      signal,
    });
    if (response.ok) return response;
    const error = await readError(response);
    // Another request may have brought a new key while this one was under way.
    const renewed = key.get() !== sent;
    if (response.status !== 401 || !(renewed || (await askForKey(sent ? error.message : "")))) throw error;
  }
}

async function fetchOrLost(url, options) {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(LOST, { lost: true });
  }
}

async function readError(response) {
  const text = await response.text().catch(() => "");
  let said = null;
  try {
    said = JSON.parse(text).error;
  } catch {
    // No JSON: a proxy's page, perhaps. Its first line will do.
  }
  const message = typeof said === "string" ? said : (said?.message ?? text.split("\n")[0].slice(0, 300));
  return new ApiError(message || `The gateway answered with status ${response.status}.`, {
    status: response.status,
    code: said?.code ?? null,
  });
}

export async function getJSON(path, options) {
  const response = await request(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The gateway's answer could not be read.", { lost: true });
  }
}

// Server-sent events of a response: {event, data} each, data as text. Comments (keep-alive) are left out.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await readOrLost(reader);
      if (done) return;
      const lines = (rest + value).split("\n\n");
      rest = lines.pop();
      for (const frame of lines) {
        const found = readFrame(frame);
        if (found) yield found;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function readOrLost(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The gateway, or the way to it, broke off.", { lost: true });
  }
}

function readFrame(frame) {
  let event = "message";
  const data = [];
  for (const line of frame.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(line[5] === " " ? 6 : 5));
    else if (line.startsWith("event:")) event = line.slice(6).trim();
  }
  return data.length ? { event, data: data.join("\n") } : null;
}

// The events of a request. `onResponse` sees the response before the first event.
export async function* stream(path, { onResponse, ...options } = {}) {
  const response = await request(path, { ...options, headers: { accept: "text/event-stream", ...options.headers } });
  onResponse?.(response);
  yield* events(response);
}

// Hand a file to the person: from text, or from the gateway (an export, with the key in a header).
export function saveText(text, name, type = "text/plain") {
  saveBlob(new Blob([text], { type: `${type};charset=utf-8` }), name);
}

export async function saveFrom(path, name) {
  const response = await request(path);
  const given = /filename="?([^";]+)/.exec(response.headers.get("content-disposition") ?? "");
  saveBlob(await response.blob(), given ? given[1] : name);
}

function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  // The download reads the address after the click has returned.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
