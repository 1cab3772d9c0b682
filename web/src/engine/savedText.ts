/** One text of a saved file: its saved matrices, and those that the page recomputes from them. Numbers that were
 * not saved and cannot be recomputed are NaN. */

import { derive } from "../model/derivation";
import { evaluate } from "../model/evaluation";
import { Matrix } from "../model/matrix";
import { type Area, isOverVocabulary, isWeight, parseSite, siteShape } from "../model/sites";
import type { Config, Model, TraceResponse } from "./types";

/** The JSON part of a saved text. The matrices are stored after it, in this order. */
export interface SavedTextHeader {
  text: string;
  details: Model;
  trace: TraceResponse;
  matrices: MatrixHeader[];
}

export interface MatrixHeader {
  name: string;
  shape: number[];
  first: number; // the first row that was saved
}

export interface Tensor {
  values: Float32Array;
  shape: number[];
  first: number;
}

export class SavedText {
  readonly config: Config;
  readonly ids: number[];
  readonly count: number; // how many numbers were saved
  #saved: ReadonlyMap<string, Tensor>;
  #matrices = new Map<string, Matrix | null>();
  #computable = new Map<string, boolean>();
  #transposed = new Map<string, Matrix>();

  /** The text's numbers begin at `start`. `shared` holds the model's weights if several texts share them. */
  constructor(
    readonly header: SavedTextHeader,
    numbers: Float32Array,
    start: number,
    shared: ReadonlyMap<string, Tensor> = new Map(),
  ) {
    this.config = header.details.config as Config;
    this.ids = header.trace.ids;
    this.#saved = new Map([...shared, ...splitTensors(header.matrices, numbers, start)]);
    this.count = header.matrices.reduce((sum, { shape }) => sum + size(shape), 0);
  }

  /** The saved tensor of this name, or one of this shape filled with NaN. */
  get(name: string, shape: number[]): Tensor {
    return this.#saved.get(name) ?? filledWithNaN(shape);
  }

  /** Whether all rows of a site were saved. */
  isSaved(name: string): boolean {
    return this.#saved.get(name)?.first === 0;
  }

  /** Whether all rows of a site were saved or can be computed. */
  has(name: string): boolean {
    return this.#saved.has(name) ? this.isSaved(name) : this.#canCompute(name);
  }

  read(area: Area): { values: Float32Array; shape: number[] } {
    const matrix = this.#matrix(area.name);
    const rows = area.rows ?? [0, matrix ? matrix.firstRow + matrix.rows : 1]; // either all rows or the last ones are saved
    const columns = area.columns ?? (matrix ? [0, matrix.columns] : [0, 1]);
    const shape = [rows[1] - rows[0], columns[1] - columns[0]];
    if (!matrix) return filledWithNaN(shape);
    const within = rows[0] >= matrix.firstRow && rows[1] <= matrix.firstRow + matrix.rows;
    if (within && columns[1] <= matrix.columns) return { values: matrix.slice(rows, columns).values, shape };
    const values = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) =>
      matrix.at(rows[0] + Math.floor(i / shape[1]!), columns[0] + (i % shape[1]!)),
    );
    return { values, shape };
  }

  /** A whole site or weight, or null if it was not saved and cannot be computed. */
  #matrix(name: string): Matrix | null {
    let matrix = this.#matrices.get(name);
    if (matrix !== undefined) return matrix;
    const saved = this.#saved.get(name);
    if (saved) {
      const [rows, columns = 1] = saved.shape;
      matrix = new Matrix(saved.values, rows!, columns, saved.first);
    } else matrix = this.#canCompute(name) ? this.#compute(name) : null;
    this.#matrices.set(name, matrix);
    return matrix;
  }

  #canCompute(name: string): boolean {
    const known = this.#computable.get(name);
    if (known !== undefined) return known;
    const { config, ids } = this;
    const can =
      !isWeight(name) &&
      !isOverVocabulary(parseSite(name).part) &&
      // All numbers of a site have inputs with the same names, so it is enough to check the first one.
      derive(config, ids, { name, row: 0, column: 0 }).inputs.every((area) => this.has(area.name));
    this.#computable.set(name, can);
    return can;
  }

  #compute(name: string): Matrix {
    const { config, ids } = this;
    const [rows, columns] = siteShape(config, ids.length, name);
    const values = new Float32Array(rows * columns);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        const derivation = derive(config, ids, { name, row, column });
        const vectors = derivation.inputs.map((area) => this.#vector(area));
        values[i] =
          derivation.operation === "dot" ? dot(vectors) : evaluate(derivation, config, vectors.map(toArray));
      }
    }
    return new Matrix(values, rows, columns);
  }

  /** The numbers of an area that is a row, a column or a single cell. */
  #vector({ name, rows, columns }: Area): Vector {
    const matrix = this.#matrix(name)!;
    if (rows && (columns || matrix.columns === 1)) return [matrix.at(rows[0], columns?.[0] ?? 0)];
    if (!columns) return matrix.row(rows![0]);
    let transposed = this.#transposed.get(name);
    if (!transposed) this.#transposed.set(name, (transposed = transposeMatrix(matrix)));
    return transposed.row(columns[0]);
  }
}

/** Splits consecutive numbers, starting at `start`, into the tensors that the headers describe. */
export function splitTensors(headers: MatrixHeader[], numbers: Float32Array, start = 0): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const { name, shape, first } of headers) {
    tensors.set(name, { values: numbers.subarray(start, (start += size(shape))), shape, first });
  }
  return tensors;
}

type Vector = Float32Array | number[];

/** Avoids copying the vectors: most of the computing time is spent here. */
function dot([left, right, bias]: Vector[]): number {
  let sum = bias?.[0] ?? 0;
  for (let i = 0; i < left!.length; i++) sum += left![i]! * right![i]!;
  return sum;
}

function toArray(vector: Vector): number[] {
  return Array.isArray(vector) ? vector : Array.from(vector);
}

function transposeMatrix({ values, rows, columns }: Matrix): Matrix {
  return new Matrix(transpose({ values, shape: [rows, columns], first: 0 }).values, columns, rows);
}

export function transpose({ values, shape }: Tensor): Tensor {
  const [rows, columns] = shape as [number, number];
  const transposed = new Float32Array(values.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) transposed[j * rows + i] = values[i * columns + j]!;
  return { values: transposed, shape: [columns, rows], first: 0 };
}

function filledWithNaN(shape: number[]): Tensor {
  return { values: new Float32Array(size(shape)).fill(NaN), shape, first: 0 };
}

function size(shape: number[]): number {
  return shape.reduce((product, length) => product * length, 1);
}
