/** Waiting, and answers that overtake each other. */

/**
 * @param {number} milliseconds
 * @returns {Promise<void>}
 */
export function delay(milliseconds) {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });
}

/**
 * The last request wins: an answer or an error that a later request has overtaken becomes null.
 * @returns {<T>(promise: Promise<T>) => Promise<T | null>}
 */
export function latest() {
  let turn = 0;
  return async (promise) => {
    turn += 1;
    const mine = turn;
    const [ended] = await Promise.allSettled([promise]);
    if (mine !== turn) return null;
    if (ended.status === "rejected") throw ended.reason;
    return ended.value;
  };
}
