/** The label page: shows one question after the other and stores what is said, without waiting for the server. */

import { labels, signed, undoneWords } from "../components/changes.js";
import { copyPath } from "../components/copyPath.js";
import { allAnswered, auditDone, looksOnly, notReady, trouble } from "../components/ending.js";
import { CLOSER } from "../components/itemView.js";
import { jobPanel } from "../components/jobPanel.js";
import { actionButton, bindKeys, relabel } from "../components/keyBindings.js";
import { nameDialog } from "../components/nameDialog.js";
import { asksForName, isHidden, QuestionCard } from "../components/questionCard.js";
import { askSameClass, N_ASKED } from "../components/sameClassDialog.js";
import { startStatusBar } from "../components/statusBar.js";
import { toast } from "../components/toast.js";
import { holder, onlyLooks, who } from "../lib/annotator.js";
import { delay } from "../lib/async.js";
import { byId, h, replace, setText } from "../lib/dom.js";
import { LARGE, prefetch } from "../lib/items.js";
import { IS_IMAGES } from "../lib/kind.js";
import { api } from "../lib/net.js";
import { onState, startJob, watchJob } from "../lib/polling.js";
import { keptByTab } from "../lib/storage.js";
import { plural, say } from "../lib/words.js";

const PATIENCE_MS = 400;
const ASK_AGAIN_MS = 10_000;
const ASK_SOON_MS = 1000;
const WORDS = { skip: "skipped", unsure: "unsure", junk: "junk" };

/** @typedef {Api["Card"]} Card */
/** @typedef {import("../components/questionCard.js").Question} Question */
/** @typedef {import("../components/nameDialog.js").NameOptions} NameOptions */

class LabelPage {
  /** The question that is shown, and what the server said when there was none. @type {Question | null} */
  card = null;
  /** @type {Card | null} */
  done = null;
  /** @type {Api["State"] | null} */
  state = null;
  isRunning = false;
  isBlind = keptByTab.get("blind") === true;
  turn = 0;
  /** The question that named a new class last. @type {{ card: Question, picked: PickedClass } | null} */
  lastNamed = null;
  /** Rows whose answers are on their way. @type {Set<number>} */
  underWay = new Set();
  /** @type {Promise<void>} */
  lastSaved = Promise.resolve();
  job = jobPanel();

  /**
   * @param {HTMLElement} main
   * @param {boolean} isAudit
   */
  constructor(main, isAudit) {
    this.isAudit = isAudit;
    bindKeys("label", this.actions());
    this.view = new QuestionCard({ choose: (index) => this.choose(index), sameAs: (thumb) => this.sameAs(thumb),
      search: () => this.search(), create: () => this.create(), copy: () => this.copy() });
    this.stage = h("div", { class: "stage" }, this.view.element);
    this.blind = actionButton("blind", { label: "Blind" });
    this.acceptButton = actionButton("accept", { label: "Accept", class: "primary" });
    this.tools = this.toolbar();
    replace(main, isAudit ? auditNote() : null, this.stage, this.tools);
    onState((state) => this.followState(state));
    watchJob((found) => this.followJob(found));
  }

  // ------------------------------------------------------------------------------------------ asking the server

  fetchQuestion() {
    return api.get("/api/v1/question", { who: who(), holder, blind: this.isBlind, audit: this.isAudit,
      live: !this.isAudit, answered: [...this.underWay] }, { retries: Infinity });
  }

  /** The next question. An answer that is slow to be stored does not hold it up, nor is its row shown again. */
  async askServer() {
    await Promise.race([this.lastSaved, delay(PATIENCE_MS)]);
    const card = await this.fetchQuestion();
    if (card.row === null || !this.underWay.has(card.row)) return card;
    await this.lastSaved;
    return this.fetchQuestion();
  }

  /**
   * Show the next question, and its picture at once where it is known.
   * @param {Api["Thumb"][]} [upcoming]
   */
  async next(upcoming = []) {
    this.turn += 1;
    const mine = this.turn;
    this.card = null;
    this.view.showComing(upcoming.find((picture) => !this.underWay.has(picture.row)));
    const card = onlyLooks ? null : await this.askServer().catch(() => null);
    if (mine !== this.turn) return;
    if (card) return this.show(card);
    this.tools.dataset.mode = "ending";
    replace(this.stage, onlyLooks ? looksOnly() : trouble(() => this.next()));
  }

  /** @param {Card} card */
  show(card) {
    if (card.row === null) return this.showDone(card);
    this.card = /** @type {Question} */ (card);
    this.done = null;
    this.tools.dataset.mode = isHidden(card) ? "blind" : "card";
    relabel(this.acceptButton, asksForName(card) ? "Name it" : "Accept");
    if (!this.view.element.isConnected) replace(this.stage, this.view.element);
    this.view.show(this.card);
    prefetch(card.upcoming, LARGE);
  }

  // ------------------------------------------------------------------------------------------------- answering

  /**
   * Store answers in the background and go on. The first is about this card.
   * @param {Question} card
   * @param {Requests["Said"][]} answers
   * @param {string} words
   */
  store(card, answers, words) {
    for (const { row } of answers) this.underWay.add(row);
    setText(this.view.said, `Last: ${words}`);
    const sent = api.queue("/api/v1/answers", signed({ answers, is_audit: this.isAudit }));
    const isGone = () => answers.forEach(({ row }) => this.underWay.delete(row));
    this.lastSaved = sent.then(isGone, () => {
      isGone();
      setText(this.view.said, "The last answer was not stored.");
      this.next();
    });
    this.next(card.upcoming);
  }

  /**
   * @param {Question} card
   * @param {PickedClass} picked
   */
  label(card, picked) {
    this.store(card, labels([card.row], picked), `“${picked.name}”`);
  }

  /** @param {keyof typeof WORDS} kind */
  pass(kind) {
    if (this.card) this.store(this.card, [{ row: this.card.row, kind }], WORDS[kind]);
  }

  /** @param {number} index */
  async choose(index) {
    const candidate = this.card?.candidates[index];
    if (!this.card || !candidate) return;
    if (candidate.is_named) return this.label(this.card, candidate);
    await this.named({ title: "Name this group", prefersNew: true, placeholder: "What is it?",
      thumbs: candidate.exemplars, text: `“${candidate.name}” has no name yet. Its name goes with your answer.` });
  }

  /** @param {Api["Thumb"] | undefined} thumb */
  sameAs(thumb) {
    if (this.card && thumb?.name) this.label(this.card, { class_id: null, name: thumb.name });
  }

  search() {
    return this.named({ title: "Which class is it?" });
  }

  /**
   * Ask for a name, then label the picture that was asked about.
   * @param {NameOptions} options
   */
  async named(options) {
    const { card } = this;
    const picked = card && (await nameDialog(options));
    if (picked && card === this.card) this.label(card, picked);
  }

  async create() {
    const { card } = this;
    const picked = card && (await nameDialog({ title: "New class", prefersNew: true,
      placeholder: "Name of the new class", text: "It can be renamed at any time." }));
    if (!picked || card !== this.card) return;
    this.label(card, picked);
    if (!isHidden(card)) this.lastNamed = { card, picked };
  }

  /** Tick more pictures of the class that was named last: its name spreads without that, so nobody is asked to. */
  async more() {
    if (!this.lastNamed) return toast(say`Name a new class first: then more of its pictures can be ticked.`);
    const { card, picked } = this.lastNamed;
    await this.lastSaved;
    const thumbs = await api.get("/api/v1/rows/{row}/neighbours", { row: card.row, n: N_ASKED }).catch(() => []);
    const rows = thumbs.length ? await askSameClass(picked.name, card, thumbs) : null;
    if (!rows?.length) return;
    const told = await api.queue("/api/v1/answers", signed({ answers: labels(rows, picked) })).catch(() => null);
    if (!told) return;
    setText(this.view.said, `Last: “${picked.name}” for ${plural(rows.length, "picture")} more`);
    if (this.card && rows.includes(this.card.row)) await this.next();
  }

  async undo() {
    this.card = null;
    const undone = await api.queue("/api/v1/undo", signed({})).catch(() => null);
    if (undone) setText(this.view.said, `Taken back: ${undoneWords(undone.what)}`);
    await this.next();
  }

  copy() {
    if (this.card) copyPath(this.card.path);
  }

  toggleBlind() {
    this.isBlind = !this.isBlind;
    keptByTab.set("blind", this.isBlind);
    this.blind.setAttribute("aria-pressed", String(this.isBlind));
    this.next();
  }

  accept() {
    if (this.done) return void (location.href = "/review");
    if (!this.card || isHidden(this.card)) return this.search();
    return asksForName(this.card) ? this.create() : this.choose(0);
  }

  // ------------------------------------------------------------------------------------------ nothing left to ask

  /** @param {Card} card */
  showDone(card) {
    this.card = null;
    this.done = card;
    this.tools.dataset.mode = "ending";
    this.drawDone();
    // Somebody may leave a question behind, or the pictures be looked at by then.
    setTimeout(() => this.done === card && this.next(), this.state?.is_live ? ASK_AGAIN_MS : ASK_SOON_MS);
  }

  drawDone() {
    if (!this.done || !this.state) return;
    if (this.isAudit) return replace(this.stage, auditDone(this.done, () => this.releaseAudit()));
    replace(this.stage, this.state.is_live ? allAnswered() : notReady(this.job));
  }

  async releaseAudit() {
    const released = await api.queue("/api/v1/audit/release", signed({})).catch(() => null);
    if (released) toast(`The model learns from ${plural(released.n_added, "answer")} of the audit from now on.`);
  }

  learn() {
    if (this.isRunning) return toast("Training is under way already; it goes on while you answer.");
    return startJob("train").then(() => toast("Learning from your answers. Go on, nothing waits for it."), () => {});
  }

  /** @param {Api["Job"]} found */
  followJob(found) {
    this.isRunning = found.state === "running";
  }

  /**
   * What changed besides the answers: the first question is there, or the model has learned.
   * @param {Api["State"]} state
   */
  followState(state) {
    const before = this.state;
    this.state = state;
    if (before && before.view !== state.view) {
      if (before.view !== null) toast("The model has learned from your answers.");
      if (this.done) return void this.next();
    }
    this.drawDone();
  }

  // ------------------------------------------------------------------------------------------- keys and buttons

  /** @returns {Record<string, import("../lib/keys.js").Action>} */
  actions() {
    const when = () => this.card !== null;
    const suggestion = (/** @type {number} */ n) =>
      ({ label: `Suggestion ${n}`, key: String(n), run: () => this.choose(n - 1), when });
    return {
      candidate1: suggestion(1), candidate2: suggestion(2), candidate3: suggestion(3), candidate4: suggestion(4),
      candidate5: suggestion(5),
      accept: { label: "Accept the first suggestion, or name it", key: "Enter", run: () => this.accept(),
        when: () => when() || this.done !== null },
      same: { label: "Same as the nearest labelled", key: "=", when,
        run: () => this.sameAs(this.card?.labelled_neighbours[0]) },
      search: { label: "Type to search a class", key: "/", also: ["t"], run: () => this.search(), when },
      create: { label: "New class", key: "n", run: () => this.create(), when },
      more: { label: "Tick more like the last new class", key: "m", run: () => this.more(), when: () => !this.isAudit },
      skip: { label: "Skip", key: "s", run: () => this.pass("skip"), when },
      unsure: { label: "Unsure", key: "u", run: () => this.pass("unsure"), when },
      junk: { label: "Junk: no class at all", key: "x", run: () => this.pass("junk"), when },
      undo: { label: "Undo", key: "z", also: ["Ctrl+z"], run: () => this.undo() },
      learn: { label: "Learn from my answers now", key: "l", run: () => this.learn(), when: () => !this.isAudit },
      blind: { label: "Blind mode", key: "b", run: () => this.toggleBlind(), when: () => !this.isAudit },
      copy: { label: say`Copy the path of the picture`, key: "c", run: () => this.copy(),
        when: () => this.card !== null && !isHidden(this.card) },
      zoom: { label: CLOSER.label, key: " ", run: () => this.view.viewer.toggle(), when },
      ...this.panActions(),
      fullscreen: { label: "Full screen", key: "f", run: toggleFullscreen },
    };
  }

  panActions() {
    const when = () => this.view.viewer.canMove;
    const moved = IS_IMAGES ? "Zoomed" : "Scroll";
    const pan = (/** @type {string} */ where, /** @type {string} */ key, /** @type {[number, number]} */ step) =>
      ({ label: `${moved}: ${where}`, key, repeats: true, run: () => this.view.viewer.pan(...step), when });
    return {
      left: pan("to the left", "ArrowLeft", [-1, 0]),
      right: pan("to the right", "ArrowRight", [1, 0]),
      up: pan("up", "ArrowUp", [0, -1]),
      down: pan("down", "ArrowDown", [0, 1]),
    };
  }

  toolbar() {
    this.blind.setAttribute("aria-pressed", String(this.isBlind));
    this.blind.hidden = this.isAudit;
    return h("div", { class: "toolbar tools", role: "toolbar", "aria-label": "Answers" },
      this.acceptButton,
      actionButton("same", { label: "Same" }),
      actionButton("search", { label: "Search" }),
      actionButton("create"), actionButton("more", { label: "More like it" }),
      ["skip", "unsure"].map((name) => actionButton(name)),
      actionButton("junk", { label: "Junk" }),
      h("span", { class: "tools-gap" }),
      actionButton("undo"),
      h("span", { class: "grow" }),
      this.isAudit ? null : actionButton("learn", { label: "Learn now" }),
      this.blind, actionButton("zoom", { label: CLOSER.word }), actionButton("fullscreen"));
  }
}

function toggleFullscreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => {});
}

function auditNote() {
  return h("p", { class: "banner", role: "note" },
    "Blind audit: suggestions are hidden on purpose. The answers measure how often the names are right, ",
    "and are learned from only if you say so at the end.");
}

startStatusBar();
new LabelPage(byId("page"), new URLSearchParams(location.search).get("audit") === "1").next();
