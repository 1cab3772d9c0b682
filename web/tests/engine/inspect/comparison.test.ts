import { expect, test } from "vitest";
import { align } from "../../../src/engine/inspect/comparison";

const alignWords = (one: string, other: string) => align(one.split(" "), other.split(" "));

test("pairs equal tokens, and replaced ones in runs of equal length", () => {
  expect(alignWords("the duck crossed", "the hen crossed")).toEqual([
    [0, 0],
    [1, 1],
    [2, 2],
  ]);
  expect(alignWords("the duck", "the old duck")).toEqual([
    [0, 0],
    [1, 2],
  ]);
  expect(alignWords("a b c", "x y")).toEqual([]);
});

test("prefers the longest run, and the earliest of equal ones", () => {
  expect(alignWords("b a b c", "a b c b")).toEqual([
    [1, 0],
    [2, 1],
    [3, 2],
  ]);
  expect(alignWords("a x a", "a")).toEqual([[0, 0]]);
});
