/** Texts as they are shown: readable whatever is in them, and marked where words are shared or searched for. */

/** Longer texts are shown up to here: a browser that lays out a line of a million letters stands still. */
export const LONGEST_SHOWN = 100_000;
const LONGEST_MARKED = 20_000;
const MOST_MARKS = 400;
const MOST_SHARED = 8;
const SHORT = 160;
const MIDDLE = 700;
const MOST_LINES = 4;

const WORD = /\p{L}[\p{L}\p{M}]{3,}/gu;
const SAYS_NOTHING = new Set(["able", "about", "after", "also", "back", "because", "been", "before", "being", "both",
  "could", "does", "each", "from", "have", "having", "here", "into", "just", "know", "like", "make", "more", "most",
  "need", "only", "other", "over", "please", "same", "should", "some", "still", "such", "than", "that", "their",
  "them", "then", "there", "these", "they", "this", "those", "through", "under", "until", "very", "want", "were",
  "what", "when", "where", "which", "while", "will", "with", "would", "your"]);
// eslint-disable-next-line no-control-regex
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;
const DELETE = 0x7f;

/** A part of a text; `mark` says why it is marked, and is empty where it is not. */
/** @typedef {{ text: string, mark: "" | "shared" | "found" }} Piece */
/** @typedef {(text: string) => Piece[]} Marking */

/**
 * One sort of line ends, and control characters as the signs that stand for them.
 * @param {string} text
 */
export function readable(text) {
  const sign = (/** @type {string} */ one) =>
    String.fromCharCode(one.charCodeAt(0) === DELETE ? 0x2421 : 0x2400 + one.charCodeAt(0));
  return text.replace(/\r\n?/g, "\n").replace(CONTROLS, sign);
}

/**
 * How large a text is set: a sentence is read at a glance, a page is read.
 * @param {string} text
 * @returns {"short" | "middle" | "long"}
 */
export function lengthOf(text) {
  if (text.length > MIDDLE) return "long";
  return text.length <= SHORT && text.split("\n", MOST_LINES + 1).length <= MOST_LINES ? "short" : "middle";
}

/**
 * A word as it is compared.
 * @param {string} word
 */
function plain(word) {
  return word.normalize("NFC").toLowerCase();
}

/**
 * The words of a text that may say what it is about.
 * @param {string} text
 */
function wordsOf(text) {
  const found = [...text.slice(0, LONGEST_MARKED).matchAll(WORD)].map(([word]) => plain(word));
  return new Set(found.filter((word) => !SAYS_NOTHING.has(word)));
}

/**
 * The words that a text has in common with others: those that most of the others have, at equal numbers the longest.
 * Few, as where every second word is marked nothing is.
 * @param {string} text
 * @param {string[]} others
 * @param {number} [most]
 * @returns {Set<string>}
 */
export function sharedWords(text, others, most = MOST_SHARED) {
  const own = wordsOf(text);
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const other of others) {
    for (const word of wordsOf(other)) if (own.has(word)) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const best = [...counts].sort(([one, n], [other, m]) => m - n || other.length - one.length);
  return new Set(best.slice(0, most).map(([word]) => word));
}

/**
 * A text in pieces, those that a pattern finds marked where `isMeant`.
 * @param {string} text
 * @param {RegExp} pattern
 * @param {"shared" | "found"} mark
 * @param {(found: string) => boolean} [isMeant]
 * @returns {Piece[]}
 */
function pieces(text, pattern, mark, isMeant = () => true) {
  /** @type {Piece[]} */
  const parts = [];
  let from = 0;
  for (const { 0: found, index } of text.slice(0, LONGEST_MARKED).matchAll(pattern)) {
    if (parts.length >= 2 * MOST_MARKS) break;
    if (!isMeant(found)) continue;
    if (index > from) parts.push({ text: text.slice(from, index), mark: "" });
    parts.push({ text: found, mark });
    from = index + found.length;
  }
  return from < text.length ? [...parts, { text: text.slice(from), mark: "" }] : parts;
}

/**
 * A text in which nothing is marked.
 * @type {Marking}
 */
export function unmarked(text) {
  return [{ text, mark: "" }];
}

/**
 * Marks words that texts have in common.
 * @param {Set<string>} words as sharedWords() gives them
 * @returns {Marking}
 */
export function sharedWith(words) {
  return (text) => pieces(text, WORD, "shared", (found) => words.has(plain(found)));
}

/**
 * Marks what was searched for.
 * @param {string} query
 * @returns {Marking}
 */
export function foundBy(query) {
  const escaped = query.trim().replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/\s+/g, "\\s+");
  return escaped ? (text) => pieces(text, new RegExp(escaped, "giu"), "found") : unmarked;
}
