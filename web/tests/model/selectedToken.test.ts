import { expect, test } from "vitest";
import { followToken } from "../../src/model/selectedToken";

test("the selected token stays selected while text is typed after it", () => {
  expect(followToken([1, 2, 3], [1, 2, 3, 4, 5], 1)).toBe(1);
  expect(followToken([1, 2, 3], [1, 2], 1)).toBe(1);
});

test("the selected token moves with the text when a word before it changes", () => {
  expect(followToken([1, 2, 3, 4], [1, 8, 9, 3, 4], 2)).toBe(3);
  expect(followToken([1, 2, 3, 4], [3, 4], 2)).toBe(0);
});

test("the last token is selected if the selected one is gone", () => {
  expect(followToken([1, 2, 3, 4], [5, 6, 7, 8, 9], 2)).toBe(-1);
  expect(followToken([1, 2, 3, 4], [4], 2)).toBe(-1);
  expect(followToken([1, 2, 3], [1, 2, 9], 2)).toBe(-1);
});
