/** The start page: what was found in the folder, how many classes it seems to hold, and the first training. */

import { fact } from "../components/controls.js";
import { estimateChart } from "../components/estimateChart.js";
import { jobPanel } from "../components/jobPanel.js";
import { bindKeys, keyHint } from "../components/keyBindings.js";
import { startStatusBar } from "../components/statusBar.js";
import { byId, h, replace } from "../lib/dom.js";
import { api } from "../lib/net.js";
import { onState, startJob, watchJob } from "../lib/polling.js";
import { plural } from "../lib/words.js";

const MOST_CLASSES = 100_000;

/** @typedef {Api["State"]} State */

/**
 * @param {string} title
 * @param {Child[]} children
 */
function step(title, ...children) {
  return h("section", { class: "panel step" }, h("h2", {}, title), children);
}

/** @param {State} state */
function picturesStep(state) {
  return step("Your pictures",
    h("div", { class: "facts" }, fact(state.n_images, "picture", "pictures"),
      fact(state.n_seeds, "label known already", "labels known already"),
      fact(state.n_classes - state.n_novel, "known class", "known classes"),
      state.n_test ? fact(state.n_test, "kept for testing", "kept for testing") : null,
      state.n_set_aside ? fact(state.n_set_aside, "set aside", "set aside") : null),
    state.health.length ? h("ul", { class: "health" }, state.health.map((line) => h("li", {}, line))) : null);
}

/** @param {Api["Estimate"]} estimate */
function estimateWords({ n, low, high }) {
  const range = low === high ? "no other number explains your labels as well"
    : `between ${low} and ${high} explain your labels about as well`;
  return h("p", { class: "lead" }, h("strong", {}, `About ${plural(n, "class", "classes")}`), ` (${range})`);
}

/** @param {Api["Estimate"] | null} estimate */
function estimateFigure(estimate) {
  if (!estimate || estimate.curve.length < 2) return null;
  return h("div", {}, estimateChart(estimate), h("p", { class: "hint" },
    "How well each number of classes explains the known labels; the shaded range does about equally well."));
}

/** @param {State} state */
function doneStep(state) {
  const rounds = state.n_finished - 1;
  const hasBegun = rounds > 0 || state.n_answers > 0;
  return step(rounds === 0 ? "The model is trained" : `${plural(rounds, "round")} trained`,
    h("div", { class: "facts" }, fact(state.n_answers, "answer so far", "answers so far"),
      fact(state.n_novel, "class found by you", "classes found by you"),
      fact(state.n_slots ?? 0, "group looked for", "groups looked for"),
      fact(state.n_open, "question left", "questions left")),
    h("p", {}, state.n_open ? "The model has chosen the pictures that it would learn most from."
      : "There are no open questions: the label page brings new ones."),
    h("div", { class: "toolbar" },
      h("a", { class: "button primary large", href: "/label" }, hasBegun ? "Go on labelling" : "Start labelling", " ",
        keyHint("go")),
      h("a", { class: "button large", href: "/classes" }, "Look at the classes")));
}

class StartPage {
  /** @type {State | null} */
  state = null;
  isRunning = false;
  /** What was typed as the number of classes. @type {string | null} */
  typed = null;
  job = jobPanel();

  /** @param {HTMLElement} main */
  constructor(main) {
    this.main = main;
    const go = () => /** @type {HTMLElement | null} */ (main.querySelector(".button.primary"))?.click();
    bindKeys("start", { go: { label: "The next step", key: "Enter", run: go } });
    onState((state) => this.update({ state }));
    watchJob(({ state }) => {
      const isRunning = state === "running";
      if (isRunning !== this.isRunning) this.update({ isRunning });
    });
  }

  /** @param {{ state?: State, isRunning?: boolean }} change */
  update(change) {
    Object.assign(this, change);
    if (this.state) this.draw(this.state);
  }

  /** @param {State} state */
  draw(state) {
    const hadFocus = document.activeElement?.matches("input.number");
    const steps = [picturesStep(state), this.job, this.nextStep(state)];
    replace(this.main, h("div", { class: "start" }, h("h1", {}, state.name), steps));
    if (hadFocus) this.numberInput()?.focus();
  }

  /** @param {State} state */
  nextStep(state) {
    if (state.n_finished > 0) return doneStep(state);
    return state.estimate || state.n_slots ? this.trainStep(state) : this.prepareStep();
  }

  /**
   * The one thing to do next: Enter does it, wherever the focus is.
   * @param {string} words
   * @param {() => unknown} run
   */
  primary(words, run) {
    const properties = { type: "button", class: "button primary large", disabled: this.isRunning, onclick: run };
    return h("button", properties, words, " ", keyHint("go"));
  }

  prepareStep() {
    return step("Prepare",
      h("p", {}, "The pictures are read once, and the number of classes that they hold is estimated. ",
        "Nothing leaves this computer."),
      h("div", {}, this.primary("Prepare", () => startJob("prepare").catch(() => {}))));
  }

  /** @param {State} state */
  numberField(state) {
    const input = h("input", { class: "input number", type: "number", min: 2, max: MOST_CLASSES, step: 1,
      required: true, value: this.typed ?? state.n_slots ?? state.estimate?.n ?? "",
      disabled: state.n_slots_fixed || this.isRunning });
    input.addEventListener("input", () => (this.typed = input.value));
    input.addEventListener("keydown", (event) => event.key === "Enter" && this.train(state));
    return h("label", { class: "field field-row" }, h("span", {}, "Look for"), input, h("span", {}, "classes"));
  }

  /** @returns {HTMLInputElement | null} */
  numberInput() {
    return this.main.querySelector("input.number");
  }

  /** @param {State} state */
  trainStep(state) {
    const figure = estimateFigure(state.estimate);
    const words = h("div", { class: "train-words" },
      state.estimate ? estimateWords(state.estimate) : null,
      h("p", { class: "muted" }, "If in doubt take rather more: groups that belong together are easily merged later."),
      this.numberField(state), h("div", {}, this.primary("Start training", () => this.train(state))));
    return step("How many classes?", h("div", { class: figure ? "train" : null }, words, figure));
  }

  /** @param {State} state */
  async train(state) {
    const input = this.numberInput();
    if (!input || (!input.disabled && !input.reportValidity())) return;
    const n = Number(input.value);
    try {
      if (!state.n_slots_fixed && n && n !== state.n_slots) await api.post("/api/n-classes", { n });
      await startJob("round");
    } catch {
      // The sentence was shown already, and the button is still there.
    }
  }
}

startStatusBar();
new StartPage(byId("page"));
