/** Key bindings as data: what each action's key is, remapped by the person, kept as data and checked when read. */

import { h, kept } from "./dom.js";
import { openKeySheet } from "./keysheet.js";

/** The keys of the label page before anybody changes them. */
export const LABEL_KEYS = Object.freeze({
  candidate1: "1", candidate2: "2", candidate3: "3", candidate4: "4", candidate5: "5",
  accept: "Enter", search: "/", create: "n", skip: "s", unsure: "u", junk: "x",
  undo: "z", blind: "b", zoom: " ", fullscreen: "f", same: "=",
  left: "ArrowLeft", right: "ArrowRight", up: "ArrowUp", down: "ArrowDown",
});

const NAMED_KEYS = {
  " ": "Space", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓", Enter: "Enter", Escape: "Esc",
  Backspace: "⌫", Delete: "Del", Home: "Home", End: "End", PageUp: "PgUp", PageDown: "PgDn", Insert: "Ins",
};
const NOT_TO_GIVE = new Set(["Escape"]);
const TEXTLESS_INPUTS = new Set(["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"]);
const PRESSED_BY = new Set(["Enter", " "]);

/** A key in the form that is compared and kept: letters small, everything else as the browser says it. */
export function plainKey(key) {
  return key.length === 1 ? key.toLowerCase() : key;
}

/** Whether an action can be given this key: one printable character or one of the named keys. */
export function isUsableKey(key) {
  if (typeof key !== "string" || NOT_TO_GIVE.has(key)) return false;
  return Object.hasOwn(NAMED_KEYS, key) || ([...key].length === 1 && key.trim() !== "" && plainKey(key) === key);
}

function oneKeyWord(key) {
  return NAMED_KEYS[key] ?? (key.length === 1 ? key.toUpperCase() : key);
}

/** A key as a person reads it: "Space", "N", "Ctrl+Z". */
export function keyWord(key) {
  return key.split(/(?<=.)\+(?=.)/).map(oneKeyWord).join("+");
}

const bound = { page: null, actions: new Map() };
const listeners = new Set();

function keptKeys(page) {
  const all = kept.get("keys");
  const own = all && typeof all === "object" && Object.hasOwn(all, page) ? all[page] : null;
  return own && typeof own === "object" ? own : {};
}

/** The kept keys that still make sense: known actions, single keys, no key twice. */
function validKeys(found, actions) {
  const keys = new Map([...actions].map(([name, action]) => [name, action.key]));
  for (const [name, key] of Object.entries(found)) {
    if (actions.has(name) && isUsableKey(key)) keys.set(name, key);
  }
  const taken = [...keys.values(), ...[...actions.values()].flatMap((action) => action.also ?? [])];
  const isClear = new Set(taken).size === taken.length;
  return isClear ? keys : new Map([...actions].map(([name, action]) => [name, action.key]));
}

function answersTo(action, key) {
  return action.pressed === key || action.also?.includes(key);
}

function setKeys(keys) {
  for (const [name, action] of bound.actions) action.pressed = keys.get(name);
  for (const listener of listeners) listener();
}

function keepKeys() {
  const changed = [...bound.actions].filter(([, action]) => action.pressed !== action.key);
  const all = kept.get("keys");
  const pages = all && typeof all === "object" ? all : {};
  const own = Object.fromEntries(changed.map(([name, action]) => [name, action.pressed]));
  kept.set("keys", { ...pages, [bound.page]: own });
}

/**
 * Bind the keys of a page: {action: {label, key, run}}, in the order of the key sheet. More, where wanted: `also` (keys
 * that work too and stay, such as "Ctrl+z"), `when` (a function: only then), `repeats` (holding the key runs it again).
 * "?" opens the key sheet on every page. Keys are ignored while one types and while a dialog is open.
 */
export function bindKeys(page, actions) {
  const isFirst = bound.page === null;
  bound.page = page;
  const sheet = { label: "Show the keys", key: "?", run: () => showKeys() };
  bound.actions = new Map(Object.entries({ ...actions, sheet }).map(([name, action]) => [name, { ...action }]));
  setKeys(validKeys(keptKeys(page), bound.actions));
  if (!isFirst) return;
  addEventListener("keydown", onKeydown);
  document.getElementById("show-keys")?.addEventListener("click", showKeys);
}

/** Open the sheet that lists the keys of this page and lets them be changed. */
export function showKeys() {
  return openKeySheet({ actions: bound.actions, giveKey, resetKeys, keyWord, plainKey });
}

/** Give an action a key. Returns null, or one sentence that says why not. */
export function giveKey(name, key) {
  if (!isUsableKey(key)) return `${keyWord(key)} cannot be used.`;
  const other = [...bound.actions].find(([one, action]) => one !== name && answersTo(action, key));
  if (other) return `${keyWord(key)} is taken: “${other[1].label}”.`;
  bound.actions.get(name).pressed = key;
  setKeys(new Map([...bound.actions].map(([one, action]) => [one, action.pressed])));
  keepKeys();
  return null;
}

/** Back to the first keys of this page. */
export function resetKeys() {
  setKeys(new Map([...bound.actions].map(([name, action]) => [name, action.key])));
  keepKeys();
}

function isTyping(element) {
  if (element.isContentEditable || element.matches?.("textarea, select")) return true;
  return element.matches?.("input") && !TEXTLESS_INPUTS.has(element.type);
}

function pressed(event) {
  const key = plainKey(event.key);
  return event.ctrlKey || event.metaKey ? `Ctrl+${key}` : key;
}

function onKeydown(event) {
  if (event.defaultPrevented || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  // Enter and Space press the button that has the focus.
  if (PRESSED_BY.has(event.key) && event.target.closest?.("button, a[href], summary, input")) return;
  const key = pressed(event);
  const action = [...bound.actions.values()].find((one) => answersTo(one, key) && (!one.when || one.when()));
  if (!action) return;
  event.preventDefault();
  if (!event.repeat || action.repeats) action.run(event);
}

/** A <kbd> with the present key of an action; it follows when the key is changed. */
export function keyHint(name) {
  const element = h("kbd", {});
  const show = () => {
    const action = bound.actions.get(name);
    element.textContent = action ? keyWord(action.pressed) : "";
  };
  listeners.add(show);
  show();
  return element;
}

/** A button that runs an action and shows its key. Options: label (else the action's), class. */
export function actionButton(name, options = {}) {
  const { label } = bound.actions.get(name);
  const run = (event) => {
    const action = bound.actions.get(name);
    if (action.when && !action.when()) return;
    // After a click with the mouse, Enter and Space belong to the page again.
    if (event.detail > 0) event.currentTarget.blur();
    action.run(event);
  };
  const className = `button ${options.class ?? ""}`.trim();
  return h("button", { type: "button", class: className, title: label, dataset: { action: name }, onclick: run },
    options.label ?? label, " ", keyHint(name));
}
