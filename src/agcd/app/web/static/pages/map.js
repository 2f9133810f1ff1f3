/** The map: every picture a point, near where it looks alike; lasso some and label them in the grid. */

import { spacer } from "../components/controls.js";
import { copyPathMeant } from "../components/copyPath.js";
import { actionButton, bindKeys } from "../components/keyBindings.js";
import { itemFace } from "../components/itemView.js";
import { MapPlot } from "../components/mapPlot.js";
import { trainingWord } from "../components/roundFigures.js";
import { startStatusBar } from "../components/statusBar.js";
import { byBadge, fileLine } from "../components/thumb.js";
import { toast } from "../components/toast.js";
import { choicesFromUrl, keepInUrl, withQuery } from "../lib/address.js";
import { latest } from "../lib/async.js";
import { ClassColours, colouringOf, COLOURINGS, isColouring } from "../lib/colouring.js";
import { byId, h, isAdding, replace, setText } from "../lib/dom.js";
import { IS_IMAGES } from "../lib/kind.js";
import { api } from "../lib/net.js";
import { onRoundDone, onState } from "../lib/polling.js";
import { count, plural, say, SURENESS_WORDS, unsureness } from "../lib/words.js";

const DEFAULTS = { colour: "class", round: "" };
const TOOLS = { lasso: "Lasso", select: "Box", pan: "Move" };
/** @typedef {import("../lib/colouring.js").ColouringName} ColouringName */
/** @typedef {import("../lib/colouring.js").Colouring} Colouring */
/** @typedef {import("../components/mapPlot.js").Tool} Tool */
/** @typedef {Api["MapPoints"]} MapPoints */
const MOST_ROWS = 20_000;
const LOOK_WAIT_MS = 150;
const HOW_TO = [say`Point at the map to see a picture; draw round some to choose them.`,
  "A click on a name below chooses all of it."].join(" ");
const NOT_YET = say`The map comes by itself, once every picture has been looked at.`;
const MARKS = "● known · ▲ found by you, or unnamed";

/**
 * Show which one of some buttons is on.
 * @param {HTMLElement[]} buttons
 * @param {string} name
 */
function press(buttons, name) {
  for (const button of buttons) button.setAttribute("aria-pressed", String(button.dataset.action === name));
}

class PictureMap {
  choices = choicesFromUrl(DEFAULTS);
  /** What is shown. @type {{ points: MapPoints, colouring: Colouring } | null} */
  shown = null;
  /** Indices of points. @type {Set<number>} */
  chosen = new Set();
  /** Rounds that were asked for. @type {Map<string, Promise<MapPoints>>} */
  asked = new Map();
  latest = latest();
  isThere = false;
  colours = new ClassColours();
  box = h("div", { class: "map-plot" });
  plot = new MapPlot(this.box, { onHover: (index) => this.look(index),
    onChoose: (indices, isMore) => this.choose(indices, isMore) });
  message = h("p", { class: "empty" }, "Loading the map…");
  title = h("span", { class: "muted" });
  slider = h("input", { type: "range", min: "0", step: "1", "aria-label": "Training", oninput: () => this.slide() });
  roundWord = h("span", { class: "numbers map-round-word" });
  rounds = h("label", { class: "tool-field", hidden: true }, this.roundWord, this.slider);
  file = h("div", { class: "map-look-file" });
  face = h("div", { class: "map-look-item" });
  /** The row that is looked at. @type {number | null} */
  looked = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
  picture = h("div", { class: "map-look is-cursor" }, h("p", { class: "map-look-none" }, HOW_TO));
  legend = h("ul", { class: "map-legend" });
  chosenWord = h("strong", { class: "numbers", role: "status" });

  /** @param {HTMLElement} main */
  constructor(main) {
    this.bind();
    this.colourButtons = Object.entries(COLOURINGS).map(([name, { word }]) => smallButton(name, word));
    this.toolButtons = Object.entries(TOOLS).map(([name, word]) => smallButton(name, word));
    this.chosenButtons = [actionButton("grid", { label: "Show in grid", class: "primary" }),
      actionButton("none", { label: "Clear" })];
    main.append(this.head(), h("div", { class: "map-area" },
      h("div", { class: "map-frame panel" }, this.box, this.message), this.side()));
    this.showTool("lasso");
    press(this.colourButtons, this.colour);
    const show = { label: "Show its map", run: () => this.showNewest() };
    onRoundDone(() => toast("The model has learned from your answers.", { action: show }));
    onState((state) => this.followState(state));
  }

  /**
   * Show the map as soon as there is one.
   * @param {Api["State"]} state
   */
  followState({ is_live: isLive, n_finished: nFinished }) {
    const wasThere = this.isThere;
    this.isThere = isLive || nFinished > 0;
    if (!this.isThere) this.say(NOT_YET);
    else if (!wasThere) this.showRound(this.choices.round);
  }

  /** @returns {ColouringName} */
  get colour() {
    return isColouring(this.choices.colour) ? this.choices.colour : "class";
  }

  bind() {
    const colour = (/** @type {ColouringName} */ name, /** @type {string} */ key) =>
      ({ label: `Colour by: ${COLOURINGS[name].word.toLowerCase()}`, key, run: () => this.colourBy(name) });
    const tool = (/** @type {Tool} */ name, /** @type {string} */ label, /** @type {string} */ key) =>
      ({ label, key, run: () => this.showTool(name) });
    const some = () => this.chosen.size > 0;
    bindKeys("map", {
      class: colour("class", "1"),
      origin: colour("origin", "2"),
      sureness: colour("sureness", "3"),
      disagreement: colour("disagreement", "4"),
      lasso: tool("lasso", "Choose with a lasso", "l"),
      select: tool("select", "Choose with a box", "b"),
      pan: tool("pan", "Move the map", "m"),
      larger: { label: "Larger", key: "+", run: () => this.plot.zoom(1), repeats: true },
      smaller: { label: "Smaller", key: "-", run: () => this.plot.zoom(-1), repeats: true },
      whole: { label: "Show the whole map", key: "0", run: () => this.plot.whole() },
      earlier: { label: "Training before", key: "ArrowLeft", run: () => this.turn(-1) },
      later: { label: "Next training", key: "ArrowRight", run: () => this.turn(1) },
      grid: { label: say`Show the chosen pictures in the grid`, key: "g", also: ["Enter"], when: some,
        run: () => this.showInGrid() },
      copy: { label: say`Copy the path of the picture`, key: "c", run: copyPathMeant },
      none: { label: "Choose none", key: "Escape", run: () => this.choose([]), when: some },
    });
  }

  head() {
    const field = (/** @type {string} */ word, /** @type {HTMLElement[]} */ buttons) =>
      h("span", { class: "tool-field" }, h("span", {}, word), h("span", { class: "segments" }, buttons));
    return h("header", { class: "page-head" },
      h("div", { class: "toolbar-row" }, h("h1", {}, "Map"), this.title, spacer(), this.rounds),
      h("div", { class: "toolbar-row" }, field("Colour by", this.colourButtons), spacer(),
        field("Pointer", this.toolButtons), smallButton("larger", "Closer"), smallButton("smaller", "Farther"),
        smallButton("whole", "Whole map")));
  }

  side() {
    const part = (/** @type {string} */ name, /** @type {HTMLElement[]} */ ...children) =>
      h("section", { class: `panel ${name}` }, children);
    return h("aside", { class: "map-side" },
      part("map-chosen", this.chosenWord, h("div", { class: "map-chosen-buttons" }, this.chosenButtons)),
      part("map-look-panel", this.picture),
      part("map-legend-panel", this.legend, h("p", { class: "hint map-marks" }, MARKS)));
  }

  // ------------------------------------------------------------------------------------------------ rounds

  /** @param {string} round */
  fetchRound(round) {
    const known = this.asked.get(round);
    if (known) return known;
    const found = api.get("/api/v1/map", { round }, { quiet: true });
    this.asked.set(round, found);
    found.catch(() => this.asked.delete(round));
    return found;
  }

  /** @param {string} round the newest where it is empty */
  async showRound(round) {
    this.choices.round = round;
    keepInUrl(this.choices, DEFAULTS);
    const points = await this.latest(this.fetchRound(round)).catch((error) => this.say(error.message));
    if (points) this.show(points);
  }

  slide() {
    const round = this.shown?.points.rounds[Number(this.slider.value)];
    if (round !== undefined) this.showRound(String(round));
  }

  showNewest() {
    this.asked.clear();
    this.showRound("");
  }

  /** @param {string} text */
  say(text) {
    setText(this.message, text);
    this.message.hidden = text === "";
  }

  /** @param {MapPoints} points */
  show(points) {
    const rows = new Set(this.chosenRows());
    this.chosen = new Set(points.row.flatMap((row, index) => (rows.has(row) ? [index] : [])));
    const n = points.row.length;
    const all = plural(points.n_rows, "picture");
    setText(this.title, points.n_rows > n ? `${count(n)} of ${all}, a fair sample` : all);
    this.rounds.hidden = points.rounds.length < 2;
    this.slider.max = String(points.rounds.length - 1);
    this.slider.value = String(points.rounds.indexOf(points.round));
    setText(this.roundWord, trainingWord(points.round));
    this.say("");
    this.redraw(points);
  }

  /** @param {number} step */
  turn(step) {
    if (!this.shown) return;
    const { rounds, round } = this.shown.points;
    // Keys may come faster than rounds are fetched: the step is from the round asked for last.
    const from = this.choices.round === "" ? round : Number(this.choices.round);
    const wanted = rounds[rounds.indexOf(from) + step];
    if (wanted !== undefined) this.showRound(String(wanted));
  }

  // ----------------------------------------------------------------------------------------------- colours

  /** @param {MapPoints} points */
  redraw(points) {
    this.shown = { points, colouring: colouringOf(this.colour, points, this.colours) };
    this.drawLegend(this.shown.colouring);
    this.showChosen();
  }

  /** @param {ColouringName} name */
  colourBy(name) {
    this.choices.colour = name;
    keepInUrl(this.choices, DEFAULTS);
    press(this.colourButtons, name);
    if (this.shown) this.redraw(this.shown.points);
  }

  /** @param {Tool} tool */
  showTool(tool) {
    press(this.toolButtons, tool);
    this.plot.setTool(tool);
  }

  /** @param {Colouring} colouring */
  drawLegend({ groups, order }) {
    const shown = order.map((index) => groups[index]).filter((group) => group.indices.length);
    replace(this.legend, shown.map((group) => h("li", {}, h("button", { type: "button", class: "legend-entry",
      title: `Choose all: ${group.name}`, onclick: (event) => this.choose(group.indices, isAdding(event)) },
      h("span", { class: group.isNew ? "legend-mark is-new" : "legend-mark", style: { "--mark": group.colour } }),
      h("span", { class: "legend-name", title: group.name }, group.name),
      h("span", { class: "muted numbers" }, count(group.indices.length))))));
  }

  // ------------------------------------------------------------------------------------- choosing and looking

  /**
   * Choose these points, or add them to those that are chosen.
   * @param {number[]} indices
   * @param {boolean} [isMore]
   */
  choose(indices, isMore = false) {
    this.chosen = new Set([...(isMore ? this.chosen : []), ...indices]);
    this.showChosen();
  }

  chosenRows() {
    const row = this.shown?.points.row ?? [];
    return [...this.chosen].map((index) => row[index]);
  }

  showChosen() {
    if (this.shown) this.plot.draw(this.shown.points, this.shown.colouring, this.chosen);
    setText(this.chosenWord, this.chosen.size ? `${count(this.chosen.size)} chosen` : "None chosen");
    for (const button of this.chosenButtons) button.disabled = this.chosen.size === 0;
  }

  /** @param {number} index */
  look(index) {
    if (!this.shown) return;
    const { points } = this.shown;
    const thumb = { row: points.row[index], v: points.v[index] };
    const name = points.names[points.name[index]];
    if (this.looked === thumb.row) return;
    this.looked = thumb.row;
    const alt = say`${name}, picture ${thumb.row}`;
    this.lookSoon(thumb.row, alt);
    delete this.picture.dataset.path;
    replace(this.face, IS_IMAGES ? itemFace(thumb, { size: 320, alt }) : null);
    replace(this.picture, this.face,
      h("div", { class: "map-look-words" }, h("strong", { title: name }, name), byBadge(points.by[index])), this.file,
      h("p", { class: "muted" }, `The model is ${SURENESS_WORDS[unsureness(points.margin[index])]}`,
        points.disagrees[index] ? " · people and model disagree" : null));
  }

  /**
   * Ask for the name of the file once the pointer rests, and for the words of what has some.
   * @param {number} row
   * @param {string} alt
   */
  lookSoon(row, alt) {
    clearTimeout(this.timer);
    replace(this.file);
    this.timer = setTimeout(async () => {
      const look = await api.get("/api/v1/rows/{row}", { row }, { quiet: true }).catch(() => null);
      if (!look || this.looked !== row) return;
      this.picture.dataset.path = look.thumb.path;
      replace(this.file, fileLine(look.thumb.path));
      if (!IS_IMAGES) replace(this.face, itemFace(look.thumb, { size: 320, alt }));
    }, LOOK_WAIT_MS);
  }

  async showInGrid() {
    const rows = this.chosenRows().slice(0, MOST_ROWS);
    const made = await api.post("/api/v1/selections", { rows }).catch(() => null);
    if (made) location.assign(withQuery("/grid", { selection: made.id }));
  }
}

/**
 * @param {string} name
 * @param {string} label
 */
function smallButton(name, label) {
  return actionButton(name, { label, class: "small" });
}

startStatusBar();
new PictureMap(byId("page"));
