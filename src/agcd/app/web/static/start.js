/** The start page: what was found in the folder, how many classes it seems to hold, and the first training. */

import { api, count, estimateChart, h, jobPanel, onState, plural, replace, startJob, watchJob } from "./core.js";
import { bindKeys, keyHint } from "./keys.js";

const MOST_CLASSES = 100_000;
const main = document.getElementById("page");
const now = { state: null, isRunning: false, typed: null };
const job = jobPanel();

function step(title, ...children) {
  return h("section", { class: "panel step" }, h("h2", {}, title), children);
}

function fact(number, words) {
  return h("div", { class: "fact" }, h("strong", { class: "numbers" }, count(number)),
    h("span", { class: "muted" }, words));
}

function picturesStep(state) {
  return step("Your pictures",
    h("div", { class: "facts" }, fact(state.n_images, "pictures"), fact(state.n_seeds, "labels known already"),
      fact(state.n_classes - state.n_novel, "known classes"),
      state.n_test ? fact(state.n_test, "kept for testing") : null,
      state.n_set_aside ? fact(state.n_set_aside, "set aside") : null),
    state.health.length ? h("ul", { class: "health" }, state.health.map((line) => h("li", {}, line))) : null);
}

/** The one thing to do next: Enter does it, wherever the focus is. */
function primary(words, run) {
  const properties = { type: "button", class: "button primary large", disabled: now.isRunning, onclick: run };
  return h("button", properties, words, " ", keyHint("go"));
}

function prepareStep() {
  return step("Prepare",
    h("p", {}, "The pictures are read once, and the number of classes that they hold is estimated. ",
      "Nothing leaves this computer."),
    h("div", {}, primary("Prepare", prepare)));
}

function prepare() {
  return startJob("prepare").catch(() => {});
}

function estimateWords({ n, low, high }) {
  const range = low === high ? "no other number explains your labels as well"
    : `between ${low} and ${high} explain your labels about as well`;
  return h("p", { class: "lead" }, h("strong", {}, `About ${n} classes`), ` (${range})`);
}

function numberField(state) {
  const input = h("input", { class: "input number", type: "number", min: 2, max: MOST_CLASSES, step: 1, required: true,
    value: now.typed ?? state.n_slots ?? state.estimate?.n ?? "", disabled: state.n_slots_fixed || now.isRunning });
  input.addEventListener("input", () => (now.typed = input.value));
  input.addEventListener("keydown", (event) => event.key === "Enter" && train());
  return h("label", { class: "field field-row" }, h("span", {}, "Look for"), input, h("span", {}, "classes"));
}

function trainStep(state) {
  const { estimate } = state;
  const words = h("div", { class: "train-words" },
    estimate ? estimateWords(estimate) : null,
    h("p", { class: "muted" }, "If in doubt take rather more: groups that belong together are easily merged later."),
    numberField(state), h("div", {}, primary("Start training", train)));
  const chart = estimate && estimate.curve.length > 1 ? h("div", {}, estimateChart(estimate),
    h("p", { class: "hint" },
      "How well each number of classes explains the known labels; the shaded range does about equally well.")) : null;
  return step("How many classes?", h("div", { class: chart ? "train" : null }, words, chart));
}

async function train() {
  const { state } = now;
  const input = main.querySelector("input.number");
  if (!input.disabled && !input.reportValidity()) return;
  const n = Number(input.value);
  try {
    if (!state.n_slots_fixed && n && n !== state.n_slots) await api.post("/api/n-classes", { n });
    await startJob("round");
  } catch {
    // The sentence was shown already, and the button is still there.
  }
}

function doneStep(state) {
  const rounds = state.n_finished - 1;
  const hasBegun = rounds > 0 || state.n_answers > 0;
  return step(rounds === 0 ? "The model is trained" : `${plural(rounds, "round")} trained`,
    h("div", { class: "facts" }, fact(state.n_answers, "answers so far"), fact(state.n_novel, "new classes found"),
      fact(state.n_slots ?? 0, "groups looked for"), fact(state.n_open, "questions left")),
    h("p", {}, state.n_open ? "The model has chosen the pictures that it would learn most from."
      : "There are no open questions: train the next round on the label page."),
    h("div", { class: "toolbar" },
      h("a", { class: "button primary large", href: "/label" }, hasBegun ? "Go on labelling" : "Start labelling", " ",
        keyHint("go")),
      h("a", { class: "button large", href: "/classes" }, "Look at the classes")));
}

function nextStep(state) {
  if (state.n_finished > 0) return doneStep(state);
  return state.estimate || state.n_slots ? trainStep(state) : prepareStep();
}

function draw() {
  if (!now.state) return;
  const hadFocus = document.activeElement?.matches("input.number");
  const steps = [picturesStep(now.state), job.element, nextStep(now.state)];
  replace(main, h("div", { class: "start" }, h("h1", {}, now.state.name), steps));
  if (hadFocus) main.querySelector("input.number")?.focus();
}

const go = () => main.querySelector(".button.primary")?.click();
bindKeys("start", { go: { label: "The next step", key: "Enter", run: go } });
onState((state) => {
  now.state = state;
  draw();
});
watchJob((found) => {
  const isRunning = found.state === "running";
  if (isRunning === now.isRunning) return;
  now.isRunning = isRunning;
  draw();
});
