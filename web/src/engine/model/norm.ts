/** LayerNorm and RMSNorm. */

import { Matrix } from "../../model/matrix";
import { dot, zeros } from "./tensor";

/** `layer`: γ (x - μ)/σ + β. `rms`: γ x / √mean(x²). A small ε under the root avoids division by zero. */
export class Norm {
  constructor(
    readonly gain: Float32Array,
    readonly shift: Float32Array | null, // null for `rms`
    readonly epsilon: number,
  ) {}

  forward(x: Matrix): Matrix {
    const normed = zeros(x.rows, x.columns);
    for (let i = 0; i < x.rows; i++) {
      const row = x.row(i);
      const mean = this.shift ? rowMean(row) : 0;
      this.#write(row, mean, rowScale(row, mean, this.epsilon), normed.row(i));
    }
    return normed;
  }

  /** The mean μ of each row: T × 1. */
  mean(x: Matrix): Matrix {
    const mean = zeros(x.rows, 1);
    for (let i = 0; i < x.rows; i++) mean.values[i] = rowMean(x.row(i));
    return mean;
  }

  /** The divisor of each row, including ε: σ, or the root mean square for `rms`. T × 1. */
  scale(x: Matrix): Matrix {
    const scale = zeros(x.rows, 1);
    for (let i = 0; i < x.rows; i++) {
      const row = x.row(i);
      scale.values[i] = rowScale(row, this.shift ? rowMean(row) : 0, this.epsilon);
    }
    return scale;
  }

  /** γ (x - μ)/σ + β for these μ and σ; no μ for `rms`. */
  apply(x: Matrix, mean: Matrix | null, scale: Matrix): Matrix {
    const normed = zeros(x.rows, x.columns);
    for (let i = 0; i < x.rows; i++)
      this.#write(x.row(i), mean ? mean.values[i]! : 0, scale.values[i]!, normed.row(i));
    return normed;
  }

  /** The norm of only `count` features, from `first` on, to be applied with a known scale; only for `rms`. */
  ofFeatures(first: number, count: number): Norm {
    return new Norm(this.gain.subarray(first, first + count), null, this.epsilon);
  }

  #write(row: Float32Array, mean: number, scale: number, normed: Float32Array): void {
    const { gain, shift } = this;
    for (let j = 0; j < row.length; j++)
      normed[j] = (gain[j]! * (row[j]! - mean)) / scale + (shift ? shift[j]! : 0);
  }
}

function rowMean(row: Float32Array): number {
  let sum = 0;
  for (const value of row) sum += value;
  return sum / row.length;
}

function rowScale(row: Float32Array, mean: number, epsilon: number): number {
  if (mean === 0) return Math.sqrt(dot(row, row) / row.length + epsilon);
  let squares = 0;
  for (const value of row) squares += (value - mean) ** 2;
  return Math.sqrt(squares / row.length + epsilon);
}
