import assert from "node:assert/strict";
import test from "node:test";

import { latest } from "../../src/agcd/app/web/static/lib/async.js";
import { Signal, whenKnown } from "../../src/agcd/app/web/static/lib/signal.js";

test("the last request wins, even where the first one answers later", async () => {
  const take = latest();
  let answerFirst;
  const first = take(new Promise((resolve) => (answerFirst = resolve)));
  const second = take(Promise.resolve("second"));
  answerFirst("first");
  assert.equal(await first, null);
  assert.equal(await second, "second");
});

test("an error that was overtaken is silent, the last one is not", async () => {
  const take = latest();
  const first = take(Promise.reject(new Error("old")));
  const second = take(Promise.reject(new Error("new")));
  assert.equal(await first, null);
  await assert.rejects(second, /new/);
});

test("who follows a signal hears its value now and every change, until they stop", () => {
  const signal = new Signal(1);
  const heard = [];
  const stop = signal.follow((value) => heard.push(value));
  signal.set(2);
  stop();
  signal.set(3);
  assert.deepEqual(heard, [1, 2]);
  assert.equal(signal.value, 3);
});

test("a follower that stops another one while it is told harms nobody", () => {
  const signal = new Signal(0);
  const heard = [];
  let stopFirst = () => {};
  signal.follow((value) => value && stopFirst());
  stopFirst = signal.follow((value) => heard.push(value));
  signal.set(1);
  signal.set(2);
  assert.deepEqual(heard, [0, 1]);
});

test("what is not known yet is not told", () => {
  const signal = new Signal(null);
  const heard = [];
  signal.follow(whenKnown((value) => heard.push(value)));
  signal.set("something");
  assert.deepEqual(heard, ["something"]);
});
