/** Which pictures of a list by falling similarity are accepted: all up to a cut, less those crossed out. */

/** @typedef {{ row: number, name?: string | null }} ShownThumb */
/** @typedef {Pick<Api["Grow"], "page" | "page_size"> & { thumbs: ShownThumb[] }} ShownPage */
/** A picture and its place in the whole list. @typedef {{ row: number, place: number }} Placed */

/**
 * A picture of a page, with its place in the whole list.
 * @param {ShownPage} shown
 * @param {number} index
 * @returns {Placed}
 */
export function placed({ page, page_size: size, thumbs }, index) {
  return { row: thumbs[index].row, place: page * size + index };
}

export class GrowChoice {
  /** Row → place of the pictures crossed out. @type {Map<number, number>} */
  #crossed = new Map();
  /** The last picture that is accepted; none: the page that is shown decides. @type {Placed | null} */
  cut = null;
  /** Whether nobody has confirmed the cut: the page that is shown proposed it. */
  isProposed = false;

  /**
   * Propose to cut a page before the first picture that is called otherwise, unless a person has cut.
   * @param {ShownPage} shown
   * @param {string} name
   */
  propose(shown, name) {
    if (this.cut && !this.isProposed) return;
    const other = shown.thumbs.findIndex((thumb) => thumb.name !== name);
    this.isProposed = other > 0;
    this.cut = this.isProposed ? placed(shown, other - 1) : null;
  }

  /**
   * Cut after a picture; a second time takes that back.
   * @param {Placed} at
   */
  toggleCut(at) {
    this.cut = this.cut?.row === at.row && !this.isProposed ? null : at;
    this.isProposed = false;
  }

  /**
   * Move the cut along the page by some pictures; without one it starts from the end of the page.
   * @param {ShownPage} shown
   * @param {number} step
   */
  moveCut(shown, step) {
    const first = shown.page * shown.page_size;
    const from = this.cut ? this.cut.place - first : shown.thumbs.length - 1;
    const index = Math.max(0, Math.min(from + step, shown.thumbs.length - 1));
    if (shown.thumbs.length) this.cut = placed(shown, index);
    this.isProposed = false;
  }

  /**
   * Cross out a picture, or take that back.
   * @param {Placed} at
   */
  toggleCrossed({ row, place }) {
    if (!this.#crossed.delete(row)) this.#crossed.set(row, place);
  }

  /** @param {number} row */
  isCrossed(row) {
    return this.#crossed.has(row);
  }

  /**
   * Whether a picture comes after the cut.
   * @param {Placed} at
   */
  isBeyond({ place }) {
    return this.cut !== null && place > this.cut.place;
  }

  /**
   * The last picture that would be accepted: the cut, or the last one of the page that is shown.
   * @param {ShownPage} shown
   */
  last(shown) {
    return this.cut ?? (shown.thumbs.length ? placed(shown, shown.thumbs.length - 1) : null);
  }

  /**
   * How many pictures are accepted up to this one.
   * @param {Placed | null} last
   */
  countTo(last) {
    return last ? last.place + 1 - this.rowsTo(last).length : 0;
  }

  /**
   * The rows crossed out up to this picture.
   * @param {Placed} last
   */
  rowsTo(last) {
    return [...this.#crossed].filter(([, place]) => place <= last.place).map(([row]) => row);
  }
}
