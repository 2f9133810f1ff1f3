/** The start page: what was found in the folder, and how far it is to the first question. */

import { fact } from "../components/controls.js";
import { jobPanel } from "../components/jobPanel.js";
import { bindKeys, keyHint } from "../components/keyBindings.js";
import { startStatusBar } from "../components/statusBar.js";
import { byId, h, replace } from "../lib/dom.js";
import { onState, startJob, watchJob } from "../lib/polling.js";
import { say } from "../lib/words.js";

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
  return step(say`Your pictures`,
    h("div", { class: "facts" }, fact(state.n_images, "picture", "pictures"),
      fact(state.n_seeds, "label known already", "labels known already"),
      fact(state.n_classes - state.n_novel, "known class", "known classes"),
      state.n_test ? fact(state.n_test, "kept for testing", "kept for testing") : null,
      state.n_set_aside ? fact(state.n_set_aside, "set aside", "set aside") : null,
      state.n_removed ? fact(state.n_removed, "removed", "removed") : null),
    state.health.length ? h("ul", { class: "health" }, state.health.map((line) => h("li", {}, line))) : null);
}

/** @param {State} state */
function readyStep(state) {
  const hasBegun = state.n_answers > 0;
  return step(hasBegun ? "Going on" : "Ready",
    h("div", { class: "facts" }, fact(state.n_answers, "answer so far", "answers so far"),
      fact(state.n_novel, "class found by you", "classes found by you")),
    h("p", {}, "One question after the other; every answer counts at once. Training goes on in the background."),
    h("div", { class: "toolbar" },
      h("a", { class: "button primary large", href: "/label" }, hasBegun ? "Go on labelling" : "Start labelling", " ",
        keyHint("go")),
      h("a", { class: "button large", href: "/classes" }, "Look at the classes")));
}

function waitStep() {
  return step("The first question comes in a moment",
    h("p", {}, say`Every picture is looked at once; nothing leaves this computer. `,
      "Then the questions begin by themselves."));
}

class StartPage {
  /** @type {State | null} */
  state = null;
  isRunning = false;
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
    // Whoever waits here for the first question gets it without another key.
    if (change.state?.is_live && this.state && !this.state.is_live) location.replace("/label");
    Object.assign(this, change);
    if (this.state) this.draw(this.state);
  }

  /** @param {State} state */
  draw(state) {
    const steps = [picturesStep(state), this.job, this.nextStep(state)];
    replace(this.main, h("div", { class: "start" }, h("h1", {}, state.name), steps));
  }

  /** @param {State} state */
  nextStep(state) {
    if (state.is_live) return readyStep(state);
    return this.isRunning ? waitStep() : this.prepareStep();
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
    return step("Begin",
      h("p", {}, say`Every picture is looked at once. Nothing leaves this computer. Then the questions begin.`),
      h("div", {}, this.primary("Begin", () => startJob("start").catch(() => {}))));
  }
}

startStatusBar();
new StartPage(byId("page"));
