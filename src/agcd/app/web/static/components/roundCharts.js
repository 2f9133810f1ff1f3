/** The drawings of the progress page, built from SVG elements. */

import { h, svg } from "../lib/dom.js";
import { count, percent, say } from "../lib/words.js";

/** @typedef {Api["AuditScore"]} AuditScore */
/** @typedef {Api["RoundCard"]} Round */
/** @typedef {(value: number) => number} Scale */

const CHART = { width: 720, height: 210, left: 46, right: 16, top: 12, bottom: 28, inset: 36 };
const BAR = { width: 132, height: 18, pad: 5 };
const AUDIT_ASIDE = 12;

/**
 * "83 % (66–93 %), 25 of 30 right".
 * @param {AuditScore} score
 */
export function auditWords({ share, low, high, n, n_right: right }) {
  return `${percent(share)} (${Math.round(low * 100)}–${percent(high)}), ${count(right)} of ${count(n)} right`;
}

/**
 * A share with its 95 % interval as an error bar on a line from 0 to 100 %.
 * @param {AuditScore} score
 */
export function errorBar(score) {
  const { width, height, pad } = BAR;
  const x = (/** @type {number} */ share) => pad + share * (width - 2 * pad);
  const y = height / 2;
  const across = (/** @type {string} */ name, /** @type {number} */ from, /** @type {number} */ to) =>
    svg("line", { class: name, x1: x(from), x2: x(to), y1: y, y2: y });
  const end = (/** @type {number} */ share) =>
    svg("line", { class: "error-span", x1: x(share), x2: x(share), y1: y - 4, y2: y + 4 });
  const about = { class: "error-bar", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": auditWords(score) };
  return svg("svg", about, across("error-ground", 0, 1), across("error-span", score.low, score.high),
    end(score.low), end(score.high), svg("circle", { class: "error-dot", cx: x(score.share), cy: y, r: 4 }));
}

/** @param {Scale} y */
function shareLines(y) {
  const { width, left, right } = CHART;
  return [0, 0.25, 0.5, 0.75, 1].map((share) => [
    svg("line", { class: "chart-grid", x1: left, x2: width - right, y1: y(share), y2: y(share) }),
    svg("text", { x: left - 8, y: y(share) + 4, "text-anchor": "end" }, percent(share))]);
}

/**
 * @param {Round[]} rounds
 * @param {Scale} x
 */
function roundNumbers(rounds, x) {
  const y = CHART.height - CHART.bottom + 18;
  return rounds.map(({ number }, index) =>
    svg("text", { x: x(index), y, "text-anchor": "middle" }, String(number + 1)));
}

/**
 * @param {string} name
 * @param {(number | null)[]} shares
 * @param {Scale} x
 * @param {Scale} y
 */
function line(name, shares, x, y) {
  const known = shares.flatMap((share, index) => (share === null ? [] : [{ share, index }]));
  const points = known.map(({ share, index }) => `${x(index)},${y(share)}`).join(" ");
  const dots = known.map(({ share, index }) =>
    svg("circle", { class: `dot ${name}`, cx: x(index), cy: y(share), r: 3.5 }, svg("title", {}, percent(share))));
  return [svg("polyline", { class: `line ${name}`, points }), dots];
}

/**
 * @param {AuditScore} audit
 * @param {number} x
 * @param {Scale} y
 */
function auditMark(audit, x, y) {
  const end = (/** @type {number} */ share) => svg("line", { x1: x - 5, x2: x + 5, y1: y(share), y2: y(share) });
  return svg("g", { class: "audit-mark" }, svg("title", {}, auditWords(audit)),
    svg("line", { x1: x, x2: x, y1: y(audit.low), y2: y(audit.high) }), end(audit.low), end(audit.high),
    svg("rect", { x: x - 4.5, y: y(audit.share) - 4.5, width: 9, height: 9 }));
}

/**
 * How the trainings went: named share and agreement as lines, audits with their intervals.
 * @param {Round[]} rounds
 */
export function roundsChart(rounds) {
  const { width, height, left, right, top, bottom, inset } = CHART;
  const step = (width - left - right - 2 * inset) / Math.max(1, rounds.length - 1);
  const x = (/** @type {number} */ index) => left + inset + index * step;
  const y = (/** @type {number} */ share) => height - bottom - share * (height - top - bottom);
  const key = (/** @type {string} */ name, /** @type {string} */ text) =>
    h("span", { class: `chart-key ${name}` }, text);
  const viewBox = `0 0 ${width} ${height}`;
  return h("figure", { class: "rounds-figure" },
    h("figcaption", {}, key("is-named", say`pictures named`), key("is-agreed", "agreement with people's labels"),
      key("is-audit", "right by blind check, 95 % interval")),
    svg("svg", { class: "rounds-chart", viewBox, role: "img", "aria-label": "Shares by training" },
      shareLines(y), roundNumbers(rounds, x),
      line("is-named", rounds.map((round) => round.named_share), x, y),
      line("is-agreed", rounds.map((round) => round.agreement), x, y),
      rounds.map(({ audit }, index) => (audit ? auditMark(audit, x(index) + AUDIT_ASIDE, y) : null))));
}
