import assert from "node:assert/strict";
import test from "node:test";

import { api, newUid, onAnswer, onRefusal, onSaving } from "../../src/agcd/app/web/static/lib/net.js";

const json = (body, status = 200) => new Response(JSON.stringify(body), { status });

/** A server that gives these answers one after the other, and remembers what it was sent. */
function serve(t, ...answers) {
  const requests = [];
  t.mock.method(globalThis, "fetch", async (address, request) => {
    requests.push({ address, method: request.method, body: request.body && JSON.parse(request.body) });
    const answer = answers[Math.min(requests.length, answers.length) - 1];
    if (answer instanceof Error) throw answer;
    return answer.clone();
  });
  return requests;
}

/** Let time run until everything has been said. */
async function settle(t, promise) {
  let isDone = false;
  const ended = Promise.allSettled([promise]).then(([result]) => {
    isDone = true;
    return result;
  });
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    t.mock.timers.tick(1000);
  }
  return ended;
}

test("a read puts its values into the address", async (t) => {
  const requests = serve(t, json([]));
  await api.get("/api/v1/rows/{row}/neighbours", { row: 3, n: 12 });
  assert.deepEqual(requests, [{ address: "/api/v1/rows/3/neighbours?n=12", method: "GET", body: undefined }]);
});

test("a refusal is told in the server's sentence, unless it is to be quiet", async (t) => {
  serve(t, json({ error: "There is nothing to accept." }, 409));
  const heard = [];
  const stop = onRefusal((sentence) => heard.push(sentence));
  await assert.rejects(api.get("/api/v1/state", {}, { quiet: true }), { status: 409 });
  assert.deepEqual(heard, []);
  await assert.rejects(api.get("/api/v1/state"), /nothing to accept/);
  assert.deepEqual(heard, ["There is nothing to accept."]);
  stop();
});

test("a change that finds no server is sent again, with the same uid", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const requests = serve(t, new TypeError("no network"), json({ error: "busy" }, 503), json({ what: "done" }));
  const result = await settle(t, api.post("/api/v1/undo", { uid: newUid(), who: "me" }));
  assert.equal(result.status, "fulfilled");
  assert.equal(requests.length, 3);
  assert.equal(new Set(requests.map(({ body }) => body.uid)).size, 1);
});

test("what the server refuses for good is not sent again", async (t) => {
  const requests = serve(t, json({ error: "no" }, 422));
  await assert.rejects(api.post("/api/v1/undo", { uid: newUid(), who: "me" }), { status: 422 });
  assert.equal(requests.length, 1);
});

test("while a change is on its way the page knows, and how it stands", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  serve(t, new TypeError("no network"), json({}));
  const heard = [];
  const stop = onSaving(({ word, nUnsaved }) => heard.push(`${word} ${nUnsaved}`));
  await settle(t, api.post("/api/v1/undo", { uid: newUid(), who: "me" }));
  assert.deepEqual(heard, ["saved 0", "saving 1", "retrying 1", "saved 0"]);
  stop();
});

test("being logged out is told apart from being cut off", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  serve(t, json({ error: "Log in first." }, 401), json({}));
  const heard = [];
  const stop = onSaving(({ word }) => heard.push(word));
  await settle(t, api.post("/api/v1/undo", { uid: newUid(), who: "me" }));
  assert.ok(heard.includes("logged-out"));
  assert.equal(heard.at(-1), "saved");
  stop();
});

test("queued changes arrive in order, one after the other, whatever happens to the first", async (t) => {
  const requests = serve(t, json({ error: "no" }, 409), json({}));
  const first = api.queue("/api/v1/undo", { uid: "first-uid", who: "me" });
  const second = api.queue("/api/v1/undo", { uid: "second-uid", who: "me" });
  await assert.rejects(first);
  await second;
  assert.deepEqual(requests.map(({ body }) => body.uid), ["first-uid", "second-uid"]);
});

test("every answer to a change is told to who wants to know", async (t) => {
  serve(t, json({ what: "1 label" }));
  const heard = [];
  const stop = onAnswer((answer) => heard.push(answer.what));
  await api.post("/api/v1/undo", { uid: newUid(), who: "me" });
  assert.equal(heard.at(-1), "1 label");
  stop();
});

test("ids are long and different", () => {
  assert.match(newUid(), /^[0-9a-f]{32}$/);
  assert.notEqual(newUid(), newUid());
});
