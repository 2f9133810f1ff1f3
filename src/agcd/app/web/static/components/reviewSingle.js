/** One picture of the review, large: what it is called, and what it may be instead. */

import { h, replace, setText } from "../lib/dom.js";
import { sureWord } from "../lib/review.js";
import { fileName, say } from "../lib/words.js";
import { originBadge } from "./controls.js";
import { itemViewer } from "./itemView.js";
import { keyHint } from "./keyBindings.js";

/** @typedef {Api["ReviewPicture"]} ReviewPicture */

/** Built once, filled for every picture. */
export class ReviewSingle {
  viewer = itemViewer();
  sentence = h("h2", { class: "review-name" });
  note = h("p", { class: "muted review-note" });
  path = h("p", { class: "muted review-path" });
  lead = h("p", { class: "hint" });
  others = h("div", { class: "review-others" });

  /** @param {(index: number) => unknown} choose */
  constructor(choose) {
    this.choose = choose;
    this.element = h("div", { class: "review-single" },
      h("div", { class: "review-called", role: "status" }, this.sentence, this.note),
      h("section", { class: "review-picture", "aria-label": say`Picture` }, this.viewer.element, this.path),
      h("section", { class: "review-side", "aria-label": "What else it may be" }, this.lead, this.others));
  }

  /**
   * Show a picture as what it is called.
   * @param {ReviewPicture} picture
   */
  ask(picture) {
    this.show(picture, `${picture.name}?`, `The name is ${sureWord(picture.p_right)}.`, "Or is it");
  }

  /**
   * Show a picture that was ticked as wrong.
   * @param {ReviewPicture} picture
   * @param {string} note
   */
  mend(picture, note) {
    this.show(picture, `Not ${picture.name}. What is it?`, note, "Perhaps");
  }

  /**
   * @param {ReviewPicture} picture
   * @param {string} sentence
   * @param {string} note
   * @param {string} lead
   */
  show(picture, sentence, note, lead) {
    this.viewer.show(picture, say`Picture ${picture.row}, shown as ${picture.name}`);
    setText(this.sentence, sentence);
    setText(this.note, note);
    setText(this.path, fileName(picture.path));
    this.path.title = picture.path;
    setText(this.lead, picture.others.length ? lead : "");
    replace(this.others, picture.others.map((other, index) => this.other(other, index)));
  }

  /**
   * @param {Api["Suggestion"]} other
   * @param {number} index
   */
  other(other, index) {
    return h("button", { type: "button", class: "review-other", onclick: () => this.choose(index) },
      keyHint(`other${index + 1}`), h("strong", { title: other.name }, other.name), originBadge(other));
  }
}
