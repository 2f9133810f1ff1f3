/** The dialog that finds another card of the class board by typing. */

import { latest } from "../lib/async.js";
import { h, replace } from "../lib/dom.js";
import { stepInList } from "../lib/keys.js";
import { api } from "../lib/net.js";
import { plural } from "../lib/words.js";
import { listKeys, originBadge } from "./controls.js";
import { openDialog } from "./dialogs.js";
import { thumbElement } from "./thumb.js";

const SEARCH_WAIT_MS = 150;
const N_THUMBS = 3;
/** @type {import("./thumb.js").ThumbOptions} */
const SMALL = { size: 96, caption: false, badges: "none", peek: false };

/** @typedef {Api["BoardCard"]} BoardCard */

/** A search field with the cards that match; arrow keys move, Enter takes. */
class CardPicker {
  /** @type {BoardCard[]} */
  cards = [];
  active = 0;
  latest = latest();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  /** What the list answers to. @type {string | null} */
  searched = null;

  /**
   * @param {BoardCard} own
   * @param {(card: BoardCard | null) => void} close
   */
  constructor(own, close) {
    this.own = own;
    this.close = close;
    this.list = h("ul", { role: "listbox", id: "card-options", class: "options", "aria-label": "Classes and groups" });
    this.input = h("input", { class: "input", autofocus: true, autocomplete: "off", spellcheck: "false",
      role: "combobox", "aria-expanded": "true", "aria-controls": "card-options",
      "aria-label": "Search the other class", placeholder: "Type to search…",
      oninput: () => this.searchSoon(), onkeydown: (event) => this.key(event) });
    this.search();
  }

  searchSoon() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.search(), SEARCH_WAIT_MS);
  }

  async search() {
    clearTimeout(this.timer);
    const text = this.input.value.trim();
    const board = await this.latest(api.get("/api/v1/board", { text, sort: "size", page: 0 })).catch(() => null);
    if (!board) return;
    this.searched = text;
    this.cards = board.cards.filter((card) => card.key !== this.own.key && !card.is_retired);
    this.active = 0;
    this.draw();
  }

  /**
   * @param {BoardCard} card
   * @param {number} index
   */
  option(card, index) {
    return h("li", { role: "option", id: `card-option-${index}`, class: "option",
      "aria-selected": String(index === this.active), onclick: () => this.close(card) },
      card.typical.slice(0, N_THUMBS).map((thumb) => thumbElement(thumb, SMALL)),
      h("span", { class: "option-text" }, h("strong", { class: card.is_named ? "" : "unnamed" }, card.name)),
      h("span", { class: "muted option-facts" }, plural(card.size, "picture")), originBadge(card));
  }

  draw() {
    const rows = this.cards.map((card, index) => this.option(card, index));
    replace(this.list, rows.length ? rows : h("li", { class: "option-none" }, "No other class or group of that name."));
    this.input.setAttribute("aria-activedescendant", rows.length ? `card-option-${this.active}` : "");
    rows[this.active]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const place = stepInList(event.key, this.active, this.cards.length);
    const isEnter = event.key === "Enter" && !event.isComposing;
    if (place === null && !isEnter) return;
    event.preventDefault();
    if (place === null) return void this.take();
    this.active = place;
    this.draw();
  }

  /** Enter may come before the list has caught up with what was typed. */
  async take() {
    if (this.searched !== this.input.value.trim()) await this.search();
    if (this.searched === this.input.value.trim() && this.cards[this.active]) this.close(this.cards[this.active]);
  }
}

/**
 * Choose the card to merge with; resolves to a card or null.
 * @param {BoardCard} own
 * @returns {Promise<BoardCard | null>}
 */
export function pickCard(own) {
  return openDialog({ title: `Merge “${own.name}” into…`, class: "dialog-names",
    body: (/** @type {(card: BoardCard | null) => void} */ close) => {
      const picker = new CardPicker(own, close);
      return [picker.input, picker.list, listKeys()];
    } });
}
