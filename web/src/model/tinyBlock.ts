/** The lectures' transformer block on vectors of three numbers, with their names t1 … t5 and h. */

import { matmul, type Rows, runTinyHead } from "./tinyHead";

export interface Normalized {
  mean: number;
  deviation: number;
  scores: number[]; // the z-scores
  output: number[]; // after gain and shift
}

/** The z-score of one vector, then multiplied by γ and shifted by β. A constant vector has z-scores of 0. */
export function layerNorm(x: number[], gain: number[], shift: number[]): Normalized {
  const mean = x.reduce((sum, value) => sum + value, 0) / x.length;
  const deviation = Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / x.length);
  const scores = x.map((value) => (value - mean) / (deviation || 1));
  return { mean, deviation, scores, output: scores.map((score, i) => gain[i]! * score + shift[i]!) };
}

/** ReLU(x W1) W2 or, without the nonlinearity, x W1 W2. Both biases are zero. */
export function feedForward(x: Rows, W_1: Rows, W_2: Rows, relu: boolean): Rows {
  const hidden = matmul(x, W_1);
  return matmul(relu ? hidden.map((row) => row.map((value) => Math.max(0, value))) : hidden, W_2);
}

export const IDENTITY_3: Rows = [
  [1, 0, 0],
  [0, 1, 0],
  [0, 0, 1],
];

export interface TinyBlock {
  x: Rows; // one row per token
  gain: number[]; // γ of both layer norms
  shift: number[]; // β
  W_1: Rows;
  W_2: Rows;
  relu: boolean;
}

export type BlockLines = Record<"t1" | "t2" | "t3" | "t4" | "t5" | "h", Rows>;

const add = (a: Rows, b: Rows) => a.map((row, i) => row.map((value, j) => value + b[i]![j]!));

/** The six lines, for every token. The one attention head has identity matrices. */
export function runTinyBlock({ x, gain, shift, W_1, W_2, relu }: TinyBlock): BlockLines {
  const W = { W_Q: IDENTITY_3, W_K: IDENTITY_3, W_V: IDENTITY_3 };
  const normalize = (rows: Rows) => rows.map((row) => layerNorm(row, gain, shift).output);
  const t1 = normalize(x);
  const t2 = runTinyHead({ x: t1, ...W, divided: true, causal: true }).mixed;
  const t3 = add(t2, x);
  const t4 = normalize(t3);
  const t5 = feedForward(t4, W_1, W_2, relu);
  return { t1, t2, t3, t4, t5, h: add(t5, t3) };
}
