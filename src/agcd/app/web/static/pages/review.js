/** The review: the least certain pictures first, one by one or a page of one class, until all are checked. */

import { signed, undoLast } from "../components/changes.js";
import { selectField, spacer } from "../components/controls.js";
import { confirmDialog } from "../components/dialogs.js";
import { Downloads } from "../components/downloads.js";
import { CLOSER } from "../components/itemView.js";
import { setBar } from "../components/jobPanel.js";
import { actionButton, bindKeys, relabel } from "../components/keyBindings.js";
import { nameDialog } from "../components/nameDialog.js";
import { reviewEnd, reviewTrouble } from "../components/reviewEnd.js";
import { ReviewFeed } from "../components/reviewFeed.js";
import { ReviewGrid } from "../components/reviewGrid.js";
import { ReviewSingle } from "../components/reviewSingle.js";
import { startStatusBar } from "../components/statusBar.js";
import { toast } from "../components/toast.js";
import { choicesFromUrl, keepInUrl } from "../lib/address.js";
import { byId, h, replace, setText } from "../lib/dom.js";
import { pressedKey } from "../lib/keys.js";
import { api } from "../lib/net.js";
import { onRoundDone, watchJob } from "../lib/polling.js";
import { acceptText, acceptWords, confirmation, Mending, progressWords, wrongWords } from "../lib/review.js";
import { count, plural, say } from "../lib/words.js";

/** One by one, of how many the line at the top speaks. */
const N_COMING = 10;
const DEFAULTS = { mode: "class", key: "" };

/** @typedef {Api["Review"]} Review */
/** @typedef {Api["ReviewPicture"]} ReviewPicture */
/** @typedef {import("../lib/review.js").Word} Word */
/** @typedef {"single" | "grid" | "mending" | "end" | "waiting"} Step */

class ReviewPage {
  choices = choicesFromUrl(DEFAULTS);
  feed = new ReviewFeed(this.choices);
  /** What is shown: one picture, or a page. @type {Review | null} */
  page = null;
  /** @type {Mending | null} */
  mending = null;
  /** @type {Step} */
  step = "waiting";
  turn = 0;
  downloads = new Downloads();
  line = h("p", { class: "review-line numbers", role: "status" });
  bar = h("div", { class: "bar", role: "progressbar", "aria-label": "Checked", "aria-valuemin": 0,
    "aria-valuemax": 100 }, h("div", { class: "bar-fill" }));
  classes = h("span", {});
  stage = h("div", { class: "review-stage" });

  /** @param {HTMLElement} main */
  constructor(main) {
    this.main = main;
    if (this.choices.mode !== "single") this.choices.mode = "class";
    this.single = new ReviewSingle((index) => this.choose(index));
    this.grid = new ReviewGrid(() => this.drawTools());
    bindKeys("review", this.actions());
    this.rest = actionButton("rest", { label: "Accept the rest" });
    this.modes = actionButton("mode", { label: "One by one" });
    this.go = actionButton("right", { label: "Right", class: "primary" });
    this.forAll = actionButton("all", { label: "Same for all" });
    this.tools = this.toolbar();
    main.append(this.head(), this.stage, this.tools);
    addEventListener("keydown", (event) => this.tickByKey(event));
    watchJob((job) => this.downloads.setBusy(job.state === "running"));
    onRoundDone(() => this.downloads.show());
  }

  // ------------------------------------------------------------------------------------------- what is shown

  head() {
    return h("header", { class: "page-head review-head" },
      h("div", { class: "toolbar-row" }, h("h1", {}, "Review"), this.modes, this.classes, spacer(), this.rest),
      this.line, this.bar);
  }

  /** The next picture or page, which is mostly there already. */
  async next() {
    this.turn += 1;
    const mine = this.turn;
    this.mending = null;
    if (!this.feed.ahead) this.setStep("waiting");
    const page = await this.feed.next().catch(() => null);
    if (mine !== this.turn) return;
    if (!page) {
      this.setStep("end");
      replace(this.stage, reviewTrouble(() => this.next()));
    } else this.show(page);
  }

  /** @param {Review} page */
  show(page) {
    this.page = page;
    this.drawLine();
    this.drawClasses(page);
    if (!page.pictures.length) return this.showEnd(page);
    if (page.mode === "single") {
      this.single.ask(page.pictures[0]);
      this.setStep("single", this.single.element);
    } else {
      this.grid.show(page);
      this.setStep("grid", this.grid.element);
      this.grid.box.focus({ preventScroll: true });
    }
    this.lookAhead();
  }

  /** @param {Review} page */
  showEnd(page) {
    this.downloads.show();
    this.setStep("end");
    replace(this.stage, reviewEnd(page.left, this.downloads.element));
  }

  async lookAhead() {
    const found = await this.feed.lookAhead(this.page?.pictures ?? []);
    if (found) this.takeLeft(found.left);
  }

  /** @param {Api["ReviewLeft"]} left */
  takeLeft(left) {
    if (this.page) this.page = { ...this.page, left };
    this.drawLine();
  }

  drawLine() {
    if (!this.page) return;
    const { left, pictures, mode } = this.page;
    const isSingle = mode === "single";
    const coming = isSingle && pictures.length ? [...pictures, ...(this.feed.ahead?.pictures ?? [])].slice(0, N_COMING)
      : pictures;
    setText(this.line, progressWords(left, coming, !isSingle));
    setBar(this.bar, left.n_total ? (left.n_checked + left.n_unseen) / left.n_total : 0);
    for (const button of [this.rest, this.modes]) button.hidden = left.n_left === 0;
    relabel(this.rest, acceptWords(left));
  }

  /** @param {Review} page */
  drawClasses({ classes, shown, mode, left }) {
    const wrong = (/** @type {Api["ReviewClass"]} */ { expected_wrong: n }) =>
      (left.is_checked ? `, ${wrongWords(n)}` : "");
    const words = (/** @type {Api["ReviewClass"]} */ one) => `${one.name} (${count(one.n_left)} left${wrong(one)})`;
    /** @type {[string, string][]} */
    const options = classes.map((one) => [one.key, words(one)]);
    replace(this.classes, mode === "class" && shown
      ? selectField("Class", options, shown.key, (key) => this.change({ key })) : null);
    relabel(this.modes, mode === "class" ? "One by one" : "Pages of one class");
  }

  /**
   * @param {Step} step
   * @param {HTMLElement} [element]
   */
  setStep(step, element) {
    this.step = step;
    this.main.dataset.step = step;
    if (element && this.stage.firstElementChild !== element) replace(this.stage, element);
    this.drawTools();
  }

  drawTools() {
    const n = this.page?.pictures.length ?? 0;
    const wrong = this.grid.ticked.length;
    const all = n === 1 ? "It is right" : `All ${n} are right`;
    const ticked = `${plural(wrong, "is", "are")} wrong, the rest is right`;
    relabel(this.go, this.step === "single" ? "Right" : wrong ? ticked : all);
    this.forAll.hidden = this.step !== "mending" || this.nToMend() < 2;
    this.forAll.setAttribute("aria-pressed", String(Boolean(this.mending?.isForAll)));
    relabel(this.forAll, `Same class for all ${this.nToMend()}`);
  }

  /** @param {Partial<typeof DEFAULTS>} choices */
  change(choices) {
    Object.assign(this.choices, choices);
    keepInUrl(this.choices, DEFAULTS);
    return this.reload();
  }

  /** Show anew what is to be looked at, after everything on its way is stored. */
  async reload() {
    this.feed.forget();
    await this.next();
  }

  // ------------------------------------------------------------------------------------------------ answering

  /**
   * Store in the background what was said of pictures, and go on.
   * @param {[ReviewPicture, Word][]} said
   */
  store(said) {
    const body = confirmation(this.feed.isSingle ? "single" : "class", said);
    const rows = said.map(([{ row }]) => row);
    for (const [{ row }, word] of said) (word === "later" ? this.feed.later : this.feed.underWay).add(row);
    if (body.right.length || body.changes.length || body.junk.length) this.send(body, rows);
    this.next();
  }

  /**
   * @param {ReturnType<typeof confirmation>} body
   * @param {number[]} rows
   */
  send(body, rows) {
    const isGone = () => rows.forEach((row) => this.feed.underWay.delete(row));
    this.feed.lastSaved = api.queue("/api/v1/review/confirm", signed(body)).then(({ left }) => {
      isGone();
      this.takeLeft(left);
      // What was just said may change the names and the order of what comes.
      if (this.step !== "waiting" && this.step !== "end") this.lookAhead();
    }, () => {
      isGone();
      this.reload();
    });
  }

  /** @param {Word} word */
  say(word) {
    if (this.mending) return this.mend(word);
    const picture = this.page?.pictures[0];
    if (picture) this.store([[picture, word]]);
  }

  /** Enter: right, or the rest of the page is. */
  right() {
    if (this.step !== "grid") return this.say("right");
    const { ticked } = this.grid;
    if (!ticked.length) return this.store(this.rightOnes());
    this.mending = new Mending(ticked);
    this.drawMending();
  }

  /** The pictures of the page that were not ticked. @returns {[ReviewPicture, Word][]} */
  rightOnes() {
    const wrong = new Set(this.grid.ticked);
    return this.grid.pictures.filter((picture) => !wrong.has(picture)).map((picture) => [picture, "right"]);
  }

  /** @param {Word} word */
  mend(word) {
    if (!this.mending) return;
    this.mending.say(word);
    if (this.mending.current) this.drawMending();
    else this.store([...this.rightOnes(), ...this.mending.said]);
  }

  nToMend() {
    return this.mending ? this.mending.ticked.length - this.mending.said.length : 0;
  }

  drawMending() {
    const { mending } = this;
    if (!mending?.current) return;
    const { said, ticked, isForAll } = mending;
    const place = ticked.length === 1 ? "" : `${said.length + 1} of ${ticked.length} wrong ones`;
    this.single.mend(mending.current, isForAll ? `the same for ${plural(this.nToMend(), "picture")}` : place);
    this.setStep("mending", this.single.element);
  }

  /** @param {number} index */
  choose(index) {
    const picked = (this.mending?.current ?? this.page?.pictures[0])?.others[index];
    if (picked) this.say({ picked });
  }

  async name() {
    const { page, mending } = this;
    const asked = mending?.current ?? page?.pictures[0];
    const picked = await nameDialog({ title: "Which class is it?" });
    if (picked && asked === (this.mending?.current ?? this.page?.pictures[0])) this.say({ picked });
  }

  toggleForAll() {
    if (this.mending) this.mending.isForAll = !this.mending.isForAll;
    this.drawMending();
  }

  /** From the wrong ones back to the page, or untick all. */
  back() {
    if (!this.mending) return this.grid.marks.none();
    this.mending = null;
    this.setStep("grid", this.grid.element);
  }

  async undo() {
    if (this.mending) return this.back();
    await this.feed.lastSaved;
    this.feed.later.clear();
    await undoLast(() => this.reload());
  }

  async acceptRest() {
    await this.feed.lastSaved;
    const left = this.page?.left;
    if (!left?.n_left) return;
    const yes = await confirmDialog({ title: acceptWords(left), text: acceptText(left), yes: "Accept them" });
    if (!yes) return;
    const accepted = await api.post("/api/v1/review/accept", signed({ n: left.n_left })).catch(() => null);
    const { n_accepted: n, left: after } = accepted ?? { n_accepted: 0, left };
    if (n && after.n_left) toast(`The surest ${count(n)} are accepted; ${count(after.n_left)} are left.`);
    await this.reload();
  }

  // ------------------------------------------------------------------------------------------- keys and buttons

  /** @returns {Record<string, import("../lib/keys.js").Action>} */
  actions() {
    const isOne = () => this.step === "single" || this.step === "mending";
    const isGrid = () => this.step === "grid";
    const other = (/** @type {number} */ n) =>
      ({ label: `It is suggestion ${n}`, key: String(n), run: () => this.choose(n - 1), when: isOne });
    return {
      // Not while wrong ones are named: a second Enter would call them right.
      right: { label: "Right; on a page: all that is not ticked", key: "Enter", run: () => this.right(),
        when: () => this.step === "single" || isGrid() },
      other1: other(1), other2: other(2), other3: other(3), other4: other(4), other5: other(5),
      name: { label: "Type another name", key: "n", also: ["/"], run: () => this.name(), when: isOne },
      junk: { label: "Junk: no class at all", key: "x", run: () => this.say("junk"), when: isOne },
      later: { label: "Leave it for later", key: "s", run: () => this.say("later"), when: isOne },
      all: { label: "The same class for all ticked ones", key: "a", run: () => this.toggleForAll(),
        when: () => this.nToMend() > 1 },
      tick: { label: say`Tick the picture (or press its own key), or ${CLOSER.label.toLowerCase()}`, key: " ",
        run: () => (isGrid() ? this.grid.tick(this.grid.marks.cursor) : this.single.viewer.toggle()) },
      ...this.moves(isGrid, isOne),
      back: { label: "Back to the page, or tick none", key: "Escape", run: () => this.back(),
        when: () => isGrid() || this.step === "mending" },
      mode: { label: "One by one, or pages of one class", key: "g",
        run: () => this.change({ mode: this.feed.isSingle ? "class" : "single" }) },
      rest: { label: "Accept the rest", key: "r", run: () => this.acceptRest() },
      undo: { label: "Undo", key: "z", also: ["Ctrl+z"], run: () => this.undo() },
    };
  }

  /**
   * On a page the arrow keys move from one to the next; what is shown large and does not fit they scroll.
   * @param {() => boolean} isGrid
   * @param {() => boolean} isOne
   */
  moves(isGrid, isOne) {
    const { viewer } = this.single;
    /** @type {(label: string, key: string, step: [number, number]) => import("../lib/keys.js").Action} */
    const move = (label, key, [right, down]) => ({ label, key, repeats: true,
      when: () => isGrid() || (isOne() && viewer.canMove),
      run: () => (isGrid() ? this.grid.move(right + down * this.grid.list.columns()) : viewer.pan(right, down)) });
    return {
      left: move(say`Picture before`, "ArrowLeft", [-1, 0]),
      next: move(say`Next picture`, "ArrowRight", [1, 0]),
      up: move(say`Picture above`, "ArrowUp", [0, -1]),
      down: move(say`Picture below`, "ArrowDown", [0, 1]),
    };
  }

  /**
   * Every picture of a page has a key of its own; keys of actions come before it.
   * @param {KeyboardEvent} event
   */
  tickByKey(event) {
    if (event.defaultPrevented || event.altKey || event.repeat || this.step !== "grid") return;
    if (document.querySelector("dialog[open]") || event.target instanceof HTMLSelectElement) return;
    if (this.grid.tickByKey(pressedKey(event))) event.preventDefault();
  }

  toolbar() {
    return h("div", { class: "toolbar review-tools", role: "toolbar", "aria-label": "Answers" },
      this.go, this.forAll, actionButton("name", { label: "Another name" }), actionButton("junk", { label: "Junk" }),
      actionButton("later", { label: "Later" }), actionButton("back", { label: "Back" }), actionButton("undo"));
  }
}

startStatusBar();
new ReviewPage(byId("page")).next();
