// A conversation on paper, as Markdown, as a link; with its thoughts only where that is wanted.

import { saveText } from "./api.js";
import { CopyButton, Dialog, replyAsMarkdown } from "./parts.js";
import { address } from "./route.js";
import { html, useState } from "./ui.js";

function asMarkdown(turns, withThoughts) {
  const written = turns.map((turn) =>
    turn.role === "user" ? `## Question\n\n${turn.text}` : `## ${turn.model}\n\n${replyAsMarkdown(turn.parts, withThoughts)}`,
  );
  return written.join("\n\n") + "\n";
}

// What is printed is decided by a class, which is there only while printing.
function print(withThoughts) {
  const name = withThoughts ? "with-thoughts" : "without-thoughts";
  document.documentElement.classList.add(name);
  addEventListener("afterprint", () => document.documentElement.classList.remove(name), { once: true });
  window.print();
}

export function Share({ turns, choices, onClose }) {
  const [withThoughts, setWith] = useState(false);
  const question = turns.find((turn) => turn.role === "user")?.text ?? "";
  const link = () => new URL(address("chats", { ...choices, question }), location.href).href;
  return html`
    <${Dialog} label="Share or print" onClose=${onClose}>
      <h2>Share or print</h2>
      <label class="option"><input type="checkbox" checked=${withThoughts} onChange=${(event) => setWith(event.target.checked)} />
        <span>With thoughts, calls and results</span></label>
      <div class="choices">
        <button type="button" onClick=${() => (onClose(), setTimeout(() => print(withThoughts)))}>Print</button>
        <${CopyButton} label="Copy as Markdown" text=${() => asMarkdown(turns, withThoughts)} />
        <button type="button" onClick=${() => saveText(asMarkdown(turns, withThoughts), "conversation.md", "text/markdown")}>
          Save as Markdown</button>
        <${CopyButton} label="Copy a link to the question" text=${link} />
      </div>
      <p class="muted small">The link holds the first question, the model, the effort and the system prompt; no reply and no key.</p>
    <//>
  `;
}
