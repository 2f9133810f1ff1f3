/** The progress: how good the names are, what each training changed, and what can be taken away. */

import { panel } from "../components/controls.js";
import { Downloads } from "../components/downloads.js";
import { FAILED, jobPanel } from "../components/jobPanel.js";
import { actionButton, bindKeys } from "../components/keyBindings.js";
import { roundsChart } from "../components/roundCharts.js";
import { auditResult, expertsTable, headline, tiles, trainingsTable } from "../components/roundFigures.js";
import { startStatusBar } from "../components/statusBar.js";
import { byId, h, replace, setText } from "../lib/dom.js";
import { api, newUid } from "../lib/net.js";
import { onState, refreshState, startJob, watchJob } from "../lib/polling.js";
import { plural, say, wordFor } from "../lib/words.js";

/** @typedef {Api["State"]} State */
/** @typedef {Api["Job"]} Job */

const AUDITED = { min: 5, max: 1000, value: 30 };
const WHY_AUDIT = [say`A second opinion: name random pictures without seeing what they are called.`,
  "Nothing is learned from these answers, unless you say so at the end."].join(" ");
const BY_ITSELF = "It also starts by itself when enough has been answered.";
const NOTHING_YET = say`Nothing can be said before the pictures are looked at.`;
const CANCELLED = "The last work was cancelled; no answer is lost.";

/**
 * Why nothing can be learned now, or from what.
 * @param {State | null} state
 * @param {Job | null} job
 */
function reason(state, job) {
  if (job?.state === "running") return "Work goes on in the background. You can go on labelling meanwhile.";
  if (!state) return "";
  if (!state.is_live) return say`The pictures have not been looked at yet: the page Start begins with that.`;
  if (!state.is_due) return "The model has learned from everything said so far.";
  const n = state.n_new_answers;
  const what = n ? `${plural(n, "answer")} ${wordFor(n, "waits", "wait")} to be learned from.`
    : "There is something new to learn.";
  return state.trains_itself ? `${what} ${BY_ITSELF}` : what;
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
  element = panel("Learning", this.reason, this.button, jobPanel(), this.ending);

  constructor() {
    this.element.classList.add("train-panel");
    this.update({}); // before anything is known the button does nothing, and looks so
  }

  get isRunning() {
    return this.job?.state === "running";
  }

  canTrain() {
    return Boolean(this.state?.is_live && this.state.is_due) && this.job !== null && !this.isRunning;
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
  result = h("p", { class: "audit-result", hidden: true });

  /** @param {() => Promise<void>} reload */
  constructor(reload) {
    this.reload = reload;
    const submit = (/** @type {SubmitEvent} */ event) => {
      event.preventDefault();
      this.draw().catch(() => {});
    };
    this.element = panel("Check blind", h("p", { class: "muted" }, WHY_AUDIT), this.result,
      h("form", { class: "toolbar", onsubmit: submit },
        h("label", { class: "tool-field" }, this.input, h("span", {}, say`random pictures`)),
        h("button", { type: "submit", class: "button" }, "Draw them")),
      this.open);
  }

  async draw() {
    await api.post("/api/v1/audit", { uid: newUid(), n: Number(this.input.value) });
    await Promise.all([this.reload(), refreshState()]);
    this.open.querySelector("a")?.focus();
  }

  /**
   * @param {number} nOpen
   * @param {Api["AuditScore"] | null | undefined} last
   */
  show(nOpen, last) {
    this.result.hidden = !last;
    replace(this.result, last ? auditResult(last) : null);
    this.open.hidden = nOpen === 0;
    replace(this.open, h("a", { class: "button primary", href: "/label?audit=1" }, "Answer them blind"),
      h("span", { class: "muted" }, `${plural(nOpen, "picture")} ${wordFor(nOpen, "waits", "wait")}`));
  }
}

/** @param {Api["RoundCard"][]} rounds */
function forExperts(rounds) {
  return h("details", { class: "panel experts" }, h("summary", {}, "For experts"), expertsTable(rounds));
}

class RoundsPage {
  downloads = new Downloads();
  last = h("div", { class: "rounds-last" });
  experts = h("div", {});
  forecast = h("ul", { class: "forecast" });

  /** @param {HTMLElement} main */
  constructor(main) {
    bindKeys("rounds", { train: { label: "Learn from my answers now", key: "l",
      run: () => startJob("train").catch(() => {}), when: () => this.train.canTrain() } });
    this.train = new TrainBox();
    this.audit = new AuditBox(() => this.load());
    main.append(...this.build());
    onState((state) => this.train.update({ state }));
    watchJob((job) => this.takeJob(job));
  }

  build() {
    return [h("header", { class: "page-head rounds-head" }, h("h1", {}, "Progress")),
      h("div", { class: "rounds-area" },
        h("div", { class: "rounds-main" }, panel("How good the names are", this.forecast), this.last),
        h("div", { class: "rounds-side" }, this.train.element, this.audit.element)),
      h("div", { class: "rounds-below" }, this.downloads.element, this.experts)];
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
    const found = await api.get("/api/v1/rounds").catch(() => null);
    if (!found) return;
    const { rounds, forecast } = found;
    const sentences = forecast.sentences.length ? forecast.sentences : [NOTHING_YET];
    replace(this.forecast, sentences.map((text) => h("li", {}, text)));
    replace(this.last, rounds.length ? panel("The classifier", h("p", {}, headline(rounds)), tiles(rounds),
      rounds.length > 1 ? [roundsChart(rounds), trainingsTable(rounds)] : null) : null);
    replace(this.experts, rounds.length ? forExperts(rounds) : null);
    this.audit.show(found.n_audit_open, rounds.findLast(({ audit }) => audit)?.audit);
  }
}

startStatusBar();
new RoundsPage(byId("page")).load();
