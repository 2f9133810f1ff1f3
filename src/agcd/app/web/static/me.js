/** Who answers, and which tab holds a question. */

import { kept, keptByTab } from "./dom.js";
import { newUid } from "./net.js";

const LONGEST_NAME = 60;
const listeners = new Set();

function cleanName(text) {
  return typeof text === "string" ? text.trim().slice(0, LONGEST_NAME) : "";
}

let person = cleanName(kept.get("who")) || "me";

/** The name of the person, as stored with every answer. */
export function who() {
  return person;
}

/** Change the name; an empty one is ignored. */
export function setWho(name) {
  if (!cleanName(name)) return;
  person = cleanName(name);
  kept.set("who", person);
  for (const listener of listeners) listener(person);
}

/** Call back with the name, now and when it changes. */
export function onWho(callback) {
  listeners.add(callback);
  callback(person);
}

const tab = keptByTab.get("holder") || newUid();

// A duplicated tab copies the storage. The id is therefore put there only while the tab moves from page to page: two
// living tabs never share one, so they never get the same question.
keptByTab.set("holder", null);
addEventListener("pagehide", () => keptByTab.set("holder", tab));
addEventListener("pageshow", () => keptByTab.set("holder", null));

/** The id of this tab, under which the server leases questions. */
export function holder() {
  return tab;
}
