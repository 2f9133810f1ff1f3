/** The end of the review, and what is shown when its pictures do not come. */

import { h } from "../lib/dom.js";
import { endWords, unseenWords } from "../lib/review.js";

/**
 * `accepted` is what was accepted without a look, if that ended it.
 * @param {Api["ReviewLeft"]} left
 * @param {HTMLElement} downloads
 * @param {Api["RestAccepted"] | null} accepted
 */
export function reviewEnd(left, downloads, accepted) {
  const { title, rest } = endWords(left);
  const links = rest
    ? [h("a", { class: "button primary", href: "/label" }, "Label them by questions"),
      h("a", { class: "button", href: "/grid?show=unlabelled" }, "See them in the grid")]
    : [h("a", { class: "button", href: "/classes" }, "Look at the classes")];
  return h("div", { class: "review-end" },
    h("div", { class: "panel review-done" }, h("h2", {}, title),
      accepted ? h("p", {}, unseenWords(accepted)) : null,
      rest ? h("p", {}, rest) : null,
      h("div", { class: "toolbar" }, links)),
    left.n_checked ? downloads : null);
}

/** @param {() => unknown} tryAgain */
export function reviewTrouble(tryAgain) {
  return h("div", { class: "panel review-done" }, h("h2", {}, "The next pictures did not come"),
    h("button", { type: "button", class: "button primary", onclick: tryAgain }, "Try again"));
}
