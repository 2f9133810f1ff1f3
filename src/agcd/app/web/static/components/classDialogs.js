/** What the class board can do to a card: name, merge, split. Each resolves to what was done, in words, or to null. */

import { h, replace } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { count, plural, say } from "../lib/words.js";
import { cardFacts, cardHead } from "./boardCard.js";
import { pickCard } from "./cardPicker.js";
import { labels, sendAnswers, signed } from "./changes.js";
import { plainButton, smallLabel, spacer } from "./controls.js";
import { askDialog, openDialog } from "./dialogs.js";
import { thumbRow } from "./thumb.js";
import { tickDialog } from "./tickDialog.js";

const N_TICKED = 6;

/** @typedef {Api["BoardCard"]} BoardCard */
/** @typedef {Api["Thumb"]} Thumb */
/** @typedef {import("./tickDialog.js").Column} Column */
/** @typedef {import("./tickDialog.js").Said} Said */

/**
 * @param {BoardCard} card
 * @param {"typical" | "labelled"} order
 */
async function membersOf(card, order) {
  const { thumbs } = await api.get("/api/v1/members", { key: card.key, order, page: 0 });
  return thumbs;
}

/**
 * A column of typical members, the first of them ticked.
 * @param {BoardCard} card
 * @param {Thumb[]} thumbs
 * @param {string} label
 * @param {string | null} [name]
 * @returns {Column}
 */
function typicalColumn(card, thumbs, label, name = null) {
  const groups = [{ label, thumbs, ticked: N_TICKED }];
  return { heading: card.name, facts: plural(card.size, "picture"), name, groups };
}

/** @param {Said[]} columns */
function hasTicks([column]) {
  return column.rows.length ? null : say`Tick at least one picture.`;
}

/** @param {Said[]} columns */
function hasNameAndTicks(columns) {
  return columns[0].name ? hasTicks(columns) : "Type a name.";
}

// ---------------------------------------------------------------------------------------------------- naming

/**
 * Rename a class, or name a group by labelling its most typical members.
 * @param {BoardCard} card
 */
export async function nameOrRename(card) {
  if (card.is_named) return rename(card);
  const thumbs = await membersOf(card, "typical");
  const said = await tickDialog({ title: `Name “${card.name}”`, yes: "Name it",
    text: say`What are these? The ticked pictures become labels with this name; it spreads to those like them.`,
    columns: [typicalColumn(card, thumbs, "Tick those that carry the name", "")], problem: hasNameAndTicks });
  if (!said) return null;
  const rows = said[0].rows;
  const name = said[0].name ?? "";
  await sendAnswers(labels(rows, { class_id: null, name }));
  return `${plural(rows.length, "picture")} of ${card.name} labelled “${name}”.`;
}

/** @param {BoardCard} card */
async function rename(card) {
  const name = await askDialog({ title: `Rename “${card.name}”`, value: card.name, yes: "Rename",
    text: "All its labels keep their meaning and carry the new name." });
  if (!name || !card.class_id || name === card.name) return null;
  return (await api.post("/api/v1/classes/rename", signed({ class_id: card.class_id, name }))).what;
}

// --------------------------------------------------------------------------------------------------- merging

/**
 * Find another card and merge with it.
 * @param {BoardCard} card
 */
export async function mergeWith(card) {
  const other = await pickCard(card);
  return other ? mergeCards(card, other) : null;
}

/**
 * Merge a card with another one: two classes by rule, a group by labelling its typical members.
 * @param {BoardCard} card
 * @param {BoardCard} other
 */
export async function mergeCards(card, other) {
  if (card.is_named && other.is_named) return mergeClasses(card, other);
  if (!card.is_named && !other.is_named) return nameTogether(card, other);
  return card.is_named ? labelGroup(other, card) : labelGroup(card, other);
}

/**
 * @param {BoardCard} one
 * @param {BoardCard} into
 */
function previewOf(one, into) {
  return api.get("/api/v1/classes/merge-preview", { one: one.key, into: into.key });
}

/**
 * @param {string} role
 * @param {BoardCard} card
 * @param {Thumb[]} labelled
 */
function mergeSide(role, card, labelled) {
  return h("section", { class: "merge-side" },
    smallLabel(role), cardHead(card), h("p", { class: "muted" }, cardFacts(card)),
    smallLabel("Typical"), thumbRow(card.typical),
    smallLabel("Labelled by people"), labelled.length ? thumbRow(labelled) : h("p", { class: "muted" }, "none"));
}

/**
 * @param {HTMLElement} box
 * @param {Api["MergePreview"]} preview
 */
function showPreview(box, preview) {
  replace(box, h("p", { class: "merge-what" }, preview.what),
    h("div", { class: "columns merge-columns" },
      mergeSide("This name goes", preview.one, preview.labelled_one),
      h("span", { class: "merge-arrow", "aria-hidden": "true" }, "→"),
      mergeSide("This name stays", preview.into, preview.labelled_into)));
}

/**
 * @param {BoardCard} card
 * @param {BoardCard} other
 */
async function mergeClasses(card, other) {
  let preview = await previewOf(card, other);
  /** @type {boolean | null} */
  const isSure = await openDialog({ title: "Merge two classes?", class: "dialog-wide", body: (close) => {
    const box = h("div", { class: "merge-preview" });
    const swap = async () => {
      preview = await previewOf(preview.into, preview.one);
      showPreview(box, preview);
    };
    const merge = plainButton("Merge", () => close(true), "primary");
    merge.setAttribute("autofocus", "");
    showPreview(box, preview);
    return [box, h("div", { class: "dialog-buttons" },
      plainButton("⇄ Swap the direction", () => swap().catch(() => {})), spacer(),
      plainButton("Cancel", () => close(false)), merge)];
  } });
  const { class_id: id } = preview.one;
  const { class_id: into } = preview.into;
  return isSure && id && into ? (await api.post("/api/v1/classes/merge", signed({ class_id: id, into }))).what : null;
}

/**
 * @param {BoardCard} group
 * @param {BoardCard} card
 */
async function labelGroup(group, card) {
  const [thumbs, known] = await Promise.all([membersOf(group, "typical"), membersOf(card, "labelled")]);
  const columns = [typicalColumn(group, thumbs, "Tick those that belong to it"),
    { heading: card.name, facts: cardFacts(card), shown: known }];
  const said = await tickDialog({ title: `Is ${group.name} “${card.name}”?`, yes: `Label as “${card.name}”`,
    text: say`The ticked pictures become labels “${card.name}”; the others of the group follow where they look alike.`,
    columns, problem: hasTicks });
  if (!said) return null;
  await sendAnswers(labels(said[0].rows, card));
  return `${plural(said[0].rows.length, "picture")} of ${group.name} labelled “${card.name}”.`;
}

/**
 * @param {BoardCard} card
 * @param {BoardCard} other
 */
async function nameTogether(card, other) {
  const both = [card, other];
  const thumbs = await Promise.all(both.map((one) => membersOf(one, "typical")));
  const columns = both.map((one, index) =>
    typicalColumn(one, thumbs[index], "Tick those that carry the name", index === 0 ? "" : null));
  const said = await tickDialog({ title: "One name for two groups", yes: "Name both",
    text: say`Neither has a name yet. The ticked pictures of both become labels with one name.`,
    columns, problem: hasNameAndTicks });
  if (!said) return null;
  const rows = said.flatMap((column) => column.rows);
  const name = said[0].name ?? "";
  await sendAnswers(labels(rows, { class_id: null, name }));
  return `${plural(rows.length, "picture")} of ${card.name} and ${other.name} labelled “${name}”.`;
}

// -------------------------------------------------------------------------------------------------- splitting

/** @param {Said[]} halves */
function splitProblem([one, two]) {
  if (!one.name || !two.name) return "Give each half a name.";
  if (one.name === two.name) return "The two halves need different names.";
  return one.rows.length && two.rows.length ? null : say`Tick pictures in both halves.`;
}

/**
 * The first half keeps the name of a class; the second asks for one.
 * @param {BoardCard} card
 * @param {Api["Half"]} half
 * @param {number} index
 * @returns {Column}
 */
function halfColumn(card, half, index) {
  return { heading: index === 0 ? "One half" : "The other half", facts: plural(half.size, "picture"),
    name: index === 0 && card.is_named ? card.name : "", isFirst: index === Number(card.is_named),
    groups: [{ label: "Typical: tick those that carry the name", thumbs: half.typical },
      { label: `Labelled “${card.name}” by people: ticked ones move along`, thumbs: half.labelled,
        withLabelled: true }] };
}

/**
 * Split a card in two: label the typical pictures of both halves; labels of a renamed half move along.
 * @param {BoardCard} card
 */
export async function splitInTwo(card) {
  const { halves } = await api.get("/api/v1/classes/split-preview", { key: card.key });
  const said = await tickDialog({ title: `Split “${card.name}” in two`, yes: "Split",
    text: say`These two halves look most different. Name each; the ticked pictures become labels with that name.`,
    columns: halves.map((half, index) => halfColumn(card, half, index)), problem: splitProblem });
  if (!said) return null;
  const answers = said.flatMap(({ name, rows }, index) => {
    // Pictures that people labelled with the name that stays need no second label.
    const known = new Set(name === card.name ? halves[index].labelled.map((thumb) => thumb.row) : []);
    return labels(rows.filter((row) => !known.has(row)), { class_id: null, name: name ?? "" });
  });
  await sendAnswers(answers);
  return `${card.name} split: ${said.map(({ name, rows }) => `${count(rows.length)} × “${name}”`).join(", ")}.`;
}
