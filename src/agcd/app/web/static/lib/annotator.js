/** Who answers, and which tab holds a question. */

import { newUid } from "./net.js";
import { Signal } from "./signal.js";
import { kept, keptByTab } from "./storage.js";

/** The longest name that the server takes. */
export const LONGEST_PERSON = 60;

/** @param {unknown} text */
function cleanName(text) {
  return typeof text === "string" ? text.trim().slice(0, LONGEST_PERSON) : "";
}

/**
 * What the server says about who is logged in.
 * @param {"person" | "role"} name
 */
function told(name) {
  return globalThis.document?.querySelector(`meta[name="agcd-${name}"]`)?.getAttribute("content") ?? null;
}

/** Whether the person is logged in by name: then every answer carries it, and nothing here changes that. */
export const isNamed = told("person") !== null;
/** Whether the person may look and do nothing else. */
export const onlyLooks = told("role") === "view";
const person = new Signal(told("person") ?? (cleanName(kept.get("who")) || "me"));

/** The name of the person, as stored with every answer. */
export function who() {
  return person.value;
}

/**
 * Change the name; an empty one is ignored.
 * @param {string} name
 */
export function setWho(name) {
  if (isNamed || !cleanName(name)) return;
  kept.set("who", cleanName(name));
  person.set(cleanName(name));
}

/**
 * Call back with the name, now and when it changes.
 * @param {(name: string) => unknown} callback
 */
export function onWho(callback) {
  person.follow(callback);
}

/** The id of this tab, under which the server leases questions. */
export const holder = String(keptByTab.get("holder") ?? newUid());

// A duplicated tab copies the storage. The id is therefore put there only while the tab moves from page to page: two
// living tabs never share one, so they never get the same question.
keptByTab.set("holder", null);
addEventListener("pagehide", () => keptByTab.set("holder", holder));
addEventListener("pageshow", () => keptByTab.set("holder", null));
