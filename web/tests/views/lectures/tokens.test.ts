import { expect, test } from "vitest";
import { columnWidth, tellingRow, tokensThatFit } from "../../../src/views/lectures/figures000/tokens";
import { spread } from "../../../src/views/lectures/place";

const TOKENS = ["Ella", " lost", " her", " ball", ".", " She", " lost", " a", " hat", "."];

test("finds the last token at which a role matters", () => {
  expect(tellingRow("previous", TOKENS)).toBe(9);
  expect(tellingRow("antecedent", TOKENS)).toBe(5);
  expect(tellingRow("induction", TOKENS)).toBe(6);
  expect(tellingRow("induction", ["a", "b"])).toBe(-1);
});

test("shows as many tokens as there is room for, the chosen one among them", () => {
  const widths = [3, 3, 5, 3, 3];
  expect(tokensThatFit(widths, 0, 17)).toEqual([0, 5]);
  expect(tokensThatFit(widths, 1, 12)).toEqual([0, 3]);
  expect(tokensThatFit(widths, 4, 12)).toEqual([2, 5]);
  expect(tokensThatFit(widths, 2, 1)).toEqual([2, 3]);
  expect(tokensThatFit(Array(30).fill(1), 20, 100)).toEqual([7, 21]);
});

test("gives longer tokens wider columns", () => {
  expect(columnWidth("trumpet")).toBeGreaterThan(columnWidth("it"));
  expect(columnWidth(".")).toBe(columnWidth("the"));
  expect(columnWidth("x".repeat(50))).toBe(columnWidth("x".repeat(20)));
});

test("spreads numbers evenly, including both ends", () => {
  expect(spread(4, 7)).toEqual([0, 1, 2, 3]);
  expect(spread(30, 4)).toEqual([0, 10, 19, 29]);
  expect(spread(1, 7)).toEqual([0]);
});
