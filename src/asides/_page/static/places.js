// Where the characters of a thought stand on the screen, whether it is shown as plain text or as Markdown.

import { stay } from "./follow.js";

// The text nodes of an element, with where each begins in all of them together (`gap` characters between each two).
function* nodes(element, gap = 0) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let at = 0; walker.nextNode(); at += walker.currentNode.data.length + gap) yield [walker.currentNode, at];
}

function rangeAt(element, start, length, gap) {
  for (const [node, at] of nodes(element, gap)) {
    if (at + node.data.length <= start) continue;
    const range = new Range();
    range.setStart(node, Math.max(0, start - at));
    range.setEnd(node, Math.min(node.data.length, start - at + length));
    return range;
  }
  return null;
}

// Of Markdown the block that holds the offset is known; in it the words of the step are looked for.
function rangeInMarkdown(markdown, offset, words) {
  const blocks = [...markdown.children].flatMap((part) => [...part.children]);
  const block = blocks.findLast((each) => each.offset <= offset) ?? blocks[0];
  if (!block) return null;
  const found = block.textContent.indexOf(words.replace(/[*_`…]/g, "").trim().slice(0, 24));
  return rangeAt(block, Math.max(found, 0), 24, 0);
}

// Scroll to the step that begins at `offset` with these words, and select them.
export function lead(body, offset, words) {
  const markdown = body.querySelector(".markdown");
  // Plain text is blocks, with a character between each two.
  const range = markdown ? rangeInMarkdown(markdown, offset, words) : rangeAt(body, offset, 24, 1);
  if (!range) return;
  stay();
  show(range);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
}

export function show(range) {
  scrollBy(0, range.getBoundingClientRect().top - innerHeight / 3);
}

const MOST = 9999;

// Every place of a text in an element, as ranges.
export function findAll(element, wanted) {
  const found = [];
  const text = wanted.toLowerCase();
  if (!text) return found;
  for (const [node] of nodes(element)) {
    const data = node.data.toLowerCase();
    if (data.length !== node.data.length) continue; // a letter that is longer in lower case: places would be wrong
    for (let at = data.indexOf(text); at >= 0 && found.length < MOST; at = data.indexOf(text, at + text.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + text.length);
      found.push(range);
    }
  }
  return found;
}
