/** Marking pictures of a grid as in a file manager: click, shift-click, ctrl-click, keys and a rubber band. */

const THRESHOLD_PX = 6;
const EDGE_PX = 48;
const SCROLL_PX = 14;

/** Which of n places are marked, where the cursor stands, and from where a range is drawn. */
export class Marks {
  constructor(onchange) {
    Object.assign(this, { onchange, n: 0, marked: new Set(), cursor: 0, anchor: 0 });
  }

  /** Begin anew with n places; the cursor stays where it was. */
  reset(n) {
    this.n = n;
    this.cursor = Math.max(0, Math.min(this.cursor, n - 1));
    this.set([], this.cursor);
  }

  set(places, cursor = this.cursor, anchor = cursor) {
    this.marked = new Set(places);
    Object.assign(this, { cursor, anchor });
    this.onchange();
  }

  range(from, to) {
    const first = Math.min(from, to);
    return Array.from({ length: Math.abs(from - to) + 1 }, (_, step) => first + step);
  }

  /** A click: alone, with Shift (from the anchor to here) or with Ctrl (this one on or off). */
  click(place, { isRange = false, isToggle = false } = {}) {
    if (isRange) this.set([...(isToggle ? this.marked : []), ...this.range(this.anchor, place)], place, this.anchor);
    else if (isToggle) this.toggle(place);
    else this.set([place], place);
  }

  toggle(place = this.cursor) {
    if (this.n === 0) return;
    const marked = new Set(this.marked);
    if (!marked.delete(place)) marked.add(place);
    this.set(marked, place);
  }

  /** Move the cursor; with Shift the range from the anchor is marked. */
  move(step, isRange) {
    const place = this.cursor + step;
    if (place < 0 || place >= this.n) return;
    if (isRange) this.set(this.range(this.anchor, place), place, this.anchor);
    else this.set(this.marked, place);
  }

  all() {
    this.set(Array.from({ length: this.n }, (_, place) => place));
  }

  none() {
    this.set([]);
  }
}

/** Turns what the pointer does over the box into marks. */
export class RubberBand {
  constructor(box, marks) {
    Object.assign(this, { box, marks, from: null, band: null });
    box.addEventListener("pointerdown", (event) => this.begin(event));
    box.addEventListener("pointermove", (event) => this.drag(event));
    box.addEventListener("pointerup", (event) => this.end(event));
    box.addEventListener("pointercancel", () => this.drop());
  }

  /** A point of the window in the coordinates of the box, which scroll with it. */
  point(event) {
    const place = this.box.getBoundingClientRect();
    return { x: event.clientX - place.left, y: event.clientY - place.top };
  }

  cells() {
    return [...this.box.querySelectorAll("[data-row]")];
  }

  begin(event) {
    if (event.button !== 0 || event.pointerType === "touch") return;
    const isAdding = event.ctrlKey || event.metaKey || event.shiftKey;
    const before = isAdding ? new Set(this.marks.marked) : new Set();
    this.from = { ...this.point(event), target: event.target.closest("[data-row]"), before };
  }

  drag(event) {
    if (!this.from) return;
    const to = this.point(event);
    const isFar = Math.hypot(to.x - this.from.x, to.y - this.from.y) > THRESHOLD_PX;
    if (!this.band && !isFar) return;
    if (!this.band) this.draw(event);
    this.stretch(to);
    this.scroll(event);
  }

  draw(event) {
    this.box.setPointerCapture(event.pointerId);
    this.band = document.createElement("div");
    this.band.className = "rubber-band";
    this.box.append(this.band);
    this.places = this.cells().map(({ offsetLeft: left, offsetTop: top, offsetWidth: width, offsetHeight: height }) =>
      ({ left, top, right: left + width, bottom: top + height }));
  }

  stretch(to) {
    const left = Math.min(this.from.x, to.x);
    const top = Math.min(this.from.y, to.y);
    const right = Math.max(this.from.x, to.x);
    const bottom = Math.max(this.from.y, to.y);
    const sizes = { left, top, width: right - left, height: bottom - top };
    for (const [name, value] of Object.entries(sizes)) this.band.style.setProperty(name, `${value}px`);
    const isTouched = (one) => one.left < right && one.right > left && one.top < bottom && one.bottom > top;
    const inside = this.places.flatMap((one, place) => (isTouched(one) ? [place] : []));
    this.marks.set([...this.from.before, ...inside], inside.at(-1) ?? this.marks.cursor);
  }

  scroll(event) {
    if (event.clientY > innerHeight - EDGE_PX) scrollBy(0, SCROLL_PX);
    else if (event.clientY < EDGE_PX * 3) scrollBy(0, -SCROLL_PX);
  }

  end(event) {
    if (!this.from) return;
    const { target } = this.from;
    const wasBand = this.band !== null;
    this.drop();
    if (wasBand) return;
    const place = this.cells().indexOf(target);
    if (place >= 0) this.marks.click(place, { isRange: event.shiftKey, isToggle: event.ctrlKey || event.metaKey });
    else this.marks.none();
  }

  drop() {
    this.band?.remove();
    Object.assign(this, { from: null, band: null });
  }
}
