import assert from "node:assert/strict";
import test from "node:test";

// As the page of a text project says it; modules read it when they are loaded.
globalThis.document = { documentElement: { dataset: { kind: "text", noun: "text", pictures: "false" } } };
const { plural, say, wordFor } = await import("../../src/agcd/app/web/static/lib/words.js");
const { endWords, unseenWords } = await import("../../src/agcd/app/web/static/lib/review.js");
const { hasPicture } = await import("../../src/agcd/app/web/static/lib/items.js");

test("our words are of texts, a class that is called after pictures keeps its name", () => {
  assert.equal(say`Picture ${3}: is it “${"old pictures"}”?`, "Text 3: is it “old pictures”?");
});

test("numbers go with texts", () => {
  assert.equal(plural(1, "picture"), "1 text");
  assert.equal(plural(1200, "picture"), "1,200 texts");
  assert.equal(plural(2, "new picture"), "2 new texts");
  assert.equal(plural(2, "picture was", "pictures were"), "2 texts were");
  assert.equal(wordFor(2, "answer"), "answers");
});

test("so do whole sentences", () => {
  const left = { n_total: 5, n_checked: 5, n_unnamed: 2, n_unseen: 1, unseen_wrong: 0, is_checked: false };
  assert.match(endWords(left).rest, /^2 texts have no name yet/);
  assert.match(unseenWords(left), /^1 text was accepted without a look/);
});

test("a text has no picture to ask for, whatever is said of it", () => {
  assert.equal(hasPicture({ has_picture: true }), false);
});
