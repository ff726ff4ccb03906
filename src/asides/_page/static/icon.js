// An icon of the sprite. It says nothing by itself: words stand beside it, or on the button that it is in.

import { html } from "./ui.js";

const SPRITE = "asides/page/icons.svg";

export const Icon = ({ name }) => html`<svg class="icon" aria-hidden="true" width="20" height="20"><use href=${`${SPRITE}#${name}`} /></svg>`;
