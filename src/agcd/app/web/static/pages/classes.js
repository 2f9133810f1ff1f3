/** The class board: one card per class or unnamed group, and everything that can be done to it. */

import { AlikeStrip } from "../components/alikeStrip.js";
import { boardCard, boardLine, isPossible, shownOf } from "../components/boardCard.js";
import { sayDone, signed, undoLast } from "../components/changes.js";
import { mergeCards, mergeWith, nameOrRename, splitInTwo } from "../components/classDialogs.js";
import { selectField, spacer } from "../components/controls.js";
import { copyPathMeant } from "../components/copyPath.js";
import { confirmDialog } from "../components/dialogs.js";
import { growByPages } from "../components/growDialog.js";
import { actionButton, bindKeys, keyHint } from "../components/keyBindings.js";
import { Pager } from "../components/pager.js";
import { lookAt } from "../components/pictureDialog.js";
import { StableList } from "../components/stableList.js";
import { startStatusBar } from "../components/statusBar.js";
import { toast } from "../components/toast.js";
import { choicesFromUrl, keepInUrl, withQuery } from "../lib/address.js";
import { latest } from "../lib/async.js";
import { byId, h, replace, setText, targetOf } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { onRoundDone } from "../lib/polling.js";
import { keptByTab } from "../lib/storage.js";
import { plural, say, wordFor } from "../lib/words.js";

const DEFAULTS = { sort: "size", text: "", page: "0" };
/** @type {[string, string][]} */
const SORTS = [["size", "largest first"], ["name", "by name"], ["agreement", "least agreement first"],
  ["conflicts", "conflicts first"], ["new", "found by you first"]];
const HINTS = { rename: "name", grow: "grow", merge: "merge", split: "split", look: "look at border cases",
  ask: "ask about them", retire: "retire", show: "show all", undo: "undo", sheet: "all keys" };
const SEARCH_WAIT_MS = 200;
const N_TO_ASK = 5;

/** @typedef {Api["BoardCard"]} BoardCard */

/** What the tab was last shown as, or "auto": lines where there are many. */
function keptView() {
  const view = keptByTab.get("board-view");
  return view === "cards" || view === "lines" ? view : "auto";
}

/** @param {BoardCard} card */
async function askBorder(card) {
  const { n_added: n } = await api.post("/api/v1/queue", signed({ key: card.key, n: N_TO_ASK }));
  if (n === 0) toast(`All border cases of “${card.name}” are asked about already.`);
  else toast(`${plural(n, "border case")} of “${card.name}” ${wordFor(n, "waits", "wait")} on the Label page.`);
  return null;
}

/** @param {BoardCard} card */
async function retire(card) {
  if (!card.class_id) return null;
  const labels = plural(card.n_labels, "label");
  const isSure = await confirmDialog({ title: `Retire “${card.name}”?`, yes: "Retire",
    text: `It takes no more labels. What was labelled with it (${labels}) stays in the records.` });
  return isSure ? (await api.post("/api/v1/classes/retire", signed({ class_id: card.class_id }))).what : null;
}

/** @param {BoardCard} card */
async function showInGrid(card) {
  location.assign(withQuery("/grid", { key: card.key }));
  return null;
}

/**
 * Each takes a card and resolves to a sentence about what was done and can be undone, or to null.
 * @type {Record<string, (card: BoardCard) => Promise<string | null>>}
 */
const TOOLS = { rename: nameOrRename, grow: growByPages, merge: mergeWith, split: splitInTwo, ask: askBorder, retire,
  show: showInGrid };

class ClassBoard {
  choices = choicesFromUrl(DEFAULTS);
  /** @type {BoardCard[]} */
  cards = [];
  // Where the marked card leaves the page, the one in its place takes over, until it comes back (as after an undo).
  wanted = { key: "", index: 0 };
  latest = latest();
  pager = new Pager((page) => this.turnTo(page));
  box = h("div", { class: "class-cards" });
  /** @type {Api["Board"]["view"]} */
  view = "cards";
  calls = { run: (/** @type {string} */ name) => this.run(name),
    look: (/** @type {Api["Thumb"][]} */ thumbs, /** @type {number} */ index) => this.look(thumbs, index) };
  /** @type {StableList<BoardCard, string>} */
  list = new StableList(this.box, (card) => card.key,
    (card) => (this.view === "lines" ? boardLine : boardCard)(card, this.calls));
  alike = new AlikeStrip((pair) => this.finish(mergeCards(pair.one, pair.into)));
  facts = h("span", { class: "muted" });
  search = this.searchField();

  /** @param {HTMLElement} main */
  constructor(main) {
    // Whatever is pressed inside a card marks it first, so that buttons and keys mean the same card.
    for (const name of ["pointerdown", "focusin"]) {
      this.box.addEventListener(name, (event) => this.markFrom(targetOf(event)));
    }
    this.bind();
    main.append(this.head(), this.alike.element, this.box);
    // The groups of the old round are gone.
    onRoundDone(() => this.load());
  }

  // -------------------------------------------------------------------------------------------- head and keys

  searchField() {
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const show = () => this.choose({ text: this.search.value.trim() });
    const type = () => {
      clearTimeout(timer);
      timer = setTimeout(show, SEARCH_WAIT_MS);
    };
    // Enter may come before the cards have caught up with what was typed.
    const take = async () => {
      clearTimeout(timer);
      await show();
      this.focusCard(this.cards[0]);
    };
    return h("input", { class: "input", type: "search", value: this.choices.text, placeholder: "Search a class…",
      "aria-label": "Search a class", oninput: type, onkeydown: (event) => event.key === "Enter" && take() });
  }

  head() {
    const hints = Object.entries(HINTS).map(([name, word]) =>
      h("span", { class: "hint-pair" }, keyHint(name), ` ${word}`));
    return h("header", { class: "page-head board-head" },
      h("div", { class: "toolbar-row" }, h("h1", {}, "Classes"), this.facts, spacer(),
        this.search, selectField("Sort", SORTS, this.choices.sort, (sort) => this.choose({ sort })), this.pager.element,
        actionButton("view", { class: "small", label: "Cards or lines" }),
        actionButton("undo", { class: "small", label: "Undo" })),
      h("p", { class: "hint board-hint" }, h("span", {}, "On the marked card:"), hints));
  }

  bind() {
    const tool = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ key) =>
      ({ label, key, run: () => this.run(name), when: () => this.current() !== null });
    const move = (/** @type {string} */ label, /** @type {string} */ key, /** @type {() => number} */ step) =>
      ({ label, key, run: () => this.move(step()), repeats: true });
    bindKeys("classes", {
      left: move("Card before", "ArrowLeft", () => -1),
      right: move("Next card", "ArrowRight", () => 1),
      up: move("Card above", "ArrowUp", () => -this.list.columns()),
      down: move("Card below", "ArrowDown", () => this.list.columns()),
      rename: tool("rename", "Name or rename", "e"),
      grow: tool("grow", "Grow by pages", "w"),
      merge: tool("merge", "Merge with another", "m"),
      split: tool("split", "Split in two", "p"),
      look: tool("look", say`Look at the pictures at its border`, "v"),
      ask: tool("ask", "Ask about its border cases", "q"),
      retire: tool("retire", "Retire", "r"),
      show: tool("show", say`Show all its pictures in the grid`, "g"),
      undo: { label: "Undo", key: "z", also: ["Ctrl+z"], run: () => undoLast(() => this.load()) },
      view: { label: "Cards or lines", key: "t", run: () => this.turnView() },
      copy: { label: say`Copy the path of the picture pointed at`, key: "c", run: copyPathMeant },
      search: { label: "Search a class", key: "/", run: () => this.search.focus() },
      before: { label: "Page before", key: "PageUp", run: () => this.pager.turn(-1) },
      after: { label: "Next page", key: "PageDown", run: () => this.pager.turn(1) },
    });
  }

  // -------------------------------------------------------------------------------------------- what is shown

  /** Ask for the board again and draw what changed; scroll and focus stay. */
  async load() {
    const asked = api.get("/api/v1/board", { ...this.choices, view: keptView() });
    this.alike.load();
    const board = await this.latest(asked).catch((error) => this.showEmpty(error.message));
    if (!board) return;
    if (board.page > 0 && board.page >= board.n_pages) this.turnTo(Math.max(0, board.n_pages - 1));
    else this.draw(board);
  }

  /** @param {Api["Board"]} board */
  draw(board) {
    const hadFocus = this.box.contains(document.activeElement);
    this.cards = board.cards;
    if (board.view !== this.view) this.list.shown.clear();
    this.view = board.view;
    this.box.className = board.view === "lines" ? "class-lines" : "class-cards";
    this.list.draw(board.cards);
    setText(this.facts, plural(board.n_cards, "class or group", "classes and groups"));
    this.pager.show(board.page, board.n_pages);
    if (!board.cards.length) this.showEmpty(this.noneText());
    this.mark();
    const lostFocus = hadFocus && !this.box.contains(document.activeElement);
    if (lostFocus) this.list.element(this.current()?.key)?.focus({ preventScroll: true });
  }

  noneText() {
    if (this.choices.text) return `No class or group is called “${this.choices.text}”.`;
    return say`There is no class yet. Label some pictures first.`;
  }

  /**
   * Say why there is nothing to see; cards that are there stay.
   * @param {string} text
   */
  showEmpty(text) {
    if (!this.cards.length) replace(this.box, h("p", { class: "empty" }, text));
  }

  /** @param {Partial<typeof DEFAULTS>} choices */
  async choose(choices) {
    Object.assign(this.choices, { page: "0", ...choices });
    keepInUrl(this.choices, DEFAULTS);
    await this.load();
  }

  async turnView() {
    keptByTab.set("board-view", this.view === "lines" ? "cards" : "lines");
    await this.choose({});
  }

  /** @param {number} page */
  async turnTo(page) {
    await this.choose({ page: String(page) });
    scrollTo({ top: 0 });
    this.focusCard(this.cards[0]);
  }

  // ------------------------------------------------------------------------------------------ the marked card

  current() {
    const { key, index } = this.wanted;
    return this.cards.find((card) => card.key === key) ?? this.cards[Math.min(index, this.cards.length - 1)] ?? null;
  }

  /** @param {string} key */
  want(key) {
    this.wanted = { key, index: this.cards.findIndex((card) => card.key === key) };
    this.mark();
  }

  mark() {
    const current = this.current();
    for (const card of this.cards) {
      const element = this.list.element(card.key);
      const isCurrent = card === current;
      element?.classList.toggle("is-current", isCurrent);
      const buttons = element?.querySelectorAll("[data-do]") ?? [];
      for (const one of [element, ...buttons]) one?.setAttribute("tabindex", isCurrent ? "0" : "-1");
    }
  }

  /** @param {HTMLElement} target */
  markFrom(target) {
    const card = /** @type {HTMLElement | null} */ (target.closest("[data-key]"));
    const key = card?.dataset.key;
    if (key && key !== this.current()?.key) this.want(key);
  }

  /** @param {BoardCard | undefined} card */
  focusCard(card) {
    if (!card) return;
    this.want(card.key);
    const element = this.list.element(card.key);
    element?.focus({ preventScroll: true });
    element?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} step */
  move(step) {
    const current = this.current();
    this.focusCard(this.cards[this.cards.findIndex((card) => card === current) + step]);
  }

  /**
   * Look at pictures of a card, and name them.
   * @param {Api["Thumb"][]} thumbs
   * @param {number} index
   */
  async look(thumbs, index) {
    if (thumbs.length && (await lookAt(thumbs, index))) await this.load();
  }

  /** @param {string} name */
  async run(name) {
    const card = this.current();
    if (!card || !isPossible(name, card)) return;
    if (name === "look") await this.look(shownOf(card), 0);
    else await this.finish(TOOLS[name](card));
  }

  /** @param {Promise<string | null>} work */
  async finish(work) {
    // What the server refuses was said by api already.
    const sentence = await work.catch(() => null);
    if (!sentence) return;
    sayDone(sentence, () => this.load());
    await this.load();
  }
}

startStatusBar();
new ClassBoard(byId("page")).load();
