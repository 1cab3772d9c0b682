/** Lengths and angles of vectors. */

import { dot } from "./workedNumbers";

export function norm(x: number[]): number {
  return Math.sqrt(dot(x, x));
}

/** The cosine of the angle between two vectors. */
export function cosine(a: number[], b: number[]): number {
  return dot(a, b) / (norm(a) * norm(b));
}
