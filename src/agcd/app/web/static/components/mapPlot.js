/**
 * The drawing of the map, on a canvas of our own. Plotly was tried first: under the page's strict policy its WebGL
 * cannot run (it needs eval), and its SVG takes ten seconds to lasso 20,000 points.
 */

import { h, isAdding, pointIn } from "../lib/dom.js";
import { middlesOf, pushedInside, withoutOverlap } from "../lib/mapNames.js";
import { inside, MapView, nearest } from "../lib/mapView.js";
import { say } from "../lib/words.js";
import { MapPictures } from "./mapPictures.js";

/** @typedef {Api["MapPoints"]} MapPoints */
/** @typedef {import("../lib/colouring.js").Colouring} Colouring */
/** @typedef {import("../lib/colouring.js").ColourGroup} ColourGroup */
/** @typedef {"lasso" | "select" | "pan"} Tool */
/** @typedef {{ canvas: HTMLCanvasElement, size: number }} Stamp */
/** @typedef {{ path: Point[], isAdding: boolean }} Drag */

const MANY = 3000;
const REACH_PX = 12;
const CLICK_PX = 4;
const ZOOM_STEP = 1.25;
const DIM = 0.12;
const NAME_FONT = "600 12px system-ui, sans-serif";
const NAME_HEIGHT = 18;
const LONGEST_NAME = 26;

/** @param {HTMLCanvasElement} canvas */
function penOf(canvas) {
  return /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
}

/**
 * A mark drawn once and stamped for each point: a circle for known classes, a triangle for all others.
 * @param {string} colour
 * @param {boolean} isNew
 * @param {number} radius
 * @param {string} edge
 * @returns {Stamp}
 */
function stamp(colour, isNew, radius, edge) {
  const scale = devicePixelRatio;
  const size = Math.ceil(radius * 2 + 3);
  const canvas = h("canvas", { width: size * scale, height: size * scale });
  const pen = penOf(canvas);
  pen.scale(scale, scale);
  pen.translate(size / 2, size / 2);
  pen.beginPath();
  if (isNew) [[0, -1.15], [1.05, 0.75], [-1.05, 0.75]].forEach(([x, y]) => pen.lineTo(x * radius, y * radius));
  else pen.arc(0, 0, radius, 0, 2 * Math.PI);
  pen.closePath();
  pen.fillStyle = colour;
  pen.fill();
  pen.strokeStyle = edge;
  pen.lineWidth = 0.8;
  pen.stroke();
  return { canvas, size };
}

/**
 * A name on the map; the legend has it in full.
 * @param {string} name
 */
function shortened(name) {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME - 1)}…` : name;
}

/** A scatter plot. */
export class MapPlot {
  view = new MapView();
  /** @type {Tool} */
  tool = "lasso";
  /** @type {Drag | null} */
  drag = null;
  isWaiting = false;
  /** What is shown. @type {{ points: MapPoints, colouring: Colouring, chosen: Set<number> } | null} */
  shown = null;
  /** Where the points were painted last. @type {Places | null} */
  places = null;
  /** @type {Map<string, Stamp>} */
  stamps = new Map();
  canvas = h("canvas", { role: "img", "aria-label": say`Map of the pictures` });
  overlay = h("canvas", { "aria-hidden": "true" });
  pictures = new MapPictures(() => this.redraw());

  /**
   * @param {HTMLElement} box
   * @param {{ onHover: (index: number) => void, onChoose: (indices: number[], isAdding: boolean) => void }} calls
   */
  constructor(box, calls) {
    this.box = box;
    this.calls = calls;
    box.append(this.canvas, this.overlay);
    new ResizeObserver(() => this.resize()).observe(box);
    box.addEventListener("pointerdown", (event) => this.begin(event));
    box.addEventListener("pointermove", (event) => this.moveTo(event));
    box.addEventListener("pointerup", (event) => this.end(event));
    box.addEventListener("pointercancel", () => this.drop());
    box.addEventListener("dblclick", () => this.whole());
    box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  // ------------------------------------------------------------------------------------------------ drawing

  /**
   * Show these points, in the colours of their groups; where some are chosen the others are dimmed.
   * @param {MapPoints} points
   * @param {Colouring} colouring
   * @param {Set<number>} chosen
   */
  draw(points, colouring, chosen) {
    if (points !== this.shown?.points) this.view.include(points);
    this.shown = { points, colouring, chosen };
    this.redraw();
  }

  redraw() {
    if (this.isWaiting || !this.shown) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.paint();
    });
  }

  paint() {
    if (!this.shown) return;
    const { points, chosen } = this.shown;
    const pen = penOf(this.canvas);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.view.width, this.view.height);
    this.places = this.view.place(points);
    // Below the points: the mark on a picture says which class it is.
    pen.globalAlpha = 1;
    this.pictures.paint(pen, points, this.places, this.view);
    if (chosen.size) {
      pen.globalAlpha = DIM;
      this.paintWhere(pen, this.places, (index) => !chosen.has(index));
    }
    pen.globalAlpha = points.row.length > MANY ? 0.8 : 0.9;
    this.paintWhere(pen, this.places, chosen.size ? (index) => chosen.has(index) : () => true);
    pen.globalAlpha = 1;
    this.paintNames(pen, this.places);
  }

  /**
   * The names of the groups near the middle of what is seen of each, the largest first.
   * @param {CanvasRenderingContext2D} pen
   * @param {Places} places
   */
  paintNames(pen, places) {
    if (!this.shown) return;
    const { points } = this.shown;
    const { width, height } = this.view;
    const isSeen = (/** @type {number} */ x, /** @type {number} */ y) => x >= 0 && x <= width && y >= 0 && y <= height;
    const middles = middlesOf(points.name, points.names.length, places, isSeen);
    const sizes = points.names.map(() => 0);
    for (const name of points.name) sizes[name] += 1;
    pen.font = NAME_FONT;
    const wanted = middles
      .flatMap((at, index) => (at ? [{ at, text: shortened(points.names[index]), n: sizes[index] }] : []))
      .sort((one, other) => other.n - one.n)
      .map(({ at, text }) => ({ text,
        ...pushedInside({ at, width: pen.measureText(text).width + 12, height: NAME_HEIGHT }, this.view) }));
    for (const index of withoutOverlap(wanted, this.view)) this.paintName(pen, wanted[index]);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {{ at: Point, text: string, width: number, height: number }} name
   */
  paintName(pen, { at, text, width, height }) {
    const style = getComputedStyle(this.box);
    pen.fillStyle = style.getPropertyValue("--map-name");
    pen.beginPath();
    pen.roundRect(at.x - width / 2, at.y - height / 2, width, height, 5);
    pen.fill();
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillText(text, at.x, at.y + 0.5);
  }

  /**
   * Groups that stand first in the legend are painted last, on top.
   * @param {CanvasRenderingContext2D} pen
   * @param {Places} places
   * @param {(index: number) => boolean} isShown
   */
  paintWhere(pen, places, isShown) {
    if (!this.shown) return;
    const { points, colouring: { groups, order } } = this.shown;
    for (const group of [...order].reverse().map((index) => groups[index])) {
      for (const index of group.indices.filter(isShown)) {
        const { canvas, size } = this.stampOf(group, points.is_new[points.name[index]], points.row.length > MANY);
        pen.drawImage(canvas, places.x[index] - size / 2, places.y[index] - size / 2, size, size);
      }
    }
  }

  /**
   * @param {ColourGroup} group
   * @param {boolean} isNew
   * @param {boolean} isMany
   */
  stampOf(group, isNew, isMany) {
    const radius = (isMany ? 2.4 : 3.8) + (group.isLarge ? 2 : 0);
    const key = `${group.colour} ${isNew} ${radius}`;
    const known = this.stamps.get(key);
    if (known) return known;
    const edge = isMany ? "transparent" : getComputedStyle(this.box).getPropertyValue("--map-edge");
    const made = stamp(group.colour, isNew, radius, edge);
    this.stamps.set(key, made);
    return made;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.box;
    if (!width || !height) return;
    Object.assign(this.view, { width, height });
    const size = { width: width * devicePixelRatio, height: height * devicePixelRatio };
    for (const canvas of [this.canvas, this.overlay]) Object.assign(canvas, size);
    this.redraw();
  }

  // ---------------------------------------------------------------------------------------------- the pointer

  /** @param {PointerEvent} event */
  begin(event) {
    if (event.button !== 0 || !this.places) return;
    this.box.setPointerCapture(event.pointerId);
    this.drag = { path: [pointIn(this.box, event)], isAdding: isAdding(event) };
  }

  /** @param {PointerEvent} event */
  moveTo(event) {
    const at = pointIn(this.box, event);
    if (!this.drag) this.hover(at);
    else if (this.tool === "pan") this.pan(this.drag, at);
    else {
      this.drag.path.push(at);
      this.paintFrame();
    }
  }

  /** @param {Point} at */
  hover(at) {
    const index = this.places ? nearest(this.places, at, REACH_PX) : null;
    this.box.classList.toggle("is-on-point", index !== null);
    if (index !== null) this.calls.onHover(index);
  }

  /**
   * @param {Drag} drag
   * @param {Point} at
   */
  pan({ path }, at) {
    const from = path[path.length - 1];
    this.view.move(at.x - from.x, at.y - from.y);
    path.push(at);
    this.redraw();
  }

  /**
   * The frame as a polygon: the path itself, or the box between its ends.
   * @param {Drag} drag
   */
  frame({ path }) {
    const [from, to] = [path[0], path[path.length - 1]];
    return this.tool === "lasso" ? path : [from, { x: to.x, y: from.y }, to, { x: from.x, y: to.y }];
  }

  paintFrame() {
    const pen = penOf(this.overlay);
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.view.width, this.view.height);
    if (!this.drag) return;
    pen.beginPath();
    for (const corner of this.frame(this.drag)) pen.lineTo(corner.x, corner.y);
    pen.closePath();
    pen.fillStyle = "rgb(80 115 230 / 12%)";
    pen.fill();
    pen.setLineDash([5, 4]);
    pen.lineWidth = 1.5;
    pen.strokeStyle = "#5073e6";
    pen.stroke();
  }

  /** @param {PointerEvent} event */
  end(event) {
    const { drag, places } = this;
    if (!drag || !places) return;
    this.drop();
    const [start] = drag.path;
    const isClick = drag.path.every((one) => Math.hypot(one.x - start.x, one.y - start.y) <= CLICK_PX);
    const clicked = nearest(places, pointIn(this.box, event), REACH_PX);
    if (isClick) this.calls.onChoose(clicked === null ? [] : [clicked], drag.isAdding);
    else if (this.tool !== "pan") this.calls.onChoose(inside(places, this.frame(drag)), drag.isAdding);
  }

  drop() {
    this.drag = null;
    this.paintFrame();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    event.preventDefault();
    this.view.zoom(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP, pointIn(this.box, event));
    this.redraw();
  }

  // ------------------------------------------------------------------------------------------------- commands

  /**
   * "select" draws a box.
   * @param {Tool} tool
   */
  setTool(tool) {
    this.tool = tool;
    this.box.dataset.tool = tool;
  }

  /**
   * Larger (1) or smaller (-1), around the middle.
   * @param {1 | -1} direction
   */
  zoom(direction) {
    this.view.zoom(ZOOM_STEP ** direction, { x: this.view.width / 2, y: this.view.height / 2 });
    this.redraw();
  }

  /** Show the whole map again. */
  whole() {
    this.view.showWhole();
    this.redraw();
  }
}
