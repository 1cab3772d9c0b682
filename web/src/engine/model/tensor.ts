/** Small operations on matrices. Results start at row and column 0. */

import { Matrix } from "../../model/matrix";

export function zeros(rows: number, columns: number): Matrix {
  return new Matrix(new Float32Array(rows * columns), rows, columns);
}

export function vector(values: Float32Array): Matrix {
  return new Matrix(values, values.length, 1);
}

export function add(x: Matrix, y: Matrix): Matrix {
  const sum = new Float32Array(x.values.length);
  for (let i = 0; i < sum.length; i++) sum[i] = x.values[i]! + y.values[i]!;
  return new Matrix(sum, x.rows, x.columns);
}

/** The same numbers with a different number of columns. */
export function reshape(x: Matrix, columns: number): Matrix {
  return new Matrix(x.values, x.values.length / columns, columns);
}

export function takeRows(x: Matrix, rows: readonly number[]): Matrix {
  const taken = zeros(rows.length, x.columns);
  rows.forEach((row, i) => taken.values.set(x.row(row), i * x.columns));
  return taken;
}

/** The first rows, as a view. */
export function firstRows(x: Matrix, count: number): Matrix {
  return new Matrix(x.values.subarray(0, count * x.columns), count, x.columns);
}

export function takeColumns(x: Matrix, columns: readonly number[]): Matrix {
  const taken = zeros(x.rows, columns.length);
  for (let i = 0, at = 0; i < x.rows; i++) {
    const row = x.row(i);
    for (const column of columns) taken.values[at++] = row[column]!;
  }
  return taken;
}

/** One head of several that lie side by side: T × H·D → T × D. */
export function takeHead(x: Matrix, head: number, D: number): Matrix {
  const taken = zeros(x.rows, D);
  for (let i = 0; i < x.rows; i++) taken.values.set(x.row(i).subarray(head * D, (head + 1) * D), i * D);
  return taken;
}

export function concatRows(x: Matrix, y: Matrix): Matrix {
  const joined = zeros(x.rows + y.rows, x.columns);
  joined.values.set(x.values);
  joined.values.set(y.values, x.values.length);
  return joined;
}

/** The dot product of `length` numbers, the first at `i` and `j`. */
export function dot(x: Float32Array, y: Float32Array, i = 0, j = 0, length = x.length): number {
  let [a, b, c, d, k] = [0, 0, 0, 0, 0];
  for (; k + 3 < length; k += 4) {
    a += x[i + k]! * y[j + k]!;
    b += x[i + k + 1]! * y[j + k + 1]!;
    c += x[i + k + 2]! * y[j + k + 2]!;
    d += x[i + k + 3]! * y[j + k + 3]!;
  }
  for (; k < length; k++) a += x[i + k]! * y[j + k]!;
  return a + b + (c + d);
}

export function range(stop: number, start = 0): number[] {
  return Array.from({ length: Math.max(0, stop - start) }, (_, i) => start + i);
}
