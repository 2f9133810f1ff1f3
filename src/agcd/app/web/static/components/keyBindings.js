/** The keys of a page: bound to its actions, shown on its buttons, changed by the person and kept by the browser. */

import { h, isTyping, targetOf } from "../lib/dom.js";
import { actionFor, changedKeys, keyOf, keyWord, pressedKey, refusalOfKey, validKeys } from "../lib/keys.js";
import { Signal } from "../lib/signal.js";
import { kept } from "../lib/storage.js";
import { openKeySheet } from "./keySheet.js";

const PRESSED_BY = new Set(["Enter", " "]);

/** @typedef {import("../lib/keys.js").Action} Action */

/** The page's actions by name; told anew when a key is changed. */
const bound = new Signal({ page: "", actions: /** @type {Map<string, Action>} */ (new Map()) });

/** @returns {Record<string, unknown>} */
function keptPages() {
  const all = kept.get("keys");
  return all && typeof all === "object" ? { ...all } : {};
}

/** @param {Map<string, string>} keys */
function setKeys(keys) {
  for (const [name, action] of bound.value.actions) action.pressed = keys.get(name);
  bound.set(bound.value);
}

function keepKeys() {
  kept.set("keys", { ...keptPages(), [bound.value.page]: changedKeys(bound.value.actions) });
}

/**
 * Bind the keys of a page, once, in the order of the key sheet. "?" opens the key sheet on every page. Keys are ignored
 * while one types and while a dialog is open.
 * @param {string} page
 * @param {Record<string, Action>} actions
 */
export function bindKeys(page, actions) {
  const sheet = { label: "Show the keys", key: "?", run: showKeys };
  /** @type {[string, Action][]} */
  const own = Object.entries({ ...actions, sheet }).map(([name, action]) => [name, { ...action }]);
  bound.set({ page, actions: new Map(own) });
  setKeys(validKeys(keptPages()[page], bound.value.actions));
  addEventListener("keydown", onKeydown);
  document.getElementById("show-keys")?.addEventListener("click", showKeys);
}

/** Open the sheet that lists the keys of this page and lets them be changed. */
function showKeys() {
  openKeySheet(bound.value.actions, { giveKey, resetKeys });
}

/**
 * Give an action a key. Returns null, or one sentence that says why not.
 * @param {string} name
 * @param {string} key
 */
function giveKey(name, key) {
  const refusal = refusalOfKey(bound.value.actions, name, key);
  if (refusal) return refusal;
  setKeys(new Map([...bound.value.actions].map(([one, action]) => [one, one === name ? key : keyOf(action)])));
  keepKeys();
  return null;
}

/** Back to the first keys of this page. */
function resetKeys() {
  setKeys(validKeys({}, bound.value.actions));
  keepKeys();
}

/** @param {KeyboardEvent} event */
function onKeydown(event) {
  const target = targetOf(event);
  if (event.defaultPrevented || event.altKey || event.isComposing || isTyping(target)) return;
  if (document.querySelector("dialog[open]")) return;
  // Enter and Space press the button that has the focus.
  if (PRESSED_BY.has(event.key) && target.closest?.("button, a[href], summary, input")) return;
  const action = actionFor(bound.value.actions, pressedKey(event));
  if (!action) return;
  event.preventDefault();
  if (!event.repeat || action.repeats) action.run(event);
}

/**
 * A <kbd> with the present key of an action; it follows when the key is changed.
 * @param {string} name
 */
export function keyHint(name) {
  const element = h("kbd", {});
  bound.follow(({ actions }) => {
    const action = actions.get(name);
    element.textContent = action ? keyWord(keyOf(action)) : "";
  });
  return element;
}

/**
 * A button that runs an action and shows its key. Its label is the action's where none is given.
 * @param {string} name
 * @param {{ label?: string, class?: string }} [options]
 */
export function actionButton(name, options = {}) {
  const action = bound.value.actions.get(name);
  if (!action) throw new Error(`No action is called "${name}".`);
  const run = (/** @type {MouseEvent} */ event) => {
    if (action.when && !action.when()) return;
    // After a click with the mouse, Enter and Space belong to the page again.
    if (event.detail > 0) button.blur();
    action.run(event);
  };
  const button = h("button", { type: "button", class: `button ${options.class ?? ""}`.trim(), title: action.label,
    dataset: { action: name }, onclick: run }, options.label ?? action.label, " ", keyHint(name));
  return button;
}

/**
 * Change the words of a button but not its key.
 * @param {HTMLElement} button
 * @param {string} text
 */
export function relabel(button, text) {
  const { firstChild } = button;
  if (firstChild && firstChild.nodeValue !== text) firstChild.nodeValue = text;
}
