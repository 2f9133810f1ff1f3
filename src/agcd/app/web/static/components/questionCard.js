/** The query card: the picture, its candidate classes and its neighbours. Built once, filled for every question. */

import { h, replace, setText } from "../lib/dom.js";
import { fetchItem } from "../lib/items.js";
import { IS_IMAGES } from "../lib/kind.js";
import { readable, sharedWith, sharedWords } from "../lib/texts.js";
import { percent, plural, say } from "../lib/words.js";
import { originBadge } from "./controls.js";
import { itemViewer, markTexts } from "./itemView.js";
import { keyHint } from "./keyBindings.js";
import { fileLine, thumbElement } from "./thumb.js";

/** With fewer suggestions than these there is room for a line that leads to another name. */
const MOST_SUGGESTED = 5;

/** @typedef {Api["Card"]} Card */
/** @typedef {Card & { row: number }} Question */
/** @typedef {Api["Thumb"]} Thumb */

/**
 * Whether a card must show nothing of what is believed.
 * @param {Card} card
 */
export function isHidden(card) {
  return card.is_blind || card.is_audit;
}

/**
 * Whether a name has to be typed rather than the first suggestion accepted: one keystroke must not call a new kind by
 * the name of another class.
 * @param {Card} card
 */
export function asksForName(card) {
  return card.seems_new || card.candidates.length === 0;
}

/**
 * @param {Api["Candidate"]} candidate
 * @param {number} index
 * @param {(index: number) => unknown} choose
 */
function candidateRow(candidate, index, choose) {
  const nameClass = candidate.is_named ? "candidate-name" : "candidate-name unnamed";
  return h("button", { type: "button", class: "candidate", onclick: () => choose(index) },
    keyHint(`candidate${index + 1}`),
    h("span", { class: "candidate-text" },
      h("strong", { class: nameClass, title: candidate.name }, candidate.name),
      h("span", { class: "candidate-facts numbers" }, originBadge(candidate), plural(candidate.size, "picture")),
      h("span", { class: "candidate-share" },
        h("span", { class: "share" },
          h("span", { class: "share-fill", style: { width: `${candidate.probability * 100}%` } })),
        h("span", { class: "candidate-percent numbers" }, percent(candidate.probability)))),
    h("span", { class: "candidate-thumbs" },
      candidate.exemplars.map((thumb) => thumbElement(thumb, { caption: false, badges: "people" }))));
}

/**
 * The way to a name that is not among the suggestions, on a line like theirs.
 * @param {string} action its key is shown
 * @param {string} words
 * @param {string} facts
 * @param {() => unknown} run
 */
function otherRow(action, words, facts, run) {
  return h("button", { type: "button", class: "candidate candidate-other", onclick: run },
    keyHint(action),
    h("span", { class: "candidate-text" }, h("strong", { class: "candidate-name" }, words),
      h("span", { class: "candidate-facts" }, facts)));
}

/**
 * @param {string} title
 * @param {string} hint
 * @param {HTMLElement} thumbs
 */
function band(title, hint, thumbs) {
  return h("section", { class: "band", "aria-label": title },
    h("h3", {}, title, " ", h("span", { class: "hint" }, hint)), thumbs);
}

/**
 * @param {HTMLElement} element
 * @param {Thumb[]} thumbs
 * @param {(thumb: Thumb) => HTMLElement} build
 */
function fillBand(element, thumbs, build) {
  replace(element, thumbs.length ? thumbs.map(build) : h("span", { class: "muted" }, "none yet"));
}

/** @param {Question} card */
function questionWords(card) {
  return say`Picture ${card.row}: which class is it?`;
}

/** The card as it stands on the page. */
export class QuestionCard {
  viewer = itemViewer();
  number = h("strong", { class: "numbers" });
  group = h("span", { class: "card-group" });
  file = h("button", { type: "button", class: "quiet card-file", onclick: (/** @type {MouseEvent} */ event) => {
    if (event.detail > 0) this.file.blur();
    this.calls.copy();
  } });
  said = h("span", { class: "muted card-said", role: "status" });
  why = h("p", { class: "muted card-why" });
  candidates = h("section", { class: "candidates", "aria-label": "Suggestions" });
  labelled = h("div", { class: "band-thumbs" });
  unlabelled = h("div", { class: "band-thumbs" });

  /**
   * `choose(index)` takes a candidate, `sameAs(thumb)` a labelled neighbour, `copy()` the path of the picture.
   * @param {{ choose: (index: number) => unknown, sameAs: (thumb: Thumb) => unknown, search: () => unknown,
   *   create: () => unknown, copy: () => unknown }} calls
   */
  constructor(calls) {
    this.calls = calls;
    this.element = h("div", { class: "card" },
      h("section", { class: "card-picture", "aria-label": say`Picture` },
        h("div", { class: "card-head" },
          h("div", { class: "card-line" }, this.number, this.group, this.file, this.said), this.why),
        this.viewer.element),
      this.candidates,
      h("div", { class: "bands" },
        band("Nearest labelled", "click one: “same as this”", this.labelled),
        band("Nearest unlabelled", "with what they are called now", this.unlabelled)));
  }

  /**
   * Show the picture of the question that will most likely come, while the server is asked.
   * @param {import("../lib/items.js").ShownItem | undefined} picture
   */
  showComing(picture) {
    if (picture) this.viewer.show(picture, say`The next picture`);
    this.element.classList.add("is-waiting");
  }

  /**
   * Show a question.
   * @param {Question} card
   */
  show(card) {
    const hidden = isHidden(card);
    this.element.classList.remove("is-waiting");
    this.element.classList.toggle("is-blind", hidden);
    this.viewer.show(hidden ? { ...card, path: "" } : card, questionWords(card));
    setText(this.number, card.is_live ? `Question ${card.number}` : `Question ${card.number} of ${card.of}`);
    // A file may be called what it shows; group and reason name the predicted class. A blind answer must not see them.
    this.file.hidden = hidden;
    replace(this.file, hidden ? null : fileLine(card.path));
    this.file.title = hidden ? "" : `Copy the path: ${card.path}`;
    setText(this.group, hidden || !card.group ? "" : `Group: ${card.group}`);
    setText(this.why, hidden ? "" : card.why);
    replace(this.candidates, hidden ? this.blindNote(card) : this.suggestions(card));
    fillBand(this.labelled, card.labelled_neighbours, (thumb) => this.labelledThumb(thumb));
    fillBand(this.unlabelled, card.neighbours, (thumb) => thumbElement(thumb, { badges: "none" }));
    if (!IS_IMAGES && !hidden) this.markShared(card);
  }

  /**
   * Mark what the question and its neighbours both say: that is why they are near.
   * @param {Question} card
   */
  async markShared(card) {
    const near = [...card.labelled_neighbours, ...card.neighbours].map((thumb) => thumb.text);
    const item = near.length ? await fetchItem(card).catch(() => null) : null;
    if (!item || this.viewer.row !== card.row) return;
    // Not the names of the cells: all records have those in common.
    const own = [item.text, ...item.cells.map(({ value }) => value)].join("\n");
    const marking = sharedWith(sharedWords(readable(own), near));
    this.viewer.show(card, questionWords(card), marking);
    for (const thumbs of [this.labelled, this.unlabelled]) markTexts(thumbs, marking);
  }

  /**
   * What it may be: a new name comes first where no class explains the picture.
   * @param {Card} card
   */
  suggestions(card) {
    const rows = card.candidates.map((one, index) => candidateRow(one, index, this.calls.choose));
    const none = "no class so far fits well";
    if (asksForName(card)) return [otherRow("accept", "Give it a name", none, this.calls.create), ...rows];
    if (rows.length >= MOST_SUGGESTED) return rows;
    return [...rows, otherRow("create", "Something else", "give it a name", this.calls.create)];
  }

  /** @param {Thumb} thumb */
  labelledThumb(thumb) {
    const label = `Same as this: ${thumb.name}`;
    return thumbElement(thumb, { badges: "people", label, onclick: () => this.calls.sameAs(thumb) });
  }

  /** @param {Card} card */
  blindNote(card) {
    const why = card.is_audit ? say`Answer from the picture alone.`
      : "Blind mode: suggestions and neighbours are hidden.";
    return h("div", { class: "blind" },
      h("h2", {}, "Which class is it?"),
      h("p", { class: "muted" }, why),
      h("button", { type: "button", class: "button primary large", onclick: this.calls.search },
        "Type its name ", keyHint("accept")));
  }
}
