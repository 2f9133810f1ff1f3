/** The second step of a new class: which of the nearest pictures are also it? */

import { openDialog } from "./dialogs.js";
import { h, plural, setText } from "./dom.js";
import { thumbElement } from "./thumbs.js";

const KEYS = [..."123456789abc"];
/** Pictures that can be ticked. */
export const N_ASKED = KEYS.length;

const MOVES = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -6, ArrowDown: 6 };

function tickable(thumb, key, onToggle) {
  const label = `Picture ${key}, ${thumb.name ?? "no class yet"}`;
  const element = thumbElement(thumb, { badges: "people", peek: false, label, onclick: () => onToggle(element) });
  element.setAttribute("aria-pressed", "false");
  element.firstChild.append(h("kbd", { class: "also-key" }, key.toUpperCase()),
    h("span", { class: "also-tick", "aria-hidden": "true" }, "✓"));
  return element;
}

function moveFocus(event, elements) {
  const from = elements.indexOf(document.activeElement);
  const to = elements[from < 0 ? 0 : from + MOVES[event.key]];
  event.preventDefault();
  to?.focus();
}

/** Ask which pictures belong to the class of `asked` too. Resolves to their rows, or null: store nothing. */
export function askAlso(name, asked, thumbs) {
  const chosen = new Set();
  const confirm = h("button", { type: "button", class: "button primary" });
  const words = () => (chosen.size ? `Label ${plural(chosen.size + 1, "picture")}` : "Only the one asked about");
  const showNumber = () => setText(confirm, words());
  const toggle = (element) => {
    const row = Number(element.dataset.row);
    if (!chosen.delete(row)) chosen.add(row);
    element.setAttribute("aria-pressed", String(chosen.has(row)));
    showNumber();
  };
  const elements = thumbs.slice(0, N_ASKED).map((thumb, index) => tickable(thumb, KEYS[index], toggle));
  showNumber();
  const onkeydown = (event, close) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const index = KEYS.indexOf(event.key.toLowerCase());
    if (index >= 0 && elements[index]) toggle(elements[index]);
    else if (event.key === "Enter" && !event.target.matches(".also-back")) {
      event.preventDefault();
      close([...chosen]);
    } else if (Object.hasOwn(MOVES, event.key)) moveFocus(event, elements);
  };
  const title = `Which of these are also “${name}”?`;
  return openDialog({ title, class: "dialog-also", onkeydown, body: (close) => {
    confirm.addEventListener("click", () => close([...chosen]));
    return [
      h("p", { class: "muted" }, "The nearest pictures. Tick those that surely belong to it; leave the rest."),
      h("div", { class: "also" }, thumbElement(asked, { size: 320, caption: false, badges: "none", peek: false }),
        h("div", { class: "also-grid" }, elements)),
      h("div", { class: "dialog-buttons" },
        h("p", { class: "hint grow" }, h("kbd", {}, "1"), "–", h("kbd", {}, "9"), " ", h("kbd", {}, "A"), "–",
          h("kbd", {}, "C"), " tick ", h("kbd", {}, "Enter"), " confirm ", h("kbd", {}, "Esc"), " store nothing"),
        h("button", { type: "button", class: "button also-back", onclick: () => close(null) }, "Cancel"), confirm),
    ];
  } });
}
