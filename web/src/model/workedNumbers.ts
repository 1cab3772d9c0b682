/** The small computations of the lecture "Transformers by worked numbers", on vectors of two numbers. */

import { matmul, type Rows, runTinyHead, softmax } from "./tinyHead";

export const IDENTITY: Rows = [
  [1, 0],
  [0, 1],
];

export function scaled(matrix: Rows, factor: number): Rows {
  return matrix.map((row) => row.map((value) => value * factor));
}

export function transposed(matrix: Rows): Rows {
  return matrix[0]!.map((_, j) => matrix.map((row) => row[j]!));
}

export function dot(a: number[], b: number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

export function average(rows: Rows): number[] {
  return rows[0]!.map((_, j) => rows.reduce((sum, row) => sum + row[j]!, 0) / rows.length);
}

export interface Attended {
  scores: number[];
  powers: number[]; // the base to the power of each score
  weights: number[];
  result: number[]; // the weighted sum of the keys
}

/** One query compared with every key. Base 3 in place of e is the same as scores times ln 3. */
export function attend(keys: Rows, query: number[], base = Math.E): Attended {
  const scores = keys.map((key) => dot(key, query));
  const weights = softmax(scores.map((score) => score * Math.log(base)));
  const result = matmul([weights], keys)[0]!;
  return { scores, powers: scores.map((score) => base ** score), weights, result };
}

/** The weight on a single 1 among zeros, with keys multiplied by `boost` and a query that looks for a 1. */
export function weightOnOne(zeros: number, boost: number): number {
  return 1 / (1 + zeros * Math.exp(-boost));
}

/** How many zeros it takes after a 1 for the state h = w h + x of a recurrent cell to fall below a limit. */
export function zerosUntilBelow(w: number, limit: number): number {
  let zeros = 0;
  while (w ** zeros >= limit) zeros++;
  return zeros;
}

/** A recurrent layer: h = tanh(e + h / 2). Returns the state after each token. */
export function runRnn(x: Rows): Rows {
  let state = [0, 0];
  return x.map((e) => (state = state.map((h, j) => Math.tanh(e[j]! + h / 2))));
}

/** The simplest attention: each token mixes the vectors of the tokens up to it, weighted by dot products. */
export function runAttention(x: Rows): Rows {
  const W = { W_Q: IDENTITY, W_K: IDENTITY, W_V: IDENTITY };
  return runTinyHead({ x, ...W, divided: false, causal: true }).mixed;
}

/** The indices of the rows that differ. */
export function changedRows(before: Rows, after: Rows): number[] {
  const differs = (row: number[], i: number) =>
    row.some((value, j) => Math.abs(value - before[i]![j]!) > 1e-12);
  return after.flatMap((row, i) => (differs(row, i) ? [i] : []));
}

export interface LinearScores {
  plain: number; // k · q
  W: Rows; // W^K times W^Q transposed
  key: number[]; // k W^K
  query: number[]; // q W^Q
  both: number; // (k W^K) · (q W^Q)
  linear: number; // k W q
  onKey: number[]; // k W, compared with q
  onQuery: number[]; // W q, compared with k
}

/** "Linear" attention: a matrix between key and query, and the two matrices that it can be split into. */
export function linearScores(k: number[], q: number[], W_K: Rows, W_Q: Rows): LinearScores {
  const W = matmul(W_K, transposed(W_Q));
  const [key, query] = [matmul([k], W_K)[0]!, matmul([q], W_Q)[0]!];
  const [onKey, onQuery] = [matmul([k], W)[0]!, matmul([q], transposed(W))[0]!];
  return { plain: dot(k, q), W, key, query, both: dot(key, query), linear: dot(onKey, q), onKey, onQuery };
}

/** Adds the Transformer paper's position encoding, which for two numbers is [sin i, cos i]. */
export function addPositions(x: Rows): Rows {
  return x.map(([a, b], i) => [a! + Math.sin(i), b! + Math.cos(i)]);
}

/** The output of a head in which every digit looks for its own kind, with or without mask and positions. */
export function runOrdered(x: Rows, causal: boolean, positions: boolean): { weights: Rows; output: Rows } {
  const W = { W_Q: IDENTITY, W_K: scaled(IDENTITY, 2), W_V: IDENTITY };
  const head = runTinyHead({ x: positions ? addPositions(x) : x, ...W, divided: false, causal });
  return { weights: head.weights, output: head.mixed };
}

const MAX_DENOMINATOR = 99;

/** A fraction such as "1/6"; null if the value is whole or equals no fraction with a small denominator. */
export function asFraction(value: number): string | null {
  for (let denominator = 1; denominator <= MAX_DENOMINATOR; denominator++) {
    const numerator = Math.round(value * denominator);
    if (Math.abs(numerator / denominator - value) < 1e-12)
      return denominator === 1 ? null : `${numerator}/${denominator}`;
  }
  return null;
}
