// The view follows the end of what grows until the person scrolls up or opens a thought, and again at the end.

import { useEffect, useState } from "./ui.js";

let follows = true;
let lastTop = 0;
const watchers = new Set();

const height = () => document.scrollingElement.scrollHeight;
const atEnd = () => scrollY + innerHeight >= height() - 24;

function set(value) {
  if (value === follows) return;
  follows = value;
  watchers.forEach((watch) => watch(value));
}

// Only a way up means to stay: text that grows, or a thought that folds, moves the end but not the person.
addEventListener("scroll", () => {
  if (atEnd()) set(true);
  else if (scrollY < lastTop) set(false);
  lastTop = scrollY;
});

export const following = () => follows;

// The person is looking at something else than the end.
export const stay = () => set(false);

export function toEnd() {
  set(true);
  scrollTo(0, height());
  lastTop = scrollY; // not the height: the event of this is no way up
}

// Follow the end of an element (a ref) while it grows by itself (`active`); whether it is being followed.
export function useFollow(element, active) {
  const [value, setValue] = useState(follows);
  useEffect(() => {
    watchers.add(setValue);
    return () => {
      watchers.delete(setValue);
      follows = true;
    };
  }, []);
  useEffect(() => {
    if (!active) return;
    // It reports before the next picture, so nobody sees the step in between.
    const observer = new ResizeObserver(() => follows && toEnd());
    observer.observe(element.current);
    // The last step of a reply, its actions, is drawn when it is no longer active.
    return () => setTimeout(() => (observer.disconnect(), follows && toEnd()), 50);
  }, [active]);
  return value;
}
