import { expect, test } from "vitest";
import { normStages } from "../../src/model/normedVector";

test("shows a vector before, with mean 0 and deviation 1, and after gain and shift", () => {
  const before = [1, 2, 3, 6];
  const deviation = Math.sqrt((4 + 1 + 0 + 9) / 4);
  const [first, standardized, last] = normStages(before, deviation, 3, [0, 1, 0, 3]);
  expect(first).toEqual({ name: "before", values: before, mean: 3, deviation });
  expect(standardized!.values).toEqual(before.map((value) => (value - 3) / deviation));
  expect(standardized!.mean).toBeCloseTo(0, 12);
  expect(standardized!.deviation).toBeCloseTo(1, 12);
  expect(last).toEqual({ name: "after", values: [0, 1, 0, 3], mean: 1, deviation: Math.sqrt(1.5) });
});

test("without a mean, gives the root mean square", () => {
  const [first, standardized] = normStages([3, 4], Math.sqrt(12.5), null, [6, 4]);
  expect(first).toMatchObject({ mean: null, deviation: Math.sqrt(12.5) });
  expect(standardized!.deviation).toBeCloseTo(1, 12);
});
