/** Short messages at the lower edge, above everything else. */

import { h } from "./dom.js";

const SHOWN_MS = 5000;
const SHOWN_ERROR_MS = 9000;
const MOST = 3;

/** Show one sentence for some seconds. Options: isError; action {label, run}. */
export function toast(text, { isError = false, action = null } = {}) {
  const box = document.getElementById("toasts");
  const note = h("div", { class: isError ? "toast toast-error" : "toast" }, h("span", {}, text));
  const close = () => note.remove();
  const act = () => {
    close();
    action.run();
  };
  if (action) note.append(h("button", { type: "button", class: "link", onclick: act }, action.label));
  note.append(h("button", { type: "button", class: "toast-close", "aria-label": "Close", onclick: close }, "×"));
  for (const old of [...box.children]) if (old.firstChild.textContent === text) old.remove();
  while (box.children.length >= MOST) box.firstChild.remove();
  box.append(note);
  raise(box);
  setTimeout(close, isError ? SHOWN_ERROR_MS : SHOWN_MS);
}

/** Shown anew, a popover comes to lie above an open dialog. */
function raise(box) {
  if (!box.showPopover) return;
  if (box.matches(":popover-open")) box.hidePopover();
  box.showPopover();
}
