/** What is shown next in the review: asked for ahead, so that nobody waits for the server. */

import { delay, latest } from "../lib/async.js";
import { LARGE, prefetch } from "../lib/items.js";
import { api } from "../lib/net.js";

const PATIENCE_MS = 400;
/** Rows that one request may name. */
const MOST_HIDDEN = 400;

/** @typedef {Api["Review"]} Review */
/** @typedef {Api["ReviewPicture"]} ReviewPicture */

export class ReviewFeed {
  /** What is known to come, without what is shown. @type {Review | null} */
  ahead = null;
  /** Rows whose answers are on their way, and those that were left for later. @type {Set<number>} */
  underWay = new Set();
  /** @type {Set<number>} */
  later = new Set();
  /** @type {Promise<unknown>} */
  lastSaved = Promise.resolve();
  latest = latest();

  /** @param {{ mode: string, key: string }} choices */
  constructor(choices) {
    this.choices = choices;
  }

  get isSingle() {
    return this.choices.mode === "single";
  }

  /** @param {number[]} shown */
  ask(shown) {
    const hidden = [...this.later, ...shown, ...this.underWay].slice(-MOST_HIDDEN);
    return api.get("/api/v1/review", { ...this.choices, except: hidden }, { retries: Infinity });
  }

  /**
   * Ask what comes after the pictures that are shown, and fetch it. Returns it, or null where another call overtook
   * this one.
   * @param {ReviewPicture[]} shown
   */
  async lookAhead(shown) {
    const found = await this.latest(this.ask(shown.map(({ row }) => row))).catch(() => null);
    if (!found) return null;
    this.ahead = found;
    prefetch(found.pictures, this.isSingle ? LARGE : 320);
    return found;
  }

  /** What is to be shown now: one picture, or the page of a class; no pictures where none is left. */
  async next() {
    const known = this.take();
    if (known) return known;
    await Promise.race([this.lastSaved, delay(PATIENCE_MS)]);
    this.ahead = await this.ask([]);
    if (!this.ahead.pictures.length && this.underWay.size) {
      await this.lastSaved;
      this.ahead = await this.ask([]);
    }
    if (!this.ahead.pictures.length && this.later.size) {
      this.later.clear();
      this.ahead = await this.ask([]);
    }
    return this.take() ?? this.ahead;
  }

  /** @returns {Review | null} */
  take() {
    const isOpen = (/** @type {ReviewPicture} */ { row }) => !this.underWay.has(row) && !this.later.has(row);
    const pictures = this.ahead?.pictures.filter(isOpen) ?? [];
    if (!this.ahead || !pictures.length) return null;
    const n = this.isSingle ? 1 : pictures.length;
    const taken = { ...this.ahead, pictures: pictures.slice(0, n) };
    this.ahead = { ...this.ahead, pictures: pictures.slice(n) };
    return taken;
  }

  /** Forget what was asked ahead: names or order may be others now. */
  forget() {
    this.ahead = null;
    this.latest(Promise.resolve());
  }
}
