/** The key sheet: every action of the page with its key, and a button to change it. */

import { openDialog } from "./dialogs.js";
import { h, setText } from "./dom.js";

const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta", "CapsLock", "Tab"]);

/** Show the sheet. `sheet` holds the actions and what keys.js lets one do with them. */
export function openKeySheet(sheet) {
  const { actions, giveKey, resetKeys, keyWord, plainKey } = sheet;
  const message = h("p", { class: "key-message", role: "status" });
  const buttons = new Map();
  let waiting = null;

  const draw = () => {
    for (const [name, button] of buttons) {
      setText(button, waiting === name ? "press a key…" : keyWord(actions.get(name).pressed));
      button.classList.toggle("is-waiting", waiting === name);
    }
  };
  const wait = (name) => {
    waiting = waiting === name ? null : name;
    setText(message, waiting ? `Press the new key for “${actions.get(name).label}”, or Esc to leave it.` : "");
    draw();
  };
  const take = (event) => {
    if (waiting === null || MODIFIERS.has(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    const name = waiting;
    waiting = null;
    const refusal = event.key === "Escape" ? "" : giveKey(name, plainKey(event.key));
    setText(message, refusal ?? `“${actions.get(name).label}” is now ${keyWord(actions.get(name).pressed)}.`);
    draw();
  };
  const reset = () => {
    resetKeys();
    draw();
    setText(message, "All keys are as at first.");
  };
  const row = ([name, action]) => {
    const label = `Change the key of: ${action.label}`;
    const button = h("button", { type: "button", class: "key-button", "aria-label": label, onclick: () => wait(name) });
    buttons.set(name, button);
    const also = (action.also ?? []).map((key) => h("kbd", {}, keyWord(key)));
    return h("div", { class: "key-row" }, h("span", {}, action.label), h("span", { class: "key-keys" }, also, button));
  };
  const body = (close) => [
    h("p", { class: "muted" }, "Click a key, then press another one to change it. The choice is kept in this browser."),
    h("div", { class: "key-rows" }, [...actions].map(row)),
    message,
    h("div", { class: "dialog-buttons" },
      h("button", { type: "button", class: "button", onclick: reset }, "Reset to defaults"),
      h("button", { type: "button", class: "button primary", autofocus: true, onclick: () => close(null) }, "Done")),
  ];
  const closed = openDialog({ title: "Keys", class: "dialog-keys", body, onkeydown: take });
  draw();
  return closed;
}
