/** The matrix products of the engine, where nearly all of its time goes.
 *
 * Shapes: T vectors (positions), n inputs, m outputs. A trained matrix is m × n, as in PyTorch's `nn.Linear`.
 */

import type { Matrix } from "../../model/matrix";

/** How the numbers of a matrix are stored. An int8 matrix has one scale per row. */
export type NumberType = "float32" | "float16" | "int8";

export const BYTES_PER_NUMBER: Record<NumberType, number> = { float32: 4, float16: 2, int8: 1 };

/** A trained matrix. Only the kernels that made it know where its numbers are. */
export interface Weight {
  readonly rows: number; // outputs
  readonly columns: number; // inputs
  readonly type: NumberType;
  /** The factors of the rows; 1 unless the type is int8. Whoever loads the matrix fills them in. */
  readonly scales: Float32Array;
  /** A copy of a row. */
  row: (i: number) => Float32Array;
  /** A view of a row's bytes as they are stored; valid until the next product. */
  bytes: (i: number) => Uint8Array;
  /** Stores some of the matrix's bytes, given where they start in it: little-endian, row by row. */
  write: (start: number, bytes: Uint8Array) => void;
}

export interface Kernels {
  /** A new matrix of zeros, to be filled with `write`. */
  allocate: (rows: number, columns: number, type: NumberType) => Weight;
  /** x Wᵀ + b, as `nn.Linear` computes it: T × n → T × m. */
  matmul: (x: Matrix, W: Weight, bias?: Float32Array | null) => Matrix;
  /** a bᵀ of two computed matrices, such as queries and keys: T × n and S × n → T × S. */
  multiplyTransposed: (a: Matrix, b: Matrix) => Matrix;
  /** a b of two computed matrices, such as attention weights and values: T × S and S × n → T × n. */
  multiply: (a: Matrix, b: Matrix) => Matrix;
}

/** Bytes that the numbers of a matrix take in a file. */
export function byteLength({ rows, columns, type }: Pick<Weight, "rows" | "columns" | "type">): number {
  return rows * columns * BYTES_PER_NUMBER[type];
}

export function transpose({ values, rows, columns }: Matrix): Float32Array {
  const transposed = new Float32Array(values.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) transposed[j * rows + i] = values[i * columns + j]!;
  return transposed;
}

export function checkProduct(x: Matrix, columns: number): void {
  if (x.columns !== columns)
    throw new Error(`cannot multiply vectors of ${x.columns} numbers by a matrix with ${columns} inputs`);
}
