/** The map: every picture a point, near where it looks alike; lasso some and label them in the grid. */

import { api, byBadge, count, h, imageUrl, percent, plural, replace, setText, toast } from "./core.js";
import { COLOURINGS, colouringOf } from "./colouring.js";
import { actionButton, bindKeys } from "./keys.js";
import { MapPlot } from "./mapplot.js";
import { choicesFromUrl, keepInUrl, latest, onRoundDone, withQuery } from "./parts.js";

const DEFAULTS = { colour: "class", round: "" };
const TOOLS = { lasso: "Lasso", select: "Box", pan: "Move" };
const MOST_ROWS = 20_000;
const HOW_TO = "Point at the map to see a picture; draw round some to choose them. "
  + "A click on a name below chooses all of it.";
const MARKS = "● old classes · ▲ new classes and groups";

/** Show which one of some buttons is on. */
function press(buttons, name) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.action === name));
}

class PictureMap {
  constructor(main) {
    this.choices = choicesFromUrl(DEFAULTS);
    if (!Object.hasOwn(COLOURINGS, this.choices.colour)) this.choices.colour = DEFAULTS.colour;
    Object.assign(this, { points: null, colouring: null, chosen: new Set(), asked: new Map(), latest: latest() });
    this.box = h("div", { class: "map-plot" });
    this.plot = new MapPlot(this.box, { onHover: (index) => this.look(index),
      onChoose: (indices, isAdding) => this.choose(indices, isAdding) });
    this.bind();
    this.message = h("p", { class: "empty" }, "Loading the map…");
    main.append(this.head(), h("div", { class: "map-area" },
      h("div", { class: "map-frame panel" }, this.box, this.message), this.side()));
    this.showTool("lasso");
    this.showColour();
    const show = { label: "Show its map", run: () => this.showNewest() };
    onRoundDone(() => toast("A round is done.", { action: show }));
  }

  bind() {
    const colour = (name, key) =>
      ({ label: `Colour by: ${COLOURINGS[name].word.toLowerCase()}`, key, run: () => this.colourBy(name) });
    const tool = (name, label, key) => ({ label, key, run: () => this.showTool(name) });
    const some = () => this.chosen.size > 0;
    bindKeys("map", {
      class: colour("class", "1"),
      age: colour("age", "2"),
      uncertainty: colour("uncertainty", "3"),
      disagreement: colour("disagreement", "4"),
      lasso: tool("lasso", "Choose with a lasso", "l"),
      select: tool("select", "Choose with a box", "b"),
      pan: tool("pan", "Move the map", "m"),
      larger: { label: "Larger", key: "+", run: () => this.plot.zoom(1), repeats: true },
      smaller: { label: "Smaller", key: "-", run: () => this.plot.zoom(-1), repeats: true },
      whole: { label: "Show the whole map", key: "0", run: () => this.plot.whole() },
      earlier: { label: "Round before", key: "ArrowLeft", run: () => this.turn(-1) },
      later: { label: "Next round", key: "ArrowRight", run: () => this.turn(1) },
      grid: { label: "Show the chosen pictures in the grid", key: "g", also: ["Enter"], when: some,
        run: () => this.showInGrid() },
      none: { label: "Choose none", key: "Escape", run: () => this.choose([]), when: some },
    });
  }

  head() {
    this.title = h("span", { class: "muted" });
    const button = (name, label) => actionButton(name, { label, class: "small" });
    const field = (word, ...children) => h("span", { class: "tool-field" }, h("span", {}, word), children);
    const segments = (buttons) => h("span", { class: "segments" }, buttons);
    const spacer = () => h("span", { class: "spacer" });
    this.colourButtons = Object.entries(COLOURINGS).map(([name, { word }]) => button(name, word));
    this.toolButtons = Object.entries(TOOLS).map(([name, word]) => button(name, word));
    return h("header", { class: "page-head" },
      h("div", { class: "toolbar-row" }, h("h1", {}, "Map"), this.title, spacer(), this.roundSlider()),
      h("div", { class: "toolbar-row" }, field("Colour by", segments(this.colourButtons)), spacer(),
        field("Mouse", segments(this.toolButtons)), button("whole", "Whole map")));
  }

  roundSlider() {
    const slide = () => this.showRound(this.points.rounds[Number(this.slider.value)]);
    this.slider = h("input", { type: "range", min: "0", step: "1", "aria-label": "Round", oninput: slide });
    this.roundWord = h("span", { class: "numbers map-round-word" });
    this.rounds = h("label", { class: "tool-field", hidden: true }, this.roundWord, this.slider);
    return this.rounds;
  }

  side() {
    this.picture = h("div", { class: "map-look" }, h("p", { class: "map-look-none" }, HOW_TO));
    this.legend = h("ul", { class: "map-legend" });
    this.chosenWord = h("strong", { class: "numbers", role: "status" });
    this.chosenButtons = [actionButton("grid", { label: "Show in grid", class: "primary" }),
      actionButton("none", { label: "Clear" })];
    const part = (name, ...children) => h("section", { class: `panel ${name}` }, children);
    return h("aside", { class: "map-side" },
      part("map-chosen", this.chosenWord, h("div", { class: "map-chosen-buttons" }, this.chosenButtons)),
      part("map-look-panel", this.picture),
      part("map-legend-panel", this.legend, h("p", { class: "hint map-marks" }, MARKS)));
  }

  // ------------------------------------------------------------------------------------------------ rounds

  fetchRound(round) {
    const path = withQuery("/api/map", { round });
    if (!this.asked.has(path)) {
      this.asked.set(path, api.get(path, { quiet: true }));
      this.asked.get(path).catch(() => this.asked.delete(path));
    }
    return this.asked.get(path);
  }

  async showRound(round) {
    this.choices.round = String(round);
    keepInUrl(this.choices, DEFAULTS);
    const points = await this.latest(this.fetchRound(round)).catch((error) => this.say(error.message));
    if (points) this.show(points);
  }

  showNewest() {
    this.asked.clear();
    this.showRound("");
  }

  say(text) {
    setText(this.message, text);
    this.message.hidden = text === "";
  }

  show(points) {
    const rows = new Set([...this.chosen].map((index) => this.points.row[index]));
    this.points = points;
    this.chosen = new Set(points.row.flatMap((row, index) => (rows.has(row) ? [index] : [])));
    const n = points.row.length;
    const all = plural(points.n_rows, "picture");
    setText(this.title, points.n_rows > n ? `${count(n)} of ${all}, a fair sample` : all);
    this.rounds.hidden = points.rounds.length < 2;
    this.slider.max = String(points.rounds.length - 1);
    this.slider.value = String(points.rounds.indexOf(points.round));
    setText(this.roundWord, points.round === 0 ? "Base training" : `Round ${points.round}`);
    this.say("");
    this.redraw();
  }

  turn(step) {
    if (!this.points) return;
    const { rounds, round } = this.points;
    // Keys may come faster than rounds are fetched: the step is from the round asked for last.
    const from = this.choices.round === "" ? round : Number(this.choices.round);
    const wanted = rounds[rounds.indexOf(from) + step];
    if (wanted !== undefined) this.showRound(wanted);
  }

  // ----------------------------------------------------------------------------------------------- colours

  redraw() {
    this.colouring = colouringOf(this.choices.colour, this.points);
    this.drawLegend();
    this.showChosen();
    this.plot.draw(this.points, this.colouring, this.chosen);
  }

  colourBy(name) {
    this.choices.colour = name;
    keepInUrl(this.choices, DEFAULTS);
    this.showColour();
    if (this.points) this.redraw();
  }

  showColour() {
    press(this.colourButtons, this.choices.colour);
  }

  showTool(tool) {
    press(this.toolButtons, tool);
    this.plot.setTool(tool);
  }

  drawLegend() {
    const { groups, order } = this.colouring;
    const mark = (group) => h("span", { class: group.isNew ? "legend-mark is-new" : "legend-mark",
      style: { "--mark": group.colour } });
    const entry = (group) => h("li", {}, h("button", { type: "button", class: "legend-entry",
      title: `Choose all: ${group.name}`, onclick: (event) => this.choose(group.indices, isAdding(event)) },
      mark(group), h("span", { class: "legend-name" }, group.name),
      h("span", { class: "muted numbers" }, count(group.indices.length))));
    const isAdding = (event) => event.ctrlKey || event.metaKey || event.shiftKey;
    const shown = order.map((index) => groups[index]).filter((group) => group.indices.length);
    replace(this.legend, shown.map(entry));
  }

  // ------------------------------------------------------------------------------------- choosing and looking

  /** Choose these points, or add them to those that are chosen. */
  choose(indices, isAdding = false) {
    this.chosen = new Set([...(isAdding ? this.chosen : []), ...indices]);
    this.showChosen();
    this.plot.draw(this.points, this.colouring, this.chosen);
  }

  showChosen() {
    setText(this.chosenWord, this.chosen.size ? `${count(this.chosen.size)} chosen` : "None chosen");
    for (const button of this.chosenButtons) button.disabled = this.chosen.size === 0;
  }

  look(index) {
    const { points } = this;
    const thumb = { row: points.row[index], v: points.v[index] };
    const name = points.names[points.name[index]];
    replace(this.picture, h("img", { src: imageUrl(thumb, 320), alt: `${name}, picture ${thumb.row}` }),
      h("div", { class: "map-look-words" }, h("strong", {}, name), byBadge(points.by[index])),
      h("p", { class: "muted" }, `margin ${percent(points.margin[index])}`,
        points.disagrees[index] ? " · people and model disagree" : null));
  }

  async showInGrid() {
    const rows = [...this.chosen].map((index) => this.points.row[index]).slice(0, MOST_ROWS);
    const made = await api.post("/api/selections", { rows }).catch(() => null);
    if (made) location.assign(withQuery("/grid", { selection: made.id }));
  }
}

const map = new PictureMap(document.querySelector("main"));
map.showRound(map.choices.round);
