/** How far the work in the background is: the panel with stage, bar, time left, loss and Cancel. */

import { sparkline } from "./charts.js";
import { confirmDialog } from "./dialogs.js";
import { count, duration, h, replace, setText } from "./dom.js";
import { cancelJob, watchJob } from "./live.js";

/** The share of the present stage that is done, or null where nobody knows. */
export function shareDone(job) {
  return job.total > 0 ? Math.min(1, job.done / job.total) : null;
}

/** "training round 2" → "Training round 2". */
export function stageWord(job) {
  const stage = job.stage || "working";
  return stage[0].toUpperCase() + stage.slice(1);
}

/** "about 3 min left", or nothing. */
export function leftWord(job) {
  return job.left === null || job.left === undefined ? "" : `about ${duration(job.left)} left`;
}

/** Set a bar to a share; null makes it move to and fro. */
export function setBar(bar, share) {
  bar.classList.toggle("is-unknown", share === null);
  if (share === null) bar.removeAttribute("aria-valuenow");
  else bar.setAttribute("aria-valuenow", String(Math.round(share * 100)));
  bar.firstChild.style.setProperty("transform", share === null ? "" : `scaleX(${share})`);
}

/** A bar for setBar(). */
export function barElement(label) {
  const meaning = { role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100 };
  return h("div", { class: "bar", ...meaning }, h("div", { class: "bar-fill" }));
}

async function askToCancel() {
  const isSure = await confirmDialog({ title: "Cancel the work in the background?",
    text: "No answer is lost; it can be started again at any time.",
    yes: "Cancel the work", no: "Go on", isDanger: true });
  if (isSure) await cancelJob().catch(() => {});
}

function lossLine(loss) {
  if (loss.length < 2) return null;
  const last = h("span", { class: "muted" }, `loss ${loss.at(-1).toFixed(3)}`);
  return [last, sparkline(loss, "Loss of the epochs so far")];
}

/** A panel that shows the running job, or why the last one failed; hidden otherwise. Returns {element, stop}. */
export function jobPanel() {
  const stage = h("strong", {});
  const numbers = h("span", { class: "muted numbers" });
  const left = h("span", { class: "muted numbers" });
  const bar = barElement("Progress");
  const loss = h("div", { class: "job-loss" });
  const cancel = h("button", { type: "button", class: "button small", onclick: askToCancel }, "Cancel");
  const head = h("div", { class: "job-head" }, stage, numbers, left, cancel);
  const running = h("div", { class: "job-running" }, head, bar, loss);
  const error = h("p", { class: "error" });
  const properties = { class: "job-panel", "aria-label": "Work in the background", hidden: true };
  const element = h("section", properties, running, error);
  const stop = watchJob((job) => {
    element.hidden = job.state !== "running" && job.state !== "failed";
    running.hidden = job.state !== "running";
    setText(error, job.state === "failed" ? (job.error ?? "The work in the background failed.") : "");
    loss.hidden = job.kind !== "round";
    if (running.hidden) return;
    setText(stage, stageWord(job));
    setText(numbers, job.total > 0 ? `${count(job.done)} of ${count(job.total)}` : "");
    setText(left, leftWord(job));
    setBar(bar, shareDone(job));
    replace(loss, lossLine(job.loss));
  });
  return { element, stop };
}
