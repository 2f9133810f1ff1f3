/** What changes while one looks: the state of the project and the work in the background. */

import { api, onAnswer } from "./net.js";
import { toast } from "./toast.js";

const POLL_RUNNING_MS = 1000;
const POLL_IDLE_MS = 5000;
const ENDED = new Set(["done", "failed", "cancelled"]);

let state = null;
let job = null;
let timer = null;
let turn = 0;
const stateListeners = new Set();
const jobListeners = new Set();

function takeState(newState) {
  // Answers may overtake each other: never go back behind an event that was shown already.
  if (state && newState.last_event < state.last_event) return;
  state = newState;
  for (const listener of [...stateListeners]) listener(state);
}

onAnswer((answer) => {
  if (answer && typeof answer.state === "object" && answer.state !== null) takeState(answer.state);
});

/** Ask for the state (GET /api/state), tell everyone who listens, and return it. */
export async function refreshState() {
  takeState(await api.get("/api/state"));
  return state;
}

/** Call back with the state, now (where known) and at every change. Returns a function that ends it. */
export function onState(callback) {
  stateListeners.add(callback);
  if (state) callback(state);
  return () => stateListeners.delete(callback);
}

/** Call back with the job, now (where known) and at every poll. One poller serves all. Returns a function to end it. */
export function watchJob(callback) {
  jobListeners.add(callback);
  if (job) callback(job);
  if (turn === 0) poll();
  return () => jobListeners.delete(callback);
}

async function poll() {
  clearTimeout(timer);
  turn += 1;
  const mine = turn;
  const found = await api.get("/api/job", { quiet: true, retries: 0 }).catch(() => null);
  if (mine !== turn) return;
  if (found) takeJob(found);
  timer = setTimeout(poll, job?.state === "running" ? POLL_RUNNING_MS : POLL_IDLE_MS);
}

function takeJob(found) {
  const hasEnded = job?.state === "running" && ENDED.has(found.state);
  job = found;
  if (hasEnded) announceEnd();
  for (const listener of [...jobListeners]) listener(job);
}

function announceEnd() {
  if (job.state === "failed") toast(job.error ?? "The work in the background failed.", { isError: true });
  refreshState().catch(() => {});
}

/** Start work in the background: kind is "prepare", "round" or "export"; extra may hold n_questions. */
export async function startJob(kind, extra = {}) {
  await api.post("/api/job", { kind, ...extra });
  // Known to run before the first poll: an end within the first second is noticed too.
  takeJob({ state: "running", kind, stage: "starting", done: 0, total: 0, left: null, error: null, loss: [] });
  await poll();
}

/** Cancel the work in the background; nothing is lost. */
export async function cancelJob() {
  await api.del("/api/job");
  await poll();
}
