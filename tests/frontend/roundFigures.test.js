import assert from "node:assert/strict";
import test from "node:test";

import { auditWords } from "../../src/agcd/app/web/static/components/roundCharts.js";
import { headline, trainingWord } from "../../src/agcd/app/web/static/components/roundFigures.js";

const round = (number, n_classes) => ({ number, n_classes });

test("trainings are counted from one", () => {
  assert.equal(trainingWord(-1), "Before any training");
  assert.equal(trainingWord(0), "The first training");
  assert.equal(trainingWord(12), "Training 13");
});

test("the first training has nothing to be compared with", () => {
  assert.match(headline([round(0, 3)]), /^The first training taught it 3 classes\. /);
  assert.match(headline([round(0, 1)]), /^The first training taught it 1 class\. /);
});

test("a later one is compared with the one before", () => {
  assert.match(headline([round(0, 3), round(1, 5)]), /^Training 2 taught it 5 classes, 2 more than before\. /);
  assert.match(headline([round(0, 3), round(1, 3)]), /^Training 2 taught it 3 classes\. /);
});

test("an audit is written with its interval and its counts", () => {
  const score = { share: 0.83, low: 0.66, high: 0.93, n: 30, n_right: 25 };
  assert.equal(auditWords(score), "83 % (66–93 %), 25 of 30 right");
});
