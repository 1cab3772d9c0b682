/**
 * One causal head computed twice: word by word in loops, and as five matrix products.
 * Shapes: T words of C features; queries and keys have d_k features, values d_v. Matrices are flat, row by row.
 */

import { uniform } from "./random";

export interface FlatHead {
  T: number;
  C: number;
  d_k: number;
  d_v: number;
  x: Float64Array; // T × C
  W_Q: Float64Array; // C × d_k
  W_K: Float64Array; // C × d_k
  W_V: Float64Array; // C × d_v
}

export function makeFlatHead(T: number, C: number, d_k: number, d_v: number, seed: number): FlatHead {
  const draw = (count: number, size: number, offset: number) =>
    Float64Array.from(uniform(count, size, seed + offset));
  const size = 1 / Math.sqrt(C);
  return {
    T,
    C,
    d_k,
    d_v,
    x: draw(T * C, 1, 0),
    W_Q: draw(C * d_k, size, 1),
    W_K: draw(C * d_k, size, 2),
    W_V: draw(C * d_v, size, 3),
  };
}

/** Compares each word with itself and every earlier word. With `kept`, each key and value is computed only once. */
export function headByLoops({ T, C, d_k, d_v, x, W_Q, W_K, W_V }: FlatHead, kept: boolean): Float64Array {
  const project = (word: number, W: Float64Array) => {
    const width = W.length / C;
    const projected = new Float64Array(width);
    for (let c = 0; c < C; c++)
      for (let d = 0; d < width; d++) projected[d]! += x[word * C + c]! * W[c * width + d]!;
    return projected;
  };
  const memory = new Map<Float64Array, Float64Array[]>([
    [W_K, []],
    [W_V, []],
  ]);
  const recall = (word: number, W: Float64Array) => (memory.get(W)![word] ??= project(word, W));
  const get = kept ? recall : project;
  const output = new Float64Array(T * d_v);
  for (let i = 0; i < T; i++) {
    const query = project(i, W_Q);
    const scores = new Float64Array(i + 1);
    for (let j = 0; j <= i; j++) {
      const key = get(j, W_K);
      for (let d = 0; d < d_k; d++) scores[j]! += query[d]! * key[d]!;
    }
    softmaxInPlace(scores);
    for (let j = 0; j <= i; j++) {
      const value = get(j, W_V);
      for (let d = 0; d < d_v; d++) output[i * d_v + d]! += scores[j]! * value[d]!;
    }
  }
  return output;
}

/** The same head as Q = X W^Q, K = X W^K, V = X W^V, S = Q Kᵀ and P V. */
export function headByMatrices({ T, C, d_k, d_v, x, W_Q, W_K, W_V }: FlatHead): Float64Array {
  const [Q, K] = [multiply(x, W_Q, T, C, d_k), multiply(x, W_K, T, C, d_k)];
  const V = multiply(x, W_V, T, C, d_v);
  const S = multiply(Q, transpose(K, T, d_k), T, d_k, T);
  for (let i = 0; i < T; i++) {
    S.fill(-Infinity, i * T + i + 1, (i + 1) * T);
    softmaxInPlace(S.subarray(i * T, (i + 1) * T)); // from S to P
  }
  return multiply(S, V, T, T, d_v);
}

/** The product of a matrix with n × m numbers and one with m × p. */
function multiply(a: Float64Array, b: Float64Array, n: number, m: number, p: number): Float64Array {
  const product = new Float64Array(n * p);
  for (let i = 0; i < n; i++)
    for (let k = 0; k < m; k++) {
      const factor = a[i * m + k]!;
      for (let j = 0; j < p; j++) product[i * p + j]! += factor * b[k * p + j]!;
    }
  return product;
}

function transpose(a: Float64Array, n: number, m: number): Float64Array {
  return a.map((_, at) => a[(at % n) * m + Math.floor(at / n)]!);
}

function softmaxInPlace(scores: Float64Array): void {
  const top = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  for (let i = 0; i < scores.length; i++) total += scores[i] = Math.exp(scores[i]! - top);
  for (let i = 0; i < scores.length; i++) scores[i]! /= total;
}

export interface Product {
  tex: string;
  shapes: [number, number, number]; // n × m times m × p
  multiplications: number;
}

/** The five products and how many multiplications of two numbers each takes. */
export function fiveProducts(T: number, C: number, d_k: number, d_v: number): Product[] {
  const product = (tex: string, n: number, m: number, p: number): Product => ({
    tex,
    shapes: [n, m, p],
    multiplications: n * m * p,
  });
  return [
    product("Q = X W^Q", T, C, d_k),
    product("K = X W^K", T, C, d_k),
    product("V = X W^V", T, C, d_v),
    product("S = Q K^\\top", T, d_k, T),
    product("P V", T, T, d_v),
  ];
}

/** How many multiplications `headByLoops` takes. */
export function countLoopMultiplications({ T, C, d_k, d_v }: FlatHead, kept: boolean): number {
  const pairs = (T * (T + 1)) / 2;
  return T * C * d_k + (kept ? T : pairs) * C * (d_k + d_v) + pairs * (d_k + d_v);
}

const ENOUGH = 50; // milliseconds; browsers' clocks are coarse

/** The mean time of a run after a warm-up, in milliseconds. */
export function timeRun(compute: () => void, now = () => performance.now()): number {
  compute();
  for (let runs = 1; ; runs *= 2) {
    const start = now();
    for (let run = 0; run < runs; run++) compute();
    const elapsed = now() - start;
    if (elapsed >= ENOUGH) return elapsed / runs;
  }
}
