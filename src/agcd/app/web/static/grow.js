/** Grow a class by pages: find the page where the candidates stop being right, and accept everything before it. */

import { api, count, h, nameDialog, newUid, openDialog, plural, prefetch, replace, setText,
  thumbElement } from "./core.js";
import { PageSearch } from "./pagesearch.js";
import { change, latest, smallLabel, thumbRow, withQuery } from "./parts.js";

const N_EXEMPLARS = 10;
const PICTURE_PX = 160;

function keyButton(text, keys, run, className = "") {
  // After a click with the mouse the focus goes back to the dialog, where the keys are heard.
  const onclick = (event) => {
    if (event.detail > 0) event.currentTarget.closest(".grow-body").focus();
    run();
  };
  const words = h("span", {}, text);
  const button = h("button", { type: "button", class: `button small ${className}`.trim(), onclick },
    words, keys.map((key) => h("kbd", {}, key)));
  return { words, button };
}

/** The pages of one class, which pictures are crossed out, and what accepting would mean. */
class GrowPages {
  constructor(card, goal, close) {
    Object.assign(this, { card, goal, close, order: newUid(), search: new PageSearch(), latest: latest() });
    /** Pages that were asked for, those that were looked at, and the one that is shown. */
    Object.assign(this, { pages: new Map(), seen: new Set(), grow: null });
    /** Row → page of the pictures crossed out, and the last one clicked. */
    Object.assign(this, { crossed: new Map(), lastCrossed: null });
    this.place = h("strong", { class: "numbers" });
    this.said = h("span", { class: "muted" });
    this.exemplars = h("div", { class: "grow-exemplars" });
    this.box = h("div", { class: "grow-page" });
    this.summary = h("p", { class: "grow-summary", role: "status" });
    this.keys = this.keyTable();
    this.element = this.build();
  }

  keyTable() {
    const step = (run) => () => {
      run();
      this.show();
    };
    const next = step(() => this.search.isRight());
    const stopHere = () => this.stopHere();
    return { ArrowLeft: step(() => this.search.look(-1)), ArrowRight: next, y: next,
      ArrowDown: step(() => this.search.isRightJump()), ArrowUp: step(() => this.search.isWrong()),
      Enter: stopHere, k: stopHere, b: () => this.finish(this.grow.page - 1), x: () => this.crossAll() };
  }

  build() {
    const { keys } = this;
    this.accept = keyButton("Stops here", ["Enter", "K"], keys.Enter, "primary");
    this.before = keyButton("Accept pages before", ["B"], keys.b);
    const buttons = [keyButton("Back", ["←"], keys.ArrowLeft), keyButton("Right, next", ["→", "Y"], keys.ArrowRight),
      keyButton("Jump ahead", ["↓"], keys.ArrowDown), keyButton("Half way back", ["↑"], keys.ArrowUp),
      keyButton("Cross out all", ["X"], keys.x)];
    const leave = keyButton("Leave", ["Esc"], () => this.close(null));
    return h("div", { class: "grow-body", tabindex: "-1", autofocus: true },
      h("p", { class: "muted" }, "Unlabelled pictures by falling similarity. Go on while a page is right; stop where ",
        `it is no longer. What is accepted counts as “${this.goal.name}” but is kept apart from labels.`),
      this.exemplars, h("div", { class: "grow-head" }, this.place, this.said), this.box, this.summary,
      h("div", { class: "grow-buttons" }, buttons.map((one) => one.button), h("span", { class: "spacer" }),
        leave.button, this.before.button, this.accept.button));
  }

  // ------------------------------------------------------------------------------------------------- showing

  async showExemplars() {
    const { thumbs } = await api.get(withQuery("/api/members", { key: this.card.key, order: "labelled", page: 0 }));
    const known = new Set(thumbs.map((thumb) => thumb.row));
    const all = [...thumbs, ...this.card.typical.filter((thumb) => !known.has(thumb.row))];
    replace(this.exemplars, smallLabel(this.goal.name), thumbRow(all.slice(0, N_EXEMPLARS)));
  }

  fetchPage(page) {
    if (!this.pages.has(page)) {
      const asked = api.get(withQuery("/api/grow", { key: this.card.key, order: this.order, page }));
      this.pages.set(page, asked);
      asked.catch(() => this.pages.delete(page));
    }
    return this.pages.get(page);
  }

  async show() {
    const grow = await this.latest(this.fetchPage(this.search.page)).catch(() => null);
    if (!grow) return;
    this.grow = grow;
    this.seen.add(grow.page);
    this.search.nPages = grow.n_pages;
    this.draw();
    const ahead = (page) => this.fetchPage(page).then((found) => prefetch(found.thumbs, PICTURE_PX), () => {});
    this.search.likely().forEach(ahead);
  }

  draw() {
    const { page, n_pages: nPages, thumbs, similarity } = this.grow;
    const near = similarity ? ` · similarity ${similarity[0].toFixed(2)} to ${similarity[1].toFixed(2)}` : "";
    const place = `Page ${count(page + 1)} of ${count(nPages)}${near}`;
    setText(this.place, thumbs.length ? place : "No unlabelled picture is left");
    setText(this.said, this.search.words());
    // A picture that has the focus is about to go; the keys must still be heard.
    if (this.box.contains(document.activeElement)) this.element.focus();
    replace(this.box, thumbs.map((thumb, index) => this.tile(thumb, index)));
    this.mark();
  }

  tile(thumb, index) {
    return thumbElement(thumb, { size: PICTURE_PX, caption: false, badges: "none", class: "cross",
      label: `Picture ${thumb.row}`, onclick: (event) => this.cross(index, event.shiftKey) });
  }

  mark() {
    const { page, thumbs } = this.grow;
    const tiles = [...this.box.children];
    thumbs.forEach(({ row }, index) => tiles[index].setAttribute("aria-pressed", String(this.crossed.has(row))));
    const n = this.countTo(page);
    setText(this.accept.words, `Stops here: accept ${count(n)}`);
    setText(this.before.words, `Accept pages before: ${count(this.countTo(page - 1))}`);
    this.accept.button.disabled = n === 0;
    this.before.button.disabled = page === 0;
    setText(this.summary, this.summaryText());
  }

  summaryText() {
    const { page, thumbs } = this.grow;
    const n = thumbs.filter((thumb) => this.crossed.has(thumb.row)).length;
    const crossed = n ? `${plural(n, "picture")} crossed out on this page.`
      : "Click pictures that do not belong to cross them out.";
    const unseen = page + 1 - [...this.seen].filter((one) => one <= page).length;
    return unseen ? `${crossed} Not looked at before this page: ${plural(unseen, "page")}.` : crossed;
  }

  // --------------------------------------------------------------------------------- crossing out, accepting

  /** How many pictures the pages up to this one hold, less those crossed out. */
  countTo(page) {
    if (page < 0) return 0;
    const { page: shown, page_size: size, thumbs } = this.grow;
    const held = page * size + (page === shown ? thumbs.length : size);
    return held - [...this.crossed.values()].filter((one) => one <= page).length;
  }

  setCrossed(thumb, isCrossed) {
    if (isCrossed) this.crossed.set(thumb.row, this.grow.page);
    else this.crossed.delete(thumb.row);
  }

  cross(index, isRange) {
    const { thumbs, page } = this.grow;
    const isCrossed = !this.crossed.has(thumbs[index].row);
    const from = isRange && this.lastCrossed?.page === page ? this.lastCrossed.index : index;
    const range = thumbs.slice(Math.min(from, index), Math.max(from, index) + 1);
    for (const thumb of range) this.setCrossed(thumb, isCrossed);
    this.lastCrossed = { page, index };
    this.mark();
  }

  crossAll() {
    const isCrossed = !this.grow.thumbs.every((thumb) => this.crossed.has(thumb.row));
    for (const thumb of this.grow.thumbs) this.setCrossed(thumb, isCrossed);
    this.mark();
  }

  stopHere() {
    const isNone = this.grow.thumbs.every((thumb) => this.crossed.has(thumb.row));
    this.finish(isNone ? this.grow.page - 1 : this.grow.page);
  }

  finish(lastPage) {
    if (this.countTo(lastPage) === 0) return;
    const except = [...this.crossed].filter(([, page]) => page <= lastPage).map(([row]) => row);
    this.close({ order: this.order, last_page: lastPage, except_rows: except });
  }

  key(event) {
    if (!this.grow || event.ctrlKey || event.metaKey || event.altKey) return;
    // Enter presses a button that has the focus; on a picture, which Space crosses out, it means the page.
    if (event.key === "Enter" && event.target.closest("button:not(.cross)")) return;
    const run = this.keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!run) return;
    event.preventDefault();
    run();
  }
}

function goalOf(card) {
  if (card.is_named) return { class_id: card.class_id, name: card.name };
  return nameDialog({ title: `Name “${card.name}” first`, text: "What are these?", placeholder: "Type its name…",
    thumbs: card.typical });
}

/** Grow a card; resolves to what was accepted, in words, or to null. */
export async function growByPages(card) {
  const goal = await goalOf(card);
  if (!goal) return null;
  let pages = null;
  const body = (close) => {
    pages = new GrowPages(card, goal, close);
    pages.showExemplars().catch(() => {});
    pages.show();
    return pages.element;
  };
  const title = `Grow “${goal.name}” by pages`;
  const choice = await openDialog({ title, class: "dialog-full", body, onkeydown: (event) => pages.key(event) });
  if (!choice) return null;
  const named = goal.class_id ? { class_id: goal.class_id } : { name: goal.name };
  const { n_accepted: n } = await change("/api/accept", { key: card.key, ...named, ...choice });
  return `${plural(n, "picture")} accepted as “${goal.name}” by page; kept apart from labels, not trained on as truth.`;
}
