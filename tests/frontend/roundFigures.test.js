import assert from "node:assert/strict";
import test from "node:test";

import { auditWords } from "../../src/agcd/app/web/static/components/roundCharts.js";
import { headline, trainingWord } from "../../src/agcd/app/web/static/components/roundFigures.js";

const round = (number, named_share, n_classes) => ({ number, named_share, n_classes });

test("trainings are counted from one", () => {
  assert.equal(trainingWord(-1), "Before any training");
  assert.equal(trainingWord(0), "The first training");
  assert.equal(trainingWord(12), "Training 13");
});

test("the first training has nothing to be compared with", () => {
  assert.equal(headline([round(0, 0.8, 3)]),
    "The first training knew 3 classes and put 80 % of the pictures into classes with a name.");
});

test("a later one is compared with the one before, in singular and plural", () => {
  const grown = [round(0, 0.5, 3), round(1, 0.75, 5)];
  assert.match(headline(grown), /with a name, 25 points more than before; 2 classes more found\.$/);
  const fallen = [round(0, 0.5, 3), round(1, 0.49, 4)];
  assert.match(headline(fallen), /, 1 point fewer than before; 1 class more found\.$/);
  const same = [round(0, 0.5, 3), round(1, 0.5, 3)];
  assert.match(headline(same), /, as many as before\.$/);
});

test("an audit is written with its interval and its counts", () => {
  const score = { share: 0.83, low: 0.66, high: 0.93, n: 30, n_right: 25 };
  assert.equal(auditWords(score), "83 % (66–93 %), 25 of 30 right");
});
