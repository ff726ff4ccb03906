// Where the page starts: the view that the address names, key prompt, settings, connection.
//
// A view is a module that exports one component, loaded when first opened. It gets `route` (route.js: the state of a view, never
// a key), `about` (what GET asides/about answered), `settings`, and `refresh`, which asks for `about` again.

import { getJSON, key, onKeyNeeded } from "./api.js";
import { Icon } from "./icon.js";
import { Dialog, editable, Message, toggleAll } from "./parts.js";
import { go, readRoute } from "./route.js";
import { applyScheme, loadSettings, saveSettings, Settings } from "./settings.js";
import { Component, html, render, useCallback, useEffect, useEvent, useRef, useState } from "./ui.js";

const VIEWS = {
  chats: { name: "Chats", load: () => import("./chats.js") },
  live: { name: "Live", load: () => import("./live.js") },
  history: { name: "History", load: () => import("./history.js") },
  compare: { name: "Compare", load: () => import("./compare.js") },
  stats: { name: "Stats", load: () => import("./stats.js") },
  inspect: { name: "Inspect", load: () => import("./inspect.js") },
};

function useRoute() {
  const [route, setRoute] = useState(readRoute);
  useEvent("hashchange", () => setRoute(readRoute()));
  return route;
}

// What the gateway says about itself, asked again by itself while it does not answer.
function useAbout() {
  const [about, setAbout] = useState(null);
  const [error, setError] = useState(null);
  const timer = useRef();
  const refresh = useCallback(async () => {
    clearTimeout(timer.current);
    try {
      setAbout(await getJSON("asides/about"));
      setError(null);
    } catch (problem) {
      setError(problem);
      if (problem.lost) timer.current = setTimeout(refresh, 5000);
    }
  }, []);
  useEffect(() => void refresh(), []);
  useEvent("online", refresh);
  return { about, error, refresh };
}

// The module of a view; an error where it cannot be loaded.
function useView(name) {
  const [found, setFound] = useState({});
  useEffect(() => {
    let wanted = true; // a view that comes after another was opened must not take its place
    const show = (view) => wanted && setFound({ name, ...view });
    VIEWS[name].load().then(
      (module) => show({ View: module.default }),
      (error) => show({ error }),
    );
    return () => (wanted = false);
  }, [name]);
  return found.name === name ? found : {};
}

// What a view throws while it is drawn ends that view alone; another address, or a click, is another try.
class Boundary extends Component {
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error, at: this.props.at });
  }
  render({ at, children }, { error, at: failed }) {
    if (!error || at !== failed) return children;
    return html`<${Message} tone="error" title="This view has failed." action="Try again" onAction=${() => this.setState({ error: null })}>
      ${error.message}<//>`;
  }
}

function KeyPrompt({ message, done }) {
  const field = useRef();
  const send = (event) => {
    event.preventDefault();
    const given = field.current.value.trim();
    if (!given) return;
    key.set(given);
    done(true);
  };
  return html`
    <${Dialog} label="Key" onClose=${() => done(false)}>
      <form onSubmit=${send}>
        <h2>This gateway asks for a key</h2>
        ${message && html`<${Message} tone="error">${message}<//>`}
        <p>The same key that programs use. It stays in this tab and is forgotten when the tab is closed.</p>
        <label class="field"><span>Key</span>
          <input ref=${field} type="password" pattern="\\s*[!-~]+\\s*" title="ASCII without spaces" autocomplete="off" autofocus spellcheck=${false} /></label>
        <p class="row end"><button class="primary">Use this key</button></p>
      </form>
    <//>
  `;
}

// One prompt at a time, however many requests wait for it.
function useKeyPrompt() {
  const [prompt, setPrompt] = useState(null);
  const waiting = useRef(null);
  useEffect(() => {
    onKeyNeeded((message) => {
      waiting.current ??= new Promise((resolve) => {
        const done = (given) => {
          waiting.current = null;
          setPrompt(null);
          resolve(given);
        };
        setPrompt({ message, done });
      });
      return waiting.current;
    });
  }, []);
  return prompt;
}

function useShortcuts() {
  useEvent("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || editable(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "a") toggleAll();
    else if (event.key === "/") document.querySelector("[data-question]")?.focus();
    else return;
    event.preventDefault();
  });
}

function App() {
  const prompt = useKeyPrompt();
  const route = useRoute();
  const { about, error, refresh } = useAbout();
  const [settings, setSettings] = useState(loadSettings);
  const [showSettings, setShowSettings] = useState(false);
  const name = Object.hasOwn(VIEWS, route.view) ? route.view : "chats";
  const { View, error: unloaded } = useView(name);
  useShortcuts();
  useEffect(() => applyScheme(settings.scheme), [settings.scheme]);
  useEffect(() => {
    document.title = `${VIEWS[name].name} · asides`;
  }, [name]);
  const change = (chosen) => {
    saveSettings(chosen);
    setSettings(chosen);
  };
  return html`
    <a class="skip" href="#main" onClick=${(event) => (event.preventDefault(), document.getElementById("main").focus())}>
      Skip to the content</a>
    <header class="top">
      <a class="brand" href="#/chats"><img src="asides/page/icon.svg" alt="" width="26" height="26" /> asides</a>
      <nav aria-label="Views">
        ${Object.entries(VIEWS).map(
          ([each, { name: title }]) => html`<a key=${each} href="#/${each}" aria-current=${each === name ? "page" : undefined}>
            <${Icon} name=${each} />${title}</a>`,
        )}
      </nav>
      <button type="button" class="plain settings" onClick=${() => setShowSettings(true)}><${Icon} name="settings" />Settings</button>
    </header>
    <main id="main" tabindex="-1" class="view-${name}">
      ${error &&
      html`<${Message} tone="error" title=${error.lost ? "No connection." : ""} action="Try again" onAction=${refresh}>
        ${error.message} ${error.lost && "It is tried again every few seconds."}<//>`}
      ${unloaded &&
      html`<${Message} tone="error" title="This view could not be loaded." action="Reload" onAction=${() => location.reload()}>
        ${unloaded.message}<//>`}
      ${View && about && html`<${Boundary} key=${name} at=${route}><${View} route=${route} about=${about} settings=${settings} refresh=${refresh} /><//>`}
      ${!about && !error && html`<p class="muted loading">Connecting to the gateway…</p>`}
    </main>
    <div id="live" class="off-screen" role="status" aria-live="polite"></div>
    ${showSettings &&
    html`<${Dialog} label="Settings" onClose=${() => setShowSettings(false)}>
      <${Settings} settings=${settings} change=${change} hasKey=${Boolean(key.get())}
        forgetKey=${() => key.set("")} />
    <//>`}
    ${prompt && html`<${KeyPrompt} key=${prompt.message} ...${prompt} />`}
  `;
}

applyScheme(loadSettings().scheme);
const place = document.getElementById("app");
place.replaceChildren();
render(html`<${App} />`, place);
if (!location.hash) go("chats", {}, true);
