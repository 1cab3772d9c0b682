import { expect, test } from "vitest";
import { isAnswer, parseAnswer } from "../../src/model/answers";

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

test("anything else is not a number", () => {
  for (const text of ["", "x", "1/", "1/2/3", "half", "1/0", "0x4", "1e3", "Infinity", "%", "1,2,3"])
    expect(parseAnswer(text), text).toEqual([]);
});

test("whole numbers must be exact, others may be rounded to two decimals", () => {
  for (const near of [0.37, 0.375, 0.38]) expect(isAnswer([near], 0.375), String(near)).toBe(true);
  for (const far of [0.36, 0.4]) expect(isAnswer([far], 0.375), String(far)).toBe(false);
  expect(isAnswer([2.048, 2048], 2048)).toBe(true);
  expect(isAnswer([43.999], 44)).toBe(false);
  expect(isAnswer([], 44)).toBe(false);
});
