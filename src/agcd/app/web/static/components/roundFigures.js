/** The figures and the table of the rounds page. */

import { h } from "../lib/dom.js";
import { count, duration, percent, plural } from "../lib/words.js";
import { auditWords, errorBar } from "./roundCharts.js";

/** @typedef {Api["RoundCard"]} Round */
/** @typedef {readonly [word: string, title: string, write: (round: Round) => string]} Figure */

/**
 * "Base training" or "Round 3".
 * @param {number} number
 */
export function roundWord(number) {
  return number === 0 ? "Base training" : `Round ${count(number)}`;
}

/** @param {number | null} share */
function orDash(share) {
  return share === null ? "–" : percent(share);
}

/** Every figure of a round: its name, what it means, and how it is written. */
const FIGURES = /** @satisfies {Record<string, Figure>} */ ({
  labels: ["Labels", "Labels it learned from, first labels included", (round) => count(round.n_labels)],
  answers: ["Answers", "Confirmed answers that it learned from", (round) => count(round.n_answers)],
  classes: ["Classes", "Classes that people named", (round) => count(round.n_classes)],
  groups: ["Groups named", "Groups with a name, of all that the model looks for",
    (round) => `${count(round.n_named)} of ${count(round.n_slots)}`],
  named: ["Pictures named", "Share of the pictures in groups with a name", (round) => percent(round.named_share)],
  agreement: ["Agreement", "Share of the people's labels that the model would give too",
    (round) => orDash(round.agreement)],
  moved: ["Moved", "Share of the pictures that changed their class against the round before",
    (round) => orDash(round.moved_share)],
  time: ["Time", "How long it took", (round) => duration(round.seconds)],
});
const TILES = [FIGURES.answers, FIGURES.classes, FIGURES.named, FIGURES.agreement, FIGURES.moved];

// ------------------------------------------------------------------------------------------- before and after

/**
 * The last round in one sentence.
 * @param {Round[]} rounds at least one
 */
export function headline(rounds) {
  const last = rounds[rounds.length - 1];
  const before = rounds.at(-2);
  const share = percent(last.named_share);
  const named = `${roundWord(last.number)} is done: ${share} of the pictures are in groups with a name`;
  if (!before) return `${named}.`;
  const points = Math.round((last.named_share - before.named_share) * 100);
  const more = `${plural(Math.abs(points), "point")} ${points > 0 ? "more" : "fewer"} than before`;
  const found = last.n_classes - before.n_classes;
  const classes = found > 0 ? `; ${plural(found, "class", "classes")} more found` : "";
  return `${named}, ${points === 0 ? "as many as before" : more}${classes}.`;
}

/**
 * The figures of the last round, with those of the round before.
 * @param {Round[]} rounds at least one
 */
export function tiles(rounds) {
  const last = rounds[rounds.length - 1];
  const before = rounds.at(-2);
  return h("div", { class: "tiles" }, TILES.map(([word, title, write]) => h("div", { class: "tile", title },
    h("span", { class: "tile-label" }, word),
    h("strong", { class: "tile-number numbers" }, write(last)),
    before ? h("span", { class: "muted numbers" }, `before: ${write(before)}`) : null)));
}

// ------------------------------------------------------------------------------------------------------- table

/** @param {string} text */
function muted(text) {
  return h("span", { class: "muted numbers" }, text);
}

/** @param {Round} round */
function changesCell(round) {
  if (!round.changes.length) return muted(round.number === 0 ? "–" : "none");
  return h("details", {}, h("summary", {}, plural(round.changes.length, "change")),
    h("ul", { class: "changes" }, round.changes.map((text) => h("li", {}, text))));
}

/** @param {Round} round */
function auditCell({ audit }) {
  return audit ? [errorBar(audit), muted(auditWords(audit))] : muted("no audit");
}

/** @param {Round} round */
function row(round) {
  return h("tr", {},
    h("th", { scope: "row" }, roundWord(round.number)),
    Object.values(FIGURES).map(([, , write]) => h("td", { class: "numbers" }, write(round))),
    h("td", { class: "audit-cell" }, auditCell(round)),
    h("td", { class: "changes-cell" }, changesCell(round)));
}

/**
 * All rounds, the last one first.
 * @param {Round[]} rounds
 */
export function roundsTable(rounds) {
  const columns = [["Round", ""], ...Object.values(FIGURES),
    ["Audit accuracy", "Share of right answers in a blind sample"], ["What changed", "Which group carries which name"]];
  const headings = columns.map(([word, title]) => h("th", { scope: "col", title }, word));
  return h("div", { class: "table-frame" }, h("table", { class: "rounds-table" },
    h("thead", {}, h("tr", {}, headings)),
    h("tbody", {}, [...rounds].reverse().map(row))));
}
