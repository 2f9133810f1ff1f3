/** The end of the review, and what is shown when its pictures do not come. */

import { h } from "../lib/dom.js";
import { endWords, unseenWords } from "../lib/review.js";
import { say } from "../lib/words.js";

/**
 * @param {Api["ReviewLeft"]} left
 * @param {HTMLElement} downloads
 */
export function reviewEnd(left, downloads) {
  const { title, rest } = endWords(left);
  const unseen = unseenWords(left);
  const links = rest
    ? [h("a", { class: "button primary", href: "/label" }, "Label them by questions"),
      h("a", { class: "button", href: "/grid?show=unlabelled" }, "See them in the grid")]
    : [h("a", { class: "button", href: "/classes" }, "Look at the classes")];
  return h("div", { class: "review-end" },
    h("div", { class: "panel review-done" }, h("h2", {}, title),
      unseen ? h("p", {}, unseen) : null,
      rest ? h("p", {}, rest) : null,
      h("div", { class: "toolbar" }, links)),
    left.n_checked || left.n_unseen ? downloads : null);
}

/** @param {() => unknown} tryAgain */
export function reviewTrouble(tryAgain) {
  return h("div", { class: "panel review-done" }, h("h2", {}, say`The next pictures did not come`),
    h("button", { type: "button", class: "button primary", onclick: tryAgain }, "Try again"));
}
