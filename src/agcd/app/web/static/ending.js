/** What the label page shows when there is no question left: the counts, and the way to the next round. */

import { h, plural } from "./dom.js";

function fact(number, words) {
  return h("div", { class: "fact" }, h("strong", { class: "numbers" }, number), h("span", { class: "muted" }, words));
}

function facts(state) {
  return h("div", { class: "facts" },
    fact(state.n_answers, "answers so far"),
    fact(state.n_novel, "new classes found"),
    fact(state.n_new_answers, "answers not yet learned from"));
}

function otherHands(card) {
  const n = card.held_by_others;
  return n ? h("p", {}, `${plural(n, "question is", "questions are")} open in other hands.`) : null;
}

function links() {
  return h("p", { class: "ending-links" }, h("a", { href: "/classes" }, "Look at the classes"),
    h("a", { href: "/rounds" }, "See the rounds"));
}

/** The end of an audit. */
export function auditEnding(card) {
  return h("div", { class: "panel ending" }, h("h1", {}, "The audit is answered"),
    h("p", { class: "muted" }, "The rounds page now says how often the model is right, with an interval."),
    otherHands(card),
    h("p", { class: "ending-links" },
      h("a", { class: "button primary", href: "/rounds" }, "See the result"),
      h("a", { href: "/label" }, "Go on labelling")));
}

/** The server refused to give a question; the sentence was shown already. */
export function trouble(tryAgain) {
  return h("div", { class: "panel ending" }, h("h1", {}, "The next question did not come"),
    h("button", { type: "button", class: "button primary", onclick: tryAgain }, "Try again"));
}

/** Nothing was trained yet: there cannot be questions. */
export function beforeTraining() {
  return h("div", { class: "panel ending" }, h("h1", {}, "No questions yet"),
    h("p", { class: "muted" }, "The model has to be trained once before it can ask."),
    h("a", { class: "button primary", href: "/start" }, "To the start page"));
}

/** The end of a round's questions. `trainButton` starts the next round, `jobElement` shows how far it is. */
export function roundEnding(card, state, trainButton, jobElement, isRunning) {
  const lead = isRunning ? "The next questions come by themselves when the training is done."
    : state.is_due ? "Train the next round: the model learns from your answers and chooses new questions."
      : "There are no new answers since the last round, so training again would teach the model nothing.";
  return h("div", { class: "panel ending" },
    h("h1", {}, card.held_by_others ? "No question is free" : "All questions are answered"),
    facts(state), otherHands(card), h("p", { class: "muted" }, lead),
    isRunning ? null : trainButton, jobElement, links());
}
