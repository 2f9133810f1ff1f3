import assert from "node:assert/strict";
import test from "node:test";

import { PageSearch } from "../../src/agcd/app/web/static/lib/pageSearch.js";

function searchOf(nPages) {
  const search = new PageSearch();
  search.nPages = nPages;
  return search;
}

/** Judge as somebody would who knows the first wrong page; returns how many pages were looked at. */
function find(search, firstWrong) {
  let looks = 0;
  while (!search.isFound && looks < 100) {
    looks += 1;
    if (search.page < firstWrong) search.isRightJump();
    else search.isWrong();
  }
  return looks;
}

test("the first wrong page is found wherever it is, with few looks", () => {
  for (let firstWrong = 1; firstWrong < 300; firstWrong += 7) {
    const search = searchOf(300);
    const looks = find(search, firstWrong);
    assert.equal(search.wrong, firstWrong);
    assert.equal(search.right, firstWrong - 1);
    assert.ok(looks <= 17, `${looks} looks for page ${firstWrong}`);
  }
});

test("a wrong first page is found at once and stays", () => {
  const search = searchOf(9);
  search.isWrong();
  assert.equal(search.isFound, true);
  assert.equal(search.page, 0);
  assert.equal(search.words(), "Page 1 is the first that is not right.");
});

test("page by page goes to the end and not beyond", () => {
  const search = searchOf(2);
  search.isRight();
  search.isRight();
  assert.equal(search.page, 1);
  assert.equal(search.right, 1);
});

test("looking judges nothing", () => {
  const search = searchOf(5);
  search.look(1);
  search.look(-3);
  assert.equal(search.page, 0);
  assert.equal(search.words(), "");
});

test("jumps grow from 2 to 64 pages", () => {
  const search = searchOf(10_000);
  const pages = Array.from({ length: 8 }, () => {
    search.isRightJump();
    return search.page;
  });
  assert.deepEqual(pages, [2, 6, 14, 30, 62, 126, 190, 254]);
});

test("who changes their mind is believed", () => {
  const search = searchOf(20);
  search.goTo(8);
  search.isWrong();
  search.goTo(9);
  search.isRight();
  assert.equal(search.wrong, null);
  assert.equal(search.words(), "page 10 was right");
});

test("what was judged is told in words", () => {
  const search = searchOf(20);
  search.isRight();
  search.goTo(9);
  search.isWrong();
  assert.equal(search.words(), "page 1 was right, page 10 was not");
});

test("the pages that are fetched ahead exist", () => {
  const search = searchOf(3);
  assert.deepEqual(search.likely(), [1, 2]);
  search.goTo(2);
  assert.deepEqual(search.likely(), []);
});
