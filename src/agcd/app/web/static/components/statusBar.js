/** What every page has: the strip under the navigation, and messages about what was refused or failed. */

import { isNamed, LONGEST_PERSON, onWho, setWho, who } from "../lib/annotator.js";
import { byId, setText } from "../lib/dom.js";
import { onRefusal, onSaving } from "../lib/net.js";
import { onFigures, onState, refreshState, watchJob } from "../lib/polling.js";
import { capital, count, percent, plural, wordFor } from "../lib/words.js";
import { askDialog } from "./dialogs.js";
import { FAILED, leftWord, setBar, shareDone, stageWord } from "./jobPanel.js";
import { toast } from "./toast.js";

/** @type {Record<import("../lib/net.js").Saving["word"], string>} */
const SAVING_WORDS = {
  saved: "All saved",
  saving: "Saving…",
  retrying: "Not saved yet – retrying",
  offline: "No answer from the server – retrying",
  "logged-out": "Logged out: open the new link of agcd serve in another tab, or log in there, then this page goes on",
};
const SHOW_SAVING_AFTER_MS = 300;

/** @param {string} name */
function part(name) {
  return byId(`strip-${name}`);
}

/**
 * A number of the strip with the word that goes with it.
 * @param {string} name
 * @param {number} n
 * @param {string} one
 * @param {string} many
 */
function showCount(name, n, one, many) {
  setText(part(name), count(n));
  setText(part(`${name}-word`), wordFor(n, one, many));
}

/** Say it when pictures come while one looks. */
function announcePictures() {
  /** @type {number | null} */
  let before = null;
  onState((state) => {
    const nNew = before === null ? 0 : state.n_images - before;
    if (nNew > 0) toast(`${plural(nNew, "new picture")} in the project.`);
    before = state.n_images;
  });
}

/** @param {Api["State"]} state */
function showState(state) {
  showCount("answers", state.n_answers, "answer so far", "answers so far");
  showCount("found", state.n_novel, "class found by you", "classes found by you");
}

/** @param {Api["Figures"] | null} figures */
function showFigures(figures) {
  setText(part("figure"), figures ? capital(figures.headline) : "");
}

/** @param {Api["Job"]} job */
function showJob(job) {
  const isRunning = job.state === "running";
  part("job").hidden = !isRunning;
  part("bar").classList.toggle("is-on", isRunning);
  if (!isRunning) return;
  const share = shareDone(job);
  setText(part("stage"), stageWord(job));
  setText(part("share"), share === null ? "" : ` · ${percent(share)}`);
  setText(part("left"), job.left === null ? "" : ` · ${leftWord(job)}`);
  setBar(part("bar"), share);
}

/** Say it when work that was seen running fails. */
function announceFailures() {
  let wasRunning = false;
  watchJob((job) => {
    if (wasRunning && job.state === "failed") toast(job.error ?? FAILED, { isError: true });
    wasRunning = job.state === "running";
  });
}

/** Most answers are stored in a blink: "Saving…" appears only where it takes longer, so that nothing flickers. */
function showSaving() {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  onSaving(({ word, nUnsaved }) => {
    clearTimeout(timer);
    const waiting = word === "logged-out" && nUnsaved > 0 ? ` (${plural(nUnsaved, "answer")} not saved yet)` : "";
    const show = () => {
      setText(part("saved"), SAVING_WORDS[word] + waiting);
      part("saved").dataset.saved = word;
    };
    if (word === "saving") timer = setTimeout(show, SHOW_SAVING_AFTER_MS);
    else show();
  });
}

/** The browser asks before the page is left while something is unsaved. */
function guardUnsaved() {
  let hasUnsaved = false;
  onSaving(({ nUnsaved }) => (hasUnsaved = nUnsaved > 0));
  addEventListener("beforeunload", (event) => {
    if (hasUnsaved) event.preventDefault();
  });
}

async function askWho() {
  const name = await askDialog({ title: "Who answers?",
    text: "The name is stored with every answer. This browser remembers it.",
    label: "Your name", value: who(), longest: LONGEST_PERSON });
  if (name) setWho(name);
}

/** Bring the strip to life; every page calls it once. */
export function startStatusBar() {
  onRefusal((sentence) => toast(sentence, { isError: true }));
  onState(showState);
  onFigures(showFigures);
  onWho((name) => setText(part("who"), name));
  if (!isNamed) part("who").parentElement?.addEventListener("click", askWho);
  showSaving();
  guardUnsaved();
  announceFailures();
  announcePictures();
  watchJob(showJob);
  refreshState().catch(() => {});
}
