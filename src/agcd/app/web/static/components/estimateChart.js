/** The curve of the class estimate, built from SVG elements. */

import { svg } from "../lib/dom.js";
import { percent } from "../lib/words.js";

/** @typedef {(value: number) => number} Scale */

/**
 * @param {[number, number]} domain
 * @param {[number, number]} range
 * @returns {Scale}
 */
function scale([from, to], [low, high]) {
  const span = to - from || 1;
  return (value) => low + ((value - from) / span) * (high - low);
}

/**
 * @param {number[]} values
 * @returns {[number, number]}
 */
function extent(values) {
  return [Math.min(...values), Math.max(...values)];
}

const CHART = { width: 560, height: 220, left: 50, right: 14, top: 24, bottom: 40 };

/**
 * Accuracy on labelled pictures by tried number of classes, with the chosen number and its range marked.
 * @param {Api["Estimate"]} estimate
 */
export function estimateChart(estimate) {
  const { width, height, left, right, top, bottom } = CHART;
  const [least, most] = extent(estimate.curve.map(([, accuracy]) => accuracy));
  const x = scale(extent(estimate.curve.map(([n]) => n)), [left, width - right]);
  const y = scale([Math.max(0, least - 0.05), Math.min(1, most + 0.05)], [height - bottom, top]);
  const points = estimate.curve.map(([n, accuracy]) => `${x(n).toFixed(1)},${y(accuracy).toFixed(1)}`).join(" ");
  const best = estimate.curve.find(([n]) => n === estimate.n)?.[1] ?? most;
  const label = `About ${estimate.n} classes; between ${estimate.low} and ${estimate.high} do about as well.`;
  return svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    svg("rect", { class: "chart-range", x: x(estimate.low), y: top,
      width: Math.max(2, x(estimate.high) - x(estimate.low)), height: height - top - bottom }),
    ticks(y, [least, (least + most) / 2, most]),
    svg("polyline", { points }),
    estimate.curve.map(([n, accuracy]) => svg("circle", { class: "chart-dot", cx: x(n), cy: y(accuracy), r: 2.5 })),
    svg("line", { class: "chart-chosen", x1: x(estimate.n), x2: x(estimate.n), y1: top, y2: height - bottom }),
    svg("circle", { class: "chart-best", cx: x(estimate.n), cy: y(best), r: 5 }),
    svg("text", { class: "chart-strong", x: x(estimate.n), y: top - 8, "text-anchor": "middle" }, String(estimate.n)),
    axisNumbers(estimate, x, height - bottom + 16),
    svg("text", { x: (left + width - right) / 2, y: height - 4, "text-anchor": "middle" }, "number of classes tried"));
}

/**
 * @param {Scale} y
 * @param {number[]} values
 */
function ticks(y, values) {
  const { width, left, right } = CHART;
  return values.map((value) => [
    svg("line", { class: "chart-grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
    svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, percent(value)),
  ]);
}

/**
 * @param {Api["Estimate"]} estimate
 * @param {Scale} x
 * @param {number} y
 */
function axisNumbers(estimate, x, y) {
  const numbers = estimate.curve.map(([n]) => n);
  const shown = [numbers[0], estimate.low, estimate.high, numbers[numbers.length - 1]];
  const apart = shown.filter((n, index) => shown.slice(0, index).every((other) => Math.abs(x(n) - x(other)) > 22));
  return apart.map((n) => svg("text", { x: x(n), y, "text-anchor": "middle" }, String(n)));
}
