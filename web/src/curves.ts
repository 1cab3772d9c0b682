/** Curves over training time: which steps are known, where they lie, and what is read at one of them. */

import { scaleLinear, scaleLog } from "d3-scale";
import type { RunStep } from "./server";

export type Axis = "linear" | "log";
export type Field = "loss" | "smoothed" | "validation" | "rate";

/** The steps known before, and those that came: where a run went back, what it took back is left out. */
export function joinSteps(before: RunStep[], fresh: RunStep[]): RunStep[] {
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
export function lastWith(
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
export function drawCurve(steps: RunStep[], field: Field, { x, y }: Plot): string {
  const points = steps.filter((each) => each[field] !== null && each.step >= 1);
  return points
    .map((each, i) => `${i === 0 ? "M" : "L"}${round(x(each.step))},${round(y(each[field]!))}`)
    .join("");
}

function round(x: number): number {
  return Math.round(10 * x) / 10;
}

/** A model in the midst of its training goes by the name of its run, an @, and a step. */
export function runOf(model: string): string {
  return isSnapshot(model) ? model.slice(0, model.lastIndexOf("@")) : model;
}

export function isSnapshot(model: string): boolean {
  return /^[^@]+@\d+$/.test(model);
}

/** A place in training time, and the model that was there. */
export interface Mark {
  step: number;
  model: string;
}

/** Where in its training a run can be looked at: its snapshots, and the model that it ended with. */
export function marksOf(run: {
  name: string;
  snapshots: number[];
  steps_done: number;
  model: string | null;
  state: string;
}): Mark[] {
  const { name, snapshots, steps_done } = run;
  // One that is being gone on with has a model from before.
  const model = run.state === "finished" || run.state === "stopped" ? run.model : null;
  const early = model === null ? snapshots : snapshots.filter((step) => step < steps_done);
  const marks = early.map((step) => ({ step, model: `${name}@${step}` }));
  return model === null ? marks : [...marks, { step: steps_done, model }];
}

/** A free name like this one: my, my-2, my-3, … */
export function freeName(wanted: string, taken: string[]): string {
  const clean = wanted
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 56);
  const name = clean.replace(/[-.]+$/, "") || "run";
  for (let i = 1; ; i++) {
    const free = i === 1 ? name : `${name}-${i}`;
    if (!taken.includes(free)) return free;
  }
}
