import assert from "node:assert/strict";
import test from "node:test";

import { ClassColours, colouringOf, COLOURINGS, isColouring }
  from "../../src/agcd/app/web/static/lib/colouring.js";

const POINTS = {
  row: [10, 11, 12, 13],
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
  colours.of("first", false);
  assert.notEqual(colours.of("second", false), new ClassColours().of("second", false));
});

test("colours repeat when they run out", () => {
  const colours = new ClassColours();
  const first = colours.of("class 0", true);
  for (let n = 1; n < 8; n += 1) assert.notEqual(colours.of(`class ${n}`, true), first);
  assert.equal(colours.of("class 8", true), first);
});

test("an address may name no colouring that there is", () => {
  assert.equal(isColouring("class"), true);
  assert.equal(isColouring("toString"), false);
});
