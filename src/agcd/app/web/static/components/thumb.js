/** Items in their small form with name and badge, and a larger look on hover. */

import { h, replace } from "../lib/dom.js";
import { fetchItem, hasPicture, imageUrl } from "../lib/items.js";
import { IS_IMAGES } from "../lib/kind.js";
import { readable } from "../lib/texts.js";
import { fileName, say } from "../lib/words.js";
import { itemFace } from "./itemView.js";

const BADGES = {
  human: { text: "✓", title: "labelled by a person" },
  page: { text: "page", title: "accepted by page" },
  answers: { text: "guess", title: "what the answers so far say" },
  model: { text: "guess", title: "what the model says" },
};

/** @typedef {keyof typeof BADGES} By */
/** @typedef {import("../lib/items.js").ShownItem} ShownItem */
/** @typedef {ShownItem & { name?: string | null, by?: By | null, path?: string }} ShownPicture */

/**
 * "✓" (a person), "page" or "model" as a small badge; null for a picture that nobody has placed.
 * @param {By | null | undefined} by
 */
export function byBadge(by) {
  return by ? h("span", { class: `by by-${by}`, title: BADGES[by].title }, BADGES[by].text) : null;
}

/** @param {ShownPicture} picture */
function altText(picture) {
  const by = picture.by === "human" ? ", labelled by a person" : "";
  return picture.name ? say`${picture.name}, picture ${picture.row}${by}` : say`Picture ${picture.row}${by}`;
}

/**
 * What its words are when the pointer rests on it: the class, and where the file is.
 * @param {ShownPicture} picture
 */
function titleOf(picture) {
  return [picture.name, picture.path].filter(Boolean).join("\n") || null;
}

/**
 * @param {ShownPicture} picture
 * @param {boolean | "file"} caption
 */
function captionOf(picture, caption) {
  if (!caption) return null;
  return [caption === "file" ? null : h("span", { class: "thumb-name" }, picture.name ?? "–"),
    picture.path ? fileLine(picture.path) : null];
}

/**
 * The name of a file. Where room is short its start is cut: the end tells one file from the next.
 * @param {string} path
 */
export function fileLine(path) {
  return h("span", { class: "thumb-file", title: path }, h("bdi", {}, fileName(path)));
}

/**
 * `caption` "file": the name of the file alone. `badges` "people": none for the model's. `peek`: a larger look on
 * hover. `label` is for screen readers, before the words that are seen. `marking` marks words of a text.
 * @typedef {{ size?: 96 | 160 | 320, caption?: boolean | "file", badges?: "all" | "people" | "none", peek?: boolean,
 *   onclick?: (event: MouseEvent) => unknown, label?: string, class?: string, lazy?: boolean,
 *   marking?: import("../lib/texts.js").Marking }} ThumbOptions
 */

/**
 * An item with its name and badge: a button where `onclick` is given, else a span.
 * @param {ShownPicture} picture
 * @param {ThumbOptions} [options]
 * @returns {HTMLElement}
 */
export function thumbElement(picture, options = {}) {
  const { size = 160, caption = true, badges = "all", peek = true, onclick, label, lazy, marking } = options;
  const showsBadge = badges === "all" || (badges === "people" && picture.by !== "model" && picture.by !== "answers");
  const properties = { class: `thumb ${options.class ?? ""}`.trim(), title: titleOf(picture),
    dataset: { row: picture.row, ...(picture.path ? { path: picture.path } : {}) },
    ...(onclick ? { type: "button", onclick } : {}),
    // The words of a picture are those of its image; those of a text are its own.
    ...(onclick && !IS_IMAGES ? { "aria-label": `${label ?? altText(picture)}: ${picture.text ?? ""}` } : {}) };
  const element = h(onclick ? "button" : "span", properties,
    h("span", { class: "thumb-picture" },
      itemFace(picture, { size, alt: label ?? altText(picture), isLazy: lazy, marking }),
      showsBadge ? byBadge(picture.by) : null),
    captionOf(picture, caption));
  if (peek) PEEK.follow(element, picture);
  return element;
}

/**
 * Pictures in a row; where `onclick` is given a click on one calls it with its place.
 * @param {ShownPicture[]} pictures
 * @param {(index: number) => unknown} [onclick]
 */
export function thumbRow(pictures, onclick) {
  return h("div", { class: "thumb-row" }, pictures.map((picture, index) => {
    const element = thumbElement(picture, { caption: false, badges: "people", lazy: true,
      ...(onclick ? { onclick: () => onclick(index), label: say`Look at picture ${picture.row}` } : {}) });
    // The row is reached by a key of its card; Tab goes from card to card.
    if (onclick) element.setAttribute("tabindex", "-1");
    return element;
  }));
}

const PEEK_SIZE = 320;
const PEEK_OF_PICTURES = { width: PEEK_SIZE, height: PEEK_SIZE };
const PEEK_OF_WORDS = { width: 440, height: 400 };
const PEEK_LETTERS = 2000;
const PEEK_WAIT_MS = 350;

/** The larger look; there is at most one on the page. */
class Peek {
  /** @type {{ element: Element, timer: ReturnType<typeof setTimeout>, box: Element | null } | null} */
  #now = null;

  /**
   * @param {HTMLElement} element
   * @param {ShownPicture} picture
   */
  follow(element, picture) {
    // Only a mouse that moves asks for it, not one that rests where a new picture appears.
    element.addEventListener("pointermove", (event) => {
      if (event.pointerType === "mouse" && this.#now?.element !== element) this.start(element, picture);
    });
    element.addEventListener("pointerleave", () => this.end());
    element.addEventListener("click", () => this.end());
  }

  /**
   * @param {HTMLElement} element
   * @param {ShownPicture} picture
   */
  start(element, picture) {
    this.end();
    const show = () => {
      if (element.isConnected && this.#now) this.#now.box = showBeside(element, picture);
    };
    this.#now = { element, timer: setTimeout(show, PEEK_WAIT_MS), box: null };
  }

  end() {
    if (!this.#now) return;
    clearTimeout(this.#now.timer);
    this.#now.box?.remove();
    this.#now = null;
  }
}

/**
 * Whether a small form shows all that there is: a larger one would say nothing more.
 * @param {HTMLElement} element
 * @param {ShownPicture} picture
 */
function isSeenWhole(element, picture) {
  const words = element.querySelector(".item-text");
  if (!words || hasPicture(picture) || picture.text?.endsWith("…")) return false;
  return words.scrollHeight <= words.clientHeight + 1 && words.scrollWidth <= words.clientWidth + 1;
}

/**
 * Where a square of that size stands beside an element; beside one as wide as the window, below or above it.
 * @param {DOMRect} place
 * @param {number} width
 * @param {number} height
 */
function besidePlace(place, width, height) {
  const isWide = !IS_IMAGES && place.left < width + 24 && innerWidth - place.right < width + 24;
  if (isWide) {
    const below = place.bottom + 6;
    return { left: place.left + 24, top: below + height < innerHeight ? below : Math.max(8, place.top - height - 24) };
  }
  const left = place.left > innerWidth / 2 || (!IS_IMAGES && innerWidth - place.right < width + 24)
    ? place.left - width - 24 : place.right + 8;
  return { left: Math.max(8, left), top: Math.max(8, Math.min(place.top - height / 3, innerHeight - height - 56)) };
}

/** @param {ShownPicture} picture */
function peekText(picture) {
  const box = h("div", { class: "peek-text", dir: "auto" }, readable(picture.text ?? ""));
  fetchItem(picture).then(({ text, cells }) => replace(box,
    [...cells.map(({ name, value }) => `${name}: ${value}`), text].filter(Boolean).join("\n").slice(0, PEEK_LETTERS)),
  () => {});
  return box;
}

/**
 * @param {HTMLElement} element
 * @param {ShownPicture} picture
 */
function showBeside(element, picture) {
  if (isSeenWhole(element, picture)) return null;
  const { width, height } = IS_IMAGES ? PEEK_OF_PICTURES : PEEK_OF_WORDS;
  const { left, top } = besidePlace(element.getBoundingClientRect(), width, height);
  const box = h("div", { class: "peek", "aria-hidden": "true", popover: "manual",
    style: { left: `${left}px`, top: `${top}px` } },
    hasPicture(picture) ? h("img", { src: imageUrl(picture, PEEK_SIZE), alt: "" }) : null,
    IS_IMAGES ? null : peekText(picture),
    h("span", {}, picture.name ?? "no class yet"), picture.path ? fileLine(picture.path) : null);
  document.body.append(box);
  box.showPopover?.();
  return box;
}

const PEEK = new Peek();

// A card that is replaced under the pointer sends no "leave"; the next key ends the look.
addEventListener("keydown", () => PEEK.end());
