/** One text or record, large: all that it says, scrolled by arrow keys; in letters of fixed width where that helps. */

import { h, replace, textNodes } from "../lib/dom.js";
import { fetchItem, hasPicture, imageUrl, LARGE } from "../lib/items.js";
import { keptByTab } from "../lib/storage.js";
import { lengthOf, LONGEST_SHOWN, readable, unmarked } from "../lib/texts.js";
import { count, say } from "../lib/words.js";

const STEP_SHARE = 0.3;

/** @typedef {import("../lib/items.js").ShownItem} ShownItem */
/** @typedef {import("../lib/texts.js").Marking} Marking */

/**
 * @param {string} text
 * @param {Marking} marking
 */
function textElement(text, marking) {
  const shown = readable(text.slice(0, LONGEST_SHOWN));
  const rest = text.length - LONGEST_SHOWN;
  return h("div", { class: "viewer-text", dir: "auto" }, textNodes(marking(shown)),
    rest > 0 ? h("em", { class: "muted" }, ` … ${count(rest)} more characters`) : null);
}

/**
 * @param {Api["Item"]["cells"]} cells
 * @param {Marking} marking
 */
function cellsTable(cells, marking) {
  return h("table", { class: "viewer-cells" }, h("tbody", {}, cells.map(({ name, value }) =>
    h("tr", {}, h("th", { scope: "row", dir: "auto" }, readable(name)), h("td", {}, textElement(value, marking))))));
}

/** @param {string} link an address of the web, as the server vouches */
function linkLine(link) {
  return h("a", { class: "viewer-link", href: link, target: "_blank", rel: "noopener noreferrer" }, link);
}

/** Shows a text or a record in `element`; toggle() changes how it is set, pan() scrolls. */
export class TextViewer {
  element = h("div", { class: "viewer viewer-words", tabindex: "0", role: "region" });
  /** What is shown, as far as it is known beforehand. @type {ShownItem | null} */
  item = null;
  /** All of it, once that has come. @type {Api["Item"] | null} */
  whole = null;
  /** Of what is shown; the same element as long as that is shown, so that it does not flicker. */
  picture = h("img", { draggable: "false" });
  hasFailed = false;
  marking = unmarked;
  isFixed = keptByTab.get("fixed-width") === true;
  isPicture = false;

  get row() {
    return this.item?.row ?? null;
  }

  /**
   * Show an item; the same one again changes only its words and marks. What is known of it shows at once.
   * @param {ShownItem & { path?: string }} item
   * @param {string} alt
   * @param {Marking} [marking]
   */
  show(item, alt, marking = unmarked) {
    if (item.path) this.element.dataset.path = item.path;
    else delete this.element.dataset.path;
    this.element.setAttribute("aria-label", alt);
    this.marking = marking;
    const isNew = this.row !== item.row;
    this.item = item;
    if (isNew) Object.assign(this, { whole: null, hasFailed: false, isPicture: false });
    this.draw();
    if (isNew) this.fill(item);
  }

  /** @param {ShownItem} item */
  async fill(item) {
    this.element.scrollTo(0, 0);
    const whole = await fetchItem(item).catch(() => null);
    if (this.row !== item.row) return;
    Object.assign(this, { whole, hasFailed: whole === null });
    this.draw();
    this.element.querySelector("mark.found")?.scrollIntoView({ block: "nearest" });
  }

  draw() {
    const { item, whole } = this;
    if (!item) return;
    const text = whole?.text ?? item.text ?? "";
    const isLong = whole ? whole.cells.length > 0 : text.endsWith("…");
    this.element.classList.toggle("is-fixed", this.isFixed);
    this.element.classList.toggle("is-picture", this.isPicture);
    this.element.dataset.length = isLong ? "long" : lengthOf(text);
    if (this.hasPicture) this.showPicture(item);
    replace(this.element, h("div", { class: "viewer-item" },
      this.hasPicture ? this.picture : null,
      h("div", { class: "viewer-said" },
        text ? textElement(text, this.marking) : null,
        whole?.cells.length ? cellsTable(whole.cells, this.marking) : null,
        whole?.link ? linkLine(whole.link) : null,
        this.hasFailed ? h("p", { class: "error" }, say`The whole picture did not come.`) : null)));
  }

  /** @param {ShownItem} item */
  showPicture(item) {
    const src = imageUrl(item, LARGE);
    // A new element: an old one would go on showing the old picture until the new one has come.
    if (this.picture.getAttribute("src") !== src) this.picture = h("img", { src, draggable: "false" });
    this.picture.alt = this.element.getAttribute("aria-label") ?? "";
  }

  get hasPicture() {
    return this.item !== null && hasPicture({ ...this.item, ...this.whole });
  }

  /** The picture alone where there is one; else lines as they are in fixed-width letters, which this tab remembers. */
  toggle() {
    if (this.hasPicture) this.isPicture = !this.isPicture;
    else {
      this.isFixed = !this.isFixed;
      keptByTab.set("fixed-width", this.isFixed);
    }
    this.draw();
  }

  get canMove() {
    const { scrollHeight, clientHeight, scrollWidth, clientWidth } = this.element;
    return scrollHeight > clientHeight || scrollWidth > clientWidth;
  }

  /**
   * Scroll by steps: right and down are positive.
   * @param {number} right
   * @param {number} down
   */
  pan(right, down) {
    const { clientWidth, clientHeight } = this.element;
    this.element.scrollBy({ left: right * STEP_SHARE * clientWidth, top: down * STEP_SHARE * clientHeight });
  }
}
