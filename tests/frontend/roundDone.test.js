import assert from "node:assert/strict";
import test from "node:test";

import { heldWords, wordsWhenDone } from "../../src/agcd/app/web/static/components/roundDone.js";

const FREE = { held_by_others: 0 };
const state = (n_finished, is_due) => ({ n_finished, is_due });

test("during the first training nothing is called answered", () => {
  const { title, lead, button } = wordsWhenDone(FREE, state(0, true), true);
  assert.equal(title, "No questions yet");
  assert.match(lead, /being trained for the first time/);
  assert.equal(button, null);
});

test("before any training the page says that training comes first", () => {
  const { title, lead } = wordsWhenDone(FREE, state(0, true), false);
  assert.equal(title, "No questions yet");
  assert.match(lead, /has to be trained once/);
});

test("with new answers the button trains", () => {
  const { title, button } = wordsWhenDone(FREE, state(1, true), false);
  assert.equal(title, "All questions are answered");
  assert.equal(button, "Train the next round");
});

test("without new answers the button and the sentence promise new questions, which is what they bring", () => {
  const { lead, button } = wordsWhenDone(FREE, state(1, false), false);
  assert.equal(button, "Choose new questions");
  assert.match(lead, /learned from all your answers/);
  assert.doesNotMatch(lead, /nothing/);
});

test("while a later round is trained there is no button to train", () => {
  assert.equal(wordsWhenDone(FREE, state(1, true), true).button, null);
});

test("a held question is not said to be answered, nor to be with somebody else for sure", () => {
  assert.equal(wordsWhenDone({ held_by_others: 1 }, state(1, true), false).title, "No question is free");
  assert.equal(heldWords({ held_by_others: 1 }), "1 question is open in another window or with somebody else.");
  assert.equal(heldWords({ held_by_others: 3 }), "3 questions are open in another window or with somebody else.");
  assert.equal(heldWords(FREE), "");
});
