import assert from "node:assert/strict";
import test from "node:test";

import { kindOf } from "../../src/agcd/app/web/static/lib/kind.js";

test("where nothing is said, a project is of photographs", () => {
  assert.deepEqual(kindOf({}), { name: "image", noun: "picture", hasPictures: true });
});

test("the page says what its items are, kinds of other packages too", () => {
  assert.deepEqual(kindOf({ kind: "text", noun: "text", pictures: "false" }),
    { name: "text", noun: "text", hasPictures: false });
  assert.deepEqual(kindOf({ kind: "molecule", noun: "molecule", pictures: "true" }),
    { name: "molecule", noun: "molecule", hasPictures: true });
});
