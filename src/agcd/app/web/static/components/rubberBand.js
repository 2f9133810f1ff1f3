/** A frame drawn with the mouse over a grid: it marks what it touches; a click marks one picture. */

import { h, isAdding, pointIn, targetOf } from "../lib/dom.js";
import { boxBetween, touched } from "../lib/marks.js";

const THRESHOLD_PX = 6;
const EDGE_PX = 48;
const SCROLL_PX = 14;

/** @typedef {import("../lib/marks.js").Box} Box */

/** Turns what the pointer does over the box into marks. */
export class RubberBand {
  /**
   * Where the pointer went down, on what, and what was marked before.
   * @type {{ at: Point, target: Element | null, before: number[] } | null}
   */
  from = null;
  /** @type {HTMLElement | null} */
  band = null;
  /** @type {Box[]} */
  boxes = [];

  /**
   * @param {HTMLElement} box
   * @param {import("../lib/marks.js").Marks} marks
   */
  constructor(box, marks) {
    this.box = box;
    this.marks = marks;
    box.addEventListener("pointerdown", (event) => this.begin(event));
    box.addEventListener("pointermove", (event) => this.drag(event));
    box.addEventListener("pointerup", (event) => this.end(event));
    box.addEventListener("pointercancel", () => this.drop());
    box.addEventListener("click", (event) => this.tap(event));
  }

  /**
   * A finger has no Ctrl key: each tap marks or unmarks one picture. A drag scrolls.
   * @param {MouseEvent} event
   */
  tap(event) {
    if (/** @type {PointerEvent} */ (event).pointerType !== "touch") return;
    const place = this.cells().findIndex((cell) => cell === targetOf(event).closest("[data-row]"));
    if (place >= 0) this.marks.toggle(place);
  }

  cells() {
    return /** @type {HTMLElement[]} */ ([...this.box.querySelectorAll("[data-row]")]);
  }

  /** @param {PointerEvent} event */
  begin(event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    const before = isAdding(event) ? [...this.marks.marked] : [];
    this.from = { at: pointIn(this.box, event), target: targetOf(event).closest("[data-row]"), before };
  }

  /** @param {PointerEvent} event */
  drag(event) {
    if (!this.from) return;
    const to = pointIn(this.box, event);
    const isFar = Math.hypot(to.x - this.from.at.x, to.y - this.from.at.y) > THRESHOLD_PX;
    if (!this.band && !isFar) return;
    this.stretch(this.band ?? this.draw(event), boxBetween(this.from.at, to), this.from.before);
    this.scroll(event);
  }

  /** @param {PointerEvent} event */
  draw(event) {
    this.box.setPointerCapture(event.pointerId);
    this.band = h("div", { class: "rubber-band" });
    this.box.append(this.band);
    this.boxes = this.cells().map(({ offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height }) =>
      ({ left, top, right: left + width, bottom: top + height }));
    return this.band;
  }

  /**
   * @param {HTMLElement} band
   * @param {Box} frame
   * @param {number[]} before
   */
  stretch(band, frame, before) {
    const { left, top, right, bottom } = frame;
    const sizes = { left, top, width: right - left, height: bottom - top };
    for (const [name, value] of Object.entries(sizes)) band.style.setProperty(name, `${value}px`);
    const inside = touched(frame, this.boxes);
    this.marks.set([...before, ...inside], inside.at(-1) ?? this.marks.cursor);
  }

  /** @param {PointerEvent} event */
  scroll(event) {
    if (event.clientY > innerHeight - EDGE_PX) scrollBy(0, SCROLL_PX);
    else if (event.clientY < EDGE_PX * 3) scrollBy(0, -SCROLL_PX);
  }

  /** @param {PointerEvent} event */
  end(event) {
    if (!this.from) return;
    const { target } = this.from;
    const wasBand = this.band !== null;
    this.drop();
    if (wasBand) return;
    const place = this.cells().findIndex((cell) => cell === target);
    if (place >= 0) this.marks.click(place, { isRange: event.shiftKey, isToggle: event.ctrlKey || event.metaKey });
    else this.marks.none();
  }

  drop() {
    this.band?.remove();
    this.from = null;
    this.band = null;
  }
}
