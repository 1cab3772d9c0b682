/** Names and snapshots of training runs. */

import type { Run } from "../engine/types";

/** The run of a model. A snapshot's name consists of its run's name, an @ and a step. */
export function runName(model: string): string {
  return isSnapshot(model) ? model.slice(0, model.lastIndexOf("@")) : model;
}

export function isSnapshot(model: string): boolean {
  return /^[^@]+@\d+$/.test(model);
}

export interface Snapshot {
  step: number;
  model: string;
}

/** The snapshots of a run, and its final model. */
export function listSnapshots(run: {
  name: string;
  snapshots: number[];
  steps_done: number;
  model: string | null;
  state: string;
}): Snapshot[] {
  const { name, snapshots, steps_done } = run;
  // While a resumed run trains, its folder still holds the model of the previous session.
  const model = run.state === "finished" || run.state === "stopped" ? run.model : null;
  const steps = model === null ? snapshots : snapshots.filter((step) => step < steps_done);
  const list = steps.map((step) => ({ step, model: `${name}@${step}` }));
  return model === null ? list : [...list, { step: steps_done, model }];
}

/** Adds a number if the name is taken: my, my-2, my-3, … */
export function uniqueName(preferred: string, taken: string[]): string {
  const clean = preferred
    .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
    .replace(/^[^A-Za-z0-9]+/, "")
    .slice(0, 56);
  const name = clean.replace(/[-.]+$/, "") || "run";
  for (let i = 1; ; i++) {
    const candidate = i === 1 ? name : `${name}-${i}`;
    if (!taken.includes(candidate)) return candidate;
  }
}

export function isActive({ state }: Pick<Run, "state">): boolean {
  return state === "starting" || state === "running" || state === "stopping";
}

const FEW_STEPS = 20; // after so few, a model has learned next to nothing
const SHORT_MINUTES = 1; // below this, reading the text and measuring the speed take most of the time

/** Whether a run that was limited by time ended before the model could learn much. */
export function isTooShort({ state, minutes, steps_done }: Run): boolean {
  return state === "finished" && minutes !== null && minutes !== undefined && steps_done < FEW_STEPS;
}

/** Whether this many minutes are too few for training. */
export function isShortTime(minutes: number | null): boolean {
  return minutes !== null && minutes < SHORT_MINUTES;
}

/** The teacher of a run that is being trained now, if any, or else the run itself. */
export function trainedNow(run: Run, runs: readonly Run[]): Run {
  const isStarting = run.state === "starting" || run.state === "stopping";
  return (isStarting && runs.find((each) => each.student === run.name && isActive(each))) || run;
}

/** The shortest finished run that was limited by time, as a measure of what this computer can do. */
export function measuredRun(runs: readonly Run[]): Run | undefined {
  return runs
    .filter(
      ({ state, minutes, steps_done, teachers }) =>
        state === "finished" && minutes && steps_done > 0 && !teachers,
    )
    .toSorted((a, b) => a.minutes! - b.minutes!)[0];
}
