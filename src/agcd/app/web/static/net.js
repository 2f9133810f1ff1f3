/** Talking to the server: JSON, with retries that carry the same uid and therefore count once. */

import { delay } from "./dom.js";
import { toast } from "./toast.js";

const WAITS_MS = [500, 1000, 2000, 4000, 8000];
const TIMEOUT_MS = 30_000;
const LOGGED_OUT = 401;
// A server that was started anew does not know this browser; when the new link was opened in another tab it does.
const TEMPORARY = new Set([0, LOGGED_OUT, 502, 503, 504]);

/** What went wrong, in one sentence; `status` is 0 where the server could not be reached. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  get isTemporary() {
    return TEMPORARY.has(this.status);
  }
}

const saving = { pending: 0, retrying: 0, isCutOff: false, isLoggedOut: false };
const savingListeners = new Set();
const answerListeners = new Set();

function savingWord() {
  if (saving.isLoggedOut) return "logged-out";
  if (saving.pending === 0) return saving.isCutOff ? "offline" : "saved";
  return saving.retrying > 0 ? "retrying" : "saving";
}

function changeSaving(change) {
  const before = `${savingWord()} ${saving.pending}`;
  Object.assign(saving, change);
  if (before === `${savingWord()} ${saving.pending}`) return;
  for (const listener of savingListeners) listener(savingWord(), saving.pending);
}

/** Call back with "saved", "saving", "retrying", "offline" or "logged-out" and how many are unsaved, now and later. */
export function onSaving(callback) {
  savingListeners.add(callback);
  callback(savingWord(), saving.pending);
  return () => savingListeners.delete(callback);
}

/** Call back with every answer of the server to a request that changed something. */
export function onAnswer(callback) {
  answerListeners.add(callback);
}

/** A new id for a request that changes something. */
export function newUid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function ask(method, path, body) {
  const request = { method, credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS) };
  if (body !== undefined) {
    request.headers = { "Content-Type": "application/json" };
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, request);
  } catch {
    throw new ApiError("The server does not answer.", 0);
  }
  const answer = await response.json().catch(() => null);
  const { ok, status } = response;
  if (!ok) throw new ApiError(answer?.error ?? `The server answered with error ${status}.`, status);
  return answer;
}

async function askAgain(method, path, body, { retries = WAITS_MS.length, onRetry = () => {} }) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await ask(method, path, body);
      changeSaving({ isCutOff: false, isLoggedOut: false });
      return answer;
    } catch (error) {
      changeSaving({ isCutOff: error.isTemporary, isLoggedOut: error.status === LOGGED_OUT });
      if (!error.isTemporary || attempt >= retries) throw error;
      if (attempt === 0) onRetry();
      await delay(WAITS_MS[Math.min(attempt, WAITS_MS.length - 1)]);
    }
  }
}

async function loud(isQuiet, work) {
  try {
    return await work();
  } catch (error) {
    if (!isQuiet) toast(error.message, { isError: true });
    throw error;
  }
}

async function change(method, path, body, options) {
  let retrying = 0;
  const onRetry = () => {
    retrying = 1;
    changeSaving({ retrying: saving.retrying + 1 });
  };
  changeSaving({ pending: saving.pending + 1 });
  try {
    await options.after;
    const answer = await askAgain(method, path, body, { ...options, onRetry });
    for (const listener of answerListeners) listener(answer);
    return answer;
  } finally {
    changeSaving({ pending: saving.pending - 1, retrying: saving.retrying - retrying });
  }
}

let lastQueued = Promise.resolve();

function queue(path, body, options = {}) {
  const patient = { ...options, after: lastQueued, retries: Infinity };
  const work = loud(options.quiet, () => change("POST", path, body, patient));
  lastQueued = work.catch(() => {});
  return work;
}

/**
 * Requests. All of them resolve to the parsed answer; after an error they show its sentence and reject with ApiError.
 * Options: quiet (show nothing), retries (how often to try again when the server cannot be reached).
 * `queue` posts one after the other, in order, and tries each until the server has answered.
 */
export const api = {
  get: (path, options = {}) => loud(options.quiet, () => askAgain("GET", path, undefined, options)),
  post: (path, body, options = {}) => loud(options.quiet, () => change("POST", path, body, options)),
  queue,
  del: (path, options = {}) => loud(options.quiet, () => change("DELETE", path, undefined, options)),
};

addEventListener("beforeunload", (event) => {
  if (saving.pending > 0) event.preventDefault();
});
