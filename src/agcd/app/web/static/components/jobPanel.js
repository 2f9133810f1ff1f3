/** How far the work in the background is: the panel with stage, bar, time left and Cancel. */

import { h, setText } from "../lib/dom.js";
import { cancelJob, watchJob } from "../lib/polling.js";
import { capital, count, duration } from "../lib/words.js";
import { plainButton } from "./controls.js";
import { confirmDialog } from "./dialogs.js";

/** @typedef {Api["Job"]} Job */

/** What is said where the server does not say why. */
export const FAILED = "The work in the background failed.";

/**
 * The share of the present stage that is done, or null where nobody knows.
 * @param {Job} job
 */
export function shareDone(job) {
  return job.total > 0 ? Math.min(1, job.done / job.total) : null;
}

/**
 * "training round 2" → "Training round 2".
 * @param {Job} job
 */
export function stageWord(job) {
  return capital(job.stage || "working");
}

/**
 * "about 3 min left", or nothing.
 * @param {Job} job
 */
export function leftWord(job) {
  return job.left === null ? "" : `about ${duration(job.left)} left`;
}

/**
 * Set a bar to a share; null makes it move to and fro.
 * @param {HTMLElement} bar
 * @param {number | null} share
 */
export function setBar(bar, share) {
  bar.classList.toggle("is-unknown", share === null);
  if (share === null) bar.removeAttribute("aria-valuenow");
  else bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
  const fill = /** @type {HTMLElement} */ (bar.firstElementChild);
  fill.style.setProperty("transform", share === null ? "" : `scaleX(${share})`);
}

/**
 * A bar for setBar().
 * @param {string} [label] what it measures
 */
export function barElement(label = "Progress") {
  const meaning = { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 };
  return h("div", { class: "bar", ...meaning }, h("div", { class: "bar-fill" }));
}

async function askToCancel() {
  const isSure = await confirmDialog({ title: "Cancel the work in the background?",
    text: "No answer is lost; it can be started again at any time.", yes: "Cancel the work", no: "Go on" });
  if (isSure) await cancelJob().catch(() => {});
}

/** A panel that shows the running job, or why the last one failed; hidden otherwise. */
export function jobPanel() {
  const stage = h("strong", {});
  const numbers = h("span", { class: "muted numbers" });
  const left = h("span", { class: "muted numbers" });
  const bar = barElement();
  const head = h("div", { class: "job-head" }, stage, numbers, left, plainButton("Cancel", askToCancel, "small"));
  const running = h("div", { class: "job-running" }, head, bar);
  const error = h("p", { class: "error" });
  const element = h("section", { class: "job-panel", "aria-label": "Work in the background", hidden: true },
    running, error);
  watchJob((job) => {
    element.hidden = job.state !== "running" && job.state !== "failed";
    running.hidden = job.state !== "running";
    setText(error, job.state === "failed" ? (job.error ?? FAILED) : "");
    if (running.hidden) return;
    setText(stage, stageWord(job));
    setText(numbers, job.total > 0 ? `${count(job.done)} of ${count(job.total)}` : "");
    setText(left, leftWord(job));
    setBar(bar, shareDone(job));
  });
  return element;
}
