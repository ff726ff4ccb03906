// The one way from text to markup: DOMPurify, with a list of elements and attributes for each kind of markup that is made here.
//
// Markup of Markdown and formulas holds a model's words, charts and colours of code none of its own elements. No list has `style`.

import "./vendor/purify.js"; // sets globalThis.DOMPurify

const ACTING = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

// A picture for each character that would act. Carriage returns are left out: a line end may come in two pieces.
export function visible(text) {
  return text.replaceAll("\r", "").replace(ACTING, (character) => {
    const code = character.charCodeAt(0);
    if (code < 0x20) return String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
}

export const ADDRESS = /^(?:https?|mailto):/i;

const list = (words) => words.split(" ");
const common = { ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, RETURN_DOM_FRAGMENT: true };
const MARKDOWN = {
  ...common,
  ALLOWED_TAGS: list("a blockquote br code del div em h1 h2 h3 h4 h5 h6 hr li ol p pre strong table tbody td th thead tr ul"),
  ALLOWED_ATTR: ["href", "align", "start", "class"],
  ALLOWED_URI_REGEXP: ADDRESS,
  ADD_URI_SAFE_ATTR: ["align", "start"], // every other attribute must be such an address
};
const CHART = {
  ...common,
  ALLOW_ARIA_ATTR: true,
  ALLOWED_TAGS: list("div svg rect line text title #text"),
  ALLOWED_ATTR: list("class role aria-label height width x y x1 x2 y1 y2"),
};
const MATH = {
  ...common,
  ALLOWED_TAGS: list("math menclose merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover none #text"),
  ALLOWED_ATTR: list(
    "accent accentunder class columnalign columnlines columnspacing columnspan depth display displaystyle fence form height largeop linebreak linethickness lspace mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace scriptlevel separator stretchy symmetric voffset width",
  ),
};
const CODE = { ...common, ALLOWED_TAGS: ["span", "#text"], ALLOWED_ATTR: ["class"] };

const purifier = DOMPurify(window);
let rules = MARKDOWN; // those that are in force
const KEPT = new Map([
  [MARKDOWN, /^(?:language-[\w+#.-]{1,40}|tex-inline|tex-block)$/], // a code block's language; a formula that is to be drawn
  [CHART, /^/],
  [MATH, /^[\w -]{0,80}$/],
  [CODE, /^hljs-[\w -]{1,60}$/],
]);
// `&#8238;` is such a character only now.
purifier.addHook("uponSanitizeElement", (node) => node.nodeType === 3 && (node.data = visible(node.data)));
purifier.addHook("uponSanitizeAttribute", (_, attribute) => {
  if (attribute.attrName === "class") attribute.keepAttr = KEPT.get(rules).test(attribute.attrValue);
});
purifier.addHook("afterSanitizeAttributes", (element) => {
  if (element.localName !== "a" || !element.hasAttribute("href")) return;
  element.target = "_blank";
  element.rel = "noopener noreferrer nofollow";
  element.title = element.href;
});

const by = (wanted) => (markup) => {
  rules = wanted;
  return purifier.sanitize(markup, wanted);
};
export const markdownFragment = by(MARKDOWN);
export const chartFragment = by(CHART);
export const mathFragment = by(MATH);
export const codeFragment = by(CODE);
