/** What changes while one looks: the state of the project and the work in the background. */

import { api, onAnswer } from "./net.js";
import { Signal, whenKnown } from "./signal.js";

const POLL_RUNNING_MS = 1000;
const POLL_IDLE_MS = 5000;
const ROUND_KINDS = new Set(["round", "start", "train", "grow"]);
/** @type {Api["Job"]} */
const STARTING = { state: "running", kind: null, stage: "starting", done: 0, total: 0, seconds: 0, left: null,
  error: null, loss: [] };

const state = new Signal(/** @type {Api["State"] | null} */ (null));
const figures = new Signal(/** @type {Api["Figures"] | null} */ (null));
const job = new Signal(/** @type {Api["Job"] | null} */ (null));
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let turn = 0;

/** @param {Api["State"]} found */
function takeState(found) {
  // Answers may overtake each other: never go back behind an event that was shown already.
  if (state.value && found.last_event < state.value.last_event) return;
  const isNews = found.last_event !== state.value?.last_event || found.view !== state.value.view;
  state.set(found);
  if (isNews) refreshFigures();
}

let isAsking = false;
let isStale = false;

/** How good the names are takes the server a moment: it is asked after the answers, one request at a time. */
async function refreshFigures() {
  isStale = true;
  if (isAsking) return;
  isAsking = true;
  while (isStale) {
    isStale = false;
    const found = await api.get("/api/v1/figures", {}, { quiet: true, retries: 0 }).catch(() => null);
    if (found) figures.set(found);
  }
  isAsking = false;
}

/**
 * Call back with how good the names are, now (where known) and after every change.
 * @param {(figures: Api["Figures"]) => unknown} callback
 */
export function onFigures(callback) {
  return figures.follow(whenKnown(callback));
}

onAnswer((answer) => {
  const { state: found } = /** @type {{ state?: unknown }} */ (answer);
  // A job has a state too, which is a word.
  if (typeof found === "object" && found !== null) takeState(/** @type {Api["State"]} */ (found));
});

/** Ask for the state and tell everyone who listens. */
export async function refreshState() {
  takeState(await api.get("/api/v1/state"));
}

/**
 * Call back with the state, now (where known) and at every change. Returns a function that ends it.
 * @param {(state: Api["State"]) => unknown} callback
 */
export function onState(callback) {
  return state.follow(whenKnown(callback));
}

/**
 * Call back with the job, now (where known) and at every poll. One poller serves all. Returns a function to end it.
 * @param {(job: Api["Job"]) => unknown} callback
 */
export function watchJob(callback) {
  const end = job.follow(whenKnown(callback));
  if (turn === 0) poll();
  return end;
}

/**
 * Call back when a round that was trained in the background is done.
 * @param {() => unknown} callback
 */
export function onRoundDone(callback) {
  let wasRunning = false;
  watchJob((found) => {
    if (wasRunning && found.state === "done") callback();
    wasRunning = found.state === "running" && ROUND_KINDS.has(found.kind ?? "");
  });
}

async function poll() {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const found = await api.get("/api/v1/job", {}, { quiet: true, retries: 0 }).catch(() => null);
  if (mine !== turn) return;
  if (found) takeJob(found);
  timer = setTimeout(poll, job.value?.state === "running" ? POLL_RUNNING_MS : POLL_IDLE_MS);
}

/** @param {Api["Job"]} found */
function takeJob(found) {
  const hasEnded = job.value?.state === "running" && found.state !== "running";
  const isFurther = found.stage !== job.value?.stage;
  job.set(found);
  if (hasEnded || isFurther) refreshState().catch(() => {});
}

/**
 * Start work in the background.
 * @param {Requests["StartJob"]["kind"]} kind
 */
export async function startJob(kind) {
  await api.post("/api/v1/job", { kind });
  // Known to run before the first poll: an end within the first second is noticed too.
  takeJob({ ...STARTING, kind });
  await poll();
}

/** Cancel the work in the background; nothing is lost. */
export async function cancelJob() {
  await api.del("/api/v1/job");
  await poll();
}
