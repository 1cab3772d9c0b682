import { expect, test } from "vitest";
import { colorRangeOf, legendSteps, rangeLabels } from "../../src/drawing/legend";

test("labels the ends of the range, with negative numbers only if there are any", () => {
  const labels = (values: number[], peak: number) => rangeLabels(colorRangeOf(values, peak));
  expect(labels([0, 0.5, -Infinity], 1)).toEqual(["0", "1.00"]);
  expect(labels([0, 0.5, 0.004], 0.0042)).toEqual(["0", "≥ 0.004"]);
  expect(labels([-3, 2.5], 2)).toEqual(["≤ −2.00", "≥ 2.00"]);
  expect(labels([-1, 30], 22.7)).toEqual(["−22.7", "≥ 22.7"]);
  expect(legendSteps(colorRangeOf([0, 1], 1))[0]).toBe(0);
  expect(legendSteps(colorRangeOf([-1, 1], 1))[0]).toBe(-1);
});
