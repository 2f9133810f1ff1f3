/** What the browser remembers, as JSON. */

/** @param {() => Storage} storageOf */
function memory(storageOf) {
  return {
    /**
     * What was kept, or null; a browser that keeps nothing is no error.
     * @param {string} key
     * @returns {unknown}
     */
    get(key) {
      try {
        return JSON.parse(storageOf().getItem(`agcd.${key}`) ?? "null");
      } catch {
        return null;
      }
    },
    /**
     * @param {string} key
     * @param {unknown} value
     */
    set(key, value) {
      try {
        if (value === null) storageOf().removeItem(`agcd.${key}`);
        else storageOf().setItem(`agcd.${key}`, JSON.stringify(value));
      } catch {
        // Storage is full or forbidden: the choice lasts as long as the page.
      }
    },
  };
}

/** Kept by this browser. */
export const kept = memory(() => localStorage);
/** Kept by this tab. */
export const keptByTab = memory(() => sessionStorage);
