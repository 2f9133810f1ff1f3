/** Changes that the person can take back. */

import { who } from "../lib/annotator.js";
import { api, newUid } from "../lib/net.js";
import { endOffers, toast } from "./toast.js";

const UNDO = "Undo";

/**
 * What every change carries: an id, so that it counts once, and the person's name.
 * @template {object} B
 * @param {B} body
 * @returns {B & { uid: string, who: string }}
 */
export function signed(body) {
  return { uid: newUid(), who: who(), ...body };
}

/**
 * A class as it is said to the server: by id, or by name where it is new.
 * @param {PickedClass} picked
 * @returns {Pick<Requests["Said"], "class_id" | "name">}
 */
export function sayClass({ class_id: id, name }) {
  return id ? { class_id: id } : { name };
}

/**
 * Label rows with a class; as answers for sendAnswers().
 * @param {number[]} rows
 * @param {PickedClass} picked
 * @returns {Requests["Said"][]}
 */
export function labels(rows, picked) {
  return rows.map((row) => ({ row, kind: "label", ...sayClass(picked) }));
}

/**
 * Store answers together, so that they are undone together.
 * @param {Requests["Said"][]} answers
 */
export function sendAnswers(answers) {
  return api.post("/api/v1/answers", signed({ answers }));
}

/**
 * What was taken back. Who did it and when is known to whoever takes it back.
 * @param {string} what
 */
export function undoneWords(what) {
  return what.replace(/ by .* UTC$/, "").replace(/(\d) accepts?\b/, "$1 accepted");
}

/**
 * Take back the last thing that this person did, say what it was, and show the page anew.
 * @param {() => unknown} reload
 */
export async function undoLast(reload) {
  // "Undo" means the last thing: a message about an earlier one must no longer offer it.
  endOffers(UNDO);
  const undone = await api.post("/api/v1/undo", signed({})).catch(() => null);
  if (!undone) return;
  toast(`Undone: ${undoneWords(undone.what)}`);
  await reload();
}

/**
 * Say what was done and offer to take it back.
 * @param {string} text
 * @param {() => unknown} reload
 */
export function sayDone(text, reload) {
  endOffers(UNDO);
  toast(text, { action: { label: UNDO, run: () => undoLast(reload) } });
}
