/** Marking places of a grid as in a file manager. */

/**
 * @param {number} from
 * @param {number} to
 */
function range(from, to) {
  const first = Math.min(from, to);
  return Array.from({ length: Math.abs(from - to) + 1 }, (_, step) => first + step);
}

/** Which of n places are marked, where the cursor stands, and from where a range is drawn. */
export class Marks {
  n = 0;
  cursor = 0;
  anchor = 0;
  /** @type {Set<number>} */
  marked = new Set();

  /** @param {() => void} onchange */
  constructor(onchange) {
    this.onchange = onchange;
  }

  /**
   * Begin anew with n places; the cursor stays where it was.
   * @param {number} n
   */
  reset(n) {
    this.n = n;
    this.cursor = Math.max(0, Math.min(this.cursor, n - 1));
    this.set([], this.cursor);
  }

  /**
   * @param {Iterable<number>} places
   * @param {number} [cursor]
   * @param {number} [anchor]
   */
  set(places, cursor = this.cursor, anchor = cursor) {
    this.marked = new Set(places);
    this.cursor = cursor;
    this.anchor = anchor;
    this.onchange();
  }

  /**
   * A click: alone, with Shift (from the anchor to here) or with Ctrl (this one on or off).
   * @param {number} place
   */
  click(place, { isRange = false, isToggle = false } = {}) {
    if (isRange) this.set([...(isToggle ? this.marked : []), ...range(this.anchor, place)], place, this.anchor);
    else if (isToggle) this.toggle(place);
    else this.set([place], place);
  }

  /** @param {number} [place] */
  toggle(place = this.cursor) {
    if (this.n === 0) return;
    const marked = new Set(this.marked);
    if (!marked.delete(place)) marked.add(place);
    this.set(marked, place);
  }

  /**
   * Move the cursor; with Shift the range from the anchor is marked.
   * @param {number} step
   * @param {boolean} isRange
   */
  move(step, isRange) {
    const place = this.cursor + step;
    if (place < 0 || place >= this.n) return;
    if (isRange) this.set(range(this.anchor, place), place, this.anchor);
    else this.set(this.marked, place);
  }

  all() {
    this.set(Array.from({ length: this.n }, (_, place) => place));
  }

  none() {
    this.set([]);
  }
}

/** @typedef {{ left: number, top: number, right: number, bottom: number }} Box */

/**
 * The box between two corners, whichever way it was drawn.
 * @param {Point} from
 * @param {Point} to
 * @returns {Box}
 */
export function boxBetween(from, to) {
  return { left: Math.min(from.x, to.x), top: Math.min(from.y, to.y),
    right: Math.max(from.x, to.x), bottom: Math.max(from.y, to.y) };
}

/**
 * The places whose boxes a frame touches.
 * @param {Box} frame
 * @param {Box[]} boxes
 */
export function touched(frame, boxes) {
  const isTouched = (/** @type {Box} */ one) =>
    one.left < frame.right && one.right > frame.left && one.top < frame.bottom && one.bottom > frame.top;
  return boxes.flatMap((one, place) => (isTouched(one) ? [place] : []));
}
