import assert from "node:assert/strict";
import test from "node:test";

import { ClassColours, colouringOf, COLOURINGS, isColouring }
  from "../../src/agcd/app/web/static/lib/colouring.js";

const POINTS = {
  row: [10, 11, 12, 13],
  x: [0, 1, 2, 3],
  y: [0, 1, 2, 3],
  name: [0, 1, 1, 2],
  names: ["cat", "dog", "unnamed #3"],
  is_new: [false, false, true],
  margin: [1, 0.5, 0, 0.9],
  by: ["human", "model", "human", "page"],
  disagrees: [false, false, true, false],
};
const groupsOf = (name, points = POINTS, colours = new ClassColours()) => colouringOf(name, points, colours).groups;
const members = (groups) => groups.map((group) => group.indices);

test("every colouring puts every point into one group", () => {
  for (const name of Object.keys(COLOURINGS)) {
    assert.deepEqual(members(groupsOf(name)).flat().sort(), [0, 1, 2, 3], name);
  }
});

test("by class, the largest stands first in the legend", () => {
  assert.deepEqual(colouringOf("class", POINTS, new ClassColours()).order, [1, 0, 2]);
});

test("known classes and found ones have colours of their own", () => {
  const [known, found] = groupsOf("origin");
  assert.deepEqual([known.name, found.name], ["known class", "found by you, or unnamed"]);
  assert.deepEqual([known.indices, found.indices], [[0, 1, 2], [3]]);
  assert.notEqual(known.colour, found.colour);
});

test("by sureness, a small gap is very unsure", () => {
  const groups = groupsOf("sureness");
  assert.deepEqual(groups.map((group) => group.name), ["sure", "rather sure", "in between", "unsure", "very unsure"]);
  assert.deepEqual(members(groups), [[0, 3], [], [1], [], [2]]);
});

test("by disagreement, a label that the model would not give stands out", () => {
  assert.deepEqual(members(groupsOf("disagreement")), [[1, 3], [0], [2]]);
});

test("a class keeps its colour in the next round, whatever its size there", () => {
  const colours = new ClassColours();
  const before = groupsOf("class", POINTS, colours).map((group) => group.colour);
  const later = { ...POINTS, name: [2, 2, 2, 0] };
  assert.deepEqual(groupsOf("class", later, colours).map((group) => group.colour), before);
});

test("two maps do not share colours", () => {
  const colours = new ClassColours();
  colours.of("first", false, { x: 0, y: 0 });
  assert.notEqual(colours.of("second", false, { x: 0, y: 0 }), new ClassColours().of("second", false, { x: 0, y: 0 }));
});

test("colours repeat when they run out, and then the farthest away", () => {
  const colours = new ClassColours();
  const first = colours.of("class 0", true, { x: 0, y: 0 });
  for (let n = 1; n < 8; n += 1) assert.notEqual(colours.of(`class ${n}`, true, { x: n, y: 0 }), first);
  assert.equal(colours.of("class 8", true, { x: 8, y: 0 }), first);
});

test("of two hundred classes none has the colour of its nearest neighbours", () => {
  const colours = new ClassColours();
  const places = Array.from({ length: 200 }, (_, n) => ({ x: (n * 37) % 100, y: (n * 61 + n * n) % 97 }));
  const found = places.map((at, n) => ({ at, colour: colours.of(`class ${n}`, false, at) }));
  const apart = (one, other) => Math.hypot(one.at.x - other.at.x, one.at.y - other.at.y);
  for (const one of found) {
    const near = found.filter((other) => other !== one).sort((a, b) => apart(one, a) - apart(one, b)).slice(0, 2);
    for (const other of near) assert.notEqual(other.colour, one.colour);
  }
});

test("an address may name no colouring that there is", () => {
  assert.equal(isColouring("class"), true);
  assert.equal(isColouring("toString"), false);
});
