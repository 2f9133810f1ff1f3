/** The key sheet: every action of the page with its key, and a button to change it. */

import { h, setText } from "../lib/dom.js";
import { keyOf, keyWord, plainKey } from "../lib/keys.js";
import { plainButton } from "./controls.js";
import { openDialog } from "./dialogs.js";

const MODIFIERS = new Set(["Shift", "Control", "Alt", "Meta", "CapsLock", "Tab"]);
const HOW_TO = "Click a key, then press another one to change it. The choice is kept in this browser.";

/** @typedef {import("../lib/keys.js").Action} Action */

class KeySheet {
  message = h("p", { class: "key-message", role: "status" });
  /** @type {Map<string, HTMLElement>} */
  buttons = new Map();
  /** The action that waits for its new key. @type {string | null} */
  waiting = null;

  /**
   * @param {Map<string, Action>} actions
   * @param {(name: string, key: string) => string | null} giveKey says why not, or null
   */
  constructor(actions, giveKey) {
    this.actions = actions;
    this.giveKey = giveKey;
  }

  /** @param {string} name */
  label(name) {
    return this.actions.get(name)?.label ?? name;
  }

  /** @param {string} name */
  key(name) {
    const action = this.actions.get(name);
    return action ? keyWord(keyOf(action)) : "";
  }

  draw() {
    for (const [name, button] of this.buttons) {
      setText(button, this.waiting === name ? "press a key…" : this.key(name));
      button.classList.toggle("is-waiting", this.waiting === name);
    }
  }

  /** @param {string} name */
  wait(name) {
    this.waiting = this.waiting === name ? null : name;
    setText(this.message, this.waiting ? `Press the new key for “${this.label(name)}”, or Esc to leave it.` : "");
    this.draw();
  }

  /** @param {KeyboardEvent} event */
  take(event) {
    const name = this.waiting;
    if (name === null || MODIFIERS.has(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    this.waiting = null;
    const refusal = event.key === "Escape" ? "" : this.giveKey(name, plainKey(event.key));
    setText(this.message, refusal ?? `“${this.label(name)}” is now ${this.key(name)}.`);
    this.draw();
  }

  /** @param {[string, Action]} entry */
  row([name, action]) {
    const button = h("button", { type: "button", class: "key-button",
      "aria-label": `Change the key of: ${action.label}`, onclick: () => this.wait(name) });
    this.buttons.set(name, button);
    const also = (action.also ?? []).map((key) => h("kbd", {}, keyWord(key)));
    return h("div", { class: "key-row" }, h("span", {}, action.label), h("span", { class: "key-keys" }, also, button));
  }
}

/**
 * Show the sheet.
 * @param {Map<string, Action>} actions
 * @param {{ giveKey: (name: string, key: string) => string | null, resetKeys: () => void }} calls
 */
export function openKeySheet(actions, { giveKey, resetKeys }) {
  const sheet = new KeySheet(actions, giveKey);
  const reset = () => {
    resetKeys();
    sheet.draw();
    setText(sheet.message, "All keys are as at first.");
  };
  const closed = openDialog({ title: "Keys", class: "dialog-keys", onkeydown: (event) => sheet.take(event),
    body: (close) => [h("p", { class: "muted" }, HOW_TO),
      h("div", { class: "key-rows" }, [...actions].map((entry) => sheet.row(entry))), sheet.message,
      h("div", { class: "dialog-buttons" }, plainButton("Reset to defaults", reset),
        h("button", { type: "button", class: "button primary", autofocus: true, onclick: () => close(null) },
          "Done"))] });
  sheet.draw();
  return closed;
}
