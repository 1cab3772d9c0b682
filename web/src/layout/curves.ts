/** Curves over training time: which steps are known, where they lie, and what is read at one of them. */

import { scaleLinear, scaleLog } from "d3-scale";
import type { RunStep } from "../engine/types";

export type Axis = "linear" | "log";
export type Field = "loss" | "smoothed" | "validation" | "lr_scale";

/** The steps known before, and those that came: where a run went back, what it took back is left out. */
export function mergeSteps(before: RunStep[], fresh: RunStep[]): RunStep[] {
  const steps = [...before];
  for (const step of fresh) {
    while (steps.length > 0 && steps.at(-1)!.step >= step.step) steps.pop();
    steps.push(step);
  }
  return steps;
}

/** What was told at a step, or at the last one before it that is known. */
export function stepAt(steps: RunStep[], step: number): RunStep | undefined {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle]!.step <= step) low = middle + 1;
    else high = middle;
  }
  return steps[low - 1];
}

/** The last step up to this one at which there is such a number. */
export function lastStepWith(
  steps: RunStep[],
  field: "validation" | "sample",
  step = Infinity,
): RunStep | undefined {
  return steps.findLast((each) => each.step <= step && each[field] !== null);
}

export interface Plot {
  x: (step: number) => number;
  y: (value: number) => number;
  step: (x: number) => number; // the other way round, a whole one
  xTicks: number[];
  yTicks: number[];
}

/** Scales for these curves together, from the first step to the last that is planned. */
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
  const across = Math.max(2, Math.floor(height / 45));
  const y = scaleLinear([low, high], [height, 0]).nice(across);
  const few = Math.max(2, Math.floor(width / 90));
  return {
    x,
    y,
    step: (at) => Math.max(1, Math.min(end, Math.round(x.invert(at)))),
    xTicks: axis === "log" ? decades(end) : x.ticks(few).filter(Number.isInteger),
    yTicks: y.ticks(across),
  };
}

/** Not spread into a call: there may be very many. */
function extremes(values: number[], otherwise: number): number[] {
  if (values.length === 0) return [otherwise];
  return [values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b))];
}

/** 1, 10, 100, … and the last. */
function decades(end: number): number[] {
  const ticks = [];
  for (let tick = 1; tick <= end; tick *= 10) ticks.push(tick);
  if (end / ticks.at(-1)! > 2) ticks.push(end);
  return ticks;
}

/** The curve of a field as the data of an SVG path; where there is no number it goes on to the next. */
export function curvePath(steps: RunStep[], field: Field, { x, y }: Plot): string {
  const points = steps.filter((each) => each[field] !== null && each.step >= 1);
  return points
    .map((each, i) => `${i === 0 ? "M" : "L"}${round(x(each.step))},${round(y(each[field]!))}`)
    .join("");
}

function round(x: number): number {
  return Math.round(10 * x) / 10;
}
