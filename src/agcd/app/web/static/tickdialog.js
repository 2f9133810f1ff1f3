/** The dialog in which pictures are ticked, in one or two columns, and named. */

import { api, h, openDialog, plural, replace, setText } from "./core.js";
import { plainButton, smallLabel, thumbRow, tickList } from "./parts.js";

const LONGEST_NAME = 200;

/** A field for a class name, which offers the names that there are. */
function nameField(value, isFirst, oninput) {
  return h("input", { class: "input", value, maxlength: LONGEST_NAME, autocomplete: "off", spellcheck: "false",
    list: "known-names", autofocus: isFirst, oninput });
}

function knownNames() {
  const list = h("datalist", { id: "known-names" });
  const show = (names) => replace(list,
    names.filter((one) => !one.is_retired).map((one) => h("option", { value: one.name })));
  api.get("/api/names").then(show, () => {});
  return list;
}

/** Pictures to tick, with a name of their own where `name` is no null, and pictures that are only to compare. */
function tickColumn(column, onchange) {
  const { heading, facts, name = null, groups = [], shown = [], isFirst = true } = column;
  const lists = groups.filter(({ thumbs }) => thumbs.length)
    .map(({ label, thumbs, ...options }) => ({ label, ...tickList(thumbs, { ...options, onchange }) }));
  const field = name === null ? null : nameField(name, isFirst, onchange);
  const element = h("section", { class: "tick-column" },
    h("div", { class: "tick-head" }, h("h3", {}, heading), h("span", { class: "muted" }, facts)),
    field ? h("label", { class: "field" }, h("span", {}, "Name"), field) : null,
    lists.map((list) => [smallLabel(list.label), list.element]),
    shown.length ? [smallLabel("Labelled by people"), thumbRow(shown)] : null);
  const said = () => ({ name: field?.value.trim() ?? null, rows: lists.flatMap((list) => list.rows()) });
  return { element, said };
}

function tickForm(options, close) {
  const { text, yes, columns, problem } = options;
  const said = () => built.map((column) => column.said());
  const check = () => {
    const found = problem(said());
    const n = said().reduce((sum, column) => sum + column.rows.length, 0);
    setText(message, found ?? `${plural(n, "picture")} ticked`);
    send.disabled = found !== null;
  };
  const submit = (event) => {
    event.preventDefault();
    if (!send.disabled) close(said());
  };
  const message = h("span", { class: "muted dialog-message", role: "status" });
  const send = h("button", { type: "submit", class: "button primary" }, yes);
  const built = columns.map((column) => tickColumn(column, check));
  check();
  return h("form", { onsubmit: submit }, h("p", { class: "muted" }, text), knownNames(),
    h("div", { class: columns.length > 1 ? "columns" : "" }, built.map((column) => column.element)),
    h("div", { class: "dialog-buttons" }, message, plainButton("Cancel", () => close(null)), send));
}

/**
 * Tick pictures. Options: title, text, yes (the button), columns [{heading, facts, name, isFirst, shown,
 * groups [{label, thumbs, ticked, withLabelled}]}], problem(said) → a sentence while it cannot be sent, else null.
 * Resolves to [{name, rows}], one for each column, or to null.
 */
export function tickDialog(options) {
  const width = options.columns.length > 1 ? "dialog-wide" : "dialog-ticks";
  return openDialog({ title: options.title, class: width, body: (close) => tickForm(options, close) });
}
