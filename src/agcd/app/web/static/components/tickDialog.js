/** The dialog in which pictures are ticked, in one or two columns, and named. */

import { h, isTyping, replace, setText, targetOf } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { plural, say } from "../lib/words.js";
import { plainButton, smallLabel } from "./controls.js";
import { openDialog } from "./dialogs.js";
import { LONGEST_NAME } from "./nameDialog.js";
import { thumbElement, thumbRow } from "./thumb.js";

/** @typedef {Api["Thumb"]} Thumb */
/**
 * Pictures to tick. The first `ticked` of them (default all) are at the beginning, but none that people labelled: what
 * they said is not changed unasked. `withLabelled` ticks these too.
 * @typedef {{ label: string, thumbs: Thumb[], ticked?: number, withLabelled?: boolean }} TickGroup
 */
/**
 * A column; it has a name of its own where `name` is no null. `shown` are pictures that are only to compare.
 * @typedef {{ heading: string, facts: string, name?: string | null, isFirst?: boolean, groups?: TickGroup[],
 *   shown?: Thumb[] }} Column
 */
/** @typedef {{ name: string | null, rows: number[] }} Said */
/**
 * `yes` is the button's word; `problem` says in a sentence why it cannot be sent, else null.
 * @typedef {{ title: string, text: string, yes: string, columns: Column[],
 *   problem: (said: Said[]) => string | null }} TickOptions
 */

/**
 * A field for a class name, which offers the names that there are.
 * @param {string} value
 * @param {boolean} isFirst
 * @param {() => void} oninput
 */
function nameField(value, isFirst, oninput) {
  return h("input", { class: "input", value, maxlength: LONGEST_NAME, autocomplete: "off", spellcheck: "false",
    list: "known-names", autofocus: isFirst, oninput });
}

function knownNames() {
  const list = h("datalist", { id: "known-names" });
  const show = (/** @type {Api["ClassName"][]} */ names) => replace(list,
    names.filter((one) => !one.is_retired).map((one) => h("option", { value: one.name })));
  api.get("/api/v1/names").then(show, () => {});
  return list;
}

/**
 * @param {TickGroup} group
 * @param {() => void} onchange
 */
function tickList({ label, thumbs, ticked = thumbs.length, withLabelled = false }, onchange) {
  const first = thumbs.filter((thumb) => withLabelled || thumb.by !== "human").slice(0, ticked);
  const chosen = new Set(first.map((thumb) => thumb.row));
  const show = () => tiles.forEach((tile, index) =>
    tile.setAttribute("aria-pressed", String(chosen.has(thumbs[index].row))));
  const toggle = (/** @type {number} */ row) => {
    if (!chosen.delete(row)) chosen.add(row);
    show();
    onchange();
  };
  const tiles = thumbs.map((thumb) => thumbElement(thumb, { caption: "file", badges: "people", class: "tick",
    label: say`Picture ${thumb.row}`, onclick: () => toggle(thumb.row) }));
  show();
  const setAll = (/** @type {boolean} */ isTicked) => {
    for (const { row } of thumbs) chosen[isTicked ? "add" : "delete"](row);
    show();
  };
  return { elements: [smallLabel(label), h("div", { class: "ticks" }, tiles)], setAll,
    isFull: () => chosen.size === thumbs.length,
    rows: () => thumbs.map((thumb) => thumb.row).filter((row) => chosen.has(row)) };
}

/**
 * @param {Column} column
 * @param {() => void} onchange
 */
function tickColumn({ heading, facts, name = null, groups = [], shown = [], isFirst = true }, onchange) {
  const lists = groups.filter(({ thumbs }) => thumbs.length).map((group) => tickList(group, onchange));
  const field = name === null ? null : nameField(name, isFirst, onchange);
  const element = h("section", { class: "tick-column" },
    h("div", { class: "tick-head" }, h("h3", {}, heading), h("span", { class: "muted" }, facts)),
    field ? h("label", { class: "field" }, h("span", {}, "Name"), field) : null,
    lists.map((list) => list.elements),
    shown.length ? [smallLabel("Labelled by people"), thumbRow(shown)] : null);
  /** @returns {Said} */
  const said = () => ({ name: field?.value.trim() ?? null, rows: lists.flatMap((list) => list.rows()) });
  return { element, said, lists };
}

/**
 * Ticks all, or none where all are.
 * @param {() => void} run
 */
export function tickAllButton(run) {
  return h("button", { type: "button", class: "button tick-all", onclick: run }, "Tick all ", h("kbd", {}, "A"));
}

/**
 * @param {TickOptions} options
 * @param {(said: Said[] | null) => void} close
 */
function tickForm({ text, yes, columns, problem }, close) {
  const said = () => built.map((column) => column.said());
  const check = () => {
    const found = problem(said());
    const n = said().reduce((sum, column) => sum + column.rows.length, 0);
    setText(message, found ?? `${plural(n, "picture")} ticked`);
    send.disabled = found !== null;
  };
  const submit = (/** @type {SubmitEvent} */ event) => {
    event.preventDefault();
    if (!send.disabled) close(said());
  };
  const tickAll = () => {
    const lists = built.flatMap((column) => column.lists);
    const isTicked = !lists.every((list) => list.isFull());
    for (const list of lists) list.setAll(isTicked);
    check();
  };
  const key = (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "a" && !event.ctrlKey && !event.metaKey && !isTyping(targetOf(event))) tickAll();
  };
  const message = h("span", { class: "muted dialog-message", role: "status" });
  const send = h("button", { type: "submit", class: "button primary" }, yes);
  const built = columns.map((column) => tickColumn(column, check));
  check();
  return h("form", { onsubmit: submit, onkeydown: key }, h("p", { class: "muted" }, text), knownNames(),
    h("div", { class: columns.length > 1 ? "columns" : "" }, built.map((column) => column.element)),
    h("div", { class: "dialog-buttons" }, message, tickAllButton(tickAll),
      plainButton("Cancel", () => close(null)), send));
}

/**
 * Tick pictures. Resolves to what was said of each column, or to null.
 * @param {TickOptions} options
 * @returns {Promise<Said[] | null>}
 */
export function tickDialog(options) {
  const width = options.columns.length > 1 ? "dialog-wide" : "dialog-ticks";
  return openDialog({ title: options.title, class: width,
    body: (/** @type {(said: Said[] | null) => void} */ close) => tickForm(options, close) });
}
