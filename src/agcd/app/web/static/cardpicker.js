/** The dialog that finds another card of the class board by typing. */

import { api, h, openDialog, plural, replace, thumbElement } from "./core.js";
import { ageBadge, latest, withQuery } from "./parts.js";

const SEARCH_WAIT_MS = 150;
const N_THUMBS = 3;
const SMALL = { size: 96, caption: false, badges: "none", peek: false };

function option(card, index, isActive, choose) {
  return h("li", { role: "option", id: `card-option-${index}`, class: "option", "aria-selected": String(isActive),
    onclick: () => choose(card) },
    card.typical.slice(0, N_THUMBS).map((thumb) => thumbElement(thumb, SMALL)),
    h("span", { class: "option-text" }, h("strong", { class: card.is_named ? "" : "unnamed" }, card.name)),
    h("span", { class: "muted option-facts" }, plural(card.size, "picture")), ageBadge(card.is_new));
}

/** A search field with the cards that match; arrow keys move, Enter takes. */
class CardPicker {
  constructor(own, close) {
    Object.assign(this, { own, close, cards: [], active: 0, latest: latest(), timer: null, searched: null });
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
    const path = withQuery("/api/board", { text, sort: "size", page: 0 });
    const board = await this.latest(api.get(path)).catch(() => null);
    if (!board) return;
    this.searched = text;
    this.cards = board.cards.filter((card) => card.key !== this.own.key && !card.is_retired);
    this.active = 0;
    this.draw();
  }

  draw() {
    const rows = this.cards.map((card, index) => option(card, index, index === this.active, this.close));
    replace(this.list, rows.length ? rows : h("li", { class: "option-none" }, "No other class or group of that name."));
    this.input.setAttribute("aria-activedescendant", rows.length ? `card-option-${this.active}` : "");
    rows[this.active]?.scrollIntoView({ block: "nearest" });
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.cards.length) {
      event.preventDefault();
      this.active = (this.active + step + this.cards.length) % this.cards.length;
      this.draw();
    } else if (event.key === "Enter" && !event.isComposing) {
      event.preventDefault();
      this.take();
    }
  }

  /** Enter may come before the list has caught up with what was typed. */
  async take() {
    if (this.searched !== this.input.value.trim()) await this.search();
    if (this.searched === this.input.value.trim() && this.cards[this.active]) this.close(this.cards[this.active]);
  }
}

/** Choose the card to merge with; resolves to a card or null. */
export function pickCard(own) {
  const key = (name) => h("kbd", {}, name);
  return openDialog({ title: `Merge “${own.name}” into…`, class: "dialog-names", body: (close) => {
    const picker = new CardPicker(own, close);
    return [picker.input, picker.list,
      h("p", { class: "hint" }, key("↑"), key("↓"), " choose ", key("Enter"), " take ", key("Esc"), " leave")];
  } });
}
