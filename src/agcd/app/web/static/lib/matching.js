/** Finding a class by typing. */

/** Most classes that a search shows. */
export const MOST_SHOWN = 30;

/** @typedef {Api["ClassName"]} ClassName */
/**
 * What can be chosen: a class that there is, or a new name; `isOff` for a class that takes no more labels.
 * @typedef {{ entry: ClassName, isOff: boolean } | { create: string, isOff: false }} NameChoice
 */

/**
 * Two spellings that a reader takes for the same.
 * @param {string} text
 */
function plain(text) {
  return text.normalize("NFC").trim().toLowerCase();
}

/**
 * How well a class matches what was typed: smaller is better, null is not at all.
 * @param {ClassName} entry
 * @param {string} typed
 */
function rank(entry, typed) {
  if (typed === "") return 0;
  const name = plain(entry.name);
  if (name === typed) return 0;
  if (name.startsWith(typed)) return 1;
  if (name.split(/[\s_-]+/).some((word) => word.startsWith(typed))) return 2;
  if (name.includes(typed)) return 3;
  return entry.aliases.some((alias) => plain(alias).includes(typed)) ? 4 : null;
}

/**
 * The classes that match, the best first; among equals the most labelled first.
 * @param {ClassName[]} entries
 * @param {string} text
 */
export function matching(entries, text) {
  const typed = plain(text);
  return entries
    .flatMap((entry) => {
      const place = rank(entry, typed);
      return place === null ? [] : [{ entry, place }];
    })
    .sort((a, b) =>
      a.place - b.place || b.entry.n_labels - a.entry.n_labels || a.entry.name.localeCompare(b.entry.name))
    .map((match) => match.entry);
}

/**
 * What can be chosen for a typed text: existing classes, and a new one unless the name is taken.
 * @param {ClassName[]} entries
 * @param {string} text
 * @param {boolean} prefersNew
 * @returns {NameChoice[]}
 */
export function choicesFor(entries, text, prefersNew) {
  const found = matching(entries, text).slice(0, MOST_SHOWN).map((entry) => ({ entry, isOff: entry.is_retired }));
  const isTaken = entries.some((entry) => [entry.name, ...entry.aliases].some((name) => plain(name) === plain(text)));
  if (text.trim() === "" || isTaken) return found;
  const create = { create: text.trim(), isOff: /** @type {const} */ (false) };
  return prefersNew ? [create, ...found] : [...found, create];
}
