/** One large picture that can be looked at closely: fit or zoomed, moved by drag, wheel and arrow keys. */

import { h, replace } from "../lib/dom.js";
import { imageUrl, LARGE } from "../lib/items.js";

const LEAST_ZOOM = 2;
const STEP = 80;

/** Shows a picture in `element`; toggle() zooms, pan() moves. */
export class PictureViewer {
  element = h("div", { class: "viewer", ondblclick: () => this.toggle() });
  /** @type {number | null} */
  row = null;
  /** @type {HTMLImageElement | null} */
  picture = null;
  zoom = 1;
  x = 0;
  y = 0;

  constructor() {
    this.element.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
    this.element.addEventListener("pointerdown", (event) => this.onDown(event));
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /**
   * Show a picture; the same one again changes only its words.
   * @param {Picture & { path?: string }} picture
   * @param {string} alt
   */
  show(picture, alt) {
    if (picture.path) this.element.dataset.path = picture.path;
    else delete this.element.dataset.path;
    if (this.row === picture.row) {
      this.picture?.setAttribute("alt", alt);
      return;
    }
    this.row = picture.row;
    this.fit();
    // A new element: an old one would go on showing the old picture until the new one has come.
    this.picture = h("img", { src: imageUrl(picture, LARGE), alt, draggable: "false" });
    replace(this.element, this.picture);
  }

  get canMove() {
    return this.isZoomed;
  }

  get isZoomed() {
    return this.zoom > 1;
  }

  fit() {
    this.zoom = 1;
    this.x = 0;
    this.y = 0;
    this.place();
  }

  toggle() {
    if (this.isZoomed) return this.fit();
    this.zoom = Math.max(LEAST_ZOOM, 1 / this.fitScale());
    this.place();
  }

  /** By how much the picture is scaled to fit. */
  fitScale() {
    if (!this.picture?.naturalWidth) return 1;
    const { naturalWidth, naturalHeight } = this.picture;
    return Math.min(this.element.clientWidth / naturalWidth, this.element.clientHeight / naturalHeight);
  }

  /**
   * Move what is seen by steps: right and down are positive.
   * @param {number} right
   * @param {number} down
   */
  pan(right, down) {
    this.move(-right * STEP, -down * STEP);
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  move(dx, dy) {
    const scale = this.fitScale() * this.zoom;
    const roomX = Math.max(0, ((this.picture?.naturalWidth ?? 0) * scale - this.element.clientWidth) / 2);
    const roomY = Math.max(0, ((this.picture?.naturalHeight ?? 0) * scale - this.element.clientHeight) / 2);
    this.x = Math.max(-roomX, Math.min(roomX, this.x + dx));
    this.y = Math.max(-roomY, Math.min(roomY, this.y + dy));
    this.place();
  }

  place() {
    this.element.classList.toggle("is-zoomed", this.isZoomed);
    const zoomed = `translate(${this.x}px, ${this.y}px) scale(${this.zoom})`;
    this.picture?.style.setProperty("transform", this.isZoomed ? zoomed : "none");
  }

  /** @param {WheelEvent} event */
  onWheel(event) {
    if (!this.isZoomed || event.ctrlKey) return;
    event.preventDefault();
    this.move(-event.deltaX, -event.deltaY);
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    if (!this.isZoomed || event.button !== 0) return;
    this.element.setPointerCapture(event.pointerId);
    const drag = (/** @type {PointerEvent} */ move) => this.move(move.movementX, move.movementY);
    this.element.addEventListener("pointermove", drag);
    const end = () => this.element.removeEventListener("pointermove", drag);
    for (const name of ["pointerup", "pointercancel"]) this.element.addEventListener(name, end, { once: true });
  }
}
