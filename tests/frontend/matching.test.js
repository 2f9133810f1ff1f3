import assert from "node:assert/strict";
import test from "node:test";

import { choicesFor, matching, MOST_SHOWN } from "../../src/agcd/app/web/static/lib/matching.js";

const entry = (name, more = {}) => ({ class_id: name, name, aliases: [], is_retired: false, n_labels: 0, ...more });
const namesFor = (entries, text) => matching(entries, text).map((one) => one.name);

test("the whole name comes before its beginning, a word's beginning, the middle and an alias", () => {
  const entries = [entry("feline", { aliases: ["cat-like"] }), entry("muscat"), entry("big cat"), entry("catfish"),
    entry("cat")];
  assert.deepEqual(namesFor(entries, "cat"), ["cat", "catfish", "big cat", "muscat", "feline"]);
});

test("words end at spaces, underscores and hyphens", () => {
  assert.deepEqual(namesFor([entry("xtail"), entry("white_tail"), entry("red-tail")], "tail"),
    ["red-tail", "white_tail", "xtail"]);
});

test("among equals the most labelled comes first, then the alphabet decides", () => {
  const entries = [entry("owl b"), entry("owl a"), entry("owl c", { n_labels: 4 })];
  assert.deepEqual(namesFor(entries, "owl"), ["owl c", "owl a", "owl b"]);
});

test("case, outer space and the way accents are composed do not matter", () => {
  assert.deepEqual(namesFor([entry("Café")], " cafe\u0301"), ["Café"]);
});

test("what matches nowhere is left out", () => {
  assert.deepEqual(namesFor([entry("dog")], "cat"), []);
});

test("nothing typed offers all classes and no new one", () => {
  assert.deepEqual(choicesFor([entry("dog")], "  ", true).map((choice) => choice.entry?.name), ["dog"]);
});

test("a new name is offered last, or first where a new class is wanted", () => {
  const entries = [entry("catfish")];
  assert.deepEqual(choicesFor(entries, "cat", false).map((choice) => choice.create ?? null), [null, "cat"]);
  assert.deepEqual(choicesFor(entries, "cat", true).map((choice) => choice.create ?? null), ["cat", null]);
});

test("a name or an alias that is taken cannot be made again", () => {
  const entries = [entry("cat", { aliases: ["kitty"] })];
  assert.deepEqual(choicesFor(entries, "CAT", true).map((choice) => choice.entry.name), ["cat"]);
  assert.deepEqual(choicesFor(entries, "Kitty", true).map((choice) => choice.entry.name), ["cat"]);
});

test("a retired class is shown and cannot be chosen", () => {
  const [choice] = choicesFor([entry("cat", { is_retired: true })], "cat", false);
  assert.equal(choice.isOff, true);
});

test("no more are shown than can be read", () => {
  const many = Array.from({ length: 100 }, (_, index) => entry(`cat ${index}`));
  assert.equal(choicesFor(many, "cat ", false).length, MOST_SHOWN + 1);
});
