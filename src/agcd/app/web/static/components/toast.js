/** Short messages at the lower edge, above everything else. */

import { byId, h } from "../lib/dom.js";

const SHOWN_MS = 5000;
const SHOWN_ERROR_MS = 9000;
const MOST = 3;

/** @typedef {{ label: string, run: () => unknown }} ToastAction */

/**
 * Show one sentence for some seconds.
 * @param {string} text
 * @param {{ isError?: boolean, action?: ToastAction | null }} [options]
 */
export function toast(text, { isError = false, action = null } = {}) {
  const box = byId("toasts");
  const note = h("div", { class: isError ? "toast toast-error" : "toast" }, h("span", {}, text));
  const close = () => note.remove();
  if (action) note.append(actionLink(action, close));
  note.append(h("button", { type: "button", class: "toast-close", "aria-label": "Close", onclick: close }, "×"));
  for (const old of [...box.children]) if (old.firstChild?.textContent === text) old.remove();
  while (box.children.length >= MOST) box.firstChild?.remove();
  box.append(note);
  raise(box);
  setTimeout(close, isError ? SHOWN_ERROR_MS : SHOWN_MS);
}

/**
 * @param {ToastAction} action
 * @param {() => void} close
 */
function actionLink({ label, run }, close) {
  const act = () => {
    close();
    run();
  };
  return h("button", { type: "button", class: "link", onclick: act }, label);
}

/**
 * Remove what earlier messages offer under this label.
 * @param {string} label
 */
export function endOffers(label) {
  for (const button of byId("toasts").querySelectorAll(".link")) if (button.textContent === label) button.remove();
}

/**
 * Shown anew, a popover comes to lie above an open dialog.
 * @param {HTMLElement} box
 */
function raise(box) {
  if (!box.showPopover) return;
  if (box.matches(":popover-open")) box.hidePopover();
  box.showPopover();
}
