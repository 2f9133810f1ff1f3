/** Pictures: their addresses, their small form with name and badge, and a larger look on hover. */

import { h } from "./dom.js";

const BADGES = {
  human: { text: "✓", title: "labelled by a person" },
  page: { text: "page", title: "accepted by page" },
  model: { text: "model", title: "what the model says" },
};

/** The address of a picture; size is 96, 160, 320 or 1024. */
export function imageUrl(thumb, size) {
  return `/image/${thumb.row}?size=${size}&v=${encodeURIComponent(thumb.v)}`;
}

/** Fetch pictures ahead, so that they show at once later. */
export function prefetch(thumbs, size) {
  for (const thumb of thumbs) new Image().src = imageUrl(thumb, size);
}

/** "✓" (a person), "page" or "model" as a small badge; null for a picture that nobody has placed. */
export function byBadge(by) {
  const badge = BADGES[by];
  return badge ? h("span", { class: `by by-${by}`, title: badge.title }, badge.text) : null;
}

function altText(thumb) {
  const said = thumb.by === "human" ? ", labelled by a person" : "";
  return `${thumb.name ? `${thumb.name}, picture` : "Picture"} ${thumb.row}${said}`;
}

/**
 * A picture with its name and badge: a button where `onclick` is given, else a span.
 * Options: size (96, 160, 320; 160), caption (true), badges ("all", "people": none for the model's, "none"),
 * peek (true: a larger look on hover), onclick(event), label (for screen readers), class, lazy (false).
 */
export function thumbElement(thumb, options = {}) {
  const { size = 160, caption = true, badges = "all", peek = true, onclick, label, lazy } = options;
  const showsBadge = badges === "all" || (badges === "people" && thumb.by !== "model");
  const properties = { class: `thumb ${options.class ?? ""}`.trim(), dataset: { row: thumb.row }, title: thumb.name };
  if (onclick) Object.assign(properties, { type: "button", onclick, "aria-label": label });
  const picture = h("span", { class: "thumb-picture" },
    h("img", { src: imageUrl(thumb, size), alt: altText(thumb), loading: lazy ? "lazy" : null, draggable: "false" }),
    showsBadge ? byBadge(thumb.by) : null);
  const element = h(onclick ? "button" : "span", properties, picture,
    caption ? h("span", { class: "thumb-name" }, thumb.name ?? "–") : null);
  if (peek) addPeek(element, thumb);
  return element;
}

const PEEK_SIZE = 320;
const PEEK_WAIT_MS = 350;
let peeking = null;

function addPeek(element, thumb) {
  // Only a mouse that moves asks for it, not one that rests where a new picture appears.
  element.addEventListener("pointermove", (event) => {
    if (event.pointerType === "mouse" && peeking?.element !== element) startPeek(element, thumb);
  });
  element.addEventListener("pointerleave", endPeek);
  element.addEventListener("click", endPeek);
}

function startPeek(element, thumb) {
  endPeek();
  const timer = setTimeout(() => {
    if (element.isConnected) showPeek(element, thumb);
  }, PEEK_WAIT_MS);
  peeking = { element, timer, box: null };
}

function showPeek(element, thumb) {
  const box = h("div", { class: "peek", "aria-hidden": "true", popover: "manual" },
    h("img", { src: imageUrl(thumb, PEEK_SIZE), alt: "" }), h("span", {}, thumb.name ?? "no class yet"));
  const place = element.getBoundingClientRect();
  const isLeft = place.left > innerWidth / 2;
  const left = isLeft ? place.left - PEEK_SIZE - 24 : place.right + 8;
  const top = Math.max(8, Math.min(place.top - PEEK_SIZE / 3, innerHeight - PEEK_SIZE - 56));
  box.style.setProperty("left", `${Math.max(8, left)}px`);
  box.style.setProperty("top", `${top}px`);
  document.body.append(box);
  box.showPopover?.();
  peeking.box = box;
}

function endPeek() {
  if (!peeking) return;
  clearTimeout(peeking.timer);
  peeking.box?.remove();
  peeking = null;
}

// A card that is replaced under the pointer sends no "leave"; the next key ends the look.
addEventListener("keydown", endPeek);
