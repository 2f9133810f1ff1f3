/** The rounds: what the last one changed, what the next answers may buy, and the button that trains again. */

import { panel } from "../components/controls.js";
import { Downloads } from "../components/downloads.js";
import { FAILED, jobPanel } from "../components/jobPanel.js";
import { actionButton, bindKeys } from "../components/keyBindings.js";
import { roundsChart } from "../components/roundCharts.js";
import { headline, roundsTable, tiles } from "../components/roundFigures.js";
import { startStatusBar } from "../components/statusBar.js";
import { byId, h, replace, setText } from "../lib/dom.js";
import { api, newUid } from "../lib/net.js";
import { onState, refreshState, startJob, watchJob } from "../lib/polling.js";
import { plural, wordFor } from "../lib/words.js";

/** @typedef {Api["State"]} State */
/** @typedef {Api["Job"]} Job */

const AUDITED = { min: 5, max: 1000, value: 30 };
const WHY_AUDIT = "Name random pictures without seeing what the model says. How often it says the same is an honest "
  + "estimate of its accuracy; these answers are not trained on.";
const CANCELLED = "The last work was cancelled; no answer is lost.";

/**
 * Why the next round cannot be trained now, or what it would learn from.
 * @param {State | null} state
 * @param {Job | null} job
 */
function reason(state, job) {
  if (job?.state === "running") return "Work is going on. You can go on labelling meanwhile.";
  if (!state) return "";
  if (!state.is_due) return "The model has learned from all answers. Answer some questions first.";
  const n = state.n_new_answers;
  if (n === 0) return "There is something new to learn.";
  return `${plural(n, "answer")} ${wordFor(n, "waits", "wait")} to be learned from.`;
}

/**
 * How the last work ended, where it did not end well.
 * @param {Job | null} job
 */
function ending(job) {
  if (job?.state === "failed") return job.error ?? FAILED;
  return job?.state === "cancelled" ? CANCELLED : "";
}

/** The box with the button, the progress and how the last work ended. */
class TrainBox {
  /** @type {State | null} */
  state = null;
  /** @type {Job | null} */
  job = null;
  reason = h("p", { class: "muted" });
  ending = h("p", { role: "status", hidden: true });
  button = actionButton("train", { class: "primary large" });
  element = panel("Next round", this.reason, this.button, jobPanel(), this.ending);

  constructor() {
    this.element.classList.add("train-panel");
  }

  get isRunning() {
    return this.job?.state === "running";
  }

  canTrain() {
    return Boolean(this.state?.is_due) && this.job !== null && !this.isRunning;
  }

  /** @param {{ state?: State, job?: Job }} change */
  update(change) {
    Object.assign(this, change);
    setText(this.reason, reason(this.state, this.job));
    this.button.disabled = !this.canTrain();
    this.button.hidden = this.isRunning;
    const words = ending(this.job);
    setText(this.ending, words);
    this.ending.hidden = words === "";
    this.ending.classList.toggle("error", this.job?.state === "failed");
  }
}

/** The box that draws a blind sample. */
class AuditBox {
  input = h("input", { class: "input audit-number", type: "number", required: true, ...AUDITED });
  open = h("p", { class: "audit-open", hidden: true });

  /** @param {() => Promise<void>} reload */
  constructor(reload) {
    this.reload = reload;
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.draw().catch(() => {});
    };
    this.element = panel("Check the model blind", h("p", { class: "muted" }, WHY_AUDIT),
      h("form", { class: "toolbar", onsubmit: submit },
        h("label", { class: "tool-field" }, this.input, h("span", {}, "random pictures")),
        h("button", { type: "submit", class: "button" }, "Draw them")),
      this.open);
  }

  async draw() {
    await api.post("/api/audit", { uid: newUid(), n: Number(this.input.value) });
    await Promise.all([this.reload(), refreshState()]);
    this.open.querySelector("a")?.focus();
  }

  /** @param {number} nOpen */
  show(nOpen) {
    this.open.hidden = nOpen === 0;
    replace(this.open, h("a", { class: "button primary", href: "/label?audit=1" }, "Answer them blind"),
      h("span", { class: "muted" }, `${plural(nOpen, "picture")} ${wordFor(nOpen, "waits", "wait")}`));
  }
}

class RoundsPage {
  downloads = new Downloads();
  sentence = h("p", { class: "rounds-headline" });
  last = h("div", { class: "rounds-last" });
  table = h("div", {});
  forecast = h("ul", { class: "forecast" });

  /** @param {HTMLElement} main */
  constructor(main) {
    bindKeys("rounds", { train: { label: "Train the next round", key: "t",
      run: () => startJob("round").catch(() => {}), when: () => this.train.canTrain() } });
    this.train = new TrainBox();
    this.audit = new AuditBox(() => this.load());
    main.append(...this.build());
    onState((state) => this.train.update({ state }));
    watchJob((job) => this.takeJob(job));
  }

  build() {
    return [h("header", { class: "page-head rounds-head" }, h("h1", {}, "Rounds"), this.sentence),
      h("div", { class: "rounds-area" },
        h("div", { class: "rounds-main" }, this.last, panel("What the next answers are likely to buy", this.forecast)),
        h("div", { class: "rounds-side" }, this.train.element, this.audit.element)),
      h("div", { class: "rounds-below" }, this.downloads.element, this.table)];
  }

  /** @param {Job} job */
  takeJob(job) {
    const hasEnded = this.train.isRunning && job.state !== "running";
    this.train.update({ job });
    this.downloads.setBusy(job.state === "running");
    if (hasEnded) this.load();
  }

  async load() {
    this.downloads.show();
    const found = await api.get("/api/rounds").catch(() => null);
    if (!found) return;
    const { rounds, forecast } = found;
    setText(this.sentence, rounds.length ? headline(rounds) : "No round has been trained yet.");
    replace(this.last, rounds.length ? tiles(rounds) : null,
      rounds.length > 1 ? panel("How the rounds went", roundsChart(rounds)) : null);
    replace(this.table, rounds.length ? panel("All rounds", roundsTable(rounds)) : null);
    const sentences = forecast.sentences.length ? forecast.sentences : ["Nothing can be said before the first round."];
    replace(this.forecast, sentences.map((text) => h("li", {}, text)));
    this.audit.show(found.n_audit_open);
  }
}

startStatusBar();
new RoundsPage(byId("page")).load();
