/** Above the class board: pairs of classes that look alike, to be merged or dismissed. */

import { h, replace } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { kept } from "../lib/storage.js";
import { plainButton } from "./controls.js";
import { thumbRow } from "./thumb.js";

const N_SHOWN = 3;
const MOST_DISMISSED = 500;

/** @typedef {Api["Alike"]} Alike */

/** @param {Alike} pair */
function keyOf({ one, into }) {
  return [one.key, into.key].sort().join(" ");
}

/** @returns {string[]} */
function dismissed() {
  const found = kept.get("alike-dismissed");
  return Array.isArray(found) ? found : [];
}

export class AlikeStrip {
  element = h("section", { class: "alike", "aria-label": "Look alike", hidden: true });
  /** @type {Alike[]} */
  pairs = [];

  /** @param {(pair: Alike) => unknown} merge */
  constructor(merge) {
    this.merge = merge;
  }

  async load() {
    this.pairs = await api.get("/api/v1/classes/alike", {}, { quiet: true }).catch(() => []);
    this.draw();
  }

  draw() {
    const gone = new Set(dismissed());
    const shown = this.pairs.filter((pair) => !gone.has(keyOf(pair))).slice(0, N_SHOWN);
    this.element.hidden = shown.length === 0;
    replace(this.element, shown.map((pair) => this.line(pair)));
  }

  /** @param {Alike} pair */
  line(pair) {
    const name = (/** @type {Api["BoardCard"]} */ card) =>
      h("strong", { class: card.is_named ? "" : "unnamed", title: card.name }, card.name);
    return h("div", { class: "alike-pair" },
      thumbRow(pair.one.typical), h("p", {}, name(pair.one), " looks like ", name(pair.into), ". Are they the same?"),
      thumbRow(pair.into.typical),
      h("span", { class: "alike-buttons" }, plainButton("Merge…", () => this.merge(pair), "small"),
        plainButton("No, they differ", () => this.dismiss(pair), "small")));
  }

  /** @param {Alike} pair */
  dismiss(pair) {
    kept.set("alike-dismissed", [...dismissed(), keyOf(pair)].slice(-MOST_DISMISSED));
    this.draw();
  }
}
