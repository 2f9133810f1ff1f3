/** Pictures: their addresses, their small form with name and badge, and a larger look on hover. */

import { h } from "../lib/dom.js";
import { fileName } from "../lib/words.js";

const BADGES = {
  human: { text: "✓", title: "labelled by a person" },
  page: { text: "page", title: "accepted by page" },
  answers: { text: "guess", title: "what the answers so far say" },
  model: { text: "guess", title: "what the model says" },
};

/** @typedef {keyof typeof BADGES} By */
/** @typedef {Picture & { name?: string | null, by?: By | null, path?: string }} ShownPicture */

/**
 * The address of a picture.
 * @param {Picture} picture
 * @param {96 | 160 | 320 | 1024} size
 */
export function imageUrl(picture, size) {
  return `/image/${picture.row}?size=${size}&v=${encodeURIComponent(picture.v)}`;
}

/**
 * Fetch pictures ahead, so that they show at once later.
 * @param {Picture[]} pictures
 * @param {160 | 1024} size
 */
export function prefetch(pictures, size) {
  for (const picture of pictures) new Image().src = imageUrl(picture, size);
}

/**
 * "✓" (a person), "page" or "model" as a small badge; null for a picture that nobody has placed.
 * @param {By | null | undefined} by
 */
export function byBadge(by) {
  return by ? h("span", { class: `by by-${by}`, title: BADGES[by].title }, BADGES[by].text) : null;
}

/** @param {ShownPicture} picture */
function altText(picture) {
  const said = picture.by === "human" ? ", labelled by a person" : "";
  return `${picture.name ? `${picture.name}, picture` : "Picture"} ${picture.row}${said}`;
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
 * hover. `label` is for screen readers, before the words that are seen.
 * @typedef {{ size?: 96 | 160 | 320, caption?: boolean | "file", badges?: "all" | "people" | "none", peek?: boolean,
 *   onclick?: (event: MouseEvent) => unknown, label?: string, class?: string, lazy?: boolean }} ThumbOptions
 */

/**
 * A picture with its name and badge: a button where `onclick` is given, else a span.
 * @param {ShownPicture} picture
 * @param {ThumbOptions} [options]
 * @returns {HTMLElement}
 */
export function thumbElement(picture, options = {}) {
  const { size = 160, caption = true, badges = "all", peek = true, onclick, label, lazy } = options;
  const showsBadge = badges === "all" || (badges === "people" && picture.by !== "model" && picture.by !== "answers");
  const properties = { class: `thumb ${options.class ?? ""}`.trim(), title: titleOf(picture),
    dataset: { row: picture.row, ...(picture.path ? { path: picture.path } : {}) },
    ...(onclick ? { type: "button", onclick } : {}) };
  const element = h(onclick ? "button" : "span", properties,
    h("span", { class: "thumb-picture" },
      h("img", { src: imageUrl(picture, size), alt: label ?? altText(picture), loading: lazy ? "lazy" : null,
        draggable: "false" }),
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
      ...(onclick ? { onclick: () => onclick(index), label: `Look at picture ${picture.row}` } : {}) });
    // The row is reached by a key of its card; Tab goes from card to card.
    if (onclick) element.setAttribute("tabindex", "-1");
    return element;
  }));
}

const PEEK_SIZE = 320;
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
 * @param {HTMLElement} element
 * @param {ShownPicture} picture
 */
function showBeside(element, picture) {
  const place = element.getBoundingClientRect();
  const left = place.left > innerWidth / 2 ? place.left - PEEK_SIZE - 24 : place.right + 8;
  const top = Math.max(8, Math.min(place.top - PEEK_SIZE / 3, innerHeight - PEEK_SIZE - 56));
  const box = h("div", { class: "peek", "aria-hidden": "true", popover: "manual",
    style: { left: `${Math.max(8, left)}px`, top: `${top}px` } },
    h("img", { src: imageUrl(picture, PEEK_SIZE), alt: "" }), h("span", {}, picture.name ?? "no class yet"),
    picture.path ? fileLine(picture.path) : null);
  document.body.append(box);
  box.showPopover?.();
  return box;
}

const PEEK = new Peek();

// A card that is replaced under the pointer sends no "leave"; the next key ends the look.
addEventListener("keydown", () => PEEK.end());
