/** What each training changed, for the progress page. */

import { h } from "../lib/dom.js";
import { count, duration, percent, plural, say } from "../lib/words.js";
import { auditWords, errorBar } from "./roundCharts.js";

/** @typedef {Api["RoundCard"]} Round */
/** @typedef {readonly [word: string, title: string, write: (round: Round) => string]} Figure */

/**
 * "The first training" or "Training 4"; "Before any training" for what is known without one.
 * @param {number} number counted from 0; −1 before any
 */
export function trainingWord(number) {
  if (number < 0) return "Before any training";
  return number === 0 ? "The first training" : `Training ${count(number + 1)}`;
}

/** @param {number | null} share */
function orDash(share) {
  return share === null ? "–" : percent(share);
}

/** Every figure of a training: its name, what it means, and how it is written. */
const FIGURES = /** @satisfies {Record<string, Figure>} */ ({
  answers: ["Answers learned", "Answers that it learned from", (round) => count(round.n_answers)],
  classes: ["Classes it knows", "Classes that had a name by then", (round) => count(round.n_classes)],
  named: [say`Pictures it names`, say`Share of the pictures that the model put into a class with a name`,
    (round) => percent(round.named_share)],
  agreement: ["Agrees with you", "Share of the people's labels that the model would give too",
    (round) => orDash(round.agreement)],
  moved: ["Changed since", say`Share of the pictures that the model puts elsewhere than the training before did`,
    (round) => orDash(round.moved_share)],
});
/** What only those who know the method ask for. */
const EXPERT_FIGURES = /** @satisfies {Record<string, Figure>} */ ({
  labels: ["Labels", "Labels it learned from, those known at the start included", (round) => count(round.n_labels)],
  groups: ["Groups with a name", "Of all groups that the model looks for",
    (round) => `${count(round.n_named)} of ${count(round.n_slots)}`],
  time: ["Time", "How long it took", (round) => duration(round.seconds)],
});

// ------------------------------------------------------------------------------------------- before and after

/**
 * The last training in one sentence.
 * @param {Round[]} rounds at least one
 */
export function headline(rounds) {
  const last = rounds[rounds.length - 1];
  const found = last.n_classes - (rounds.at(-2)?.n_classes ?? last.n_classes);
  const more = found > 0 ? `, ${count(found)} more than before` : "";
  return `${trainingWord(last.number)} taught it ${plural(last.n_classes, "class", "classes")}${more}. `
    + "It is what you take with you; the names on these pages follow your answers at once.";
}

/**
 * The figures of the last training, with those of the one before.
 * @param {Round[]} rounds at least one
 */
export function tiles(rounds) {
  const last = rounds[rounds.length - 1];
  const before = rounds.at(-2);
  const tile = (/** @type {Figure} */ [word, title, write]) => h("div", { class: "tile", title },
    h("span", { class: "tile-label" }, word),
    h("strong", { class: "tile-number numbers" }, write(last)),
    before ? h("span", { class: "muted numbers" }, `before: ${write(before)}`) : null);
  return h("div", { class: "tiles" }, Object.values(FIGURES).filter(([, , write]) => write(last) !== "–").map(tile));
}

// ------------------------------------------------------------------------------------------------------ tables

/** @param {string} text */
function muted(text) {
  return h("span", { class: "muted numbers" }, text);
}

/** @param {Round} round */
function changesCell(round) {
  if (!round.changes.length) return muted(round.number === 0 ? "–" : "none");
  return h("ul", { class: "changes" }, round.changes.map((text) => h("li", {}, text)));
}

/**
 * What a blind check found, drawn and in words.
 * @param {Api["AuditScore"]} audit
 */
export function auditResult(audit) {
  return [errorBar(audit), muted(auditWords(audit))];
}

/**
 * A table with one line per training, the last one first.
 * @param {Round[]} rounds
 * @param {Figure[]} figures
 * @param {readonly [word: string, title: string, name: string, build: (round: Round) => Child]} last
 */
function table(rounds, figures, [word, title, name, build]) {
  const columns = [["", ""], ...figures, [word, title]];
  const row = (/** @type {Round} */ round) => h("tr", {},
    h("th", { scope: "row" }, trainingWord(round.number)),
    figures.map(([, , write]) => h("td", { class: "numbers" }, write(round))),
    h("td", { class: name }, build(round)));
  return h("div", { class: "table-frame" }, h("table", { class: "rounds-table" },
    h("thead", {}, h("tr", {}, columns.map(([text, meaning]) => h("th", { scope: "col", title: meaning }, text)))),
    h("tbody", {}, [...rounds].reverse().map(row))));
}

/** @param {Round[]} rounds */
export function trainingsTable(rounds) {
  return table(rounds, Object.values(FIGURES), ["Checked blind", "Share of right names in a blind sample", "audit-cell",
    ({ audit }) => (audit ? auditResult(audit) : muted("not checked"))]);
}

/** @param {Round[]} rounds */
export function expertsTable(rounds) {
  return table(rounds, Object.values(EXPERT_FIGURES),
    ["What changed", "Which group carries which name", "changes-cell", changesCell]);
}
