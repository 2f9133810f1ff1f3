/** What the class board, the grid, the map and the rounds share: changes with undo, ticks, pages, lists that stay. */

import { api, count, h, newUid, percent, setText, thumbElement, toast, watchJob, who } from "./core.js";

const UNDO = "Undo";

// ------------------------------------------------------------------------------------------------ changes

/** POST a change; it carries a new uid and the person's name. */
export function change(path, body = {}) {
  return api.post(path, { uid: newUid(), who: who(), ...body });
}

/** Label rows with a class: {class_id, name}, where class_id is null for a new name. As answers for sendAnswers(). */
export function labels(rows, { class_id = null, name }) {
  const said = class_id ? { class_id } : { name };
  return rows.map((row) => ({ row, kind: "label", ...said }));
}

/** Store answers together, so that they are undone together. */
export function sendAnswers(answers) {
  return change("/api/answers", { answers });
}

/** "Undo" means the last thing: a message about an earlier one must no longer offer it. */
function endOldOffers() {
  for (const button of document.querySelectorAll("#toasts .link")) if (button.textContent === UNDO) button.remove();
}

/** Take back the last thing that this person did, say what it was, and show the page anew. */
export async function undoLast(reload) {
  endOldOffers();
  const undone = await change("/api/undo").catch(() => null);
  if (!undone) return;
  toast(`Undone: ${undone.what}`);
  await reload();
}

/** Say what was done and offer to take it back. */
export function sayDone(text, reload) {
  endOldOffers();
  toast(text, { action: { label: UNDO, run: () => undoLast(reload) } });
}

/** Call back when a round that was trained in the background is done. */
export function onRoundDone(callback) {
  let wasRunning = false;
  watchJob((job) => {
    if (wasRunning && job.state === "done") callback();
    wasRunning = job.state === "running" && job.kind === "round";
  });
}

// -------------------------------------------------------------------------------------------- the address

/** A path with those parameters that say something. */
export function withQuery(path, choices) {
  const said = Object.entries(choices).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  return said.length ? `${path}?${new URLSearchParams(said)}` : path;
}

/** What the address says about these choices, each a string; else the default. */
export function choicesFromUrl(defaults) {
  const said = new URLSearchParams(location.search);
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, said.get(name) ?? value]));
}

/** Write the choices that differ from the defaults into the address, so that a reload shows the same. */
export function keepInUrl(choices, defaults) {
  const said = Object.fromEntries(Object.entries(choices).filter(([name, value]) => String(value) !== defaults[name]));
  history.replaceState(null, "", withQuery(location.pathname, said));
}

// ------------------------------------------------------------------------------------------------ elements

/** "old" or "new" as a badge. */
export function ageBadge(isNew) {
  const title = isNew ? "Found in the unlabelled pictures" : "Known from the first labels";
  return h("span", { class: isNew ? "badge badge-new" : "badge", title }, isNew ? "new" : "old");
}

/** A button that is no key's. */
export function plainButton(text, onclick, className = "") {
  return h("button", { type: "button", class: `button ${className}`.trim(), onclick }, text);
}

/** A few small words above what they describe. */
export function smallLabel(text) {
  return h("span", { class: "class-label" }, text);
}

/** A labelled choice. Options are [value, text] pairs. */
export function selectField(label, options, value, onchange) {
  const select = h("select", { class: "input", onchange: () => onchange(select.value) },
    options.map(([one, text]) => h("option", { value: one, selected: one === value }, text)));
  return h("label", { class: "tool-field" }, h("span", {}, label), select);
}

/** A share as a small bar with its number; null is drawn as unknown. */
export function shareBar(label, share, title) {
  const fill = h("span", { class: "share-fill" });
  fill.style.setProperty("transform", `scaleX(${share ?? 0})`);
  return h("span", { class: share === null ? "share is-unknown" : "share", title },
    h("span", { class: "share-label" }, label), h("span", { class: "share-track", "aria-hidden": "true" }, fill),
    h("span", { class: "share-number numbers" }, share === null ? "–" : percent(share)));
}

/** Pictures in a row that only show something. */
export function thumbRow(thumbs, className = "") {
  return h("div", { class: `thumb-row ${className}`.trim() },
    thumbs.map((thumb) => thumbElement(thumb, { size: 160, caption: false, badges: "people", lazy: true })));
}

/**
 * Pictures to tick; the first `ticked` of them are at the beginning, but none that people labelled: what they said is
 * not changed unasked. `withLabelled` ticks these too. Returns {element, rows()}.
 */
export function tickList(thumbs, { ticked = thumbs.length, withLabelled = false, onchange = () => {} } = {}) {
  const first = thumbs.filter((thumb) => withLabelled || thumb.by !== "human").slice(0, ticked);
  const chosen = new Set(first.map((thumb) => thumb.row));
  const tile = (thumb) => {
    const show = () => tick.setAttribute("aria-pressed", String(chosen.has(thumb.row)));
    const toggle = () => {
      if (!chosen.delete(thumb.row)) chosen.add(thumb.row);
      show();
      onchange();
    };
    const looks = { caption: false, badges: "people", class: "tick", label: `Picture ${thumb.row}` };
    const tick = thumbElement(thumb, { ...looks, onclick: toggle });
    show();
    return tick;
  };
  const element = h("div", { class: "ticks" }, thumbs.map(tile));
  return { element, rows: () => thumbs.map((thumb) => thumb.row).filter((row) => chosen.has(row)) };
}

/** Buttons to turn pages. `go(page)` is called with the page wanted. */
export class Pager {
  constructor(go) {
    this.page = 0;
    this.nPages = 1;
    this.go = go;
    const turner = (label, sign, step) =>
      h("button", { type: "button", class: "button small", "aria-label": label, onclick: () => this.turn(step) }, sign);
    this.back = turner("Page before", "‹", -1);
    this.on = turner("Next page", "›", 1);
    this.text = h("span", { class: "muted numbers" });
    const about = { class: "pager", role: "navigation", "aria-label": "Pages" };
    this.element = h("div", about, this.back, this.text, this.on);
  }

  /** One page ahead (1) or back (-1), where there is one. */
  turn(step) {
    const wanted = this.page + step;
    if (wanted >= 0 && wanted < this.nPages) this.go(wanted);
  }

  show(page, nPages) {
    Object.assign(this, { page, nPages });
    setText(this.text, `Page ${count(page + 1)} of ${count(Math.max(1, nPages))}`);
    this.back.disabled = page === 0;
    this.on.disabled = page + 1 >= nPages;
    this.element.hidden = nPages <= 1;
  }
}

/** A list of elements, one for each item; those of unchanged items stay in place, so that no picture flickers. */
export class StableList {
  constructor(box, keyOf, build) {
    Object.assign(this, { box, keyOf, build, shown: new Map() });
  }

  draw(items) {
    const next = new Map();
    for (const item of items) {
      const text = JSON.stringify(item);
      const old = this.shown.get(this.keyOf(item));
      next.set(this.keyOf(item), old?.text === text ? old : { text, element: this.build(item) });
    }
    const wanted = [...next.values()].map((one) => one.element);
    const staying = new Set(wanted);
    for (const child of [...this.box.children]) if (!staying.has(child)) child.remove();
    wanted.forEach((element, index) => {
      if (this.box.children[index] !== element) this.box.insertBefore(element, this.box.children[index] ?? null);
    });
    this.shown = next;
  }

  element(key) {
    return this.shown.get(key)?.element ?? null;
  }
}

/** The last request wins: an answer or an error that a later request has overtaken becomes null. */
export function latest() {
  let turn = 0;
  return async (promise) => {
    turn += 1;
    const mine = turn;
    const [ended] = await Promise.allSettled([promise]);
    if (mine !== turn) return null;
    if (ended.status === "rejected") throw ended.reason;
    return ended.value;
  };
}
