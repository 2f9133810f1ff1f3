import assert from "node:assert/strict";
import test from "node:test";

import { GrowChoice, placed } from "../../src/agcd/app/web/static/lib/growChoice.js";

const page = (number, rows) => ({ page: number, page_size: 3, thumbs: rows.map((row) => ({ row })) });
const FIRST = page(0, [70, 71, 72]);
const LAST = page(1, [80, 81]);

test("without a cut the page that is shown is the end, and a half page counts what it has", () => {
  const choice = new GrowChoice();
  assert.equal(choice.countTo(choice.last(FIRST)), 3);
  assert.equal(choice.countTo(choice.last(LAST)), 5);
  assert.equal(choice.countTo(choice.last(page(0, []))), 0);
});

test("everything up to the cut counts, and nothing beyond", () => {
  const choice = new GrowChoice();
  choice.toggleCut(placed(FIRST, 1));
  assert.deepEqual(choice.last(LAST), { row: 71, place: 1 });
  assert.equal(choice.countTo(choice.last(LAST)), 2);
  assert.deepEqual([0, 1, 2].map((index) => choice.isBeyond(placed(FIRST, index))), [false, false, true]);
  choice.toggleCut(placed(FIRST, 1));
  assert.equal(choice.cut, null);
});

test("the cut moves along the page by keys and stays on it", () => {
  const choice = new GrowChoice();
  choice.moveCut(FIRST, -1);
  assert.equal(choice.cut.row, 71);
  choice.moveCut(FIRST, -5);
  assert.equal(choice.cut.row, 70);
  choice.moveCut(LAST, 9);
  assert.equal(choice.cut.row, 81);
});

test("what is crossed out before the cut is left out, and beyond it does not matter", () => {
  const choice = new GrowChoice();
  choice.toggleCrossed(placed(FIRST, 0));
  choice.toggleCrossed(placed(LAST, 1));
  choice.toggleCut(placed(LAST, 0));
  const last = choice.last(LAST);
  assert.deepEqual(choice.rowsTo(last), [70]);
  assert.equal(choice.countTo(last), 3);
  choice.toggleCrossed(placed(FIRST, 0));
  assert.equal(choice.countTo(last), 4);
});

test("a page is cut before the first picture that is called otherwise, until a person cuts", () => {
  const called = (number, names) =>
    ({ page: number, page_size: 3, thumbs: names.map((name, index) => ({ row: 10 * number + index, name })) });
  const choice = new GrowChoice();
  choice.propose(called(0, ["fox", "fox", "dog"]), "fox");
  assert.deepEqual([choice.cut?.row, choice.isProposed], [1, true]);
  choice.propose(called(1, ["fox", "fox", "fox"]), "fox");
  assert.deepEqual([choice.cut, choice.isProposed], [null, false]);
  choice.propose(called(1, ["dog", "fox"]), "fox");
  assert.equal(choice.cut, null);
  choice.propose(called(0, ["fox", "dog"]), "fox");
  choice.toggleCut({ row: 0, place: 0 });
  assert.deepEqual([choice.cut?.row, choice.isProposed], [0, false], "a click on the proposed cut confirms it");
  choice.propose(called(1, ["fox", "fox", "dog"]), "fox");
  assert.equal(choice.cut?.row, 0);
});
