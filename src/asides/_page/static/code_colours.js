// Colours of code. The library that reads languages is loaded with the first block that names one.

import { codeFragment } from "./sanitize.js";

const LONGEST = 20_000; // characters of a block
const WAITING = 'code[class^="language-"]:not(:has(span))';

let library = null;
let loading = null;

function colour(code) {
  const text = code.textContent;
  const language = code.className.slice("language-".length).toLowerCase();
  if (text.length > LONGEST || !library.getLanguage(language)) return;
  const fragment = codeFragment(library.highlight(text, { language, ignoreIllegals: true }).value);
  if (fragment.textContent === text) code.replaceChildren(fragment);
}

// Colour the code blocks of a fragment, or leave them until the library is there.
export function colourCode(root) {
  const found = root.querySelectorAll(WAITING);
  if (!found.length) return;
  if (library) return found.forEach(colour);
  loading ??= import("./vendor/highlight.js").then(
    (module) => ((library = module.default), document.querySelectorAll(WAITING).forEach(colour)),
    () => (loading = null),
  );
}
