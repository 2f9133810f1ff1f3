import assert from "node:assert/strict";
import test from "node:test";

import { agreeWords, count, duration, fileName, percent, plural, say, SURENESS_WORDS, unsureness, withNoun, wordFor }
  from "../../src/agcd/app/web/static/lib/words.js";

test("one of a thing is singular, none and many are plural", () => {
  assert.equal(plural(1, "question"), "1 question");
  assert.equal(plural(0, "question"), "0 questions");
  assert.equal(plural(2, "class", "classes"), "2 classes");
  assert.equal(plural(1, "class", "classes"), "1 class");
});

test("large numbers are grouped, alone and with their word", () => {
  assert.equal(count(12345), "12,345");
  assert.equal(plural(20000, "picture"), "20,000 pictures");
});

test("the name of a file is the end of its path", () => {
  assert.deepEqual(["a/b/c.jpg", "c.jpg"].map(fileName), ["c.jpg", "c.jpg"]);
});

test("a verb follows its number", () => {
  assert.equal(wordFor(1, "waits", "wait"), "waits");
  assert.equal(wordFor(3, "waits", "wait"), "wait");
});

test("shares are rounded to whole per cents", () => {
  assert.equal(percent(0.873), "87 %");
  assert.equal(percent(0), "0 %");
  assert.equal(percent(1), "100 %");
});

test("times are written in the largest fitting unit", () => {
  assert.equal(duration(0.2), "1 s");
  assert.equal(duration(59), "59 s");
  assert.equal(duration(59.7), "1 min");
  assert.equal(duration(180), "3 min");
  assert.equal(duration(4800), "1 h 20 min");
});

test("a wide gap is sure, none is very unsure, and numbers beyond the ends stay inside", () => {
  const word = (margin) => SURENESS_WORDS[unsureness(margin)];
  assert.equal(word(1), "sure");
  assert.equal(word(0.5), "in between");
  assert.equal(word(0), "very unsure");
  assert.equal(word(-0.1), "very unsure");
  assert.equal(word(1.1), "sure");
});

test("agreement is said in answers, not as a share", () => {
  assert.equal(agreeWords(5, 5), "5 of 5 answers agree");
  assert.equal(agreeWords(1, 1), "1 answer");
  assert.equal(agreeWords(0, 0), "not checked yet");
});

test("our own words about pictures are said of texts, with capitals and in the plural", () => {
  assert.equal(withNoun("Picture 7 of the pictures", "text"), "Text 7 of the texts");
  assert.equal(withNoun("Pictures: tick a picture", "record"), "Records: tick a record");
  assert.equal(withNoun("Nothing of the kind", "text"), "Nothing of the kind");
});

test("of photographs everything is said as it is written, and values stay what they are", () => {
  assert.equal(say`Picture ${7} of “${"My Picture"}”`, "Picture 7 of “My Picture”");
  assert.equal(say`shown as ${null}.`, "shown as .");
});
