/** How an item looks: a photograph, a text or a record, small among others or large by itself. */

import { h, replace, textNodes } from "../lib/dom.js";
import { hasPicture, imageUrl } from "../lib/items.js";
import { IS_IMAGES, KIND } from "../lib/kind.js";
import { readable, unmarked } from "../lib/texts.js";
import { PictureViewer } from "./pictureViewer.js";
import { TextViewer } from "./textViewer.js";

/** @typedef {import("../lib/items.js").ShownItem} ShownItem */
/** @typedef {import("../lib/items.js").Size} Size */
/** @typedef {import("../lib/texts.js").Marking} Marking */

/** What the key does that looks closer: on its button, and in the sheet of keys. */
export const CLOSER = Object.freeze(
  IS_IMAGES ? { word: "Zoom", label: "Zoom" }
    : KIND.hasPictures ? { word: "Closer", label: "Picture large, or letters of fixed width" }
      : { word: "Fixed width", label: "Letters of fixed width, lines as they are" });

/** The large form: show() fills it, toggle() looks closer, pan() moves it where canMove. */
export function itemViewer() {
  return IS_IMAGES ? new PictureViewer() : new TextViewer();
}

/**
 * Mark anew what a small form says.
 * @param {Element} box with the small forms
 * @param {Marking} marking
 */
export function markTexts(box, marking) {
  for (const one of box.querySelectorAll(".item-text")) replace(one, textNodes(marking(one.textContent ?? "")));
}

/**
 * The small form: a picture, an excerpt, or both; `alt` is for the picture.
 * @param {ShownItem} item
 * @param {{ size: Size, alt: string, isLazy?: boolean, marking?: Marking }} options
 * @returns {Child[]}
 */
export function itemFace(item, { size, alt, isLazy = false, marking = unmarked }) {
  const picture = hasPicture(item) ? h("img", { src: imageUrl(item, size), alt, loading: isLazy ? "lazy" : null,
    draggable: "false" }) : null;
  if (IS_IMAGES) return [picture];
  return [picture, h("span", { class: "item-text", dir: "auto" }, textNodes(marking(readable(item.text ?? ""))))];
}
