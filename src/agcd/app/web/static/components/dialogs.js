/** Dialogs: native <dialog> elements that answer with a promise. */

import { h, isTyping, targetOf } from "../lib/dom.js";
import { plainButton } from "./controls.js";
import { copyPathMeant } from "./copyPath.js";

/**
 * Show a modal dialog and wait for it. `body(close)` returns its children; close(value) ends it with that value, Escape
 * with null.
 * @template T
 * @param {{ title: string, body: (close: (value: T | null) => void) => Child, class?: string,
 *   onkeydown?: (event: KeyboardEvent, close: (value: T | null) => void) => void }} options
 * @returns {Promise<T | null>}
 */
export function openDialog({ title, body, class: className = "", onkeydown }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: `dialog ${className}`.trim(), "aria-label": title });
    const before = document.activeElement;
    const close = (/** @type {T | null} */ value) => {
      if (!dialog.isConnected) return;
      dialog.close();
      dialog.remove();
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
      resolve(value);
    };
    dialog.append(h("h2", { class: "dialog-title" }, title), ...h("div", {}, body(close)).childNodes);
    if (onkeydown) dialog.addEventListener("keydown", (event) => onkeydown(event, close));
    dialog.addEventListener("keydown", copyByKey);
    // "cancel" comes at once, "close" later: keys pressed in between would reach a dialog that is closed already. A
    // browser may leave out the first where nobody has touched the page.
    dialog.addEventListener("cancel", () => close(null));
    dialog.addEventListener("close", () => close(null));
    document.body.append(dialog);
    dialog.showModal();
    /** @type {HTMLElement | null} */ (dialog.querySelector("[autofocus]"))?.focus();
  });
}

/**
 * The keys of the page rest while a dialog is open; this one works in all of them.
 * @param {KeyboardEvent} event
 */
function copyByKey(event) {
  if (event.key !== "c" || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!isTyping(targetOf(event))) copyPathMeant();
}

/**
 * Yes or no; true for yes.
 * @param {{ title: string, text: string, yes: string, no?: string }} options
 */
export async function confirmDialog({ title, text, yes, no = "Cancel" }) {
  /** @type {boolean | null} */
  const answer = await openDialog({ title, body: (close) => [h("p", {}, text),
    h("div", { class: "dialog-buttons" }, plainButton(no, () => close(false)),
      h("button", { type: "button", class: "button danger", autofocus: true, onclick: () => close(true) }, yes))] });
  return answer === true;
}

/**
 * One line of text, or null.
 * @param {{ title: string, text: string, label?: string, value: string, yes?: string, longest?: number }} options
 * @returns {Promise<string | null>}
 */
export function askDialog({ title, text, label = "Name", value, yes = "Save", longest = 200 }) {
  return openDialog({ title, body: (/** @type {(typed: string | null) => void} */ close) => {
    const input = h("input",
      { class: "input", value, maxlength: longest, autofocus: true, autocomplete: "off", required: true });
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      if (input.value.trim()) close(input.value.trim());
    };
    return [
      h("p", {}, text),
      h("form", { onsubmit: submit }, h("label", { class: "field" }, h("span", {}, label), input),
        h("div", { class: "dialog-buttons" }, plainButton("Cancel", () => close(null)),
          h("button", { type: "submit", class: "button primary" }, yes))),
    ];
  } });
}
