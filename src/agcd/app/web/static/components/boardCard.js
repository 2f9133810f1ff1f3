/** One card of the class board: a class, or a group that nobody has named. */

import { h } from "../lib/dom.js";
import { agreeWords, AGREES, count, FEW_ANSWERS, percent, plural, say } from "../lib/words.js";
import { originBadge, smallLabel } from "./controls.js";
import { thumbRow } from "./thumb.js";

const AGREE = say`Of the answers to pictures that would be called so without them, those that carry its name`;

/** @typedef {Api["BoardCard"]} BoardCard */

/**
 * What can be done to a card, in the order of its buttons; `when` says for which cards.
 * @type {Record<string, { word: string, title: string, when: (card: BoardCard) => boolean }>}
 */
const CARD_ACTIONS = {
  rename: { word: "Name", title: "Give it a name", when: () => true },
  grow: { word: "Grow", title: say`Accept similar pictures, page by page`, when: isInUse },
  merge: { word: "Merge", title: "Merge it with another class or group", when: isInUse },
  split: { word: "Split", title: "Split it in two", when: isInUse },
  ask: { word: "Ask", title: "Ask about its border cases on the Label page",
    when: (card) => isInUse(card) && card.border.length > 0 },
  retire: { word: "Retire", title: "Let it take no more labels", when: (card) => isInUse(card) && card.is_named },
  look: { word: "Look", title: say`Look at the pictures at its border, and name them`,
    when: (card) => shownOf(card).length > 0 },
  show: { word: "All", title: say`Show all its pictures in the grid`, when: () => true },
};

/** @param {BoardCard} card */
function isInUse(card) {
  return !card.is_retired;
}

/**
 * The pictures to look at: those at its border, or else typical ones.
 * @param {BoardCard} card
 */
export function shownOf(card) {
  return card.border.length ? card.border : card.typical;
}

/**
 * Whether an action makes sense for a card.
 * @param {string} name
 * @param {BoardCard} card
 */
export function isPossible(name, card) {
  return CARD_ACTIONS[name].when(card);
}

/**
 * "412 pictures · 12 labels · 30 accepted by page".
 * @param {BoardCard} card
 */
export function cardFacts(card) {
  const facts = [plural(card.size, "picture"), plural(card.n_labels, "label")];
  if (card.n_accepted) facts.push(`${count(card.n_accepted)} accepted by page`);
  return facts.join(" · ");
}

/**
 * "5 of 5 answers agree", grey while there are too few to mean much; nothing for a group without a name.
 * @param {BoardCard} card
 */
function agreement(card) {
  if (!card.is_named) return null;
  const together = card.stability === null ? ""
    : say`\n${percent(card.stability)} of its pictures were together before the last training`;
  return h("span", { class: `class-agree ${agreeKind(card)}`, title: AGREE + together },
    agreeWords(card.n_agree, card.n_said));
}

/** @param {Pick<BoardCard, "n_agree" | "n_said">} card */
export function agreeKind({ n_agree: nAgree, n_said: nSaid }) {
  if (nSaid < FEW_ANSWERS) return "is-few";
  return nAgree < AGREES * nSaid ? "is-mixed" : "";
}

/**
 * @param {string} kind
 * @param {string} text
 * @param {string} title
 */
function badge(kind, text, title) {
  return h("span", { class: `badge badge-${kind}`, title }, text);
}

/**
 * The name with its badges.
 * @param {BoardCard} card
 */
export function cardHead(card) {
  const conflicts = card.conflicts.length;
  return h("div", { class: "class-head" },
    h("h3", { class: card.is_named ? "class-name" : "class-name is-unnamed", title: card.name }, card.name),
    originBadge(card),
    card.is_retired ? badge("retired", "retired", "Takes no more labels") : null,
    conflicts ? badge("conflict", plural(conflicts, "conflict"), card.conflicts.join("\n")) : null);
}

/**
 * @param {string} label
 * @param {Api["Thumb"][]} thumbs
 * @param {(thumbs: Api["Thumb"][], index: number) => unknown} look
 */
function pictures(label, thumbs, look) {
  return h("div", { class: "class-pictures" }, smallLabel(label),
    thumbs.length ? thumbRow(thumbs, (index) => look(thumbs, index)) : h("span", { class: "muted" }, "none"));
}

/** @param {BoardCard} card */
function conflictList(card) {
  if (!card.conflicts.length) return null;
  return h("ul", { class: "class-conflicts" }, card.conflicts.map((text) => h("li", {}, text)));
}

/**
 * @param {BoardCard} card
 * @param {(name: string) => unknown} run
 */
function buttons(card, run) {
  const possible = Object.entries(CARD_ACTIONS).filter(([, action]) => action.when(card));
  return h("div", { class: "class-buttons" }, possible.map(([name, { word, title }]) =>
    h("button", { type: "button", class: "button small", title, tabindex: "-1", dataset: { do: name },
      onclick: () => run(name) }, name === "rename" && card.is_named ? "Rename" : word)));
}

/**
 * What a click on a card calls: run(name) for a button, look(thumbs, index) for a picture.
 * @typedef {{ run: (name: string) => unknown, look: (thumbs: Api["Thumb"][], index: number) => unknown }} CardCalls
 */

/**
 * @param {BoardCard} card
 * @param {string} kind
 * @param {Child[]} children
 */
function frame(card, kind, ...children) {
  const kinds = [kind, card.is_retired && "is-retired", !card.is_named && "is-group"].filter(Boolean);
  return h("article", { class: kinds.join(" "), tabindex: "-1", dataset: { key: card.key },
    "aria-label": `${card.name}, ${cardFacts(card)}` }, children);
}

/**
 * @param {BoardCard} card
 * @param {CardCalls} calls
 */
export function boardCard(card, { run, look }) {
  return frame(card, "class-card",
    cardHead(card),
    h("p", { class: "class-facts muted" }, cardFacts(card), agreement(card)),
    conflictList(card),
    pictures("Typical", card.typical, look),
    pictures("Border", card.border, look),
    buttons(card, run));
}

/**
 * The same on one line, for boards with very many classes; its buttons show on the marked one.
 * @param {BoardCard} card
 * @param {CardCalls} calls
 */
export function boardLine(card, { run, look }) {
  return frame(card, "class-line",
    thumbRow(card.typical, (index) => look(card.typical, index)),
    cardHead(card),
    h("span", { class: "numbers class-size" }, plural(card.size, "picture")),
    h("span", { class: "numbers class-labels muted" }, plural(card.n_labels, "label")),
    agreement(card) ?? h("span", { class: "class-agree is-few" }, "no name yet"),
    buttons(card, run));
}
