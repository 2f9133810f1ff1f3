/** Grow a class: pictures by falling similarity, page by page; everything up to a cut is accepted at once. */

import { latest } from "../lib/async.js";
import { h, replace, setText, targetOf } from "../lib/dom.js";
import { GrowChoice, placed } from "../lib/growChoice.js";
import { prefetch } from "../lib/items.js";
import { plainKey } from "../lib/keys.js";
import { api, newUid } from "../lib/net.js";
import { PageSearch } from "../lib/pageSearch.js";
import { count, plural, say } from "../lib/words.js";
import { sayClass, signed } from "./changes.js";
import { smallLabel, spacer } from "./controls.js";
import { openDialog } from "./dialogs.js";
import { nameDialog } from "./nameDialog.js";
import { thumbElement, thumbRow } from "./thumb.js";
import { toast } from "./toast.js";

const N_EXEMPLARS = 10;
const PICTURE_PX = 160;
const HOW_TO = [say`Pictures without an answer, the most similar first.`,
  "Click the last one that is right: everything up to it is accepted, the rest is not."].join(" ");

/** @typedef {Api["BoardCard"]} BoardCard */
/** @typedef {import("../lib/growChoice.js").Placed} Placed */
/** @typedef {Pick<Requests["Accept"], "order" | "last_row" | "except_rows">} Choice */

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

/** The pages of one class, where the cut is, and what accepting would mean. */
class GrowPages {
  search = new PageSearch();
  choice = new GrowChoice();
  latest = latest();
  /** Pages that were asked for. @type {Map<number, Promise<Api["Grow"]>>} */
  pages = new Map();
  /** Pages that were looked at. @type {Set<number>} */
  seen = new Set();
  place = h("strong", { class: "numbers" });
  said = h("span", { class: "muted" });
  exemplars = h("div", { class: "grow-exemplars" });
  box = h("div", { class: "grow-page" });
  summary = h("p", { class: "grow-summary", role: "status" });

  /**
   * @param {BoardCard} card
   * @param {PickedClass} goal
   * @param {{ order: string, grow: Api["Grow"] }} first the first page, which is there before the dialog opens
   * @param {(choice: Choice | null) => void} close
   */
  constructor(card, goal, { order, grow }, close) {
    this.card = card;
    this.goal = goal;
    this.order = order;
    this.grow = grow;
    this.close = close;
    this.pages.set(0, Promise.resolve(grow));
    this.accept = keyButton("Accept", ["Enter"], () => this.stopHere(), "primary");
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
    const cut = (/** @type {number} */ by) => () => {
      this.choice.moveCut(this.grow, by);
      this.mark();
    };
    const next = step(() => this.search.isRight());
    return new Map([["ArrowLeft", step(() => this.search.look(-1))], ["ArrowRight", next], ["y", next],
      ["ArrowDown", step(() => this.search.isRightJump())], ["ArrowUp", step(() => this.search.isWrong())],
      [",", cut(-1)], [".", cut(1)], ["Enter", () => this.stopHere()], ["k", () => this.stopHere()],
      ["b", () => this.stopBefore()], ["x", () => this.crossFocused()]]);
  }

  build() {
    const button = (/** @type {string} */ text, /** @type {string[]} */ words, /** @type {string} */ key) =>
      keyButton(text, words, () => this.keys.get(key)?.()).button;
    const buttons = [button("Back", ["←"], "ArrowLeft"), button("All right, next", ["→"], "ArrowRight"),
      button("Jump ahead", ["↓"], "ArrowDown"), button("Half way back", ["↑"], "ArrowUp"),
      button("Cut earlier", [","], ","), button("Cut later", ["."], ".")];
    const leave = keyButton("Leave", ["Esc"], () => this.close(null));
    return h("div", { class: "grow-body", tabindex: "-1", autofocus: true },
      h("p", { class: "muted grow-how" }, HOW_TO,
        ` What is accepted counts as “${this.goal.name}” but is kept apart from labels.`),
      this.exemplars, h("div", { class: "grow-head" }, this.place, this.said), this.box, this.summary,
      h("div", { class: "grow-buttons" }, buttons, spacer(), leave.button, this.before.button, this.accept.button));
  }

  // ------------------------------------------------------------------------------------------------- showing

  async showExemplars() {
    const { thumbs } = await api.get("/api/v1/members", { key: this.card.key, order: "labelled", page: 0 });
    const known = new Set(thumbs.map((thumb) => thumb.row));
    const all = [...thumbs, ...this.card.typical.filter((thumb) => !known.has(thumb.row))];
    replace(this.exemplars, smallLabel(this.goal.name), thumbRow(all.slice(0, N_EXEMPLARS)));
  }

  /** @param {number} page */
  fetchPage(page) {
    const known = this.pages.get(page);
    if (known) return known;
    const asked = api.get("/api/v1/grow",
      { key: this.card.key, order: this.order, page, per_page: this.grow.page_size });
    this.pages.set(page, asked);
    asked.catch(() => this.pages.delete(page));
    return asked;
  }

  async show() {
    const grow = await this.latest(this.fetchPage(this.search.page)).catch(() => null);
    if (!grow) return;
    this.grow = grow;
    this.seen.add(grow.page);
    this.choice.propose(grow, this.card.name);
    this.search.nPages = grow.n_pages;
    this.draw(grow);
    const ahead = (/** @type {number} */ page) =>
      this.fetchPage(page).then((found) => prefetch(found.thumbs, PICTURE_PX), () => {});
    this.search.likely().forEach(ahead);
  }

  /** @param {Api["Grow"]} grow */
  draw({ page, n_pages: nPages, thumbs }) {
    setText(this.place, `Page ${count(page + 1)} of ${count(nPages)}`);
    setText(this.said, this.search.words());
    // A picture that has the focus is about to go; the keys must still be heard.
    if (this.box.contains(document.activeElement)) this.element.focus();
    replace(this.box, thumbs.map((_, index) => this.tile(index)));
    this.box.scrollTop = 0;
    this.mark();
  }

  /** @param {number} index */
  tile(index) {
    const thumb = this.grow.thumbs[index];
    const at = placed(this.grow, index);
    const cut = thumbElement(thumb, { size: PICTURE_PX, caption: "file", badges: "none",
      label: say`Picture ${thumb.row}: cut after this one`, onclick: (event) => this.press(at, event) });
    const cross = h("button", { type: "button", class: "grow-cross", title: "Cross out this one (X)",
      "aria-label": say`Cross out picture ${thumb.row}`, tabindex: "-1", onclick: () => this.cross(at) }, "×");
    return h("div", { class: "grow-tile" }, cut, cross);
  }

  mark() {
    const tiles = [...this.box.children];
    this.grow.thumbs.forEach((thumb, index) => {
      const at = placed(this.grow, index);
      const isCut = this.choice.cut?.row === thumb.row;
      tiles[index].classList.toggle("is-crossed", this.choice.isCrossed(thumb.row));
      tiles[index].classList.toggle("is-beyond", this.choice.isBeyond(at));
      tiles[index].classList.toggle("is-cut", isCut);
      tiles[index].classList.toggle("is-proposed", this.choice.isProposed);
      tiles[index].firstElementChild?.setAttribute("aria-pressed", String(isCut));
      tiles[index].lastElementChild?.setAttribute("aria-pressed", String(this.choice.isCrossed(thumb.row)));
    });
    const n = this.choice.countTo(this.choice.last(this.grow));
    setText(this.accept.words, `Accept ${count(n)}`);
    this.accept.button.disabled = n === 0;
    this.before.button.disabled = this.grow.page === 0;
    setText(this.summary, this.summaryText(this.grow));
  }

  /** @param {Api["Grow"]} grow */
  summaryText(grow) {
    const last = this.choice.last(grow);
    if (!last) return "";
    const crossed = this.choice.rowsTo(last).length;
    const lastPage = Math.floor(last.place / grow.page_size);
    const unseen = lastPage + 1 - [...this.seen].filter((one) => one <= lastPage).length;
    return [this.cutWords(last),
      crossed ? `${plural(crossed, "picture")} crossed out.` : "",
      unseen ? `Not looked at: ${plural(unseen, "page")} before.` : ""].filter(Boolean).join(" ");
  }

  /** @param {Placed} last */
  cutWords(last) {
    if (!this.choice.cut) return "No cut: all of this page is right.";
    const after = say`after picture ${count(last.place + 1)}`;
    return this.choice.isProposed ? `Proposed cut ${after}: the next one is called otherwise. Click another to move it.`
      : `Cut ${after}.`;
  }

  // ------------------------------------------------------------------------------------------ cutting, accepting

  /**
   * @param {Placed} at
   * @param {MouseEvent} event
   */
  press(at, event) {
    if (event.shiftKey || event.ctrlKey || event.metaKey) return this.cross(at);
    this.choice.toggleCut(at);
    this.mark();
  }

  /** @param {Placed} at */
  cross(at) {
    this.choice.toggleCrossed(at);
    this.mark();
  }

  crossFocused() {
    const index = [...this.box.children].findIndex((tile) => tile.matches(":focus-within, :hover"));
    if (index >= 0) this.cross(placed(this.grow, index));
  }

  stopHere() {
    this.finish(this.choice.last(this.grow));
  }

  async stopBefore() {
    if (this.grow.page === 0) return;
    const before = await this.fetchPage(this.grow.page - 1).catch(() => null);
    if (before) this.finish(placed(before, before.thumbs.length - 1));
  }

  /** @param {Placed | null} last */
  finish(last) {
    if (!last || this.choice.countTo(last) === 0) return;
    this.close({ order: this.order, last_row: last.row, except_rows: this.choice.rowsTo(last) });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // Enter presses a button that has the focus; on a picture, where Space cuts, it accepts.
    if (event.key === "Enter" && targetOf(event).closest("button:not(.thumb)")) return;
    const run = this.keys.get(plainKey(event.key));
    if (!run) return;
    event.preventDefault();
    run();
  }
}

/**
 * @param {BoardCard} card
 * @param {PickedClass} goal
 * @param {{ order: string, grow: Api["Grow"] }} first
 * @returns {Promise<Choice | null>}
 */
function chooseByPages(card, goal, first) {
  /** @type {GrowPages} */
  let pages;
  return openDialog({ title: `Grow “${goal.name}”`, class: "dialog-full",
    onkeydown: (event) => pages.key(event),
    body: (/** @type {(choice: Choice | null) => void} */ close) => {
      pages = new GrowPages(card, goal, first, close);
      pages.showExemplars().catch(() => {});
      pages.show();
      return pages.element;
    } });
}

/**
 * Grow a card; resolves to what was accepted, in words, or to null. Nothing opens before there is something to show.
 * @param {BoardCard} card
 */
export async function growByPages(card) {
  const order = newUid();
  const grow = await api.get("/api/v1/grow", { key: card.key, order, page: 0 });
  if (!grow.thumbs.length) {
    toast(say`Every picture has an answer: there is none left to accept.`);
    return null;
  }
  const goal = card.is_named ? { class_id: card.class_id, name: card.name }
    : await nameDialog({ title: `Name “${card.name}” first`, text: "What are these?", placeholder: "Type its name…",
      thumbs: card.typical });
  const choice = goal && (await chooseByPages(card, goal, { order, grow }));
  if (!choice) return null;
  const { n_accepted: n } = await api.post("/api/v1/accept", signed({ key: card.key, ...sayClass(goal), ...choice }));
  return `${plural(n, "picture")} accepted as “${goal.name}”; kept apart from labels, not learned as truth.`;
}
