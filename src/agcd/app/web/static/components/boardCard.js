/** One card of the class board: a class, or a group that nobody has named. */

import { h } from "../lib/dom.js";
import { count, percent, plural } from "../lib/words.js";
import { originBadge, smallLabel } from "./controls.js";
import { thumbRow } from "./thumb.js";

const PURITY = "Share of the people's labels among its members that carry its name";
const STABILITY = "Share of its members that were already together in the round before";

/** @typedef {Api["BoardCard"]} BoardCard */

/**
 * What can be done to a card, in the order of its buttons; `when` says for which cards.
 * @type {Record<string, { word: string, title: string, when: (card: BoardCard) => boolean }>}
 */
const CARD_ACTIONS = {
  rename: { word: "Name", title: "Give it a name", when: () => true },
  grow: { word: "Grow", title: "Accept similar pictures, page by page", when: isInUse },
  merge: { word: "Merge", title: "Merge it with another class or group", when: isInUse },
  split: { word: "Split", title: "Split it in two", when: isInUse },
  ask: { word: "Ask", title: "Ask about its border cases on the Label page",
    when: (card) => isInUse(card) && card.border.length > 0 },
  retire: { word: "Retire", title: "Let it take no more labels", when: (card) => isInUse(card) && card.is_named },
  show: { word: "Show all", title: "Show all its pictures in the grid", when: () => true },
};

/** @param {BoardCard} card */
function isInUse(card) {
  return !card.is_retired;
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
 * A share as a small bar with its number; null is drawn as unknown.
 * @param {string} label
 * @param {number | null} share
 * @param {string} title
 */
function shareBar(label, share, title) {
  return h("span", { class: share === null ? "share is-unknown" : "share", title },
    h("span", { class: "share-label" }, label),
    h("span", { class: "share-track", "aria-hidden": "true" },
      h("span", { class: "share-fill", style: { transform: `scaleX(${share ?? 0})` } })),
    h("span", { class: "share-number numbers" }, share === null ? "–" : percent(share)));
}

/**
 * @param {string} label
 * @param {Api["Thumb"][]} thumbs
 */
function pictures(label, thumbs) {
  return h("div", { class: "class-pictures" }, smallLabel(label),
    thumbs.length ? thumbRow(thumbs) : h("span", { class: "muted" }, "none"));
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
 * The card; a click on one of its buttons calls run(name).
 * @param {BoardCard} card
 * @param {(name: string) => unknown} run
 */
export function boardCard(card, run) {
  const kinds = ["class-card", card.is_retired && "is-retired", !card.is_named && "is-group"].filter(Boolean);
  const facts = cardFacts(card);
  return h("article", { class: kinds.join(" "), tabindex: "-1", dataset: { key: card.key },
    "aria-label": `${card.name}, ${facts}` },
    cardHead(card),
    h("p", { class: "class-facts muted" }, facts),
    h("div", { class: "class-shares" },
      shareBar("Purity", card.purity, PURITY), shareBar("Stability", card.stability, STABILITY)),
    conflictList(card),
    pictures("Typical", card.typical),
    pictures("Border", card.border),
    buttons(card, run));
}
