/** The review as words and choices: what the page says of what is left, and what a person said of one page. */

import { count, plural, say } from "./words.js";

/** @typedef {Api["ReviewLeft"]} Left */
/** @typedef {Api["ReviewPicture"]} ReviewPicture */
/** @typedef {Requests["Confirm"]} Confirm */
/** @typedef {{ picked: PickedClass } | "junk" | "right" | "later"} Word */

const SURE = 0.9;
const RATHER_SURE = 0.7;
const ROUGH_FROM = 100;

/**
 * A number of pictures that is only expected: whole, and from a hundred on by tens.
 * @param {number} n
 */
export function about(n) {
  return n < ROUGH_FROM ? Math.round(n) : Math.round(n / 10) * 10;
}

/**
 * "about 3 wrong", or that there is probably none.
 * @param {number} expected
 */
export function wrongWords(expected) {
  return about(expected) ? `about ${count(about(expected))} wrong` : "probably none wrong";
}

/** What is said in place of a number that too few answers have checked. */
const NOT_KNOWN = "how many are wrong is not known yet";

/**
 * How many of these pictures are likely to have a wrong name.
 * @param {Pick<ReviewPicture, "p_right">[]} pictures
 */
export function expectedWrong(pictures) {
  return pictures.reduce((sum, { p_right: chance }) => sum + 1 - chance, 0);
}

/**
 * What looking at these pictures saves: "this page is likely to mend 4".
 * @param {ReviewPicture[]} pictures
 * @param {boolean} isPage
 */
function mendWords(pictures, isPage) {
  const n = about(expectedWrong(pictures));
  const what = isPage ? "this page is" : pictures.length === 1 ? "this one is" : `the next ${pictures.length} are`;
  return n ? `${what} likely to mend ${count(n)}` : `${what} probably right`;
}

/**
 * "264 of 424 checked · about 9 wrong among the rest · this page is likely to mend 4".
 * @param {Left} left
 * @param {ReviewPicture[]} pictures
 * @param {boolean} isPage
 */
export function progressWords(left, pictures, isPage) {
  const words = [`${count(left.n_checked)} of ${count(left.n_total)} checked`];
  if (left.n_unseen) words.push(`${count(left.n_unseen)} accepted without a look`);
  if (left.n_left) words.push(left.is_checked ? `${wrongWords(left.expected_wrong)} among the rest` : NOT_KNOWN);
  if (pictures.length && left.is_checked) words.push(mendWords(pictures, isPage));
  return words.join(" · ");
}

/**
 * "Accept the remaining 160 (about 3 wrong)".
 * @param {Left} left
 */
export function acceptWords({ n_left: n, expected_wrong: wrong, is_checked: isChecked }) {
  const words = isChecked ? wrongWords(wrong) : "not checked yet";
  return `Accept the ${n === 1 ? "last one" : `remaining ${count(n)}`} (${words})`;
}

/**
 * What happens when the rest is accepted.
 * @param {Left} left
 */
export function acceptText({ n_left: n, expected_wrong: wrong, is_checked: isChecked }) {
  const keep = plural(n, "picture keeps", "pictures keep");
  const words = isChecked ? wrongWords(wrong) : NOT_KNOWN;
  return `${keep} the name shown now without a look, ${words}. Undo takes it back.`;
}

/**
 * What was accepted without a look; nothing where there is none.
 * @param {Left} left
 */
export function unseenWords({ n_unseen: n, unseen_wrong: wrong, is_checked: isChecked }) {
  if (!n) return "";
  const words = isChecked ? wrongWords(wrong) : NOT_KNOWN;
  return `${plural(n, "picture was", "pictures were")} accepted without a look, ${words}.`;
}

/**
 * How sure a name is.
 * @param {number} chance
 */
export function sureWord(chance) {
  if (chance >= SURE) return "sure";
  return chance >= RATHER_SURE ? "rather sure" : "unsure";
}

/**
 * What the end says: its title and, where something is left to do, a sentence.
 * @param {Left} left
 */
export function endWords({ n_total: total, n_checked: checked, n_unnamed: unnamed, n_unseen: unseen }) {
  const rest = unnamed ? `${plural(unnamed, "picture has", "pictures have")} no name yet: label ${
    unnamed === 1 ? "it" : "them"}.` : "";
  const all = total === 1 ? say`The picture is checked` : `All ${count(total)} checked`;
  if (checked === total) return { title: all, rest };
  if (!unnamed) return { title: `All ${count(total)} have a name`, rest };
  if (unseen) return { title: `${count(total - unnamed)} of ${count(total)} have a name`, rest };
  return { title: checked ? `${count(checked)} of ${count(total)} checked` : "Nothing to check yet", rest };
}

/** The pictures of one page that are wrong: what each is instead is said one after the other, or of all at once. */
export class Mending {
  /** @type {[ReviewPicture, Word][]} */
  said = [];
  isForAll = false;

  /** @param {ReviewPicture[]} ticked */
  constructor(ticked) {
    this.ticked = ticked;
  }

  /** The picture that is asked about; null when all is said. */
  get current() {
    return this.ticked[this.said.length] ?? null;
  }

  /** @param {Word} word */
  say(word) {
    const told = this.ticked.slice(this.said.length, this.isForAll ? undefined : this.said.length + 1);
    this.said.push(...told.map((picture) => /** @type {[ReviewPicture, Word]} */ ([picture, word])));
  }
}

/**
 * What is sent of some pictures and the words said of them; those left for later are not in it.
 * @param {Confirm["mode"]} mode
 * @param {[ReviewPicture, Word][]} said
 * @returns {Pick<Confirm, "mode"> & Required<Pick<Confirm, "right" | "changes" | "junk">>}
 */
export function confirmation(mode, said) {
  const right = said.filter(([, word]) => word === "right")
    .map(([{ row, class_id: id }]) => ({ row, class_id: id }));
  const changes = said.flatMap(([{ row }, word]) => {
    if (typeof word === "string") return [];
    const { class_id: id, name } = word.picked;
    return [id ? { row, class_id: id } : { row, name }];
  });
  return { mode, right, changes, junk: said.filter(([, word]) => word === "junk").map(([{ row }]) => row) };
}
