/** Dialogs: native <dialog> elements that answer with a promise. */

import { h } from "./dom.js";

/**
 * Show a modal dialog and wait for it. `body(close)` returns its children; close(value) ends it with that value,
 * Escape with null. Options: title, body, class, onkeydown(event, close).
 */
export function openDialog({ title, body, class: className = "", onkeydown = null }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: `dialog ${className}`.trim(), "aria-label": title });
    const before = document.activeElement;
    const close = (value) => {
      if (!dialog.isConnected) return;
      dialog.close();
      dialog.remove();
      if (before?.isConnected) before.focus({ preventScroll: true });
      resolve(value);
    };
    dialog.append(h("h2", { class: "dialog-title" }, title), ...[body(close)].flat());
    if (onkeydown) dialog.addEventListener("keydown", (event) => onkeydown(event, close));
    // "cancel" comes at once, "close" later: keys pressed in between would reach a dialog that is closed already. A
    // browser may leave out the first where nobody has touched the page.
    dialog.addEventListener("cancel", () => close(null));
    dialog.addEventListener("close", () => close(null));
    document.body.append(dialog);
    dialog.showModal();
    dialog.querySelector("[autofocus]")?.focus();
  });
}

/** Yes or no. Options: title, text, yes ("OK"), no ("Cancel"), isDanger, body (further elements). True for yes. */
export async function confirmDialog({ title, text = "", yes = "OK", no = "Cancel", isDanger = false, body = null }) {
  const buttons = (close) => h("div", { class: "dialog-buttons" },
    h("button", { type: "button", class: "button", onclick: () => close(false) }, no),
    h("button", { type: "button", class: isDanger ? "button danger" : "button primary", autofocus: true,
      onclick: () => close(true) }, yes));
  const answer = await openDialog({ title, body: (close) => [h("p", {}, text), body, buttons(close)].filter(Boolean) });
  return answer === true;
}

/** One line of text. Options: title, text, label, value, yes ("Save"), longest (200). The text, or null. */
export function askDialog({ title, text = "", label = "Name", value = "", yes = "Save", longest = 200 }) {
  const form = (close) => {
    const input = h("input",
      { class: "input", value, maxlength: longest, autofocus: true, autocomplete: "off", required: true });
    const submit = (event) => {
      event.preventDefault();
      if (input.value.trim()) close(input.value.trim());
    };
    return [
      text ? h("p", {}, text) : "",
      h("form", { onsubmit: submit }, h("label", { class: "field" }, h("span", {}, label), input),
        h("div", { class: "dialog-buttons" },
          h("button", { type: "button", class: "button", onclick: () => close(null) }, "Cancel"),
          h("button", { type: "submit", class: "button primary" }, yes))),
    ];
  };
  return openDialog({ title, body: form });
}
