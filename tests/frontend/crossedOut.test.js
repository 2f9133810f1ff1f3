import assert from "node:assert/strict";
import test from "node:test";

import { CrossedOut } from "../../src/agcd/app/web/static/lib/crossedOut.js";

const pageOf = (page, rows) => ({ page, page_size: 4, thumbs: rows.map((row) => ({ row })) });
const FIRST = pageOf(0, [10, 11, 12, 13]);
const LAST = pageOf(1, [20, 21]);

test("a click crosses out, a second one takes it back", () => {
  const crossed = new CrossedOut();
  crossed.toggle(FIRST, 1, false);
  assert.equal(crossed.has(11), true);
  crossed.toggle(FIRST, 1, false);
  assert.equal(crossed.countOn(FIRST), 0);
});

test("Shift crosses out all from the last click to this one, backwards too", () => {
  const crossed = new CrossedOut();
  crossed.toggle(FIRST, 3, false);
  crossed.toggle(FIRST, 1, true);
  assert.deepEqual(crossed.rowsTo(0).sort(), [11, 12, 13]);
});

test("a range does not reach over from another page", () => {
  const crossed = new CrossedOut();
  crossed.toggle(FIRST, 0, false);
  crossed.toggle(LAST, 1, true);
  assert.deepEqual(crossed.rowsTo(1), [10, 21]);
});

test("the whole page, and back", () => {
  const crossed = new CrossedOut();
  crossed.toggle(FIRST, 0, false);
  crossed.toggleAll(FIRST);
  assert.equal(crossed.hasAll(FIRST), true);
  crossed.toggleAll(FIRST);
  assert.equal(crossed.countOn(FIRST), 0);
});

test("what would be accepted is counted over all pages, the last one as full as it is", () => {
  const crossed = new CrossedOut();
  crossed.toggle(FIRST, 0, false);
  crossed.toggle(LAST, 0, false);
  assert.equal(crossed.countTo(1, LAST), 6 - 2);
  assert.equal(crossed.countTo(0, LAST), 4 - 1);
  assert.equal(crossed.countTo(-1, LAST), 0);
  assert.deepEqual(crossed.rowsTo(0), [10]);
});
