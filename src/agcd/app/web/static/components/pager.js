/** Buttons to turn pages. */

import { h, setText } from "../lib/dom.js";
import { count } from "../lib/words.js";

export class Pager {
  page = 0;
  nPages = 1;

  /** @param {(page: number) => unknown} go called with the page wanted */
  constructor(go) {
    this.go = go;
    const turner = (/** @type {string} */ label, /** @type {string} */ sign, /** @type {number} */ step) =>
      h("button", { type: "button", class: "button small", "aria-label": label, onclick: () => this.turn(step) }, sign);
    this.back = turner("Page before", "‹", -1);
    this.on = turner("Next page", "›", 1);
    this.text = h("span", { class: "muted numbers" });
    const about = { class: "pager", role: "navigation", "aria-label": "Pages" };
    this.element = h("div", about, this.back, this.text, this.on);
  }

  /**
   * One page ahead (1) or back (-1), where there is one.
   * @param {number} step
   */
  turn(step) {
    const wanted = this.page + step;
    if (wanted >= 0 && wanted < this.nPages) this.go(wanted);
  }

  /**
   * @param {number} page
   * @param {number} nPages
   */
  show(page, nPages) {
    this.page = page;
    this.nPages = nPages;
    setText(this.text, `Page ${count(page + 1)} of ${count(Math.max(1, nPages))}`);
    this.back.disabled = page === 0;
    this.on.disabled = page + 1 >= nPages;
    this.element.hidden = nPages <= 1;
  }
}
