/** Finding the first wrong page with few looks: ever longer jumps ahead, then halving. */

const FIRST_JUMP = 2;
const LONGEST_JUMP = 64;

export class PageSearch {
  page = 0;
  nPages = 1;
  /** The last page that was judged right, and the first that was judged wrong. */
  right = -1;
  /** @type {number | null} */
  wrong = null;
  jump = FIRST_JUMP;

  /** @param {number} page */
  goTo(page) {
    this.page = Math.max(0, Math.min(page, this.nPages - 1));
  }

  /**
   * Turn a page without judging.
   * @param {number} step
   */
  look(step) {
    this.goTo(this.page + step);
  }

  judgeRight() {
    this.right = Math.max(this.right, this.page);
    if (this.wrong !== null && this.wrong <= this.right) this.wrong = null;
  }

  /** This page is right: on to the next one. */
  isRight() {
    this.judgeRight();
    this.goTo(this.page + 1);
  }

  /** This page is right: jump 2, 4, 8 … pages ahead, or half way to a page that was wrong. */
  isRightJump() {
    this.judgeRight();
    if (this.wrong === null) {
      this.goTo(this.page + this.jump);
      this.jump = Math.min(this.jump * 2, LONGEST_JUMP);
    } else {
      this.goTo(Math.ceil((this.page + this.wrong) / 2));
    }
  }

  /** This page is wrong: half way back to the last one that was right. */
  isWrong() {
    this.wrong = this.page;
    if (this.right >= this.page) this.right = -1;
    this.jump = FIRST_JUMP;
    // Where no page lies between, this page is the first wrong one and stays.
    if (!this.isFound) this.goTo(Math.floor((this.right + this.page) / 2));
  }

  /** Whether nothing is left between the last right and the first wrong page. */
  get isFound() {
    return this.wrong !== null && this.wrong - this.right === 1;
  }

  /** The pages that will be looked at next, to be fetched ahead. */
  likely() {
    const ahead = this.wrong === null ? this.page + this.jump : Math.ceil((this.page + this.wrong) / 2);
    return [this.page + 1, ahead].filter((page) => page < this.nPages);
  }

  /** What has been found out, in words. */
  words() {
    if (this.wrong !== null && this.isFound) return `Page ${this.wrong + 1} is the first that is not right.`;
    const right = this.right >= 0 ? `page ${this.right + 1} was right` : "";
    const wrong = this.wrong === null ? "" : `page ${this.wrong + 1} was not`;
    return [right, wrong].filter(Boolean).join(", ");
  }
}
