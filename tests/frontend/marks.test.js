import assert from "node:assert/strict";
import test from "node:test";

import { boxBetween, Marks, touched } from "../../src/agcd/app/web/static/lib/marks.js";

function marksOf(n) {
  const marks = new Marks(() => {});
  marks.reset(n);
  return marks;
}

const marked = (marks) => [...marks.marked].sort((a, b) => a - b);

test("a click marks one, and forgets the others", () => {
  const marks = marksOf(10);
  marks.click(2);
  marks.click(5);
  assert.deepEqual(marked(marks), [5]);
});

test("Shift marks from the anchor, in both directions, and keeps the anchor", () => {
  const marks = marksOf(10);
  marks.click(4);
  marks.click(7, { isRange: true });
  assert.deepEqual(marked(marks), [4, 5, 6, 7]);
  marks.click(2, { isRange: true });
  assert.deepEqual(marked(marks), [2, 3, 4]);
});

test("Ctrl turns one on or off, and Ctrl with Shift adds a range", () => {
  const marks = marksOf(10);
  marks.click(1);
  marks.click(5, { isToggle: true });
  marks.click(1, { isToggle: true });
  assert.deepEqual(marked(marks), [5]);
  marks.click(3, { isRange: true, isToggle: true });
  assert.deepEqual(marked(marks), [1, 2, 3, 5]);
});

test("the cursor moves inside the page only, and leaves the marks alone", () => {
  const marks = marksOf(3);
  marks.click(1);
  marks.move(1, false);
  marks.move(1, false);
  assert.equal(marks.cursor, 2);
  assert.deepEqual(marked(marks), [1]);
  marks.move(-5, false);
  assert.equal(marks.cursor, 2);
});

test("the cursor with Shift marks a range", () => {
  const marks = marksOf(9);
  marks.click(4);
  marks.move(3, true);
  marks.move(-1, true);
  assert.deepEqual(marked(marks), [4, 5, 6]);
});

test("a shorter page keeps the cursor inside and marks nothing", () => {
  const marks = marksOf(9);
  marks.click(8);
  marks.reset(4);
  assert.equal(marks.cursor, 3);
  assert.deepEqual(marked(marks), []);
});

test("an empty page cannot be marked", () => {
  const marks = marksOf(0);
  marks.toggle();
  marks.all();
  assert.deepEqual(marked(marks), []);
  assert.equal(marks.cursor, 0);
});

test("all and none", () => {
  const marks = marksOf(3);
  marks.all();
  assert.deepEqual(marked(marks), [0, 1, 2]);
  marks.none();
  assert.deepEqual(marked(marks), []);
});

test("every change is told", () => {
  let n = 0;
  const marks = new Marks(() => (n += 1));
  marks.reset(3);
  marks.click(1);
  marks.move(1, true);
  assert.equal(n, 3);
});

test("a frame is the same whichever way it is drawn", () => {
  const box = { left: 1, top: 2, right: 5, bottom: 8 };
  assert.deepEqual(boxBetween({ x: 5, y: 2 }, { x: 1, y: 8 }), box);
  assert.deepEqual(boxBetween({ x: 1, y: 8 }, { x: 5, y: 2 }), box);
});

test("a frame touches what it overlaps, not what it only meets at an edge", () => {
  const tile = (left) => ({ left, top: 0, right: left + 10, bottom: 10 });
  assert.deepEqual(touched(boxBetween({ x: 10, y: 2 }, { x: 25, y: 4 }), [tile(0), tile(10), tile(20), tile(30)]),
    [1, 2]);
});
