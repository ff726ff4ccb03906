// Formulas as MathML, which browsers draw themselves. Temml, which reads TeX, is loaded with the first formula; until then, and
// where it cannot read one, a formula stands as it was written.

import { mathFragment } from "./sanitize.js";

const LONGEST = 4000; // characters of a formula
const MOST = 500; // formulas that are remembered: the end of a text is drawn again with every piece
const OPTIONS = { throwOnError: true, trust: false, maxExpand: 200, maxSize: [40, 40] };
const SIGNS = /^(?:\$\$|\$|\\\(|\\\[)|(?:\$\$|\$|\\\)|\\\])$/g;
const WAITING = "code.tex-inline, code.tex-block";

let temml = null;
let loading = null;
const drawn = new Map();

// Lengths that a formula is laid out with, as classes (math.css): the page's policy lets no style through. What is left, colours
// and fonts, is left out.
const LENGTHS = [[0.1, "0"], [0.75, "half"], [1.5, "1"]];
function length(value) {
  const number = parseFloat(value) / (value.endsWith("pt") ? 12 : 1);
  return number < 0 ? "less" : (LENGTHS.find(([most]) => number < most)?.[1] ?? "2");
}
const CLASSES = {
  paddingLeft: (value) => `left-${length(value)}`,
  paddingRight: (value) => `right-${length(value)}`,
  marginLeft: (value) => `before-${length(value)}`,
  border: () => "boxed",
  width: (value) => ({ "50%": "wide-half", "100%": "wide" })[value],
  mathDepth: () => "no-deeper",
  "math-depth": () => "no-deeper",
};
function withClasses(node) {
  for (const [name, value] of Object.entries(node.style ?? {})) {
    const found = Object.hasOwn(CLASSES, name) && CLASSES[name](String(value));
    if (found) node.classes.push(found);
  }
  node.style = {};
  node.children?.forEach(withClasses);
  return node;
}

function mathOf(source, displayMode) {
  const key = `${displayMode} ${source}`;
  if (!drawn.has(key)) {
    let fragment = null;
    try {
      if (source.length <= LONGEST) fragment = mathFragment(withClasses(temml.__renderToMathMLTree(source.replace(SIGNS, ""), { ...OPTIONS, displayMode })).toMarkup());
    } catch {
      // It is no TeX, or not all of it has come.
    }
    drawn.set(key, fragment);
    if (drawn.size > MOST) drawn.delete(drawn.keys().next().value);
  }
  return drawn.get(key)?.cloneNode(true);
}

function draw(code) {
  const source = code.textContent.trim();
  const block = code.className === "tex-block";
  const math = mathOf(source, block);
  const place = document.createElement("span");
  if (math?.querySelector("math")) {
    place.className = block ? "formula block" : "formula";
    place.title = source;
    if (block) place.tabIndex = 0; // it may scroll sideways, also by keyboard
    place.append(math);
  } else place.append(source);
  code.replaceWith(place);
}

// Draw the formulas of a fragment, or leave them until Temml is there.
export function drawFormulas(root) {
  const found = root.querySelectorAll(WAITING);
  if (!found.length) return;
  if (temml) return found.forEach(draw);
  loading ??= import("./vendor/temml.js").then(
    (module) => ((temml = module.temml), document.querySelectorAll(WAITING).forEach(draw)),
    () => (loading = null), // asked for again with the next one
  );
}
