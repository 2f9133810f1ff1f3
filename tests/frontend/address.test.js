import assert from "node:assert/strict";
import test from "node:test";

import { addressOf, choicesFromUrl, keepInUrl, withQuery } from "../../src/agcd/app/web/static/lib/address.js";

test("only what says something stands in the address; 0 and false do", () => {
  assert.equal(withQuery("/grid", { key: "", page: 0, audit: false, a: null, b: undefined }),
    "/grid?page=0&audit=false");
  assert.equal(withQuery("/grid", {}), "/grid");
});

test("names are escaped and lists said item by item", () => {
  assert.equal(withQuery("/b", { text: "a&b c" }), "/b?text=a%26b+c");
  assert.equal(withQuery("/q", { answered: [3, 5], who: "me" }), "/q?answered=3&answered=5&who=me");
  assert.equal(withQuery("/q", { answered: [] }), "/q");
});

test("values named in the path go there", () => {
  assert.equal(addressOf("/api/v1/rows/{row}/neighbours", { row: 7, n: 12 }), "/api/v1/rows/7/neighbours?n=12");
});

test("a choice is what the address says, else the default; unknown words are ignored", () => {
  assert.deepEqual(choicesFromUrl({ sort: "size", page: "0" }, "?sort=name&evil=1"), { sort: "name", page: "0" });
});

test("only choices that differ from the defaults are kept", (t) => {
  const shown = [];
  Object.assign(globalThis, { location: { pathname: "/classes" },
    history: { replaceState: (_state, _title, address) => shown.push(address) } });
  t.after(() => {
    delete globalThis.location;
    delete globalThis.history;
  });
  keepInUrl({ sort: "name", page: "0" }, { sort: "size", page: "0" });
  assert.deepEqual(shown, ["/classes?sort=name"]);
});
