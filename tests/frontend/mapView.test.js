import assert from "node:assert/strict";
import test from "node:test";

import { inside, MapView, nearest } from "../../src/agcd/app/web/static/lib/mapView.js";

const SQUARE = { x: [0, 10, 10, 0], y: [0, 0, 10, 10] };

function viewOf(points, width = 100, height = 100) {
  const view = new MapView();
  Object.assign(view, { width, height });
  view.include(points);
  return view;
}

const near = (found, wanted) => assert.ok(Math.abs(found - wanted) < 1e-3, `${found} is not ${wanted}`);

test("all points lie inside the box with a margin, and up is up", () => {
  const places = viewOf(SQUARE).place(SQUARE);
  near(places.x[0], 100 / 22);
  near(places.x[1], 100 - 100 / 22);
  assert.ok(places.y[0] > places.y[2]);
});

test("the axes only widen, so that nothing jumps from round to round", () => {
  const view = viewOf(SQUARE);
  const before = view.place(SQUARE);
  view.include({ x: [4, 6], y: [4, 6] });
  assert.deepEqual(view.place(SQUARE), before);
  view.include({ x: [20], y: [0] });
  assert.ok(view.x[1] > 20);
});

test("points that are all the same still have a place", () => {
  const points = { x: [3, 3], y: [7, 7] };
  near(viewOf(points).place(points).x[0], 50);
  near(viewOf(points).place(points).y[1], 50);
});

test("zooming leaves the point under the mouse where it is", () => {
  const view = viewOf(SQUARE);
  const at = { x: view.place(SQUARE).x[1], y: view.place(SQUARE).y[1] };
  view.zoom(3, at);
  const places = view.place(SQUARE);
  near(places.x[1], at.x);
  near(places.y[1], at.y);
  assert.ok(places.x[0] < 0);
});

test("nobody zooms out of the whole map, or in for ever", () => {
  const view = viewOf(SQUARE);
  const whole = [...view.x];
  view.zoom(0.01, { x: 50, y: 50 });
  near(view.x[0], whole[0]);
  near(view.x[1], whole[1]);
  for (let n = 0; n < 100; n += 1) view.zoom(2, { x: 50, y: 50 });
  near((whole[1] - whole[0]) / (view.x[1] - view.x[0]), 200);
});

test("moving by pixels moves every point by as many", () => {
  const view = viewOf(SQUARE);
  const before = view.place(SQUARE);
  view.move(7, -4);
  const after = view.place(SQUARE);
  near(after.x[2] - before.x[2], 7);
  near(after.y[2] - before.y[2], -4);
});

test("a part that is looked at stays when a round brings new points, the whole follows", () => {
  const view = viewOf(SQUARE);
  view.zoom(2, { x: 50, y: 50 });
  const part = [...view.x];
  view.include({ x: [100], y: [100] });
  assert.deepEqual(view.x, part);
  view.showWhole();
  assert.ok(view.x[1] > 100);
});

test("twenty thousand points are taken in", () => {
  const x = Array.from({ length: 20_000 }, (_, index) => index);
  assert.ok(viewOf({ x, y: x }).x[1] > 19_999);
});

test("the nearest point is found within reach only", () => {
  const places = { x: [0, 10, 30], y: [0, 0, 0] };
  assert.equal(nearest(places, { x: 8, y: 1 }, 12), 1);
  assert.equal(nearest(places, { x: 20, y: 9 }, 12), null);
  assert.equal(nearest({ x: [], y: [] }, { x: 0, y: 0 }, 12), null);
});

test("a lasso holds what it goes round, also where it bends inwards", () => {
  const bowl = [{ x: 0, y: 0 }, { x: 10, y: 0 }, { x: 10, y: 10 }, { x: 5, y: 2 }, { x: 0, y: 10 }];
  const places = { x: [1, 5, 9, 5, 20], y: [5, 1, 5, 8, 5] };
  assert.deepEqual(inside(places, bowl), [0, 1, 2]);
});

test("a lasso may be drawn in either direction", () => {
  const box = [{ x: 0, y: 0 }, { x: 4, y: 0 }, { x: 4, y: 4 }, { x: 0, y: 4 }];
  const places = { x: [2, 6], y: [2, 2] };
  assert.deepEqual(inside(places, box), [0]);
  assert.deepEqual(inside(places, [...box].reverse()), [0]);
});
