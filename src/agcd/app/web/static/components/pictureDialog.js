/** One picture of a list, large: where its file is, what it counts as, and another name for it by one key. */

import { latest } from "../lib/async.js";
import { h, replace, setText } from "../lib/dom.js";
import { LARGE, prefetch } from "../lib/items.js";
import { plainKey } from "../lib/keys.js";
import { api } from "../lib/net.js";
import { unmarked } from "../lib/texts.js";
import { count, say } from "../lib/words.js";
import { labels, sayDone, sendAnswers, undoLast } from "./changes.js";
import { plainButton, smallLabel, spacer } from "./controls.js";
import { copyPath } from "./copyPath.js";
import { openDialog } from "./dialogs.js";
import { itemViewer } from "./itemView.js";
import { nameDialog } from "./nameDialog.js";
import { byBadge, thumbElement } from "./thumb.js";

/** @typedef {Api["Thumb"]} Thumb */
/** @typedef {import("../lib/texts.js").Marking} Marking */

/**
 * A button that shows its key.
 * @param {string} text
 * @param {string} key
 * @param {() => unknown} run
 */
function keyButton(text, key, run) {
  return h("button", { type: "button", class: "button", onclick: run }, text, " ", h("kbd", {}, key));
}

class PictureLook {
  viewer = itemViewer();
  latest = latest();
  /** What it may be called, by key. @type {Api["ClassName"][]} */
  likely = [];
  place = h("span", { class: "muted numbers" });
  name = h("strong", { class: "look-name" });
  path = h("code", { class: "look-path" });
  likelyBox = h("div", { class: "look-likely" });

  /**
   * @param {Thumb[]} thumbs
   * @param {number} index
   * @param {{ close: () => void, onChange: () => void, marking: Marking }} calls
   */
  constructor(thumbs, index, { close, onChange, marking }) {
    this.thumbs = thumbs;
    this.index = index;
    this.onChange = onChange;
    this.marking = marking;
    const step = (/** @type {number} */ by) => () => this.step(by);
    this.keys = new Map([["ArrowLeft", step(-1)], ["ArrowRight", step(1)], ["n", () => this.askName()],
      ["/", () => this.askName()], ["z", () => this.undo()], [" ", () => this.viewer.toggle()],
      ["ArrowUp", () => this.viewer.pan(0, -1)], ["ArrowDown", () => this.viewer.pan(0, 1)]]);
    this.element = h("div", { class: "look", tabindex: "-1", autofocus: true },
      this.viewer.element,
      h("div", { class: "look-words" }, h("div", { class: "look-line" }, this.name, spacer(), this.place), this.path,
        smallLabel("It is"), this.likelyBox),
      h("div", { class: "dialog-buttons look-buttons" }, keyButton("‹ Before", "←", step(-1)),
        keyButton("Next ›", "→", step(1)), spacer(),
        keyButton("Copy path", "C", () => copyPath(this.thumb.path)),
        keyButton("Another name", "N", () => this.askName()), keyButton("Undo", "Z", () => this.undo()),
        plainButton("Close", close)));
  }

  get thumb() {
    return this.thumbs[this.index];
  }

  async show() {
    const { thumb, thumbs, index } = this;
    this.viewer.show(thumb, thumb.name ? say`${thumb.name}, picture ${thumb.row}` : say`Picture ${thumb.row}`,
      this.marking);
    replace(this.name, thumb.name ?? "no class yet", " ", byBadge(thumb.by));
    setText(this.place, `${count(index + 1)} of ${count(thumbs.length)}`);
    setText(this.path, thumb.path);
    prefetch(thumbs.slice(index + 1, index + 2), LARGE);
    const look = await this.latest(api.get("/api/v1/rows/{row}", { row: thumb.row })).catch(() => null);
    if (!look) return;
    this.likely = look.likely;
    replace(this.likelyBox, look.likely.map((one, place) => this.likelyButton(one, place)));
  }

  /**
   * @param {Api["ClassName"]} one
   * @param {number} place
   */
  likelyButton(one, place) {
    return h("button", { type: "button", class: "button look-name-button", title: one.name,
      onclick: () => this.label(one) }, h("kbd", {}, String(place + 1)),
      one.exemplar ? thumbElement(one.exemplar, { size: 96, caption: false, badges: "none", peek: false }) : null,
      h("span", {}, one.name));
  }

  /** @param {number} by */
  step(by) {
    const wanted = this.index + by;
    if (wanted < 0 || wanted >= this.thumbs.length) return;
    this.index = wanted;
    this.likely = [];
    this.show();
  }

  async askName() {
    const { thumb } = this;
    const picked = await nameDialog({ title: "What is it?", thumbs: [thumb] });
    if (picked) await this.label(picked, thumb);
  }

  /**
   * @param {PickedClass} picked
   * @param {Thumb} [thumb]
   */
  async label(picked, thumb = this.thumb) {
    const told = await sendAnswers(labels([thumb.row], picked)).catch(() => null);
    if (!told) return;
    this.onChange();
    sayDone(`Labelled “${picked.name}”.`, () => this.reload());
    await this.reload();
  }

  async undo() {
    this.onChange();
    await undoLast(() => this.reload());
  }

  /** Show what the picture counts as now; nothing else in the list is asked for. */
  async reload() {
    const { row } = this.thumb;
    const look = await api.get("/api/v1/rows/{row}", { row }).catch(() => null);
    if (!look) return;
    this.thumbs = this.thumbs.map((one) => (one.row === row ? look.thumb : one));
    await this.show();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const likely = this.likely[Number(event.key) - 1];
    const run = likely ? () => this.label(likely) : this.keys.get(plainKey(event.key));
    // Enter and Space press a button that has the focus.
    if (!run || (event.key === " " && document.activeElement?.matches("button"))) return;
    event.preventDefault();
    run();
  }
}

/**
 * Look at a picture of a list; resolves, when it is closed, to whether something was changed.
 * @param {Thumb[]} thumbs
 * @param {number} index
 * @param {Marking} [marking] of words that were searched for
 * @returns {Promise<boolean>}
 */
export async function lookAt(thumbs, index, marking = unmarked) {
  /** @type {PictureLook} */
  let look;
  let hasChanged = false;
  const onChange = () => {
    hasChanged = true;
  };
  await openDialog({ title: say`Picture`, class: "dialog-picture", onkeydown: (event) => look.key(event),
    body: (/** @type {(done: null) => void} */ close) => {
      look = new PictureLook(thumbs, index, { close: () => close(null), onChange, marking });
      look.show();
      return look.element;
    } });
  return hasChanged;
}
