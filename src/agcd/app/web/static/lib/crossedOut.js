/** Which pictures of which pages are crossed out, and how many are left. */

/** @typedef {Pick<Api["Grow"], "page" | "page_size"> & { thumbs: { row: number }[] }} ShownPage */

export class CrossedOut {
  /** Row → page of the pictures crossed out. @type {Map<number, number>} */
  #pages = new Map();
  /** The last one clicked: a range begins there. @type {{ page: number, index: number } | null} */
  #last = null;

  /** @param {number} row */
  has(row) {
    return this.#pages.has(row);
  }

  /**
   * Cross out a picture of the page, or take that back; with `isRange` all from the last one clicked to this one.
   * @param {ShownPage} shown
   * @param {number} index
   * @param {boolean} isRange
   */
  toggle({ page, thumbs }, index, isRange) {
    const from = isRange && this.#last?.page === page ? this.#last.index : index;
    this.#set(thumbs.slice(Math.min(from, index), Math.max(from, index) + 1), page, !this.has(thumbs[index].row));
    this.#last = { page, index };
  }

  /**
   * Cross out the whole page, or take that back.
   * @param {ShownPage} shown
   */
  toggleAll(shown) {
    this.#set(shown.thumbs, shown.page, !this.hasAll(shown));
  }

  /**
   * @param {{ row: number }[]} thumbs
   * @param {number} page
   * @param {boolean} isCrossed
   */
  #set(thumbs, page, isCrossed) {
    for (const { row } of thumbs) {
      if (isCrossed) this.#pages.set(row, page);
      else this.#pages.delete(row);
    }
  }

  /** @param {ShownPage} shown */
  hasAll({ thumbs }) {
    return thumbs.every(({ row }) => this.has(row));
  }

  /**
   * How many of a page are crossed out.
   * @param {ShownPage} shown
   */
  countOn({ thumbs }) {
    return thumbs.filter(({ row }) => this.has(row)).length;
  }

  /**
   * How many pictures the pages up to `last` hold, less those crossed out; all but the one shown are full.
   * @param {number} last
   * @param {ShownPage} shown
   */
  countTo(last, { page, page_size: size, thumbs }) {
    if (last < 0) return 0;
    return last * size + (last === page ? thumbs.length : size) - this.rowsTo(last).length;
  }

  /**
   * The rows crossed out on the pages up to `last`.
   * @param {number} last
   */
  rowsTo(last) {
    return [...this.#pages].filter(([, page]) => page <= last).map(([row]) => row);
  }
}
