import { expect, test } from "vitest";
import { bestWidths, makeSentences, trainWidth, WIDTHS } from "../../src/model/widthSweep";

test("sentences are reproducible, and a longer text starts like a shorter one", () => {
  expect(makeSentences(20, 3).slice(0, 5)).toEqual(makeSentences(5, 3));
  expect(makeSentences(5, 4)).not.toEqual(makeSentences(5, 3));
});

test("wider vectors fit the training sentences at least as well", () => {
  const settings = { sentences: 20, seed: 1 };
  const points = WIDTHS.map((width) => trainWidth(width, settings));
  for (let i = 1; i < points.length; i++)
    expect(points[i]!.training).toBeLessThanOrEqual(points[i - 1]!.training);
  expect(points.every(({ training, heldOut }) => heldOut > training)).toBe(true);
  expect(trainWidth(4, settings)).toEqual(points[WIDTHS.indexOf(4)]);
});

test("finds the widths with the lowest held-out loss, to the digits shown", () => {
  const points = [3, 1.00001, 1, 2].map((heldOut, i) => ({ width: 2 ** i, training: 0, heldOut }));
  expect(bestWidths(points, 4)).toEqual([2, 4]);
  expect(bestWidths(points, 5)).toEqual([4]);
});
