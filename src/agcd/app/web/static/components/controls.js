/** Small pieces that many pages are built from. */

import { h } from "../lib/dom.js";
import { count, say, wordFor } from "../lib/words.js";

/**
 * A button that is no key's.
 * @param {string} text
 * @param {() => unknown} onclick
 * @param {string} [className]
 */
export function plainButton(text, onclick, className = "") {
  return h("button", { type: "button", class: `button ${className}`.trim(), onclick }, text);
}

/**
 * A few small words above what they describe.
 * @param {string} text
 */
export function smallLabel(text) {
  return h("span", { class: "class-label" }, text);
}

/** Room between what stands left and what stands right in a row. */
export function spacer() {
  return h("span", { class: "spacer" });
}

/**
 * A box with a heading.
 * @param {string} title
 * @param {Child[]} children
 */
export function panel(title, ...children) {
  return h("section", { class: "panel round-panel" }, h("h2", {}, title), children);
}

/**
 * A large number with what it counts.
 * @param {number} n
 * @param {string} one
 * @param {string} many
 */
export function fact(n, one, many) {
  return h("div", { class: "fact" }, h("strong", { class: "numbers" }, count(n)),
    h("span", { class: "muted" }, wordFor(n, one, many)));
}

/**
 * A labelled choice.
 * @param {string} label
 * @param {readonly (readonly [value: string, text: string])[]} options
 * @param {string} value
 * @param {(value: string) => unknown} onchange
 */
export function selectField(label, options, value, onchange) {
  const take = (/** @type {Event} */ event) => onchange(/** @type {HTMLSelectElement} */ (event.target).value);
  const select = h("select", { class: "input", onchange: take },
    options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
  return h("label", { class: "tool-field" }, h("span", {}, label), select);
}

/** The keys of a list from which one is taken. */
export function listKeys() {
  const key = (/** @type {string} */ name) => h("kbd", {}, name);
  return h("p", { class: "hint" }, key("↑"), key("↓"), " choose ", key("Enter"), " take ", key("Esc"), " leave");
}

/**
 * Where a class comes from: known from the start, found by the person, or a group without a name.
 * @param {{ is_new: boolean, is_named?: boolean }} one
 */
export function originBadge({ is_new: isNew, is_named: isNamed = true }) {
  const [kind, word, title] = !isNamed ? ["unnamed", "group", "A group that the model found and nobody has named"]
    : isNew ? ["new", "found by you", say`Found in the unlabelled pictures`]
      : ["known", "known", "Known from the first labels"];
  return h("span", { class: `badge badge-${kind}`, title }, word);
}
