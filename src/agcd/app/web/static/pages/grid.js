/** The grid: many pictures at once, to mark and label together. */

import { labels, sayDone, sendAnswers, signed, undoLast } from "../components/changes.js";
import { selectField, spacer } from "../components/controls.js";
import { copyPathMeant } from "../components/copyPath.js";
import { GridFilters, NO_FILTER, SEARCH } from "../components/gridFilters.js";
import { actionButton, bindKeys } from "../components/keyBindings.js";
import { nameDialog } from "../components/nameDialog.js";
import { Pager } from "../components/pager.js";
import { lookAt } from "../components/pictureDialog.js";
import { RubberBand } from "../components/rubberBand.js";
import { StableList } from "../components/stableList.js";
import { startStatusBar } from "../components/statusBar.js";
import { thumbElement } from "../components/thumb.js";
import { toast } from "../components/toast.js";
import { choicesFromUrl, keepInUrl } from "../lib/address.js";
import { latest } from "../lib/async.js";
import { byId, h, replace, setText } from "../lib/dom.js";
import { Marks } from "../lib/marks.js";
import { api } from "../lib/net.js";
import { onRoundDone } from "../lib/polling.js";
import { foundBy } from "../lib/texts.js";
import { count, plural, say } from "../lib/words.js";

/** @typedef {Api["Thumb"]} Thumb */

const HAS_SELECTION = new URLSearchParams(location.search).has("selection");
const DEFAULTS = { show: HAS_SELECTION ? "selection" : "all", order: "row", selection: "", page: "0",
  ...NO_FILTER };
/** @type {[string, string][]} */
const SHOWS = [["all", say`all pictures`], ["unlabelled", "without an answer"], ["labelled", "labelled by people"],
  ["accepted", "accepted by page"], ["disagree", "people and model disagree"], ["passed", "skipped or unsure"],
  ["junk", "junk"]];
/** @type {[string, string][]} */
const ORDERS = [["row", "as in the project"], ["uncertain", "least sure first"],
  ["confident", "most sure first"], ["class", "by class"]];
const MOST_QUEUED = 200;
const N_SHOWN = 8;
const HOW_TO = "Drag a frame, Shift-click a range, Ctrl-click single ones; a double click enlarges";

class PictureGrid {
  choices = choicesFromUrl(DEFAULTS);
  /** @type {Thumb[]} */
  thumbs = [];
  latest = latest();
  pager = new Pager((page) => this.turnTo(page));
  marks = new Marks(() => this.mark());
  filters = new GridFilters(this.choices, (choices) => this.choose(choices));
  title = h("h1", {}, "Grid");
  facts = h("span", { class: "muted" });
  chosen = h("strong", { class: "numbers grid-chosen", role: "status" });
  box = h("div", { class: "picture-grid", role: "listbox", "aria-multiselectable": "true",
    "aria-label": say`Pictures`, tabindex: "0", ondblclick: () => this.enlarge() });
  /** @type {StableList<Thumb, number>} */
  list = new StableList(this.box, (thumb) => thumb.row, (thumb) => this.cell(thumb));

  /** @param {HTMLElement} main */
  constructor(main) {
    new RubberBand(this.box, this.marks);
    this.bind();
    this.needMarks = [smallButton("label", "Label", "primary"), smallButton("junk", "Junk"),
      smallButton("skip", "Skip"), smallButton("ask", "Ask later"), smallButton("none", "None")];
    main.append(this.head(), this.box);
    const show = { label: "Show what it says", run: () => this.load() };
    onRoundDone(() => toast("The model has learned from your answers.", { action: show }));
  }

  // -------------------------------------------------------------------------------------------- head and keys

  head() {
    /** @type {[string, string][]} */
    const shows = HAS_SELECTION ? [["selection", "chosen on the map"], ...SHOWS] : SHOWS;
    return h("header", { class: "page-head grid-head" },
      h("div", { class: "toolbar-row" }, this.title, this.facts, spacer(),
        this.filters.search,
        selectField("Show", shows, this.choices.show, (show) => this.choose({ show })),
        selectField("Order", ORDERS, this.choices.order, (order) => this.choose({ order }))),
      this.filters.element,
      h("div", { class: "toolbar-row grid-tools" }, this.chosen, this.needMarks, smallButton("enlarge", "Look"),
        smallButton("all", "All on page"), smallButton("undo", "Undo"), spacer(),
        h("span", { class: "hint keys-only" }, HOW_TO), this.pager.element));
  }

  bind() {
    const move = (/** @type {string} */ label, /** @type {string} */ key, /** @type {() => number} */ step) =>
      ({ label, key, repeats: true,
        run: (/** @type {KeyboardEvent | MouseEvent} */ event) => this.move(step(), event.shiftKey) });
    const some = () => this.marks.marked.size > 0;
    bindKeys("grid", {
      left: move(say`Picture before`, "ArrowLeft", () => -1),
      right: move(say`Next picture`, "ArrowRight", () => 1),
      up: move(say`Picture above`, "ArrowUp", () => -this.list.columns()),
      down: move(say`Picture below`, "ArrowDown", () => this.list.columns()),
      toggle: { label: say`Mark or unmark the picture`, key: " ", run: () => this.marks.toggle() },
      all: { label: "Mark all on the page", key: "a", also: ["Ctrl+a"], run: () => this.marks.all() },
      none: { label: "Mark none", key: "Escape", run: () => this.marks.none() },
      label: { label: say`Label the marked pictures`, key: "l", run: () => this.label(), when: some },
      junk: { label: say`The marked pictures are junk`, key: "x", run: () => this.pass("junk"), when: some },
      skip: { label: say`Skip the marked pictures`, key: "s", run: () => this.pass("skip"), when: some },
      ask: { label: say`Ask about the marked pictures later`, key: "q", run: () => this.ask(), when: some },
      undo: { label: "Undo", key: "z", also: ["Ctrl+z"], run: () => undoLast(() => this.load()) },
      enlarge: { label: say`Look at the picture and name it`, key: "v", run: () => this.enlarge() },
      search: { label: SEARCH.label, key: "/", run: () => this.filters.search.focus() },
      copy: { label: say`Copy the path of the picture`, key: "c", run: copyPathMeant },
      before: { label: "Page before", key: "PageUp", run: () => this.pager.turn(-1) },
      after: { label: "Next page", key: "PageDown", run: () => this.pager.turn(1) },
    });
  }

  // -------------------------------------------------------------------------------------------- what is shown

  /** @param {Thumb} thumb */
  cell(thumb) {
    const element = thumbElement(thumb, { badges: "people", peek: false, class: "cell",
      marking: foundBy(this.choices.text) });
    element.setAttribute("role", "option");
    element.id = `cell-${thumb.row}`;
    return element;
  }

  /** Ask for the page again and draw what changed; the scroll and the cursor stay. */
  async load() {
    const asked = api.get("/api/v1/grid", this.choices);
    const grid = await this.latest(asked).catch((error) => this.showEmpty(error.message));
    if (!grid) return;
    if (grid.page > 0 && grid.page >= grid.n_pages) this.turnTo(Math.max(0, grid.n_pages - 1));
    else this.draw(grid);
  }

  /** @param {Api["Grid"]} grid */
  draw(grid) {
    this.thumbs = grid.thumbs;
    this.list.draw(grid.thumbs);
    setText(this.title, grid.title);
    this.title.title = grid.title;
    setText(this.facts, plural(grid.n, "picture"));
    this.pager.show(grid.page, grid.n_pages);
    if (!grid.thumbs.length) this.showEmpty(say`No picture is like that.`);
    this.marks.reset(grid.thumbs.length);
  }

  /**
   * Say why there is nothing to see; pictures that are there stay.
   * @param {string} text
   */
  showEmpty(text) {
    if (!this.thumbs.length) replace(this.box, h("p", { class: "empty" }, text));
    this.mark();
  }

  /** @param {Partial<typeof DEFAULTS>} choices */
  async choose(choices) {
    // What is searched for is marked: cells that stay are built anew when it changes.
    if ("text" in choices && choices.text !== this.choices.text) this.list.shown.clear();
    Object.assign(this.choices, { page: "0", ...choices });
    keepInUrl(this.choices, DEFAULTS);
    await this.load();
  }

  /** @param {number} page */
  async turnTo(page) {
    this.marks.cursor = 0;
    await this.choose({ page: String(page) });
    scrollTo({ top: 0 });
  }

  // -------------------------------------------------------------------------------------------------- marking

  mark() {
    const { marked, cursor } = this.marks;
    this.thumbs.forEach((thumb, place) => {
      const element = this.list.element(thumb.row);
      element?.setAttribute("aria-selected", String(marked.has(place)));
      element?.classList.toggle("is-cursor", place === cursor);
    });
    if (this.thumbs[cursor]) this.box.setAttribute("aria-activedescendant", `cell-${this.thumbs[cursor].row}`);
    setText(this.chosen, `${count(marked.size)} marked`);
    for (const button of this.needMarks) button.disabled = marked.size === 0;
  }

  /**
   * @param {number} step
   * @param {boolean} isRange
   */
  move(step, isRange) {
    this.marks.move(step, isRange);
    this.list.element(this.thumbs[this.marks.cursor]?.row)?.scrollIntoView({ block: "nearest" });
  }

  /** The marked pictures, in the order of the page. */
  marked() {
    return this.thumbs.filter((_, place) => this.marks.marked.has(place));
  }

  rows() {
    return this.marked().map((thumb) => thumb.row);
  }

  // -------------------------------------------------------------------------------------------------- answers

  /**
   * @param {Requests["Said"][]} answers
   * @param {string} sentence
   */
  async store(answers, sentence) {
    const told = await sendAnswers(answers).catch(() => null);
    if (!told) return;
    sayDone(sentence, () => this.load());
    await this.load();
  }

  async label() {
    const rows = this.rows();
    const pictures = plural(rows.length, "picture");
    const choice = await nameDialog({ title: `Label ${pictures}`, thumbs: this.marked().slice(0, N_SHOWN),
      text: rows.length > N_SHOWN ? `The first ${N_SHOWN} of them:` : "" });
    if (choice) await this.store(labels(rows, choice), `${pictures} labelled “${choice.name}”.`);
  }

  /** @param {"junk" | "skip"} kind */
  pass(kind) {
    const rows = this.rows();
    const words = kind === "junk" ? "marked as junk" : "skipped";
    return this.store(rows.map((row) => ({ row, kind })), `${plural(rows.length, "picture")} ${words}.`);
  }

  async ask() {
    const rows = this.rows();
    if (rows.length > MOST_QUEUED) {
      toast(say`At most ${MOST_QUEUED} pictures can be asked about at once.`, { isError: true });
      return;
    }
    const queued = await api.post("/api/v1/queue", signed({ rows })).catch(() => null);
    if (!queued) return;
    const spared = rows.length - queued.n_added;
    const rest = spared ? `; ${count(spared)} needed no question` : "";
    toast(`${plural(queued.n_added, "picture")} will be asked about on the Label page${rest}.`);
    this.marks.none();
  }

  async enlarge() {
    if (this.thumbs.length && (await lookAt(this.thumbs, this.marks.cursor, foundBy(this.choices.text)))) {
      await this.load();
    }
  }
}

/**
 * @param {string} name
 * @param {string} label
 * @param {string} [more]
 */
function smallButton(name, label, more = "") {
  return actionButton(name, { label, class: `small ${more}`.trim() });
}

startStatusBar();
const grid = new PictureGrid(byId("page"));
grid.load();
grid.filters.load();
