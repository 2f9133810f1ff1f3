/** Talking to the server: JSON, with retries that carry the same uid and therefore count once. */

import { addressOf } from "./address.js";
import { delay } from "./async.js";
import { Signal } from "./signal.js";

const WAITS_MS = [500, 1000, 2000, 4000, 8000];
const TIMEOUT_MS = 30_000;
const LOGGED_OUT = 401;
// A server that was started anew does not know this browser; when the new link was opened in another tab it does.
const TEMPORARY = new Set([0, LOGGED_OUT, 502, 503, 504]);

/** What went wrong, in one sentence; `status` is 0 where the server could not be reached. */
class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} status
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }

  get isTemporary() {
    return TEMPORARY.has(this.status);
  }
}

/**
 * What is being saved. `word` says it in one; `nUnsaved` requests wait for the server's answer.
 * @typedef {{ word: "saved" | "saving" | "retrying" | "offline" | "logged-out", nUnsaved: number }} Saving
 */

const requests = { pending: 0, retrying: 0, isCutOff: false, isLoggedOut: false };
const saving = new Signal(/** @type {Saving} */ ({ word: "saved", nUnsaved: 0 }));
const refused = new Signal(/** @type {string | null} */ (null));
const changed = new Signal(/** @type {unknown} */ (null));

/** @returns {Saving["word"]} */
function savingWord() {
  if (requests.isLoggedOut) return "logged-out";
  if (requests.pending === 0) return requests.isCutOff ? "offline" : "saved";
  return requests.retrying > 0 ? "retrying" : "saving";
}

/** @param {Partial<typeof requests>} news */
function changeRequests(news) {
  Object.assign(requests, news);
  const now = { word: savingWord(), nUnsaved: requests.pending };
  if (now.word !== saving.value.word || now.nUnsaved !== saving.value.nUnsaved) saving.set(now);
}

/**
 * Call back with what is being saved, now and at every change. Returns a function that ends it.
 * @param {(saving: Saving) => unknown} callback
 */
export function onSaving(callback) {
  return saving.follow(callback);
}

/**
 * Call back with the sentence of every request that was refused and not meant to be quiet.
 * @param {(sentence: string) => unknown} callback
 */
export function onRefusal(callback) {
  return refused.follow((sentence) => sentence !== null && callback(sentence));
}

/**
 * Call back with every answer of the server to a request that changed something.
 * @param {(answer: unknown) => unknown} callback
 */
export function onAnswer(callback) {
  return changed.follow((answer) => answer !== null && callback(answer));
}

/** A new id for a request that changes something. */
export function newUid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/**
 * How a request is sent. `quiet`: show nothing when it is refused. `retries`: how often to try again when the server
 * cannot be reached. `after`: wait for this first.
 * @typedef {{ quiet?: boolean, retries?: number, after?: Promise<unknown> }} Options
 */

/**
 * @param {string} method
 * @param {string} address
 * @param {unknown} body
 */
async function ask(method, address, body) {
  /** @type {RequestInit} */
  const request = { method, credentials: "same-origin", signal: AbortSignal.timeout(TIMEOUT_MS) };
  if (body !== undefined) {
    request.headers = { "Content-Type": "application/json" };
    request.body = JSON.stringify(body);
  }
  const response = await fetch(address, request).catch(() => null);
  if (!response) throw new ApiError("The server does not answer.", 0);
  const answer = await response.json().catch(() => null);
  const { ok, status } = response;
  if (!ok) throw new ApiError(answer?.error ?? `The server answered with error ${status}.`, status);
  return answer;
}

/**
 * @param {string} method
 * @param {string} address
 * @param {unknown} body
 * @param {Options & { onRetry?: () => void }} options
 */
async function askAgain(method, address, body, { retries = WAITS_MS.length, onRetry = () => {} }) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      const answer = await ask(method, address, body);
      changeRequests({ isCutOff: false, isLoggedOut: false });
      return answer;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      changeRequests({ isCutOff: error.isTemporary, isLoggedOut: error.status === LOGGED_OUT });
      if (!error.isTemporary || attempt >= retries) throw error;
      if (attempt === 0) onRetry();
      await delay(WAITS_MS[Math.min(attempt, WAITS_MS.length - 1)]);
    }
  }
}

/**
 * @template T
 * @param {Options} options
 * @param {() => Promise<T>} work
 */
async function loud(options, work) {
  try {
    return await work();
  } catch (error) {
    if (!options.quiet && error instanceof Error) refused.set(error.message);
    throw error;
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {unknown} body
 * @param {Options} options
 */
async function change(method, path, body, options) {
  let retrying = 0;
  const onRetry = () => {
    retrying = 1;
    changeRequests({ retrying: requests.retrying + 1 });
  };
  changeRequests({ pending: requests.pending + 1 });
  try {
    await options.after;
    const answer = await askAgain(method, path, body, { ...options, onRetry });
    changed.set(answer);
    return answer;
  } finally {
    changeRequests({ pending: requests.pending - 1, retrying: requests.retrying - retrying });
  }
}

/**
 * Read. `values` are the parameters, those in the path included.
 * @template {PathsOf<"get">} P
 * @param {P} path
 * @param {ValuesOf<P>} [values]
 * @param {Options} [options]
 * @returns {Promise<AnswerTo<"get", P>>}
 */
function get(path, values, options = {}) {
  return loud(options, () => askAgain("GET", addressOf(path, values ?? {}), undefined, options));
}

/**
 * Change something.
 * @template {PathsOf<"post">} P
 * @template {BodyOf<P>} B
 * @param {P} path
 * @param {Exactly<B, BodyOf<P>>} body
 * @param {Options} [options]
 * @returns {Promise<AnswerTo<"post", P>>}
 */
function post(path, body, options = {}) {
  return loud(options, () => change("POST", path, body, options));
}

/** @type {Promise<unknown>} */
let lastQueued = Promise.resolve();

/**
 * Change something, after everything that was queued before, and try until the server has answered.
 * @template {PathsOf<"post">} P
 * @template {BodyOf<P>} B
 * @param {P} path
 * @param {Exactly<B, BodyOf<P>>} body
 * @returns {Promise<AnswerTo<"post", P>>}
 */
function queue(path, body) {
  const work = post(path, body, { after: lastQueued, retries: Infinity });
  lastQueued = work.catch(() => {});
  return work;
}

/**
 * Take something away.
 * @template {PathsOf<"delete">} P
 * @param {P} path
 * @returns {Promise<AnswerTo<"delete", P>>}
 */
function del(path) {
  return loud({}, () => change("DELETE", path, undefined, {}));
}

/** Requests. They resolve to the parsed answer; a refusal is told to onRefusal() and rejects with ApiError. */
export const api = { get, post, queue, del };
