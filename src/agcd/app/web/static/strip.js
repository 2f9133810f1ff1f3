/** The strip under the navigation: counts, whether everything is saved, work in the background, and who answers. */

import { askDialog } from "./dialogs.js";
import { count, plural, setText } from "./dom.js";
import { onState, refreshState, watchJob } from "./live.js";
import { onWho, setWho, who } from "./me.js";
import { onSaving } from "./net.js";
import { leftWord, setBar, shareDone, stageWord } from "./progress.js";

const SAVING_WORDS = {
  saved: "All saved",
  saving: "Saving…",
  retrying: "Not saved yet – retrying",
  offline: "No answer from the server – retrying",
  "logged-out": "Logged out: open the new link of agcd serve in another tab, then this page goes on",
};
const SHOW_SAVING_AFTER_MS = 300;

function part(name) {
  return document.getElementById(`strip-${name}`);
}

function showState(state) {
  setText(part("answers"), count(state.n_answers));
  setText(part("new"), count(state.n_novel));
  setText(part("left"), count(state.n_open));
}

function showJob(job) {
  const isRunning = job.state === "running";
  part("job").hidden = !isRunning;
  part("bar").classList.toggle("is-on", isRunning);
  if (!isRunning) return;
  const share = shareDone(job);
  const words = [stageWord(job), share === null ? "" : `${Math.round(share * 100)} %`, leftWord(job)];
  setText(part("job"), words.filter(Boolean).join(" · "));
  setBar(part("bar"), share);
}

/** Most answers are stored in a blink: "Saving…" appears only where it takes longer, so that nothing flickers. */
function showSaving() {
  let timer = null;
  onSaving((word, nUnsaved) => {
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

async function askWho() {
  const name = await askDialog({ title: "Who answers?",
    text: "The name is stored with every answer. This browser remembers it.",
    label: "Your name", value: who(), longest: 60 });
  if (name) setWho(name);
}

/** Bring the strip to life; called once by core.js. */
export function startStrip() {
  if (!part("answers")) return;
  onState(showState);
  onWho((name) => setText(part("who"), name));
  part("who").parentElement.addEventListener("click", askWho);
  showSaving();
  watchJob(showJob);
  refreshState().catch(() => {});
}
