import { expect, test } from "vitest";
import { dominantKind, filterHeads, parseHead, parseOrder, sortHeads } from "../../src/model/headKinds";
import { de } from "../../src/messages/de";

const SCORES = {
  kinds: {
    previous: [
      [0.1, 0.9],
      [0.3, 0.2],
    ],
    first: [
      [0.8, 0.05],
      [0.3, 0.6],
    ],
    repeated: [
      [0, 0],
      [0, 0],
    ],
    induction: [
      [0, 0],
      [0.7, null],
    ],
    antecedent: [
      [0, 0],
      [0, 0],
    ],
  },
  chance: { previous: 0.02, first: 0.02, repeated: 0.02, induction: 0.4, antecedent: 0.02 },
};
const HEADS = [0, 1].flatMap((block) => [0, 1].map((head) => ({ block, head })));
const names = (heads: { block: number; head: number }[]) =>
  heads.map(({ block, head }) => `${block}.${head}`);

test("sorts heads by score", () => {
  expect(names(sortHeads(HEADS, "previous", SCORES))).toEqual(["0.1", "1.0", "1.1", "0.0"]);
  expect(names(sortHeads(HEADS, "induction", SCORES))).toEqual(["1.0", "0.0", "0.1", "1.1"]);
  expect(sortHeads(HEADS, "block", SCORES)).toEqual(HEADS);
  expect(sortHeads(HEADS, "first", undefined)).toEqual(HEADS);
  expect(names(HEADS)).toEqual(["0.0", "0.1", "1.0", "1.1"]); // unchanged
});

test("finds the dominant kind of a head", () => {
  expect(dominantKind(SCORES, { block: 0, head: 0 })).toEqual({ kind: "first", score: 0.8 });
  // The induction score of 0.7 is less than twice the chance level.
  expect(dominantKind(SCORES, { block: 1, head: 0 })?.kind).toBe("previous");
  expect(dominantKind({ ...SCORES, kinds: {} }, { block: 1, head: 0 })).toBeNull();
  // Includes heads that show another pattern more strongly.
  expect(names(filterHeads(HEADS, "previous", SCORES))).toEqual(["0.1", "1.0", "1.1"]);
  expect(filterHeads(HEADS, "induction", SCORES)).toEqual([]);
  expect(filterHeads(HEADS, "antecedent", SCORES)).toEqual([]);
  // 0.05 is more than twice the chance level, but too little attention to be a clear case.
  const weak = { ...SCORES, chance: { ...SCORES.chance, first: 0.01 } };
  expect(names(filterHeads(HEADS, "first", weak))).toEqual(["0.0", "1.0", "1.1"]);
});

test.each([
  ["13.8", { block: 13, head: 8 }],
  [" 13 8 ", { block: 13, head: 8 }],
  ["block 2, head 5", { block: 2, head: 5 }],
  ["b2h5", { block: 2, head: 5 }],
  ["7", { block: 7, head: 0 }],
  ["30.0", null],
  ["0.9", null],
  ["", null],
  ["induction", null],
  ["1.2.3", null],
])("finds a head by %j", (text, expected) => {
  expect(parseHead(text, 30, 9)).toEqual(expected);
});

test.each([
  ["induction", "induction"],
  ["Indukt", "induction"],
  [" prev", "previous"],
  ["in", null],
  ["13.8", null],
  ["nothing", null],
])("finds the order of %j: %s", (text, order) => expect(parseOrder(text, de.heads.orders)).toBe(order));
