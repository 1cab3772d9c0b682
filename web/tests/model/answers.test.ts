import { expect, test } from "vitest";
import { isNear, parseAnswer } from "../../src/model/answers";

test("reads decimals and fractions", () => {
  expect(parseAnswer("0.25")).toEqual([0.25]);
  expect(parseAnswer(" 0,25 ")).toEqual([0.25]);
  expect(parseAnswer("3/8")).toEqual([0.375]);
  expect(parseAnswer("−1 / 4")).toEqual([-0.25]);
  expect(parseAnswer("+.5")).toEqual([0.5]);
  expect(parseAnswer("37,5 %")).toEqual([0.375]);
  expect(parseAnswer("2,048")).toEqual([2.048, 2048]);
  expect(parseAnswer("1.234.567")).toEqual([1234567]);
});

test("anything else is no number", () => {
  for (const text of ["", "x", "1/", "1/2/3", "half", "1/0", "0x4", "1e3", "Infinity", "%", "1,2,3"])
    expect(parseAnswer(text), text).toEqual([]);
});

test("accepts answers within the tolerance", () => {
  expect(isNear([0.376], 0.375, 0.002)).toBe(true);
  expect(isNear([0.38], 0.375, 0.002)).toBe(false);
  expect(isNear([2.048, 2048], 2048, 0)).toBe(true);
  expect(isNear([], 44, 1)).toBe(false);
});
