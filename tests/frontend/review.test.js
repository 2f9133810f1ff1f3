import assert from "node:assert/strict";
import test from "node:test";

import { about, acceptText, acceptWords, confirmation, endWords, expectedWrong, Mending, progressWords,
  sureWord, unseenWords, wrongWords } from "../../src/agcd/app/web/static/lib/review.js";

const left = (more = {}) =>
  ({ n_total: 424, n_checked: 264, n_left: 160, n_unnamed: 0, expected_wrong: 9.2, n_unseen: 0, unseen_wrong: 0,
    is_checked: true, ...more });
const picture = (row, chance = 0.5) => ({ row, class_id: `class-of-${row}`, name: "dolphin", p_right: chance });

test("an expected number is whole, and rough where it is large", () => {
  assert.deepEqual([0.2, 0.5, 3.4, 99.2, 123, 1234].map(about), [0, 1, 3, 99, 120, 1230]);
  assert.equal(wrongWords(3.4), "about 3 wrong");
  assert.equal(wrongWords(0.3), "probably none wrong");
  assert.equal(expectedWrong([picture(1, 0.75), picture(2, 0.5)]), 0.75);
});

test("the line says what is checked, what is wrong, and what the page saves", () => {
  const page = Array.from({ length: 8 }, (_, row) => picture(row));
  assert.equal(progressWords(left(), page, true),
    "264 of 424 checked · about 9 wrong among the rest · this page is likely to mend 4");
  assert.match(progressWords(left(), page, false), /the next 8 are likely to mend 4$/);
  assert.match(progressWords(left(), [picture(1)], false), /this one is likely to mend 1$/);
  assert.match(progressWords(left(), [picture(1, 0.99)], true), /this page is probably right$/);
  assert.equal(progressWords(left({ n_checked: 424, n_left: 0, expected_wrong: 0 }), [], true), "424 of 424 checked");
});

test("accepting says how many, and how many of them are wrong", () => {
  assert.equal(acceptWords(left({ expected_wrong: 3.1 })), "Accept the remaining 160 (about 3 wrong)");
  assert.equal(acceptWords(left({ n_left: 1, expected_wrong: 0.1 })), "Accept the last one (probably none wrong)");
  assert.match(acceptText(left({ n_left: 1 })), /^1 picture keeps/);
  assert.match(acceptText(left()), /^160 pictures keep/);
  const unseen = (n, wrong) => unseenWords(left({ n_unseen: n, unseen_wrong: wrong }));
  assert.equal(unseen(160, 3.2), "160 pictures were accepted without a look, about 3 wrong.");
  assert.equal(unseen(1, 0.1), "1 picture was accepted without a look, probably none wrong.");
  assert.equal(unseen(0, 0), "");
});

test("before enough answers have checked it, no number of wrong names is told", () => {
  const unchecked = left({ is_checked: false });
  assert.equal(progressWords(unchecked, [picture(1)], true),
    "264 of 424 checked · how many are wrong is not known yet");
  assert.equal(acceptWords(unchecked), "Accept the remaining 160 (not checked yet)");
  assert.match(acceptText(unchecked), /without a look, how many are wrong is not known yet\./);
  assert.match(unseenWords(left({ is_checked: false, n_unseen: 2 })), /is not known yet\.$/);
});

test("the end says what is left to label", () => {
  assert.deepEqual(endWords(left({ n_checked: 424, n_left: 0 })), { title: "All 424 checked", rest: "" });
  assert.equal(endWords(left({ n_left: 0, n_unseen: 160 })).title, "All 424 have a name");
  assert.equal(endWords(left({ n_left: 0, n_unseen: 148, n_unnamed: 12 })).title, "412 of 424 have a name");
  assert.deepEqual(endWords(left({ n_checked: 412, n_left: 0, n_unnamed: 12 })),
    { title: "412 of 424 checked", rest: "12 pictures have no name yet: label them." });
  assert.equal(endWords(left({ n_unnamed: 1 })).rest, "1 picture has no name yet: label it.");
  assert.equal(endWords(left({ n_checked: 0, n_left: 0, n_unnamed: 424 })).title, "Nothing to check yet");
});

test("words for a chance", () => {
  assert.deepEqual([0.95, 0.8, 0.4].map(sureWord), ["sure", "rather sure", "unsure"]);
});

test("wrong pictures are named one after the other", () => {
  const mending = new Mending([picture(1), picture(2)]);
  mending.say("junk");
  assert.equal(mending.current.row, 2);
  mending.say("right");
  assert.equal(mending.current, null);
  assert.deepEqual(mending.said.map(([{ row }, word]) => [row, word]), [[1, "junk"], [2, "right"]]);
});

test("or all that are left at once", () => {
  const mending = new Mending([picture(1), picture(2), picture(3)]);
  mending.say("later");
  mending.isForAll = true;
  mending.say("junk");
  assert.equal(mending.current, null);
  assert.deepEqual(mending.said.map(([, word]) => word), ["later", "junk", "junk"]);
});

test("what is sent is what was shown, and nothing of what is left for later", () => {
  const said = [[picture(1), "right"], [picture(2), { picked: { class_id: "known", name: "seal" } }],
    [picture(3), { picked: { class_id: null, name: "new" } }], [picture(4), "junk"], [picture(5), "later"]];
  assert.deepEqual(confirmation("class", said), { mode: "class", right: [{ row: 1, class_id: "class-of-1" }],
    changes: [{ row: 2, class_id: "known" }, { row: 3, name: "new" }], junk: [4] });
});
