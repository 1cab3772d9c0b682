import { expect, test } from "vitest";
import { colorRangeOf, legendSteps, rangeLabels } from "../../src/drawing/legend";

test("a legend tells what its ends stand for, and only the signs there are", () => {
  const tell = (values: number[], peak: number) => rangeLabels(colorRangeOf(values, peak));
  expect(tell([0, 0.5, -Infinity], 1)).toEqual(["0", "1.00"]);
  expect(tell([0, 0.5, 0.004], 0.0042)).toEqual(["0", "≥ 0.004"]);
  expect(tell([-3, 2.5], 2)).toEqual(["≤ −2.00", "≥ 2.00"]);
  expect(tell([-1, 30], 22.7)).toEqual(["−22.7", "≥ 22.7"]);
  expect(legendSteps(colorRangeOf([0, 1], 1))[0]).toBe(0);
  expect(legendSteps(colorRangeOf([-1, 1], 1))[0]).toBe(-1);
});
