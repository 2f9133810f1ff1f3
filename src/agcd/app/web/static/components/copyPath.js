/** The path of a picture's file, copied by a key: of the one under the pointer, with the focus, or enlarged. */

import { targetOf } from "../lib/dom.js";
import { say } from "../lib/words.js";
import { toast } from "./toast.js";

const HAS_PATH = "[data-path]";

/** What the pointer was over last. @type {HTMLElement | null} */
let under = null;

addEventListener("pointerover", (event) => {
  under = event.pointerType === "mouse" ? targetOf(event).closest(HAS_PATH) : null;
});
// Who moves by keys means what the keys are on, wherever the mouse was left.
addEventListener("keydown", (event) => {
  if (event.key.startsWith("Arrow") || event.key === "Tab") under = null;
});

/** @returns {HTMLElement | null} */
function meant() {
  const open = [...document.querySelectorAll("dialog[open]")].at(-1);
  const inside = /** @type {Document | Element} */ (open ?? document);
  if (under?.isConnected && inside.contains(under)) return under;
  const focused = document.activeElement?.closest(HAS_PATH);
  const found = focused ?? inside.querySelector(".is-cursor[data-path], .viewer[data-path]");
  return /** @type {HTMLElement | null} */ (found);
}

/** Copy the path of the picture that is meant, and say so. */
export function copyPathMeant() {
  const path = meant()?.dataset.path;
  if (path) copyPath(path);
  else toast(say`Point at a picture first, then copy its path.`);
}

/** @param {string} path */
export async function copyPath(path) {
  // Browsers let only https and this machine itself copy.
  const isCopied = await navigator.clipboard?.writeText(path).then(() => true, () => false);
  toast(isCopied ? `Copied: ${path}` : `This browser does not let the page copy. The path is ${path}`);
}
