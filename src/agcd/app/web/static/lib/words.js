/** Words: what the items of the project are called, and counts, plurals, shares and times as every page writes them. */

import { KIND } from "./kind.js";

/**
 * Our own words about pictures as words about what the project is made of: "Tick a picture" → "Tick a text".
 * @param {string} words
 * @param {string} [noun]
 */
export function withNoun(words, noun = KIND.noun) {
  return words.replace(/picture/gi, (found) => (found.startsWith("P") ? capital(noun) : noun));
}

/**
 * A tag for sentences about pictures: say`Look at ${name}, a picture`. What people named stays as it is.
 * @param {TemplateStringsArray} words
 * @param {(string | number | null)[]} values
 */
export function say(words, ...values) {
  return words.map((part, index) => withNoun(part) + (values[index] ?? "")).join("");
}

/**
 * 12345 → "12,345".
 * @param {number} n
 */
export function count(n) {
  return n.toLocaleString("en-GB");
}

/**
 * The word that goes with a number: wordFor(1, "waits", "wait") → "waits"; a picture is called what the project has.
 * @param {number} n
 * @param {string} one
 * @param {string} [many]
 */
export function wordFor(n, one, many = `${one}s`) {
  return withNoun(n === 1 ? one : many);
}

/**
 * plural(2, "class", "classes") → "2 classes".
 * @param {number} n
 * @param {string} one
 * @param {string} [many]
 */
export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${wordFor(n, one, many)}`;
}

/**
 * 0.873 → "87 %".
 * @param {number} share
 */
export function percent(share) {
  return `${Math.round(share * 100)} %`;
}

/**
 * Seconds in words: "8 s", "3 min", "1 h 20 min".
 * @param {number} seconds
 */
export function duration(seconds) {
  if (Math.round(seconds) < 60) return `${Math.max(1, Math.round(seconds))} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const SURENESS = ["sure", "rather sure", "in between", "unsure", "very unsure"];

/**
 * How sure the model is, from 0 (sure) to 4 (very unsure). The margin is the gap between its two best guesses.
 * @param {number} margin
 */
export function unsureness(margin) {
  return Math.min(SURENESS.length - 1, Math.max(0, Math.floor((1 - margin) * SURENESS.length)));
}

/** The words for unsureness(), by its number. */
export const SURENESS_WORDS = Object.freeze(SURENESS);

/**
 * "about 83 %" → "About 83 %".
 * @param {string} text
 */
export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/**
 * The last part of a path.
 * @param {string} path
 */
export function fileName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A class of which fewer answers agree than this share is mixed up with others. */
export const AGREES = 0.8;
/** With fewer answers than this, that they agree says little. */
export const FEW_ANSWERS = 5;

/**
 * "5 of 5 answers agree".
 * @param {number} nAgree
 * @param {number} nSaid
 */
export function agreeWords(nAgree, nSaid) {
  if (nSaid === 0) return "not checked yet";
  if (nSaid === 1) return nAgree ? "1 answer" : "1 answer, another name";
  return `${count(nAgree)} of ${count(nSaid)} answers agree`;
}
