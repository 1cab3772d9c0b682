import { expect, test } from "vitest";
import { curvePath, mergeSteps, lastStepWith, makePlot, stepAt } from "../../src/layout/curves";
import type { RunStep } from "../../src/engine/types";

function at(step: number, more: Partial<RunStep> = {}): RunStep {
  const loss = 10 / step;
  const rest = { validation: null, learning_rate: 1, gradient_norm: 1, tokens: 100 * step, sample: null };
  return { step, loss, smoothed: loss, ...rest, ...more };
}
const STEPS = [1, 2, 5, 9].map((step) => at(step));
const numbers = (steps: RunStep[]) => steps.map(({ step }) => step);

test("appends new steps, and drops old ones from where a resumed run repeats them", () => {
  expect(numbers(mergeSteps(STEPS, [at(10), at(11)]))).toEqual([1, 2, 5, 9, 10, 11]);
  expect(numbers(mergeSteps(STEPS, [at(3), at(4)]))).toEqual([1, 2, 3, 4]);
  expect(numbers(mergeSteps([], [at(1), at(2), at(3), at(2)]))).toEqual([1, 2]);
});

test("reads a step, or the last known one before it", () => {
  expect(stepAt(STEPS, 5)?.step).toBe(5);
  expect(stepAt(STEPS, 8)?.step).toBe(5);
  expect(stepAt(STEPS, 1000)?.step).toBe(9);
  expect(stepAt(STEPS, 0)).toBeUndefined();
  const validated = [at(1), at(2, { validation: 3 }), at(3), at(4, { validation: 2 })];
  expect(lastStepWith(validated, "validation", 3)?.step).toBe(2);
  expect(lastStepWith(validated, "validation")?.step).toBe(4);
  expect(lastStepWith(validated, "sample")).toBeUndefined();
});

test.each(["linear", "log"] as const)("places points on a %s axis", (axis) => {
  const plot = makePlot([STEPS], ["smoothed"], 100, [400, 200], axis);
  expect(plot.x(100)).toBeCloseTo(400);
  expect(plot.x(axis === "log" ? 10 : 50)).toBeCloseTo(200);
  expect(plot.y(10)).toBeLessThan(plot.y(1));
  for (const step of [1, 7, 50, 100]) expect(plot.step(plot.x(step))).toBe(step);
  expect(plot.step(-50)).toBe(1);
  expect(plot.xTicks.every((tick) => tick >= 0 && tick <= 100)).toBe(true);
  const path = curvePath(STEPS, "smoothed", plot);
  expect(path.match(/[ML]/g)).toEqual(["M", "L", "L", "L"]);
  expect(path.startsWith(`M${Math.round(10 * plot.x(1)) / 10},`)).toBe(true);
});

test("skips missing values, and draws nothing if there are no values", () => {
  const plot = makePlot([[at(1), at(2, { smoothed: null }), at(3)]], ["smoothed"], 3, [100, 100], "linear");
  expect(curvePath([at(1), at(2, { smoothed: null }), at(3)], "smoothed", plot).match(/[ML]/g)).toHaveLength(
    2,
  );
  const empty = makePlot([[]], ["validation"], 0, [100, 100], "log");
  expect(curvePath([], "validation", empty)).toBe("");
  expect(Number.isFinite(empty.y(0.5))).toBe(true);
});
