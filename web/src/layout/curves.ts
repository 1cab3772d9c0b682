/** Training curves: merging steps, reading values and computing scales. */

import { scaleLinear, scaleLog } from "d3-scale";
import type { RunStep } from "../engine/types";

export type Axis = "linear" | "log";
export type Field = "loss" | "smoothed" | "validation" | "learning_rate";

/** Appends new steps. If a resumed run goes back to a step, that step and all later ones are replaced. */
export function mergeSteps(before: RunStep[], added: RunStep[]): RunStep[] {
  const steps = [...before];
  for (const step of added) {
    while (steps.length > 0 && steps.at(-1)!.step >= step.step) steps.pop();
    steps.push(step);
  }
  return steps;
}

/** The metrics at a step, or at the last known step before it. */
export function stepAt(steps: RunStep[], step: number): RunStep | undefined {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]!.step <= step) low = middle + 1;
    else high = middle;
  }
  return steps[low - 1];
}

/** The last step up to this one that has a value in this field. */
export function lastStepWith(
  steps: RunStep[],
  field: "validation" | "sample",
  step = Infinity,
): RunStep | undefined {
  return steps.findLast((metrics) => metrics.step <= step && metrics[field] !== null);
}

export interface Plot {
  x: (step: number) => number;
  y: (value: number) => number;
  step: (x: number) => number; // inverse of x, rounded
  xTicks: number[];
  yTicks: number[];
}

/** Common scales for several curves, from the first step to the last planned one. */
export function makePlot(
  curves: RunStep[][],
  fields: Field[],
  last: number,
  [width, height]: [number, number],
  axis: Axis,
): Plot {
  const values = curves.flatMap((steps) =>
    steps.flatMap((each) => fields.flatMap((field) => each[field] ?? [])),
  );
  const [low, high] = [Math.min(...extremes(values, 0)), Math.max(...extremes(values, 1))];
  const end = Math.max(2, last);
  const x = axis === "log" ? scaleLog([1, end], [0, width]) : scaleLinear([0, end], [0, width]);
  const yTickCount = Math.max(2, Math.floor(height / 45));
  const y = scaleLinear([low, high], [height, 0]).nice(yTickCount);
  const xTickCount = Math.max(2, Math.floor(width / 90));
  return {
    x,
    y,
    step: (at) => Math.max(1, Math.min(end, Math.round(x.invert(at)))),
    xTicks: axis === "log" ? decades(end) : x.ticks(xTickCount).filter(Number.isInteger),
    yTicks: y.ticks(yTickCount),
  };
}

/** The smallest and the largest value. Reduces instead of spreading, which fails for too many arguments. */
function extremes(values: number[], fallback: number): number[] {
  if (values.length === 0) return [fallback];
  return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
}

/** Ticks at 1, 10, 100, …, and at the last step if it is more than twice the last of them. */
function decades(end: number): number[] {
  const ticks = [];
  for (let tick = 1; tick <= end; tick *= 10) ticks.push(tick);
  if (end / ticks.at(-1)! > 2) ticks.push(end);
  return ticks;
}

/** The SVG path of a field, without gaps for missing values. */
export function curvePath(steps: RunStep[], field: Field, { x, y }: Plot): string {
  const points = steps.filter((each) => each[field] !== null && each.step >= 1);
  return points
    .map((each, i) => `${i === 0 ? "M" : "L"}${round(x(each.step))},${round(y(each[field]!))}`)
    .join("");
}

function round(x: number): number {
  return Math.round(10 * x) / 10;
}
