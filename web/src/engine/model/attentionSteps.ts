/** The lecture's steps as pure functions of one head: project, compare, divide, mask, softmax, mix (weigh and sum),
 * write. Soft-capping, as in Gemma 2, is one more step, after divide.
 *
 * Shapes: T query positions, S key positions, H heads, D features per head, C features of the residual stream.
 */

import { Matrix } from "../../model/matrix";
import type { Weight } from "../kernels/kernels";
import type { AttentionMask } from "./mask";
import type { Linear } from "./parameters";
import { dot, zeros } from "./tensor";

/** Queries q = x W^Q of all heads side by side, and likewise keys and values: T C → T H·D. */
export function project(x: Matrix, W: Linear): Matrix {
  return W.forward(x);
}

/** Scores: the dot product q · k of each query with each key. T D, S D → T S. */
export function compare(query: Matrix, key: Matrix): Matrix {
  const scores = zeros(query.rows, key.rows);
  const D = query.columns;
  for (let i = 0, at = 0; i < query.rows; i++)
    for (let j = 0; j < key.rows; j++) scores.values[at++] = dot(query.values, key.values, i * D, j * D, D);
  return scores;
}

/** Divides by √d_k, so that dot products of long vectors do not saturate the softmax. */
export function divide(scores: Matrix, d_k: number): Matrix {
  const divisor = Math.sqrt(d_k);
  const scaled = scores.values.map((score) => score / divisor);
  return new Matrix(scaled, scores.rows, scores.columns);
}

/** Soft-capping: limit · tanh(x / limit), which is close to x for small x and stays between -limit and limit. */
export function cap(values: Matrix, limit: number): Matrix {
  const capped = values.values.map((value) => limit * Math.tanh(value / limit));
  return new Matrix(capped, values.rows, values.columns);
}

/** Whether scores or logits are soft-capped. Models published by earlier versions have no such setting. */
export function hasCap(limit: number | null | undefined): limit is number {
  return limit != null;
}

/** Sets scores to -∞ where the mask hides the key from the query; `positions` are those of the rows. */
export function mask(scaled: Matrix, attentionMask: AttentionMask, positions: readonly number[]): Matrix {
  const masked = new Matrix(scaled.values.slice(), scaled.rows, scaled.columns);
  positions.forEach((position, i) => {
    const [first, last] = attentionMask.visible(position, scaled.columns);
    masked.row(i).fill(-Infinity, 0, first).fill(-Infinity, last);
  });
  return masked;
}

/** Turns each row of scores into weights that sum to 1. */
export function softmax(masked: Matrix): Matrix {
  const weights = zeros(masked.rows, masked.columns);
  for (let i = 0; i < masked.rows; i++) softmaxRow(masked.row(i), weights.row(i));
  return weights;
}

export function softmaxRow(scores: Float32Array, weights: Float32Array): void {
  let largest = -Infinity;
  for (const score of scores) if (!(score <= largest)) largest = score; // also if the score is NaN
  let sum = 0;
  for (let j = 0; j < scores.length; j++) sum += weights[j] = Math.exp(scores[j]! - largest);
  for (let j = 0; j < scores.length; j++) weights[j] = weights[j]! / sum;
}

/** Weighs each value and sums: T S, S D → T D. */
export function mix(weights: Matrix, value: Matrix): Matrix {
  const mixed = zeros(weights.rows, value.columns);
  const sum = new Float64Array(value.columns);
  for (let i = 0; i < weights.rows; i++) {
    sum.fill(0);
    weights.row(i).forEach((weight, j) => {
      const row = value.row(j);
      for (let k = 0; k < row.length; k++) sum[k] = sum[k]! + weight * row[k]!;
    });
    mixed.row(i).set(sum);
  }
  return mixed;
}

/** What a head adds to the residual stream, through its rows of W^O: T D → T C. */
export function write(mixed: Matrix, output: Weight, head: number): Matrix {
  const [C, D] = [output.rows, mixed.columns];
  const written = zeros(mixed.rows, C);
  for (let j = 0; j < C; j++) {
    const weights = output.row(j);
    for (let i = 0; i < mixed.rows; i++)
      written.values[i * C + j] = dot(mixed.values, weights, i * D, head * D, D);
  }
  return written;
}
