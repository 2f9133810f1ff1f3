/** Grow a class by pages: find the page where the candidates stop being right, and accept everything before it. */

import { latest } from "../lib/async.js";
import { CrossedOut } from "../lib/crossedOut.js";
import { h, replace, setText, targetOf } from "../lib/dom.js";
import { plainKey } from "../lib/keys.js";
import { api, newUid } from "../lib/net.js";
import { PageSearch } from "../lib/pageSearch.js";
import { count, plural } from "../lib/words.js";
import { sayClass, signed } from "./changes.js";
import { smallLabel, spacer } from "./controls.js";
import { openDialog } from "./dialogs.js";
import { nameDialog } from "./nameDialog.js";
import { prefetch, thumbElement, thumbRow } from "./thumb.js";

const N_EXEMPLARS = 10;
const PICTURE_PX = 160;

/** @typedef {Api["BoardCard"]} BoardCard */
/** @typedef {Pick<Requests["Accept"], "order" | "last_page" | "except_rows">} Choice */

/**
 * @param {string} text
 * @param {string[]} keys
 * @param {() => void} run
 * @param {string} [className]
 */
function keyButton(text, keys, run, className = "") {
  // After a click with the mouse the focus goes back to the dialog, where the keys are heard.
  const onclick = (/** @type {MouseEvent} */ event) => {
    if (event.detail > 0) /** @type {HTMLElement | null} */ (targetOf(event).closest(".grow-body"))?.focus();
    run();
  };
  const words = h("span", {}, text);
  const button = h("button", { type: "button", class: `button small ${className}`.trim(), onclick },
    words, keys.map((key) => h("kbd", {}, key)));
  return { words, button };
}

/** The pages of one class, which pictures are crossed out, and what accepting would mean. */
class GrowPages {
  order = newUid();
  search = new PageSearch();
  crossed = new CrossedOut();
  latest = latest();
  /** Pages that were asked for. @type {Map<number, Promise<Api["Grow"]>>} */
  pages = new Map();
  /** Pages that were looked at. @type {Set<number>} */
  seen = new Set();
  /** The page that is shown. @type {Api["Grow"] | null} */
  grow = null;
  place = h("strong", { class: "numbers" });
  said = h("span", { class: "muted" });
  exemplars = h("div", { class: "grow-exemplars" });
  box = h("div", { class: "grow-page" });
  summary = h("p", { class: "grow-summary", role: "status" });

  /**
   * @param {BoardCard} card
   * @param {PickedClass} goal
   * @param {(choice: Choice | null) => void} close
   */
  constructor(card, goal, close) {
    this.card = card;
    this.goal = goal;
    this.close = close;
    this.accept = keyButton("Stops here", ["Enter", "K"], () => this.stopHere(), "primary");
    this.before = keyButton("Accept pages before", ["B"], () => this.stopBefore());
    this.keys = this.keyTable();
    this.element = this.build();
  }

  /** @returns {Map<string, () => void>} */
  keyTable() {
    const step = (/** @type {() => void} */ run) => () => {
      run();
      this.show();
    };
    const next = step(() => this.search.isRight());
    const stopHere = () => this.stopHere();
    return new Map([["ArrowLeft", step(() => this.search.look(-1))], ["ArrowRight", next], ["y", next],
      ["ArrowDown", step(() => this.search.isRightJump())], ["ArrowUp", step(() => this.search.isWrong())],
      ["Enter", stopHere], ["k", stopHere], ["b", () => this.stopBefore()], ["x", () => this.crossAll()]]);
  }

  build() {
    const button = (/** @type {string} */ text, /** @type {string[]} */ words, /** @type {string} */ key) =>
      keyButton(text, words, () => this.keys.get(key)?.()).button;
    const buttons = [button("Back", ["←"], "ArrowLeft"), button("Right, next", ["→", "Y"], "ArrowRight"),
      button("Jump ahead", ["↓"], "ArrowDown"), button("Half way back", ["↑"], "ArrowUp"),
      button("Cross out all", ["X"], "x")];
    const leave = keyButton("Leave", ["Esc"], () => this.close(null));
    return h("div", { class: "grow-body", tabindex: "-1", autofocus: true },
      h("p", { class: "muted" }, "Unlabelled pictures by falling similarity. Go on while a page is right; stop where ",
        `it is no longer. What is accepted counts as “${this.goal.name}” but is kept apart from labels.`),
      this.exemplars, h("div", { class: "grow-head" }, this.place, this.said), this.box, this.summary,
      h("div", { class: "grow-buttons" }, buttons, spacer(), leave.button, this.before.button, this.accept.button));
  }

  // ------------------------------------------------------------------------------------------------- showing

  async showExemplars() {
    const { thumbs } = await api.get("/api/members", { key: this.card.key, order: "labelled", page: 0 });
    const known = new Set(thumbs.map((thumb) => thumb.row));
    const all = [...thumbs, ...this.card.typical.filter((thumb) => !known.has(thumb.row))];
    replace(this.exemplars, smallLabel(this.goal.name), thumbRow(all.slice(0, N_EXEMPLARS)));
  }

  /** @param {number} page */
  fetchPage(page) {
    const known = this.pages.get(page);
    if (known) return known;
    const asked = api.get("/api/grow", { key: this.card.key, order: this.order, page });
    this.pages.set(page, asked);
    asked.catch(() => this.pages.delete(page));
    return asked;
  }

  async show() {
    const grow = await this.latest(this.fetchPage(this.search.page)).catch(() => null);
    if (!grow) return;
    this.grow = grow;
    this.seen.add(grow.page);
    this.search.nPages = grow.n_pages;
    this.draw(grow);
    const ahead = (/** @type {number} */ page) =>
      this.fetchPage(page).then((found) => prefetch(found.thumbs, PICTURE_PX), () => {});
    this.search.likely().forEach(ahead);
  }

  /** @param {Api["Grow"]} grow */
  draw({ page, n_pages: nPages, thumbs, similarity }) {
    const near = similarity ? ` · similarity ${similarity[0].toFixed(2)} to ${similarity[1].toFixed(2)}` : "";
    const place = `Page ${count(page + 1)} of ${count(nPages)}${near}`;
    setText(this.place, thumbs.length ? place : "No unlabelled picture is left");
    setText(this.said, this.search.words());
    // A picture that has the focus is about to go; the keys must still be heard.
    if (this.box.contains(document.activeElement)) this.element.focus();
    replace(this.box, thumbs.map((thumb, index) => thumbElement(thumb, { size: PICTURE_PX, caption: false,
      badges: "none", class: "cross", label: `Picture ${thumb.row}`,
      onclick: (event) => this.cross(index, event.shiftKey) })));
    this.mark();
  }

  mark() {
    if (!this.grow) return;
    const { page, thumbs } = this.grow;
    const tiles = [...this.box.children];
    thumbs.forEach(({ row }, index) => tiles[index].setAttribute("aria-pressed", String(this.crossed.has(row))));
    const n = this.crossed.countTo(page, this.grow);
    setText(this.accept.words, `Stops here: accept ${count(n)}`);
    setText(this.before.words, `Accept pages before: ${count(this.crossed.countTo(page - 1, this.grow))}`);
    this.accept.button.disabled = n === 0;
    this.before.button.disabled = page === 0;
    setText(this.summary, this.summaryText(this.grow));
  }

  /** @param {Api["Grow"]} grow */
  summaryText(grow) {
    const n = this.crossed.countOn(grow);
    const crossed = n ? `${plural(n, "picture")} crossed out on this page.`
      : "Click pictures that do not belong to cross them out.";
    const unseen = grow.page + 1 - [...this.seen].filter((one) => one <= grow.page).length;
    return unseen ? `${crossed} Not looked at before this page: ${plural(unseen, "page")}.` : crossed;
  }

  // --------------------------------------------------------------------------------- crossing out, accepting

  /**
   * @param {number} index
   * @param {boolean} isRange
   */
  cross(index, isRange) {
    if (this.grow) this.crossed.toggle(this.grow, index, isRange);
    this.mark();
  }

  crossAll() {
    if (this.grow) this.crossed.toggleAll(this.grow);
    this.mark();
  }

  stopHere() {
    if (this.grow) this.finish(this.crossed.hasAll(this.grow) ? this.grow.page - 1 : this.grow.page);
  }

  stopBefore() {
    if (this.grow) this.finish(this.grow.page - 1);
  }

  /** @param {number} lastPage */
  finish(lastPage) {
    if (!this.grow || this.crossed.countTo(lastPage, this.grow) === 0) return;
    this.close({ order: this.order, last_page: lastPage, except_rows: this.crossed.rowsTo(lastPage) });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (!this.grow || event.ctrlKey || event.metaKey || event.altKey) return;
    // Enter presses a button that has the focus; on a picture, which Space crosses out, it means the page.
    if (event.key === "Enter" && targetOf(event).closest("button:not(.cross)")) return;
    const run = this.keys.get(plainKey(event.key));
    if (!run) return;
    event.preventDefault();
    run();
  }
}

/**
 * @param {BoardCard} card
 * @param {PickedClass} goal
 * @returns {Promise<Choice | null>}
 */
function chooseByPages(card, goal) {
  /** @type {GrowPages} */
  let pages;
  return openDialog({ title: `Grow “${goal.name}” by pages`, class: "dialog-full",
    onkeydown: (event) => pages.key(event),
    body: (/** @type {(choice: Choice | null) => void} */ close) => {
      pages = new GrowPages(card, goal, close);
      pages.showExemplars().catch(() => {});
      pages.show();
      return pages.element;
    } });
}

/**
 * Grow a card; resolves to what was accepted, in words, or to null.
 * @param {BoardCard} card
 */
export async function growByPages(card) {
  const goal = card.is_named ? { class_id: card.class_id, name: card.name }
    : await nameDialog({ title: `Name “${card.name}” first`, text: "What are these?", placeholder: "Type its name…",
      thumbs: card.typical });
  const choice = goal && (await chooseByPages(card, goal));
  if (!choice) return null;
  const { n_accepted: n } = await api.post("/api/accept", signed({ key: card.key, ...sayClass(goal), ...choice }));
  return `${plural(n, "picture")} accepted as “${goal.name}” by page; kept apart from labels, not trained on as truth.`;
}
