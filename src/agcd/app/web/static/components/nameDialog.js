/** The dialog in which a class is found by typing, or a new one is named. */

import { h, replace } from "../lib/dom.js";
import { stepInList } from "../lib/keys.js";
import { choicesFor } from "../lib/matching.js";
import { api } from "../lib/net.js";
import { plural } from "../lib/words.js";
import { listKeys, originBadge } from "./controls.js";
import { openDialog } from "./dialogs.js";
import { thumbElement } from "./thumb.js";

/** The longest name of a class that the server takes. */
export const LONGEST_NAME = 200;

/** @typedef {import("../lib/matching.js").NameChoice} NameChoice */
/** @typedef {import("./thumb.js").ShownPicture} ShownPicture */
/**
 * `prefersNew`: Enter makes a new class, where it else takes the best match. `thumbs` are pictures to show.
 * @typedef {{ title: string, text?: string, placeholder?: string, prefersNew?: boolean,
 *   thumbs?: ShownPicture[] }} NameOptions
 */

/**
 * @param {NameChoice} choice
 * @param {Properties} properties
 */
function optionElement(choice, properties) {
  if ("create" in choice) {
    return h("li", properties, h("span", { class: "option-plus", "aria-hidden": "true" }, "+"),
      h("span", { class: "option-text" }, h("strong", {}, `Create new class “${choice.create}”`)));
  }
  const { entry } = choice;
  const facts = choice.isOff ? "retired: takes no more labels"
    : `${plural(entry.n_labels, "label")} · ${plural(entry.size, "picture")}`;
  return h("li", properties,
    entry.exemplar ? thumbElement(entry.exemplar, { size: 96, caption: false, badges: "none", peek: false })
      : h("span", { class: "option-plus", "aria-hidden": "true" }, "–"),
    h("span", { class: "option-text" }, h("strong", {}, entry.name),
      entry.aliases.length ? h("span", { class: "muted" }, `also ${entry.aliases.join(", ")}`) : null),
    h("span", { class: "muted option-facts" }, facts),
    originBadge(entry));
}

/** The text field and the list under it; arrow keys move, Enter chooses. */
class NamePicker {
  /** @type {Api["ClassName"][]} */
  entries = [];
  /** @type {NameChoice[]} */
  choices = [];
  active = -1;

  /**
   * @param {NameOptions} options
   * @param {(picked: PickedClass | null) => void} close
   */
  constructor({ title, placeholder = "Type to search…", prefersNew = false }, close) {
    this.prefersNew = prefersNew;
    this.close = close;
    this.list = h("ul", { role: "listbox", id: "name-options", class: "options", "aria-label": "Classes" });
    this.input = h("input", { class: "input", maxlength: LONGEST_NAME, autofocus: true,
      autocomplete: "off", spellcheck: "false", placeholder, role: "combobox",
      "aria-expanded": "true", "aria-controls": "name-options", "aria-label": title,
      oninput: () => this.search(), onkeydown: (event) => this.key(event) });
  }

  async load() {
    this.search();
    this.entries = await api.get("/api/v1/names").catch(() => []);
    this.search();
  }

  search() {
    this.choices = choicesFor(this.entries, this.input.value, this.prefersNew);
    // Before anything is typed nothing is chosen: Enter pressed by mistake must not become a label.
    this.active = this.input.value.trim() === "" ? -1 : this.choices.findIndex((choice) => !choice.isOff);
    this.draw();
  }

  draw() {
    const rows = this.choices.map((choice, index) => optionElement(choice, { role: "option", class: "option",
      id: `name-option-${index}`, "aria-selected": String(index === this.active),
      "aria-disabled": choice.isOff ? "true" : null, onclick: () => this.choose(choice) }));
    replace(this.list, rows.length ? rows : h("li", { class: "option-none" }, "Type a name."));
    this.input.setAttribute("aria-activedescendant", this.active < 0 ? "" : `name-option-${this.active}`);
    rows[this.active]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const place = stepInList(event.key, this.active, this.choices.length);
    const isEnter = event.key === "Enter" && !event.isComposing;
    if (place === null && !isEnter) return;
    event.preventDefault();
    if (place === null) return this.choose(this.choices[this.active]);
    this.active = place;
    this.draw();
  }

  /** @param {NameChoice | undefined} choice */
  choose(choice) {
    if (!choice || choice.isOff) return;
    if ("create" in choice) this.close({ class_id: null, name: choice.create });
    else this.close({ class_id: choice.entry.class_id, name: choice.entry.name });
  }
}

/**
 * Find a class by typing, or name a new one.
 * @param {NameOptions} options
 * @returns {Promise<PickedClass | null>}
 */
export function nameDialog(options) {
  const { title, text = "", thumbs = [] } = options;
  const body = (/** @type {(picked: PickedClass | null) => void} */ close) => {
    const picker = new NamePicker(options, close);
    const pictures = thumbs.map((thumb) => thumbElement(thumb, { caption: false, badges: "people" }));
    picker.load();
    return [
      text ? h("p", { class: "muted" }, text) : null,
      pictures.length ? h("div", { class: "thumb-row" }, pictures) : null,
      picker.input, picker.list, listKeys(),
    ];
  };
  return openDialog({ title, class: "dialog-names", body });
}
