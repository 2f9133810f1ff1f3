/** The second step of a new class: which of the nearest pictures are also it? */

import { h, setText, targetOf } from "../lib/dom.js";
import { plural, say } from "../lib/words.js";
import { openDialog } from "./dialogs.js";
import { thumbElement } from "./thumb.js";
import { tickAllButton } from "./tickDialog.js";

// Not A, which ticks all, nor C, which copies a path.
const KEYS = [..."123456789qwe"];
/** Pictures that can be ticked. */
export const N_ASKED = KEYS.length;

const MOVES = new Map([["ArrowLeft", -1], ["ArrowRight", 1], ["ArrowUp", -1], ["ArrowDown", 1]]);
const VERTICAL = new Set(["ArrowUp", "ArrowDown"]);
const HOW_TO = say`The nearest pictures. Tick those that surely belong to it; leave the rest.`;

/** @typedef {import("./thumb.js").ShownPicture} ShownPicture */

/** The pictures that can be ticked, and the button that takes them. */
class Ticks {
  /** @type {Set<number>} */
  chosen = new Set();
  confirm = h("button", { type: "button", class: "button primary" });

  /** @param {ShownPicture[]} thumbs */
  constructor(thumbs) {
    this.elements = thumbs.slice(0, N_ASKED).map((thumb, index) => this.tickable(thumb, KEYS[index]));
    this.showNumber();
  }

  /**
   * @param {ShownPicture} thumb
   * @param {string} key
   */
  tickable(thumb, key) {
    const label = say`Picture ${key}, ${thumb.name ?? "no class yet"}`;
    const element = thumbElement(thumb,
      { badges: "people", peek: false, label, onclick: () => this.toggle(element) });
    element.setAttribute("aria-pressed", "false");
    element.firstElementChild?.append(h("kbd", { class: "also-key" }, key.toUpperCase()),
      h("span", { class: "also-tick", "aria-hidden": "true" }, "✓"));
    return element;
  }

  /** @param {HTMLElement} element */
  toggle(element) {
    const row = Number(element.dataset.row);
    if (!this.chosen.delete(row)) this.chosen.add(row);
    element.setAttribute("aria-pressed", String(this.chosen.has(row)));
    this.showNumber();
  }

  /** All of them, or none where all are ticked. */
  toggleAll() {
    const isFull = this.chosen.size === this.elements.length;
    for (const element of this.elements) {
      if (this.chosen.has(Number(element.dataset.row)) === isFull) this.toggle(element);
    }
  }

  showNumber() {
    const { size } = this.chosen;
    setText(this.confirm, size ? `Label ${plural(size, "picture")} more` : "None of these");
  }

  /**
   * @param {string} key
   * @param {number} step
   */
  moveFocus(key, step) {
    const from = this.elements.findIndex((element) => element === document.activeElement);
    // How many stand in a line depends on the width of the window.
    const line = this.elements.filter((element) => element.offsetTop === this.elements[0].offsetTop).length;
    this.elements[from < 0 ? 0 : from + step * (VERTICAL.has(key) ? line : 1)]?.focus();
  }

  /**
   * @param {KeyboardEvent} event
   * @param {(rows: number[]) => void} close
   */
  key(event, close) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const ticked = this.elements[KEYS.indexOf(event.key.toLowerCase())];
    const step = MOVES.get(event.key);
    if (event.key.toLowerCase() === "a") this.toggleAll();
    else if (ticked) this.toggle(ticked);
    else if (event.key === "Enter" && !targetOf(event).matches(".also-back")) {
      event.preventDefault();
      close([...this.chosen]);
    } else if (step) {
      event.preventDefault();
      this.moveFocus(event.key, step);
    }
  }
}

function keysLine() {
  const key = (/** @type {string} */ name) => h("kbd", {}, name);
  return h("p", { class: "hint grow" }, key("1"), "–", key("9"), " ", key("Q"), key("W"), key("E"), " tick ",
    key("A"), " all ", key("Enter"), " confirm ", key("Esc"), " store nothing");
}

/**
 * Ask which pictures belong to the class of `asked` too. Resolves to their rows, or null: store nothing.
 * @param {string} name
 * @param {Picture} asked
 * @param {ShownPicture[]} thumbs
 * @returns {Promise<number[] | null>}
 */
export function askSameClass(name, asked, thumbs) {
  const ticks = new Ticks(thumbs);
  return openDialog({ title: `Which of these are also “${name}”?`, class: "dialog-also",
    onkeydown: (event, close) => ticks.key(event, close),
    body: (/** @type {(rows: number[] | null) => void} */ close) => {
      ticks.confirm.addEventListener("click", () => close([...ticks.chosen]));
      return [
        h("p", { class: "muted" }, HOW_TO),
        h("div", { class: "also" }, thumbElement(asked, { size: 320, caption: false, badges: "none", peek: false }),
          h("div", { class: "also-grid" }, ticks.elements)),
        h("div", { class: "dialog-buttons" }, keysLine(), tickAllButton(() => ticks.toggleAll()),
          h("button", { type: "button", class: "button also-back", onclick: () => close(null) }, "Cancel"),
          ticks.confirm),
      ];
    } });
}
