import assert from "node:assert/strict";
import test from "node:test";

import { middlesOf, pushedInside, withoutOverlap } from "../../src/agcd/app/web/static/lib/mapNames.js";

const ROOM = { width: 100, height: 100 };
const box = (x, y) => ({ at: { x, y }, width: 20, height: 10 });

test("the middle of a group is where most of it is, strays or not", () => {
  const places = { x: [1, 2, 3, 90, 50], y: [1, 2, 3, 90, 50] };
  assert.deepEqual(middlesOf([0, 0, 0, 0, 2], 3, places), [{ x: 3, y: 3 }, null, { x: 50, y: 50 }]);
  assert.deepEqual(middlesOf([0, 0, 0, 0, 2], 3, places, (x) => x < 10), [{ x: 2, y: 2 }, null, null]);
});

test("a name that would cover one drawn before is left out", () => {
  assert.deepEqual(withoutOverlap([box(50, 50), box(60, 52), box(71, 50), box(50, 61)], ROOM), [0, 2, 3]);
});

test("nothing is drawn that would be cut off, and names near the edge are pushed in", () => {
  assert.deepEqual(withoutOverlap([box(5, 50)], ROOM), []);
  const inside = pushedInside(box(-30, 99), ROOM);
  assert.deepEqual(inside.at, { x: 10, y: 95 });
  assert.deepEqual(withoutOverlap([inside], ROOM), [0]);
});
