/** What a project is made of: photographs, texts or records. The page says it once, on <html>. */

/**
 * `name` as the server knows it, `noun` as people say it; `hasPictures`: some items may have one.
 * @typedef {{ name: string, noun: string, hasPictures: boolean }} Kind
 */

/**
 * What <html> says; where nothing is said, as in tests, photographs.
 * @param {Partial<Record<"kind" | "noun" | "pictures", string>>} said
 * @returns {Kind}
 */
export function kindOf({ kind = "image", noun = "picture", pictures = "true" }) {
  return { name: kind, noun, hasPictures: pictures === "true" };
}

/** The kind of this project. */
export const KIND = Object.freeze(kindOf(globalThis.document?.documentElement.dataset ?? {}));

/** Whether every item is a photograph and nothing else. */
export const IS_IMAGES = KIND.name === "image";
