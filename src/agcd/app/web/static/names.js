/** The dialog in which a class is found by typing, or a new one is named. */

import { openDialog } from "./dialogs.js";
import { count, h, plural, replace } from "./dom.js";
import { api } from "./net.js";
import { thumbElement } from "./thumbs.js";

const MOST_SHOWN = 30;
const LONGEST_NAME = 200;

/** Two spellings that a reader takes for the same. */
function plain(text) {
  return text.normalize("NFC").trim().toLowerCase();
}

/** How well a class matches what was typed: smaller is better, null is not at all. */
function rank(entry, typed) {
  if (typed === "") return 0;
  const name = plain(entry.name);
  if (name === typed) return 0;
  if (name.startsWith(typed)) return 1;
  if (name.split(/[\s_-]+/).some((word) => word.startsWith(typed))) return 2;
  if (name.includes(typed)) return 3;
  return entry.aliases.some((alias) => plain(alias).includes(typed)) ? 4 : null;
}

/** The classes that match, the best first; among equals the most labelled first. */
export function matching(entries, text) {
  const typed = plain(text);
  return entries
    .map((entry) => ({ entry, rank: rank(entry, typed) }))
    .filter((match) => match.rank !== null)
    .sort((a, b) => a.rank - b.rank || b.entry.n_labels - a.entry.n_labels || a.entry.name.localeCompare(b.entry.name))
    .map((match) => match.entry);
}

/** What can be chosen for a typed text: existing classes, and a new one unless the name is taken. */
function choicesFor(entries, text, { allowNew, preferNew, exclude }) {
  const usable = entries.filter((entry) => !exclude.includes(entry.class_id));
  const found = matching(usable, text).slice(0, MOST_SHOWN).map((entry) => ({ entry, isOff: entry.is_retired }));
  const isTaken = entries.some((entry) => [entry.name, ...entry.aliases].some((name) => plain(name) === plain(text)));
  if (!allowNew || text.trim() === "" || isTaken) return found;
  const create = { create: text.trim(), isOff: false };
  return preferNew ? [create, ...found] : [...found, create];
}

function optionElement(choice, index, isActive, choose) {
  const properties = { role: "option", id: `name-option-${index}`, class: "option", "aria-selected": String(isActive),
    "aria-disabled": choice.isOff ? "true" : null, onclick: () => choose(choice) };
  if (choice.create) {
    return h("li", properties, h("span", { class: "option-plus", "aria-hidden": "true" }, "+"),
      h("span", { class: "option-text" }, h("strong", {}, `Create new class “${choice.create}”`)));
  }
  const { entry } = choice;
  const facts = choice.isOff ? "retired: takes no more labels"
    : `${plural(entry.n_labels, "label")} · ${count(entry.size)} pictures`;
  return h("li", properties,
    entry.exemplar ? thumbElement(entry.exemplar, { size: 96, caption: false, badges: "none", peek: false })
      : h("span", { class: "option-plus", "aria-hidden": "true" }, "–"),
    h("span", { class: "option-text" }, h("strong", {}, entry.name),
      entry.aliases.length ? h("span", { class: "muted" }, `also ${entry.aliases.join(", ")}`) : null),
    h("span", { class: "muted option-facts" }, facts),
    h("span", { class: entry.is_new ? "badge badge-new" : "badge" }, entry.is_new ? "new" : "old"));
}

/** The text field and the list under it; arrow keys move, Enter chooses. */
class NamePicker {
  constructor(options, close) {
    this.options = options;
    this.close = close;
    this.entries = [];
    this.choices = [];
    this.active = -1;
    this.list = h("ul", { role: "listbox", id: "name-options", class: "options", "aria-label": "Classes" });
    this.input = h("input", { class: "input", value: options.value, maxlength: LONGEST_NAME, autofocus: true,
      autocomplete: "off", spellcheck: "false", placeholder: options.placeholder, role: "combobox",
      "aria-expanded": "true", "aria-controls": "name-options", "aria-label": options.title,
      oninput: () => this.search(), onkeydown: (event) => this.key(event) });
  }

  async load() {
    this.search();
    this.entries = await api.get("/api/names").catch(() => []);
    this.search();
  }

  search() {
    this.choices = choicesFor(this.entries, this.input.value, this.options);
    // Before anything is typed nothing is chosen: Enter pressed by mistake must not become a label.
    this.active = this.input.value.trim() === "" ? -1 : this.choices.findIndex((choice) => !choice.isOff);
    this.draw();
  }

  draw() {
    const choose = (choice) => this.choose(choice);
    const rows = this.choices.map((choice, index) => optionElement(choice, index, index === this.active, choose));
    replace(this.list, rows.length ? rows : h("li", { class: "option-none" }, this.emptyText()));
    this.input.setAttribute("aria-activedescendant", this.active < 0 ? "" : `name-option-${this.active}`);
    rows[this.active]?.scrollIntoView({ block: "nearest" });
  }

  emptyText() {
    if (this.options.allowNew && this.input.value.trim() === "") return "Type a name.";
    return "No class of that name.";
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.choices.length) {
      event.preventDefault();
      const from = this.active < 0 && step < 0 ? 0 : this.active;
      this.active = (from + step + this.choices.length) % this.choices.length;
      this.draw();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      this.choose(this.choices[this.active]);
    }
  }

  choose(choice) {
    if (!choice || choice.isOff) return;
    if (choice.create) this.close({ class_id: null, name: choice.create });
    else this.close({ class_id: choice.entry.class_id, name: choice.entry.name });
  }
}

/**
 * Find a class by typing, or name a new one. Resolves to {class_id, name} (class_id is null for a new class) or null.
 * Options: title, text, value (typed already), placeholder, allowNew (true), preferNew (false: Enter takes the best
 * match; true: Enter makes a new class), exclude (class ids), thumbs (pictures to show).
 */
export function nameDialog(options = {}) {
  const all = { title: "Which class is it?", text: "", value: "", placeholder: "Type to search…", allowNew: true,
    preferNew: false, exclude: [], thumbs: [], ...options };
  return openDialog({ title: all.title, class: "dialog-names", body: (close) => {
    const picker = new NamePicker(all, close);
    const pictures = all.thumbs.map((thumb) => thumbElement(thumb, { caption: false, badges: "people" }));
    picker.load();
    return [
      all.text ? h("p", { class: "muted" }, all.text) : "",
      pictures.length ? h("div", { class: "thumb-row" }, pictures) : "",
      picker.input,
      picker.list,
      h("p", { class: "hint" }, h("kbd", {}, "↑"), h("kbd", {}, "↓"), " choose ", h("kbd", {}, "Enter"), " take ",
        h("kbd", {}, "Esc"), " leave"),
    ];
  } });
}
