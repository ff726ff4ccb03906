// What the page uses of preact and htm. htm reads markup from template strings, so there is no build step; what stands in
// ${...} is set as text or as a property and never parsed as markup.

import { Component, h, render } from "./vendor/preact.js";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
import htm from "./vendor/htm.js";

const html = htm.bind(h);

// A component that is drawn again only when one of its properties is another value.
function memo(Inner) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const before = this.props;
      return Object.keys({ ...before, ...next }).some((name) => before[name] !== next[name]);
    }
    render() {
      return h(Inner, this.props);
    }
  };
}

// What is done at an event of the window while the component is there; as it was first given.
const useEvent = (name, work) =>
  // At once, not after the next picture: what happens between the two would be lost (an address that changes, a key).
  useLayoutEffect(() => {
    addEventListener(name, work);
    return () => removeEventListener(name, work);
  }, []);

export { Component, html, memo, render, useCallback, useEffect, useEvent, useLayoutEffect, useMemo, useRef, useState };
