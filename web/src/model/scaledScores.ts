/** What dividing by √d_k does to the softmax, measured on random queries and keys. */

import { type Rows, softmax } from "./tinyHead";
import { dot } from "./workedNumbers";

const KEYS = 8; // that each query is compared with
export const DRAWS = 60; // queries

/** Normally distributed numbers, the same for the same seed: the Park–Miller generator and Box–Muller. */
function* normals(seed: number): Generator<number, never> {
  let state = seed;
  const uniform = () => (state = (state * 48271) % 2147483647) / 2147483647;
  for (;;) {
    const radius = Math.sqrt(-2 * Math.log(uniform()));
    yield radius * Math.cos(2 * Math.PI * uniform());
  }
}

/** The dot products of random queries with eight keys each; all components have mean 0 and variance 1. */
export function drawScores(d_k: number, seed: number): Rows {
  const source = normals(seed);
  const draw = () => Array.from({ length: d_k }, () => source.next().value);
  return Array.from({ length: DRAWS }, () => {
    const query = draw();
    return Array.from({ length: KEYS }, () => dot(query, draw()));
  });
}

/** The derivative of a weight with respect to its own score. */
export function softmaxSlope(weight: number): number {
  return weight * (1 - weight);
}

export interface Sharpness {
  deviation: number; // standard deviation of the scores
  largest: number; // mean of the largest weight
  slope: number; // mean derivative of the largest weight
  example: number[]; // the weights of the first query
}

export function measureSharpness(scores: Rows, divisor: number): Sharpness {
  const weights = scores.map((row) => softmax(row.map((score) => score / divisor)));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const largest = weights.map((row) => Math.max(...row));
  return {
    deviation: Math.sqrt(mean(scores.flat().map((score) => (score / divisor) ** 2))),
    largest: mean(largest),
    slope: mean(largest.map(softmaxSlope)),
    example: weights[0]!,
  };
}
