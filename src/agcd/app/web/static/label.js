/** The label page: shows one question after the other and stores what is said, without waiting for the server. */

import { askAlso, N_ASKED } from "./also.js";
import { CardView } from "./card.js";
import { api, delay, h, holder, jobPanel, keptByTab, nameDialog, newUid, onState, prefetch, replace, startJob, toast,
  watchJob, who } from "./core.js";
import { auditEnding, beforeTraining, roundEnding, trouble } from "./ending.js";
import { actionButton, bindKeys, LABEL_KEYS } from "./keys.js";

const PATIENCE_MS = 400;
const ASK_AGAIN_MS = 10_000;
const WORDS = { skip: "skipped", unsure: "unsure", junk: "junk" };

const isAudit = new URLSearchParams(location.search).get("audit") === "1";
const main = document.getElementById("page");
const isBlind = keptByTab.get("blind") === true;
const now = { card: null, ending: null, isBlind, turn: 0, state: null, isRunning: false };
const underWay = new Set();
let lastSaved = Promise.resolve();

const view = new CardView({ choose, sameAs, search });

// ------------------------------------------------------------------------------------------ asking the server

function questionPath() {
  const query = new URLSearchParams({ who: who(), holder: holder(), blind: now.isBlind, audit: isAudit });
  for (const row of underWay) query.append("answered", row);
  return `/api/question?${query}`;
}

/** The next question. An answer that is slow to be stored does not hold it up, nor is its row shown again. */
async function askServer() {
  await Promise.race([lastSaved, delay(PATIENCE_MS)]);
  const card = await api.get(questionPath(), { retries: Infinity });
  if (!underWay.has(card.row)) return card;
  await lastSaved;
  return api.get(questionPath(), { retries: Infinity });
}

/** Show the next question, and its picture at once where it is known. */
async function next(upcoming = []) {
  now.turn += 1;
  const mine = now.turn;
  now.card = null;
  view.showComing(upcoming.find((thumb) => !underWay.has(thumb.row)));
  const card = await askServer().catch(() => null);
  if (mine !== now.turn) return;
  if (card) return show(card);
  tools.dataset.mode = "ending";
  replace(stage, trouble(() => next()));
}

function show(card) {
  if (card.row === null) return showEnding(card);
  now.card = card;
  now.ending = null;
  tools.dataset.mode = card.is_blind || card.is_audit ? "blind" : "card";
  if (!view.element.isConnected) replace(stage, view.element);
  view.show(card);
  prefetch(card.upcoming, 1024);
}

// ------------------------------------------------------------------------------------------------- answering

/** Store answers in the background and go on. Every element of `answers` is a Said; the first is about this card. */
function store(answers, words) {
  const { upcoming } = now.card;
  const rows = answers.map((one) => one.row);
  for (const row of rows) underWay.add(row);
  view.said.textContent = `Last: ${words}`;
  const sent = api.queue("/api/answers", { uid: newUid(), who: who(), answers, is_audit: isAudit });
  const isGone = () => rows.forEach((row) => underWay.delete(row));
  lastSaved = sent.then(isGone, () => {
    isGone();
    view.said.textContent = "The last answer was not stored.";
    next();
  });
  next(upcoming);
}

/** The class as it is said to the server: by id, or by name where it is new. */
function classOf({ class_id, name }) {
  return class_id ? { class_id } : { name };
}

function label(picked, alsoRows = []) {
  const rows = [now.card.row, ...alsoRows];
  const many = alsoRows.length ? ` for ${rows.length} pictures` : "";
  store(rows.map((row) => ({ row, kind: "label", ...classOf(picked) })), `“${picked.name}”${many}`);
}

function pass(kind) {
  store([{ row: now.card.row, kind }], WORDS[kind]);
}

async function choose(index) {
  const candidate = now.card?.candidates[index];
  if (!candidate) return;
  if (candidate.is_named) return label(candidate);
  await named({ title: "Name this group", preferNew: true, placeholder: "What is it?", thumbs: candidate.exemplars,
    text: `“${candidate.name}” has no name yet. Its name goes with your answer.` });
}

function sameAs(thumb) {
  if (now.card && thumb?.name) label({ class_id: null, name: thumb.name });
}

function search() {
  return named({ title: "Which class is it?" });
}

/** Ask for a name, then label the picture that was asked about. */
async function named(options) {
  const { card } = now;
  const picked = card && (await nameDialog(options));
  if (picked && card === now.card) label(picked);
}

async function create() {
  const { card } = now;
  if (!card) return;
  const isHidden = card.is_blind || card.is_audit;
  const nearest = isHidden ? Promise.resolve([])
    : api.get(`/api/rows/${card.row}/neighbours?n=${N_ASKED}`).catch(() => []);
  const picked = await nameDialog({ title: "New class", preferNew: true, placeholder: "Name of the new class",
    text: "It can be renamed at any time." });
  if (!picked) return;
  const thumbs = await nearest;
  const also = thumbs.length ? await askAlso(picked.name, { row: card.row, v: card.v }, thumbs) : [];
  if (also && card === now.card) label(picked, also);
}

async function undo() {
  now.card = null;
  const undone = await api.queue("/api/undo", { uid: newUid(), who: who() }).catch(() => null);
  if (undone) view.said.textContent = `Taken back: ${undone.what}`;
  await next();
}

function toggleBlind() {
  now.isBlind = !now.isBlind;
  keptByTab.set("blind", now.isBlind);
  tools.querySelector("[data-action=blind]").setAttribute("aria-pressed", String(now.isBlind));
  next();
}

function accept() {
  if (now.ending && !isAudit) return train();
  if (now.card?.candidates.length) return choose(0);
  return search();
}

function toggleFullscreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => {});
}

// ------------------------------------------------------------------------------------------ nothing left to ask

const job = jobPanel();
const trainButton = h("button", { type: "button", class: "button primary large", onclick: train },
  "Train the next round ", h("kbd", {}, "Enter"));

function showEnding(card) {
  now.card = null;
  now.ending = card;
  tools.dataset.mode = "ending";
  drawEnding();
  if (card.held_by_others) setTimeout(() => now.ending === card && next(), ASK_AGAIN_MS);
}

function drawEnding() {
  if (!now.ending || !now.state) return;
  if (isAudit) replace(stage, auditEnding(now.ending));
  else if (now.state.n_finished === 0 && !now.isRunning) replace(stage, beforeTraining());
  else replace(stage, roundEnding(now.ending, now.state, trainButton, job.element, now.isRunning));
}

function train() {
  if (now.isRunning || !now.state?.n_finished) return;
  startJob("round").catch(() => {});
}

function followJob(found) {
  const wasRunning = now.isRunning;
  now.isRunning = found.state === "running";
  if (wasRunning === now.isRunning) return;
  drawEnding();
  if (now.isRunning || found.state !== "done" || found.kind !== "round") return;
  toast("The round is trained: new questions are ready.");
  if (now.ending) next();
}

// ----------------------------------------------------------------------------------------------------- the page

const has = () => now.card !== null;
const isZoomed = () => view.viewer.isZoomed;
const suggestion = (n) => ({ label: `Suggestion ${n}`, run: () => choose(n - 1), when: has });
const actions = {
  candidate1: suggestion(1), candidate2: suggestion(2), candidate3: suggestion(3), candidate4: suggestion(4),
  candidate5: suggestion(5),
  accept: { label: "Accept the first suggestion", run: accept, when: () => has() || now.ending !== null },
  same: { label: "Same as the nearest labelled", run: () => sameAs(now.card.labelled_neighbours[0]), when: has },
  search: { label: "Type to search a class", also: ["t"], run: search, when: has },
  create: { label: "New class", run: create, when: has },
  skip: { label: "Skip", run: () => pass("skip"), when: has },
  unsure: { label: "Unsure", run: () => pass("unsure"), when: has },
  junk: { label: "Junk: no class at all", run: () => pass("junk"), when: has },
  undo: { label: "Undo", also: ["Ctrl+z"], run: undo },
  blind: { label: "Blind mode", run: toggleBlind, when: () => !isAudit },
  zoom: { label: "Zoom", run: () => view.viewer.toggle(), when: has },
  left: { label: "Zoomed: to the left", repeats: true, run: () => view.viewer.pan(-1, 0), when: isZoomed },
  right: { label: "Zoomed: to the right", repeats: true, run: () => view.viewer.pan(1, 0), when: isZoomed },
  up: { label: "Zoomed: up", repeats: true, run: () => view.viewer.pan(0, -1), when: isZoomed },
  down: { label: "Zoomed: down", repeats: true, run: () => view.viewer.pan(0, 1), when: isZoomed },
  fullscreen: { label: "Full screen", run: toggleFullscreen },
};
for (const [name, action] of Object.entries(actions)) action.key = LABEL_KEYS[name];
bindKeys("label", actions);

const tools = h("div", { class: "toolbar tools", role: "toolbar", "aria-label": "Answers" },
  actionButton("accept", { label: "Accept first", class: "primary" }),
  actionButton("same", { label: "Same as nearest" }),
  actionButton("search", { label: "Search" }),
  ["create", "skip", "unsure"].map((name) => actionButton(name)),
  actionButton("junk", { label: "Junk" }),
  h("span", { class: "tools-gap" }),
  actionButton("undo"),
  h("span", { class: "grow" }),
  actionButton("blind", { label: "Blind" }),
  actionButton("zoom"),
  actionButton("fullscreen"));
tools.querySelector("[data-action=blind]").setAttribute("aria-pressed", String(now.isBlind));
tools.querySelector("[data-action=blind]").hidden = isAudit;

const stage = h("div", { class: "stage" }, view.element);
const auditNote = h("p", { class: "banner", role: "note" },
  "Blind audit: suggestions are hidden on purpose, and the answers are not trained on. ",
  "They measure how often the model is right.");
replace(main, isAudit ? auditNote : null, stage, tools);

onState((state) => {
  now.state = state;
  drawEnding();
});
watchJob(followJob);
next();
