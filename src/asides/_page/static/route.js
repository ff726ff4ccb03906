// The address: which view is open and in which state. Everything stands in the fragment, so nothing of it reaches a server.

// A step of a path; one that somebody mistyped is taken as it is.
function decoded(step) {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}

// Names that views had before, so that links which people sent one another still open.
const FORMER = { talk: "chats", watch: "live", read: "history", figures: "stats", inside: "inspect" };

// {view, path, query} of an address such as #/history/reply/ID?search=x; `..` would lead to another path of the API
export function readRoute() {
  const [way, ...query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, ...path] = way.split("/").map(decoded).filter((step) => !/^\.\.?$/.test(step));
  return { view: FORMER[view] ?? (view || "chats"), path, query: new URLSearchParams(query.join("?")) };
}

// Only what says something, as parameters of a request or an address.
export const parameters = (values) => String(new URLSearchParams(Object.entries(values).filter(([, value]) => value)));

// The address of a view: `to` as "history/reply/ID", and what of `query` is not empty.
export function address(to, query = {}) {
  const kept = parameters(query);
  return `#/${to}${kept && `?${kept}`}`;
}

// Open a view; `replace` without a step in the history, for state that changes while one types.
export function go(to, query = {}, replace = false) {
  const next = address(to, query);
  if (next === location.hash) return;
  if (!replace) location.hash = next;
  else {
    history.replaceState(null, "", next);
    dispatchEvent(new HashChangeEvent("hashchange"));
  }
}
