/** Which part of the plane the map shows, and the sums that go with it. */

const PAD = 0.05;
const CLOSEST = 200;

/** @typedef {[low: number, high: number]} Range */

/**
 * @param {Range} range
 * @param {readonly number[]} values
 * @returns {Range}
 */
function widened([low, high], values) {
  // Not Math.min(...values): twenty thousand arguments are too many for some browsers.
  return [values.reduce((least, value) => Math.min(least, value), low),
    values.reduce((most, value) => Math.max(most, value), high)];
}

/**
 * @param {Range} range
 * @returns {Range}
 */
function padded([low, high]) {
  const pad = (high - low || 1) * PAD;
  return [low - pad, high + pad];
}

/** Ranges of both axes over a box of width × height; y points up. */
export class MapView {
  width = 1;
  height = 1;
  /** @type {Range} */
  x = [0, 1];
  /** @type {Range} */
  y = [0, 1];
  isWhole = true;
  /** @type {{ x: Range, y: Range }} */
  seen = { x: [Infinity, -Infinity], y: [Infinity, -Infinity] };

  /**
   * Make room for points. The axes only ever widen, so that nothing jumps from round to round.
   * @param {{ x: number[], y: number[] }} points
   */
  include(points) {
    this.seen = { x: widened(this.seen.x, points.x), y: widened(this.seen.y, points.y) };
    if (this.isWhole) this.showWhole();
  }

  showWhole() {
    this.x = padded(this.seen.x);
    this.y = padded(this.seen.y);
    this.isWhole = true;
  }

  /**
   * Where points stand in the box, in pixels.
   * @param {Places} points
   * @returns {Places}
   */
  place(points) {
    const across = this.width / (this.x[1] - this.x[0]);
    const up = this.height / (this.y[1] - this.y[0]);
    return { x: Float32Array.from(points.x, (x) => (x - this.x[0]) * across),
      y: Float32Array.from(points.y, (y) => (this.y[1] - y) * up) };
  }

  /**
   * Make everything `factor` times as large, around a point of the box.
   * @param {number} factor
   * @param {Point} at
   */
  zoom(factor, at) {
    const widest = padded(this.seen.x);
    const share = (this.x[1] - this.x[0]) / (widest[1] - widest[0]);
    const by = Math.max(share, Math.min(factor, share * CLOSEST));
    /** @type {(range: Range, part: number) => Range} */
    const around = ([low, high], part) => {
      const middle = low + (high - low) * part;
      return [middle - (middle - low) / by, middle + (high - middle) / by];
    };
    this.x = around(this.x, at.x / this.width);
    this.y = around(this.y, 1 - at.y / this.height);
    this.isWhole = false;
  }

  /**
   * Move the map by pixels.
   * @param {number} dx
   * @param {number} dy
   */
  move(dx, dy) {
    const across = (dx / this.width) * (this.x[1] - this.x[0]);
    const up = (dy / this.height) * (this.y[1] - this.y[0]);
    this.x = [this.x[0] - across, this.x[1] - across];
    this.y = [this.y[0] + up, this.y[1] + up];
    this.isWhole = false;
  }
}

/**
 * The index of the nearest place within `reach` pixels, or null.
 * @param {Places} places
 * @param {Point} at
 * @param {number} reach
 */
export function nearest(places, at, reach) {
  /** @type {number | null} */
  let best = null;
  let least = reach * reach;
  for (let index = 0; index < places.x.length; index += 1) {
    const distance = (places.x[index] - at.x) ** 2 + (places.y[index] - at.y) ** 2;
    if (distance <= least) [best, least] = [index, distance];
  }
  return best;
}

/**
 * Whether a point lies inside a polygon: a ray from it crosses the edge an odd number of times.
 * @param {Point[]} polygon
 * @param {number} x
 * @param {number} y
 */
function isInside(polygon, x, y) {
  let isOdd = false;
  let before = polygon[polygon.length - 1];
  for (const corner of polygon) {
    const slope = (before.x - corner.x) / (before.y - corner.y);
    if (corner.y > y !== before.y > y && x < corner.x + slope * (y - corner.y)) isOdd = !isOdd;
    before = corner;
  }
  return isOdd;
}

/**
 * The indices of the places inside a polygon.
 * @param {Places} places
 * @param {Point[]} polygon
 */
export function inside(places, polygon) {
  const found = [];
  for (let index = 0; index < places.x.length; index += 1) {
    if (isInside(polygon, places.x[index], places.y[index])) found.push(index);
  }
  return found;
}
