/**
 * The drawing of the map, on a canvas of our own. Plotly was tried first: under the page's strict policy its WebGL
 * cannot run (it needs eval), and its SVG takes ten seconds to lasso 20,000 points.
 */

import { h } from "./core.js";
import { inside, MapView, nearest } from "./mapview.js";

const MANY = 3000;
const REACH_PX = 12;
const CLICK_PX = 4;
const ZOOM_STEP = 1.25;
const DIM = 0.12;

/** A mark drawn once and stamped for each point: a circle for old classes, a triangle for new ones. */
function stamp(colour, isNew, radius, edge) {
  const scale = devicePixelRatio;
  const size = Math.ceil(radius * 2 + 3);
  const canvas = h("canvas", { width: size * scale, height: size * scale });
  const pen = canvas.getContext("2d");
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

/** A scatter plot. Calls: onHover(index), onChoose(indices, isAdding). */
export class MapPlot {
  constructor(box, calls) {
    Object.assign(this, { box, calls, view: new MapView(), tool: "lasso", drag: null, isWaiting: false });
    Object.assign(this, { points: null, places: null, colouring: null, chosen: new Set(), stamps: new Map() });
    this.canvas = h("canvas", { role: "img", "aria-label": "Map of the pictures" });
    this.overlay = h("canvas", { "aria-hidden": "true" });
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

  /** Show these points, in the colours of their groups; where some are chosen the others are dimmed. */
  draw(points, colouring, chosen) {
    if (points !== this.points) this.view.include(points);
    Object.assign(this, { points, colouring, chosen });
    this.redraw();
  }

  redraw() {
    if (this.isWaiting || !this.points) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.paint();
    });
  }

  paint() {
    const pen = this.canvas.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.view.width, this.view.height);
    this.places = this.view.place(this.points);
    if (this.chosen.size) {
      pen.globalAlpha = DIM;
      this.paintWhere(pen, (index) => !this.chosen.has(index));
    }
    pen.globalAlpha = this.points.row.length > MANY ? 0.8 : 0.9;
    this.paintWhere(pen, this.chosen.size ? (index) => this.chosen.has(index) : () => true);
  }

  /** Groups that stand first in the legend are painted last, on top. */
  paintWhere(pen, isShown) {
    const { groups, order } = this.colouring;
    for (const group of [...order].reverse().map((index) => groups[index])) {
      for (const index of group.indices) if (isShown(index)) this.paintPoint(pen, group, index);
    }
  }

  paintPoint(pen, group, index) {
    const { canvas, size } = this.stampOf(group, this.points.is_new[this.points.name[index]]);
    pen.drawImage(canvas, this.places.x[index] - size / 2, this.places.y[index] - size / 2, size, size);
  }

  stampOf(group, isNew) {
    const isMany = this.points.row.length > MANY;
    const radius = (isMany ? 2.4 : 3.8) + (group.isLarge ? 2 : 0);
    const key = `${group.colour} ${isNew} ${radius}`;
    if (!this.stamps.has(key)) {
      const edge = isMany ? "transparent" : getComputedStyle(this.box).getPropertyValue("--map-edge");
      this.stamps.set(key, stamp(group.colour, isNew, radius, edge));
    }
    return this.stamps.get(key);
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

  point(event) {
    const place = this.box.getBoundingClientRect();
    return { x: event.clientX - place.left, y: event.clientY - place.top };
  }

  begin(event) {
    if (event.button !== 0 || !this.places) return;
    this.box.setPointerCapture(event.pointerId);
    this.drag = { path: [this.point(event)], isAdding: event.shiftKey || event.ctrlKey || event.metaKey };
  }

  moveTo(event) {
    const at = this.point(event);
    if (!this.drag) this.hover(at);
    else if (this.tool === "pan") this.pan(at);
    else {
      this.drag.path.push(at);
      this.paintFrame();
    }
  }

  hover(at) {
    const index = this.places ? nearest(this.places, at, REACH_PX) : null;
    this.box.classList.toggle("is-on-point", index !== null);
    if (index !== null) this.calls.onHover(index);
  }

  pan(at) {
    const from = this.drag.path.at(-1);
    this.view.move(at.x - from.x, at.y - from.y);
    this.drag.path.push(at);
    this.redraw();
  }

  /** The frame as a polygon: the path itself, or the box between its ends. */
  frame() {
    const { path } = this.drag;
    const [from, to] = [path[0], path.at(-1)];
    return this.tool === "lasso" ? path : [from, { x: to.x, y: from.y }, to, { x: from.x, y: to.y }];
  }

  paintFrame() {
    const pen = this.overlay.getContext("2d");
    pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    pen.clearRect(0, 0, this.view.width, this.view.height);
    if (!this.drag) return;
    pen.beginPath();
    for (const corner of this.frame()) pen.lineTo(corner.x, corner.y);
    pen.closePath();
    pen.fillStyle = "rgb(80 115 230 / 12%)";
    pen.fill();
    pen.setLineDash([5, 4]);
    pen.lineWidth = 1.5;
    pen.strokeStyle = "#5073e6";
    pen.stroke();
  }

  end(event) {
    if (!this.drag) return;
    const { path, isAdding } = this.drag;
    const polygon = this.frame();
    const at = this.point(event);
    const isClick = path.every((one) => Math.hypot(one.x - path[0].x, one.y - path[0].y) <= CLICK_PX);
    this.drop();
    if (isClick) this.calls.onChoose([nearest(this.places, at, REACH_PX)].filter((index) => index !== null), isAdding);
    else if (this.tool !== "pan") this.calls.onChoose(inside(this.places, polygon), isAdding);
  }

  drop() {
    this.drag = null;
    this.paintFrame();
  }

  wheel(event) {
    event.preventDefault();
    this.view.zoom(event.deltaY < 0 ? ZOOM_STEP : 1 / ZOOM_STEP, this.point(event));
    this.redraw();
  }

  // ------------------------------------------------------------------------------------------------- commands

  /** "lasso", "select" (a box) or "pan". */
  setTool(tool) {
    this.tool = tool;
    this.box.dataset.tool = tool;
  }

  /** Larger (1) or smaller (-1), around the middle. */
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
