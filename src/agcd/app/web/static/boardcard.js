/** One card of the class board: a class, or a group that nobody has named. */

import { count, h, plural } from "./core.js";
import { ageBadge, shareBar, smallLabel, thumbRow } from "./parts.js";

const PURITY = "Share of the people's labels among its members that carry its name";
const STABILITY = "Share of its members that were already together in the round before";

const isInUse = (card) => !card.is_retired;

/** What can be done to a card, in the order of its buttons; `when` says for which cards. */
const CARD_ACTIONS = [
  { name: "rename", word: "Name", title: "Give it a name" },
  { name: "grow", word: "Grow", title: "Accept similar pictures, page by page", when: isInUse },
  { name: "merge", word: "Merge", title: "Merge it with another class or group", when: isInUse },
  { name: "split", word: "Split", title: "Split it in two", when: isInUse },
  { name: "ask", word: "Ask", title: "Ask about its border cases on the Label page",
    when: (card) => isInUse(card) && card.border.length > 0 },
  { name: "retire", word: "Retire", title: "Let it take no more labels",
    when: (card) => isInUse(card) && card.is_named },
  { name: "show", word: "Show all", title: "Show all its pictures in the grid" },
];

/** Whether an action makes sense for a card. */
export function isPossible(name, card) {
  const action = CARD_ACTIONS.find((one) => one.name === name);
  return !action.when || action.when(card);
}

/** "412 pictures · 12 labels · 30 accepted". */
export function cardFacts(card) {
  const facts = [plural(card.size, "picture"), plural(card.n_labels, "label")];
  if (card.n_accepted) facts.push(`${count(card.n_accepted)} accepted by page`);
  return facts.join(" · ");
}

function badge(kind, text, title) {
  return h("span", { class: `badge badge-${kind}`, title }, text);
}

/** The name with its badges. */
export function cardHead(card) {
  const conflicts = card.conflicts.length;
  return h("div", { class: "class-head" },
    h("h3", { class: card.is_named ? "class-name" : "class-name is-unnamed", title: card.name }, card.name),
    ageBadge(card.is_new),
    card.is_named ? null : badge("unnamed", "unnamed", "A group that the model found and nobody has named"),
    card.is_retired ? badge("retired", "retired", "Takes no more labels") : null,
    conflicts ? badge("conflict", plural(conflicts, "conflict"), card.conflicts.join("\n")) : null);
}

function pictures(label, thumbs) {
  return h("div", { class: "class-pictures" }, smallLabel(label),
    thumbs.length ? thumbRow(thumbs) : h("span", { class: "muted" }, "none"));
}

function conflictList(card) {
  if (!card.conflicts.length) return null;
  return h("ul", { class: "class-conflicts" }, card.conflicts.map((text) => h("li", {}, text)));
}

function buttons(card, run) {
  const button = ({ name, word, title }) => h("button", { type: "button", class: "button small", title, tabindex: "-1",
    dataset: { do: name }, onclick: () => run(name) }, name === "rename" && card.is_named ? "Rename" : word);
  return h("div", { class: "class-buttons" },
    CARD_ACTIONS.filter((action) => isPossible(action.name, card)).map(button));
}

/** The card; a click on one of its buttons calls run(name). */
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
