/** What the grid is narrowed to: file name, folder, class, who answered, when, and how sure the name is. */

import { h, replace } from "../lib/dom.js";
import { IS_IMAGES } from "../lib/kind.js";
import { api } from "../lib/net.js";
import { say } from "../lib/words.js";
import { plainButton, selectField } from "./controls.js";

const SEARCH_WAIT_MS = 250;
const WIDE_PX = 1000;
const IN_WORDS = say`Search pictures and names`;
/** What is searched: photographs have nothing but the names of their files. */
export const SEARCH = Object.freeze(IS_IMAGES ? { placeholder: "File name…", label: "Search by file name" }
  : { placeholder: IN_WORDS, label: IN_WORDS });
/** What can be chosen, and what stands there where nothing is. */
export const NO_FILTER = { text: "", folder: "", key: "", who: "", round: "", sure: "" };
/** @type {[value: string, word: string][]} */
const SURE = [["sure", "sure"], ["unsure", "unsure"]];

/** @typedef {{ [K in keyof typeof NO_FILTER]: string }} Filter */

export class GridFilters {
  fields = h("div", { class: "filters-fields" });
  element = h("details", { class: "filters" }, h("summary", {}, "Filter"), this.fields);

  /**
   * @param {Filter} now
   * @param {(choices: Partial<Filter>) => unknown} choose
   */
  constructor(now, choose) {
    this.now = now;
    this.choose = choose;
    this.search = this.searchField();
    this.element.open = innerWidth >= WIDE_PX || this.isOn;
  }

  get isOn() {
    return Object.keys(NO_FILTER).some((name) => this.now[/** @type {keyof Filter} */ (name)] !== "");
  }

  async load() {
    const choices = await api.get("/api/v1/grid/choices", {}, { quiet: true }).catch(() => null);
    if (choices) this.draw(choices);
  }

  /** @param {Api["GridChoices"]} choices */
  draw({ folders, classes, people, rounds }) {
    replace(this.fields, this.field("Folder", "folder", pairs(folders)), this.field("Class", "key", pairs(classes)),
      this.field("Answered by", "who", pairs(people)), this.field("Answered", "round", pairs(rounds)),
      this.field("The name is", "sure", SURE),
      plainButton("Show all", () => this.clear(), "small"));
  }

  /**
   * A choice; none where there is nothing to choose from.
   * @param {string} label
   * @param {keyof Filter} name
   * @param {[string, string][]} options
   */
  field(label, name, options) {
    if (!options.length) return null;
    return selectField(label, [["", "any"], ...options], this.now[name], (value) => this.choose({ [name]: value }));
  }

  clear() {
    this.search.value = "";
    this.choose(NO_FILTER);
    for (const select of this.fields.querySelectorAll("select")) select.value = "";
  }

  searchField() {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const show = () => this.choose({ text: this.search.value.trim() });
    const type = () => {
      clearTimeout(timer);
      timer = setTimeout(show, SEARCH_WAIT_MS);
    };
    return h("input", { class: "input", type: "search", value: this.now.text, placeholder: SEARCH.placeholder,
      "aria-label": SEARCH.label, oninput: type });
  }
}

/**
 * @param {Api["Choice"][]} choices
 * @returns {[string, string][]}
 */
function pairs(choices) {
  return choices.map(({ value, word }) => [value, word]);
}
