/** What the label page shows when there is no question: why, the counts, and the way to the next questions. */

import { h } from "../lib/dom.js";
import { plural } from "../lib/words.js";
import { fact } from "./controls.js";

/** @typedef {Api["State"]} State */
/** @typedef {Pick<Api["Card"], "held_by_others">} LastCard */
/**
 * Heading, what comes next, and the word on the button that brings it; no button where nothing can be started here.
 * @typedef {{ title: string, lead: string, button: string | null }} Words
 */

/**
 * Before the first training there cannot be questions.
 * @param {boolean} isRunning
 * @returns {Words}
 */
function wordsBeforeTraining(isRunning) {
  return { title: "No questions yet", button: null, lead: isRunning
    ? "The model is being trained for the first time. The first questions come by themselves when it is done."
    : "The model has to be trained once before it can ask." };
}

/**
 * What is said when nothing is left to ask.
 * @param {LastCard} card
 * @param {Pick<State, "n_finished" | "is_due">} state
 * @param {boolean} isRunning
 * @returns {Words}
 */
export function wordsWhenDone(card, state, isRunning) {
  if (state.n_finished === 0) return wordsBeforeTraining(isRunning);
  const title = card.held_by_others ? "No question is free" : "All questions are answered";
  if (isRunning) {
    return { title, button: null, lead: "The next questions come by themselves when the training is done." };
  }
  if (state.is_due) {
    return { title, button: "Train the next round",
      lead: "Train the next round: the model learns from your answers and chooses new questions." };
  }
  return { title, button: "Choose new questions",
    lead: "The model has learned from all your answers. It can choose new questions without training again." };
}

/**
 * "1 question is open in another window or with somebody else.", or nothing.
 * @param {LastCard} card
 */
export function heldWords(card) {
  const n = card.held_by_others;
  return n ? `${plural(n, "question is", "questions are")} open in another window or with somebody else.` : "";
}

/** @param {State} state */
function facts(state) {
  return h("div", { class: "facts" },
    fact(state.n_answers, "answer so far", "answers so far"),
    fact(state.n_novel, "class found by you", "classes found by you"),
    fact(state.n_new_answers, "answer not yet learned from", "answers not yet learned from"));
}

/** @param {LastCard} card */
function heldLine(card) {
  return card.held_by_others ? h("p", {}, heldWords(card)) : null;
}

/**
 * @param {string} title
 * @param {Child[]} children
 */
function donePanel(title, ...children) {
  return h("div", { class: "panel ending" }, h("h1", {}, title), children);
}

/**
 * The end of an audit.
 * @param {LastCard} card
 */
export function auditDone(card) {
  return donePanel("The audit is answered",
    h("p", { class: "muted" }, "The rounds page now says how often the model is right, with an interval."),
    heldLine(card),
    h("p", { class: "ending-links" },
      h("a", { class: "button primary", href: "/rounds" }, "See the result"),
      h("a", { href: "/label" }, "Go on labelling")));
}

/**
 * The server refused to give a question; the sentence was shown already.
 * @param {() => unknown} tryAgain
 */
export function trouble(tryAgain) {
  return donePanel("The next question did not come",
    h("button", { type: "button", class: "button primary", onclick: tryAgain }, "Try again"));
}

/**
 * Nothing is left to ask. `train` starts the next round, `job` shows how far it is.
 * @param {LastCard} card
 * @param {State} state
 * @param {{ isRunning: boolean, train: () => unknown, job: HTMLElement }} work
 */
export function roundDone(card, state, { isRunning, train, job }) {
  const { title, lead, button } = wordsWhenDone(card, state, isRunning);
  const text = h("p", { class: "muted" }, lead);
  if (state.n_finished === 0) {
    return donePanel(title, text,
      isRunning ? job : h("a", { class: "button primary", href: "/start" }, "To the start page"));
  }
  return donePanel(title, facts(state), heldLine(card), text,
    button ? h("button", { type: "button", class: "button primary large", onclick: train }, `${button} `,
      h("kbd", {}, "Enter")) : null,
    job,
    h("p", { class: "ending-links" }, h("a", { href: "/classes" }, "Look at the classes"),
      h("a", { href: "/rounds" }, "See the rounds")));
}
