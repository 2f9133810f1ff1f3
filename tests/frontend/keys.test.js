import assert from "node:assert/strict";
import test from "node:test";

import { actionFor, changedKeys, isUsableKey, keyWord, plainKey, pressedKey, refusalOfKey, stepInList, validKeys }
  from "../../src/agcd/app/web/static/lib/keys.js";

const action = (label, key, more = {}) => ({ label, key, run: () => {}, ...more });
const actions = () => new Map(Object.entries({
  skip: action("Skip", "s"),
  undo: action("Undo", "z", { also: ["Ctrl+z"] }),
  accept: action("Accept", "Enter"),
}));

test("letters are compared small, named keys as they are", () => {
  assert.equal(plainKey("S"), "s");
  assert.equal(plainKey("Enter"), "Enter");
  assert.equal(pressedKey({ key: "Z", ctrlKey: true, metaKey: false }), "Ctrl+z");
  assert.equal(pressedKey({ key: "z", ctrlKey: false, metaKey: true }), "Ctrl+z");
});

test("keys are written as they stand on the keyboard", () => {
  assert.equal(keyWord("n"), "N");
  assert.equal(keyWord(" "), "Space");
  assert.equal(keyWord("ArrowLeft"), "←");
  assert.equal(keyWord("Ctrl+z"), "Ctrl+Z");
  assert.equal(keyWord("+"), "+");
  assert.equal(keyWord("Ctrl++"), "Ctrl++");
});

test("one printable character or a named key can be given, but not Escape", () => {
  for (const key of ["k", "ä", "7", " ", "Enter", "PageUp", "🦊"]) assert.equal(isUsableKey(key), true, key);
  for (const key of ["Escape", "K", "ab", "", "Shift", "\t", 5, null]) assert.equal(isUsableKey(key), false, key);
});

test("a key runs the action that has it, also by its second key", () => {
  assert.equal(actionFor(actions(), "s").label, "Skip");
  assert.equal(actionFor(actions(), "Ctrl+z").label, "Undo");
  assert.equal(actionFor(actions(), "q"), undefined);
});

test("an action that is not possible now leaves its key to another one", () => {
  const two = new Map([["a", action("A", "x", { when: () => false })], ["b", action("B", "x")]]);
  assert.equal(actionFor(two, "x").label, "B");
});

test("a key that was changed takes the place of the first one", () => {
  const changed = new Map([["skip", action("Skip", "s", { pressed: "k" })]]);
  assert.equal(actionFor(changed, "s"), undefined);
  assert.equal(actionFor(changed, "k").label, "Skip");
});

test("a taken or unusable key is refused in one sentence", () => {
  assert.equal(refusalOfKey(actions(), "skip", "z"), "Z is taken: “Undo”.");
  assert.equal(refusalOfKey(actions(), "skip", "Ctrl+z"), "Ctrl+Z cannot be used.");
  assert.equal(refusalOfKey(actions(), "skip", "Escape"), "Esc cannot be used.");
  assert.equal(refusalOfKey(actions(), "skip", "k"), null);
  assert.equal(refusalOfKey(actions(), "skip", "s"), null);
});

test("kept keys count where they make sense", () => {
  assert.equal(validKeys({ skip: "k" }, actions()).get("skip"), "k");
  assert.equal(validKeys({ skip: "Escape", gone: "q" }, actions()).get("skip"), "s");
  assert.equal(validKeys({ gone: "q" }, actions()).has("gone"), false);
});

test("kept keys that would clash are dropped together", () => {
  assert.deepEqual([...validKeys({ skip: "Enter" }, actions()).values()], ["s", "z", "Enter"]);
});

test("broken storage gives the first keys", () => {
  for (const found of [null, undefined, 7, "s", []]) assert.equal(validKeys(found, actions()).get("skip"), "s");
});

test("only changed keys are kept", () => {
  const some = actions();
  some.get("skip").pressed = "k";
  some.get("undo").pressed = "z";
  assert.deepEqual(changedKeys(some), { skip: "k" });
});

test("arrow keys go round a list and enter it from outside at its ends", () => {
  assert.equal(stepInList("ArrowDown", 0, 3), 1);
  assert.equal(stepInList("ArrowDown", 2, 3), 0);
  assert.equal(stepInList("ArrowUp", 0, 3), 2);
  assert.equal(stepInList("ArrowDown", -1, 3), 0);
  assert.equal(stepInList("ArrowUp", -1, 3), 2);
  assert.equal(stepInList("ArrowDown", -1, 0), null);
  assert.equal(stepInList("Enter", 0, 3), null);
});
