/** A page of one class: every picture has a key of its own that ticks it as wrong. */

import { h, setText } from "../lib/dom.js";
import { LARGE, prefetch } from "../lib/items.js";
import { IS_IMAGES } from "../lib/kind.js";
import { Marks } from "../lib/marks.js";
import { say } from "../lib/words.js";
import { itemFace } from "./itemView.js";
import { StableList } from "./stableList.js";
import { fileLine } from "./thumb.js";

/** Those that no action of the page has. */
export const TILE_KEYS = [..."1234567890bcdefhijklmopqtuvwy"];

/** @typedef {Api["ReviewPicture"]} ReviewPicture */

export class ReviewGrid {
  /** @type {ReviewPicture[]} */
  pictures = [];
  title = h("h2", { class: "review-title" });
  box = h("div", { class: "review-grid", role: "listbox", "aria-multiselectable": "true", tabindex: "0" });
  /** @type {StableList<{ picture: ReviewPicture, place: number }, number>} */
  list = new StableList(this.box, ({ picture }) => picture.row, ({ picture, place }) => this.tile(picture, place));
  element = h("section", { class: "review-page" }, this.title, this.box);

  /** @param {() => unknown} onchange */
  constructor(onchange) {
    this.marks = new Marks(() => {
      this.draw();
      onchange();
    });
  }

  /** @param {Api["Review"]} page */
  show({ pictures, shown }) {
    this.pictures = pictures;
    this.list.draw(pictures.map((picture, place) => ({ picture, place })));
    const [what, wrong] = pictures.length === 1 ? ["This is", "it if it is wrong"] : ["These are", "the wrong ones"];
    setText(this.title, `${what} shown as ${shown?.name}. Tick ${wrong}.`);
    this.box.setAttribute("aria-label", say`Pictures shown as ${shown?.name ?? ""}: tick the wrong ones`);
    this.marks.cursor = 0;
    this.marks.reset(pictures.length);
    scrollTo({ top: 0 });
  }

  /**
   * @param {ReviewPicture} picture
   * @param {number} place
   */
  tile(picture, place) {
    return h("div", { class: "review-tile", role: "option", id: `tile-${picture.row}`, title: picture.path,
      dataset: { row: picture.row }, onclick: () => this.tick(place), 
      "aria-label": say`Picture ${picture.path}${IS_IMAGES ? "" : `: ${picture.text}`}` },
      h("span", { class: "review-tile-picture" },
        itemFace(picture, { size: 320, alt: "" }),
        TILE_KEYS[place] ? h("kbd", { "aria-hidden": "true" }, TILE_KEYS[place].toUpperCase()) : null,
        h("span", { class: "review-cross", "aria-hidden": "true" }, "×")),
      h("span", { class: "review-file" }, fileLine(picture.path)));
  }

  draw() {
    this.pictures.forEach(({ row }, place) => {
      const element = this.list.element(row);
      element?.setAttribute("aria-selected", String(this.marks.marked.has(place)));
      element?.classList.toggle("is-cursor", place === this.marks.cursor);
    });
    const at = this.pictures[this.marks.cursor];
    if (at) this.box.setAttribute("aria-activedescendant", `tile-${at.row}`);
  }

  /** @param {number} place */
  tick(place) {
    if (place < 0 || place >= this.pictures.length) return;
    this.marks.toggle(place);
    // It is asked about next, large.
    prefetch([this.pictures[place]], LARGE);
  }

  /**
   * Tick the picture with this key; false where there is none.
   * @param {string} key
   */
  tickByKey(key) {
    const place = TILE_KEYS.indexOf(key);
    if (place < 0 || place >= this.pictures.length) return false;
    this.tick(place);
    return true;
  }

  /** @param {number} step */
  move(step) {
    this.marks.move(step, false);
    this.list.element(this.pictures[this.marks.cursor]?.row)?.scrollIntoView({ block: "nearest" });
  }

  /** @returns {ReviewPicture[]} */
  get ticked() {
    return this.pictures.filter((_, place) => this.marks.marked.has(place));
  }
}
