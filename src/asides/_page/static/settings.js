// What a person has chosen for this browser (localStorage), and the dialog that changes it.

import { html, useState } from "./ui.js";

const PLACE = "asides.settings";

export const CHOICES = {
  fold: {
    label: "Thoughts",
    options: [
      ["auto", "Open while they come, folded when the answer begins"],
      ["open", "Always open"],
      ["folded", "Always folded"],
    ],
  },
  thoughts: {
    label: "Thoughts are shown as",
    options: [
      ["markdown", "Markdown, quieter than the answer"],
      ["plain", "Plain text, as the model wrote it"],
    ],
  },
  scheme: {
    label: "Colours",
    options: [
      ["system", "As the system has them"],
      ["light", "Light"],
      ["dark", "Dark"],
    ],
  },
  send: {
    label: "A question is sent with",
    options: [
      ["enter", "Enter (Shift+Enter begins a new line)"],
      ["ctrl", "Ctrl+Enter or Cmd+Enter"],
    ],
  },
};

// The stored choices; anything that is none of the options is the first one.
export function loadSettings() {
  let stored = null;
  try {
    stored = JSON.parse(localStorage.getItem(PLACE));
  } catch {
    // Nothing that can be read.
  }
  const chosen = ([name, { options }]) => [name, (options.find(([value]) => value === stored?.[name]) ?? options[0])[0]];
  return Object.fromEntries(Object.entries(CHOICES).map(chosen));
}

export function saveSettings(settings) {
  localStorage.setItem(PLACE, JSON.stringify(settings));
}

export function applyScheme(scheme) {
  if (scheme === "system") delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = scheme;
}

const SHORTCUTS = [
  ["a", "fold or open all thoughts"],
  ["/", "go to the question"],
  ["Esc", "leave the field; else stop the reply"],
];

export function Settings({ settings, change, hasKey, forgetKey }) {
  const [forgotten, setForgotten] = useState(false);
  return html`
    <h2>Settings</h2>
    ${Object.entries(CHOICES).map(
      ([name, { label, options }]) => html`
        <fieldset key=${name}>
          <legend>${label}</legend>
          ${options.map(
            ([value, text]) => html`
              <label class="option" key=${value}>
                <input type="radio" name=${name} value=${value} checked=${settings[name] === value}
                  onChange=${() => change({ ...settings, [name]: value })} />
                <span>${text}</span>
              </label>
            `,
          )}
        </fieldset>
      `,
    )}
    <h3>Keys</h3>
    <dl class="terms">
      ${SHORTCUTS.map(([name, meaning]) => html`<dt><kbd>${name}</kbd></dt><dd>${meaning}</dd>`)}
    </dl>
    ${hasKey &&
    html`<p>
      <button type="button" disabled=${forgotten} onClick=${() => (forgetKey(), setForgotten(true))}>
        ${forgotten ? "The key is forgotten" : "Forget the key of this tab"}
      </button>
    </p>`}
    <p class="muted">Kept in this browser alone.</p>
  `;
}
