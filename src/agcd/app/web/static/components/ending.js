/** What the label page shows when there is no question: why, and where to go from there. */

import { h } from "../lib/dom.js";
import { plural, say } from "../lib/words.js";
import { keyHint } from "./keyBindings.js";

/**
 * @param {string} title
 * @param {Child[]} children
 */
function panel(title, ...children) {
  return h("div", { class: "panel ending" }, h("h1", {}, title), children);
}

/**
 * The end of an audit. `release` lets the model learn from its answers.
 * @param {{ held_by_others: number }} card
 * @param {() => unknown} release
 */
export function auditDone({ held_by_others: n }, release) {
  return panel("The audit is answered",
    h("p", { class: "muted" }, "The progress page now says how often the names are right, with an interval. ",
      "The answers are kept apart; you may also let the model learn from them."),
    n ? h("p", {}, `${plural(n, "question is", "questions are")} open in another window or with somebody else.`) : null,
    h("p", { class: "ending-links" },
      h("a", { class: "button primary", href: "/rounds" }, "See the result"),
      h("button", { type: "button", class: "button", onclick: release }, "Learn from these answers"),
      h("a", { href: "/label" }, "Go on labelling")));
}

/** For a person who may look and not label. */
export function looksOnly() {
  return panel("You may look, but not label",
    h("p", { class: "muted" }, "Whoever manages this project can give you the role “label”."),
    h("p", { class: "ending-links" },
      h("a", { class: "button primary", href: "/classes" }, "See the classes"),
      h("a", { href: "/grid" }, say`See the pictures`), h("a", { href: "/rounds" }, "See the progress")));
}

/**
 * The server refused to give a question; the sentence was shown already.
 * @param {() => unknown} tryAgain
 */
export function trouble(tryAgain) {
  return panel("The next question did not come",
    h("button", { type: "button", class: "button primary", onclick: tryAgain }, "Try again"));
}

/**
 * Before the first question: the pictures have to be looked at once. `job` shows how far that is.
 * @param {HTMLElement} job
 */
export function notReady(job) {
  return panel("The first question comes in a moment",
    h("p", { class: "muted" }, say`Every picture is looked at once. Then the questions begin, `,
      "and they never stop for training."),
    job);
}

/** Every picture has an answer or is with somebody else. */
export function allAnswered() {
  return panel("Nothing is left to ask",
    h("p", { class: "muted" }, say`Every picture has an answer, or somebody else is looking at it.`),
    h("p", { class: "ending-links" },
      h("a", { class: "button primary large", href: "/review" }, "Review and finish ", keyHint("accept")),
      h("a", { href: "/classes" }, "Look at the classes")));
}
