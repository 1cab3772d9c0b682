import { expect, test } from "vitest";
import { tellingRow } from "../../../src/views/lectures/figures000/tokens";
import { spread } from "../../../src/views/lectures/place";

const TOKENS = ["Ella", " lost", " her", " ball", ".", " She", " lost", " a", " hat", "."];

test("finds the last token at which a role matters", () => {
  expect(tellingRow("previous", TOKENS)).toBe(9);
  expect(tellingRow("antecedent", TOKENS)).toBe(5);
  expect(tellingRow("induction", TOKENS)).toBe(6);
  expect(tellingRow("induction", ["a", "b"])).toBe(1);
});

test("spreads numbers evenly with both ends", () => {
  expect(spread(4, 7)).toEqual([0, 1, 2, 3]);
  expect(spread(30, 4)).toEqual([0, 10, 19, 29]);
  expect(spread(1, 7)).toEqual([0]);
});
