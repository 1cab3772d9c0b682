/** The products in plain JavaScript: for browsers without WebAssembly SIMD, and to test the faster kernels. */

import { Matrix } from "../../model/matrix";
import { decodeNumbers } from "./decode";
import {
  BYTES_PER_NUMBER,
  byteLength,
  checkProduct,
  type Kernels,
  type NumberType,
  transpose,
  type Weight,
} from "./kernels";

export class ReferenceKernels implements Kernels {
  allocate(rows: number, columns: number, type: NumberType): ReferenceWeight {
    return new ReferenceWeight(rows, columns, type);
  }

  matmul(x: Matrix, W: Weight, bias: Float32Array | null = null): Matrix {
    checkProduct(x, W.columns);
    const values = new Float32Array(x.rows * W.rows);
    for (let j = 0; j < W.rows; j++) {
      const w = W.row(j);
      for (let i = 0; i < x.rows; i++) {
        const product = dot(x.values, i * x.columns, w, 0, x.columns);
        values[i * W.rows + j] = product + (bias ? bias[j]! : 0);
      }
    }
    return new Matrix(values, x.rows, W.rows);
  }

  multiplyTransposed(a: Matrix, b: Matrix): Matrix {
    checkProduct(a, b.columns);
    return multiplyRows(a, b.values, b.rows);
  }

  multiply(a: Matrix, b: Matrix): Matrix {
    checkProduct(a, b.rows);
    return multiplyRows(a, transpose(b), b.columns);
  }
}

class ReferenceWeight implements Weight {
  readonly scales: Float32Array;
  readonly #bytes: Uint8Array<ArrayBuffer>;

  constructor(
    readonly rows: number,
    readonly columns: number,
    readonly type: NumberType,
  ) {
    this.scales = new Float32Array(rows).fill(1);
    this.#bytes = new Uint8Array(byteLength(this));
  }

  row(i: number): Float32Array {
    const address = i * this.columns * BYTES_PER_NUMBER[this.type];
    return decodeNumbers(this.type, this.#bytes.buffer, address, this.columns, this.scales[i]!);
  }

  bytes(i: number): Uint8Array {
    const length = this.columns * BYTES_PER_NUMBER[this.type];
    return this.#bytes.subarray(i * length, (i + 1) * length);
  }

  write(start: number, bytes: Uint8Array): void {
    this.#bytes.set(bytes, start);
  }
}

/** The products of the rows of `a` with the rows of a matrix that has as many columns. */
function multiplyRows(a: Matrix, rows: Float32Array, count: number): Matrix {
  const values = new Float32Array(a.rows * count);
  for (let i = 0; i < a.rows; i++)
    for (let j = 0; j < count; j++)
      values[i * count + j] = dot(a.values, i * a.columns, rows, j * a.columns, a.columns);
  return new Matrix(values, a.rows, count);
}

/** Four sums in float64, so that each addition need not wait for the one before. */
function dot(a: Float32Array, aStart: number, b: Float32Array, bStart: number, count: number): number {
  let sum0 = 0;
  let sum1 = 0;
  let sum2 = 0;
  let sum3 = 0;
  let i = 0;
  for (; i + 4 <= count; i += 4) {
    sum0 += a[aStart + i]! * b[bStart + i]!;
    sum1 += a[aStart + i + 1]! * b[bStart + i + 1]!;
    sum2 += a[aStart + i + 2]! * b[bStart + i + 2]!;
    sum3 += a[aStart + i + 3]! * b[bStart + i + 3]!;
  }
  for (; i < count; i++) sum0 += a[aStart + i]! * b[bStart + i]!;
  return sum0 + sum1 + (sum2 + sum3);
}
