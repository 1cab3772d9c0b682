/** Attention of all heads side by side, without holding their T×S matrices.
 *
 * Shapes: T query positions, S key positions, H heads, D features per head. Groups of query heads may share a key-value
 * head (GQA). The queries are those of the last T of S positions.
 */

import { Matrix } from "../../model/matrix";
import type { Kernels } from "../kernels/kernels";
import type { Config } from "../types";
import { hasCap, softmaxRow } from "./attentionSteps";
import type { AttentionMask } from "./mask";
import { dot, firstRows, range, takeHead, zeros } from "./tensor";

const FEW_ROWS = 8; // up to this many query positions, matrix products cost more than they save
const ROWS_AT_ONCE = 64; // query positions

/** The same result as the lecture's steps, head by head: T H·D, S H·D, S H·D → T H·D. */
export function attendFused(
  query: Matrix,
  key: Matrix,
  value: Matrix,
  mask: AttentionMask,
  config: Config,
  kernels: Kernels,
): Matrix {
  const { d_head, n_head, n_kv_head } = config;
  const mixed = zeros(query.rows, query.columns);
  for (let shared = 0; shared < n_kv_head; shared++) {
    const [ownKey, ownValue] = [takeHead(key, shared, d_head), takeHead(value, shared, d_head)];
    const group = n_head / n_kv_head;
    for (let head = shared * group; head < (shared + 1) * group; head++)
      attendHead(takeHead(query, head, d_head), ownKey, ownValue, mask, config, kernels, (i, row) =>
        mixed.row(i).set(row, head * d_head),
      );
  }
  return mixed;
}

/** Passes the mixed values of each query position to `write`. */
function attendHead(
  query: Matrix,
  key: Matrix,
  value: Matrix,
  mask: AttentionMask,
  config: Config,
  kernels: Kernels,
  write: (i: number, row: Float32Array) => void,
): void {
  const [T, S, D] = [query.rows, key.rows, query.columns];
  const multiply = T > FEW_ROWS ? kernels : SMALL_PRODUCTS;
  for (let first = 0; first < T; first += ROWS_AT_ONCE) {
    const count = Math.min(ROWS_AT_ONCE, T - first);
    const rows = new Matrix(query.values.subarray(first * D, (first + count) * D), count, D);
    // In a causal model, no row sees a key after the last row's.
    const [, seen] = mask.visible(S - T + first + count - 1, S);
    const weights = multiply.multiplyTransposed(rows, firstRows(key, seen));
    for (const i of range(count)) weigh(weights.row(i), mask.visible(S - T + first + i, S), config);
    const mixed = multiply.multiply(weights, firstRows(value, seen));
    for (const i of range(count)) write(first + i, mixed.row(i));
  }
}

/** Divides and caps the visible scores of a row and applies the softmax, in place; hidden ones become 0. */
function weigh(row: Float32Array, [first, last]: [number, number], { d_k, score_cap }: Config): void {
  const divisor = Math.sqrt(d_k);
  const visible = row.subarray(first, last);
  for (let j = 0; j < visible.length; j++) visible[j] = visible[j]! / divisor;
  if (hasCap(score_cap))
    for (let j = 0; j < visible.length; j++) visible[j] = score_cap * Math.tanh(visible[j]! / score_cap);
  softmaxRow(visible, visible);
  row.fill(0, 0, first).fill(0, last);
}

/** Products of a few rows, which need no copies. */
const SMALL_PRODUCTS: Pick<Kernels, "multiply" | "multiplyTransposed"> = {
  multiplyTransposed: (a, b) => {
    const products = zeros(a.rows, b.rows);
    for (let i = 0, at = 0; i < a.rows; i++)
      for (let j = 0; j < b.rows; j++)
        products.values[at++] = dot(a.values, b.values, i * a.columns, j * b.columns, a.columns);
    return products;
  },
  multiply: (a, b) => {
    const products = zeros(a.rows, b.columns);
    const sum = new Float64Array(b.columns);
    for (let i = 0; i < a.rows; i++) {
      sum.fill(0);
      for (let j = 0; j < b.rows; j++) {
        const [weight, start] = [a.values[i * a.columns + j]!, j * b.columns];
        if (weight !== 0)
          for (let k = 0; k < sum.length; k++) sum[k] = sum[k]! + weight * b.values[start + k]!;
      }
      products.row(i).set(sum);
    }
    return products;
  },
};
