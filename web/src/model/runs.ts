/** Runs by their names: the models along their way, and what they are at. */

import type { Run } from "../engine/types";

/** A model in the midst of its training goes by the name of its run, an @, and a step. */
export function runName(model: string): string {
  return isSnapshot(model) ? model.slice(0, model.lastIndexOf("@")) : model;
}

export function isSnapshot(model: string): boolean {
  return /^[^@]+@\d+$/.test(model);
}

/** A place in training time, and the model that was there. */
export interface Snapshot {
  step: number;
  model: string;
}

/** Where in its training a run can be looked at: its snapshots, and the model that it ended with. */
export function listSnapshots(run: {
  name: string;
  snapshots: number[];
  steps_done: number;
  model: string | null;
  state: string;
}): Snapshot[] {
  const { name, snapshots, steps_done } = run;
  // A resumed run already has a model.
  const model = run.state === "finished" || run.state === "stopped" ? run.model : null;
  const early = model === null ? snapshots : snapshots.filter((step) => step < steps_done);
  const marks = early.map((step) => ({ step, model: `${name}@${step}` }));
  return model === null ? marks : [...marks, { step: steps_done, model }];
}

/** A free name like this one: my, my-2, my-3, … */
export function uniqueName(wanted: string, taken: string[]): string {
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

/** Whether it is under way. */
export function isActive({ state }: Pick<Run, "state">): boolean {
  return state === "starting" || state === "running" || state === "stopping";
}
