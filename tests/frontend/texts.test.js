import assert from "node:assert/strict";
import test from "node:test";

import { foundBy, lengthOf, readable, sharedWith, sharedWords, unmarked }
  from "../../src/agcd/app/web/static/lib/texts.js";

const marked = (pieces) => pieces.filter(({ mark }) => mark).map(({ text }) => text);
const whole = (pieces) => pieces.map(({ text }) => text).join("");

test("control characters become signs, and there is one sort of line end", () => {
  assert.equal(readable("a\u0000b\u0007\u007f"), "a␀b␇␡");
  assert.equal(readable("one\r\ntwo\rthree\n\tfour"), "one\ntwo\nthree\n\tfour");
});

test("a sentence is short, a page is long, and many short lines are not short", () => {
  assert.equal(lengthOf("Where is my card?"), "short");
  assert.equal(lengthOf("line\n".repeat(20)), "middle");
  assert.equal(lengthOf("word ".repeat(100)), "middle");
  assert.equal(lengthOf("word ".repeat(1000)), "long");
});

test("shared words are of four letters or more, in whatever case and script, and say something", () => {
  const words = sharedWords("Where is my CARD? Der Zähler über Straße", ["a card where", "zähler straße is my"]);
  assert.deepEqual([...words].sort(), ["card", "straße", "zähler"].sort());
});

test("of many shared words those that most others have are taken", () => {
  const words = sharedWords("alpha beta2 gamma delta", ["gamma alpha", "gamma delta", "gamma"], 2);
  assert.deepEqual([...words], ["gamma", "alpha"]);
});

test("composed and decomposed letters are the same word", () => {
  assert.equal(sharedWords("cafés", ["cafe\u0301s"]).size, 1);
});

test("marking changes no letter of a text", () => {
  const text = "Cards, card; and CARD. Discard <b>card</b>";
  const pieces = sharedWith(new Set(["card"]))(text);
  assert.equal(whole(pieces), text);
  assert.deepEqual(marked(pieces), ["card", "CARD", "card"]);
  assert.deepEqual(unmarked(text), [{ text, mark: "" }]);
});

test("what was searched for is found in any case, with any spaces, and as it is written", () => {
  assert.deepEqual(marked(foundBy(" lost card")("Lost  Card and lost\ncard")), ["Lost  Card", "lost\ncard"]);
  assert.deepEqual(marked(foundBy("a.b(")("a.b( axb(")), ["a.b("]);
  assert.deepEqual(marked(foundBy("straße/[-]")("x STRAßE/[-]")), ["STRAßE/[-]"]);
  assert.deepEqual(marked(foundBy("  ")("anything")), []);
});

test("a very long text is marked at its beginning only, and fast", () => {
  const text = "card ".repeat(400_000);
  const start = performance.now();
  const pieces = sharedWith(sharedWords(text, [text]))(text);
  assert.ok(performance.now() - start < 500);
  assert.equal(whole(pieces), text);
  assert.ok(pieces.length < 1000);
  assert.equal(whole(foundBy("a")("a".repeat(1_000_000))).length, 1_000_000);
});
