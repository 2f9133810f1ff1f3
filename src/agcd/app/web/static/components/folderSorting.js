/** The section that sorts one's own pictures into a folder per class. */

import { delay } from "../lib/async.js";
import { h, replace, setText } from "../lib/dom.js";
import { IS_IMAGES } from "../lib/kind.js";
import { api, newUid } from "../lib/net.js";
import { count, say } from "../lib/words.js";
import { plainButton } from "./controls.js";
import { barElement, setBar } from "./jobPanel.js";

/** @typedef {Requests["SortIntoFolders"]["how"]} How */

const POLL_MS = 700;
const ORIGINALS = "The originals stay where they are and as they are.";
const EACH = say`Each picture is a file of its own in it.`;
/** @type {readonly (readonly [how: How, word: string, meaning: string])[]} */
const WAYS = [
  ["copy", "Copies", "Takes as much space again; can be taken anywhere."],
  ["link", "Hard links", "Takes no space. Editing a picture edits the original too."],
  ["symlink", "Shortcuts", "Takes no space (symbolic links). They break when the originals move."],
];

/**
 * @param {string} word
 * @param {string} meaning
 * @param {Properties} properties
 */
function choice(word, meaning, properties) {
  return h("label", {}, h("input", properties), h("span", {}, word), h("span", { class: "muted" }, meaning));
}

/** Three ways, a button, how far it is, and where the folder lies. watch() follows what runs already. */
export class FolderSorting {
  button = plainButton(say`Sort my pictures`, () => this.start(), "small");
  words = h("p", { class: "muted", role: "status" });
  bar = barElement(say`Pictures sorted`);
  where = h("p", {});
  element = this.build();
  isWatching = false;

  build() {
    this.bar.hidden = true;
    const ways = WAYS.map(([how, word, meaning]) =>
      choice(word, meaning, { type: "radio", name: "folder-way", value: how, checked: how === "copy" }));
    return h("form", { class: "folder-sorting", onsubmit: (event) => event.preventDefault() },
      h("h3", {}, say`Sort my pictures into folders`),
      h("p", { class: "muted" }, "One folder per class. ", IS_IMAGES ? ORIGINALS : EACH),
      IS_IMAGES ? h("fieldset", { class: "folder-ways", "aria-label": "How" }, ways) : null,
      h("div", { class: "folder-ways" }, choice("Only what people have checked",
        say`Leaves out pictures that only the program has named.`, { type: "checkbox", name: "only-checked" })),
      h("div", { class: "toolbar" }, this.button, this.words), this.bar, this.where);
  }

  /** What is chosen. */
  chosen() {
    const form = new FormData(this.element);
    return { how: /** @type {How} */ (form.get("folder-way") ?? "copy"), only_checked: form.has("only-checked") };
  }

  async start() {
    this.button.disabled = true;
    const told = await api.post("/api/v1/folders", { uid: newUid(), ...this.chosen() }).catch(() => null);
    if (told) this.show(told);
    await this.watch();
  }

  /** Ask until nothing runs any more. */
  async watch() {
    if (this.isWatching) return;
    this.isWatching = true;
    for (let isRunning = true; isRunning; isRunning = await this.look()) await delay(this.bar.hidden ? 0 : POLL_MS);
    this.isWatching = false;
  }

  async look() {
    const told = await api.get("/api/v1/folders", {}, { quiet: true }).catch(() => null);
    if (told) this.show(told);
    return told?.state === "running";
  }

  /** @param {Api["Folders"]} told */
  show(told) {
    const isRunning = told.state === "running";
    this.button.disabled = isRunning;
    this.bar.hidden = !isRunning;
    setBar(this.bar, told.total > 0 ? told.done / told.total : null);
    this.words.classList.toggle("error", told.state === "failed");
    setText(this.words, told.error ?? (isRunning ? this.progress(told) : told.sentence));
    if (told.is_there && !isRunning) replace(this.where, "They lie in ", h("code", {}, told.where));
    else replace(this.where);
  }

  /** @param {Api["Folders"]} told */
  progress(told) {
    return told.total > 0 ? say`${count(told.done)} of ${count(told.total)} pictures` : "Starting";
  }
}
