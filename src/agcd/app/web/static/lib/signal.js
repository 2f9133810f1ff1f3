/**
 * A value that others follow.
 * @template T
 */
export class Signal {
  /** @type {Set<(value: T) => unknown>} */
  #followers = new Set();
  #value;

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  get value() {
    return this.#value;
  }

  /** @param {T} value */
  set(value) {
    this.#value = value;
    for (const follower of [...this.#followers]) follower(value);
  }

  /**
   * Call back now and at every change. Returns a function that ends it.
   * @param {(value: T) => unknown} follower
   */
  follow(follower) {
    this.#followers.add(follower);
    follower(this.#value);
    return () => void this.#followers.delete(follower);
  }
}

/**
 * A follower that is told nothing before there is something to tell.
 * @template T
 * @param {(value: T) => unknown} callback
 * @returns {(value: T | null) => void}
 */
export function whenKnown(callback) {
  return (value) => {
    if (value !== null) callback(value);
  };
}
