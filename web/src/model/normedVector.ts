/** What a norm does to one vector, in its two steps. */

import { average, rootMeanSquare } from "./evaluation";

/** A vector, and what a norm sets: the mean and the standard deviation, or only the root mean square. */
export interface VectorStage {
  name: "before" | "standardized" | "after";
  values: number[];
  mean: number | null; // null if the norm does not subtract it
  deviation: number; // the root mean square if there is no mean
}

/** The vector before the norm, with mean 0 and standard deviation 1, and after the trained gain and shift. */
export function normStages(
  before: readonly number[],
  scale: number,
  mean: number | null, // null if the norm does not subtract it
  after: readonly number[],
): VectorStage[] {
  const standardized = before.map((value) => (value - (mean ?? 0)) / scale);
  return [
    describe("before", before, mean !== null),
    describe("standardized", standardized, mean !== null),
    describe("after", after, mean !== null),
  ];
}

function describe(name: VectorStage["name"], values: readonly number[], isCentered: boolean): VectorStage {
  const mean = isCentered ? average(values) : null;
  return { name, values: [...values], mean, deviation: rootMeanSquare(values, mean ?? 0, 0) };
}
