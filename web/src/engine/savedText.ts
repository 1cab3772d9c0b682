/** What a saved file holds of one text: numbers that were kept, and what the page's own formulas make of those. Where
 * there is neither, a number is NaN. */

import { type Area, isOfWords, isWeight, parse } from "../model/sites";
import { derive } from "../model/derivation";
import { evaluate } from "../model/evaluation";
import { Matrix } from "../model/matrix";
import type { Config, Model, TraceAnswer } from "./client";
import { shapeOf } from "../model/shapes";

/** What is said of it, and which numbers there are, in their order. */
export interface Told {
  text: string;
  details: Model;
  trace: TraceAnswer;
  matrices: Listed[];
}

/** One of the matrices whose numbers stand one after the other. */
export interface Listed {
  name: string;
  shape: number[];
  first: number; // from which row on
}

export interface Numbers {
  values: Float32Array;
  shape: number[];
  first: number;
}

export class Side {
  readonly config: Config;
  readonly ids: number[];
  readonly count: number; // of its numbers
  #kept: ReadonlyMap<string, Numbers>;
  #made = new Map<string, Matrix | null>();
  #makeable = new Map<string, boolean>();
  #turned = new Map<string, Matrix>(); // with rows and columns exchanged

  /** Its numbers are those from `start` on; those of the model itself may be common to several texts. */
  constructor(
    readonly told: Told,
    numbers: Float32Array,
    start: number,
    common: ReadonlyMap<string, Numbers> = new Map(),
  ) {
    this.config = told.details.config as Config;
    this.ids = told.trace.ids;
    this.#kept = new Map([...common, ...takeNumbers(told.matrices, numbers, start)]);
    this.count = told.matrices.reduce((sum, { shape }) => sum + size(shape), 0);
  }

  /** What was kept by that name; of this shape and without a number, where nothing was. */
  get(name: string, shape: number[]): Numbers {
    return this.#kept.get(name) ?? empty(shape);
  }

  /** Whether all of it was kept. */
  keeps(name: string): boolean {
    return this.#kept.get(name)?.first === 0;
  }

  /** Whether all of it was kept, or can be made. */
  has(name: string): boolean {
    return this.#kept.has(name) ? this.keeps(name) : this.#canMake(name);
  }

  /** A part of a site or a weight. */
  read(area: Area): { values: Float32Array; shape: number[] } {
    const matrix = this.#whole(area.name);
    const rows = area.rows ?? [0, matrix ? matrix.firstRow + matrix.rows : 1]; // kept are last rows, or all
    const columns = area.columns ?? (matrix ? [0, matrix.columns] : [0, 1]);
    const shape = [rows[1] - rows[0], columns[1] - columns[0]];
    if (!matrix) return empty(shape);
    const within = rows[0] >= matrix.firstRow && rows[1] <= matrix.firstRow + matrix.rows;
    if (within && columns[1] <= matrix.columns) return { values: matrix.cut(rows, columns).values, shape };
    const values = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) =>
      matrix.at(rows[0] + Math.floor(i / shape[1]!), columns[0] + (i % shape[1]!)),
    );
    return { values, shape };
  }

  /** All of a site or a weight, or nothing where it was not kept and cannot be made. */
  #whole(name: string): Matrix | null {
    const kept = this.#kept.get(name);
    let made = this.#made.get(name);
    if (made !== undefined) return made;
    if (kept) {
      const [rows, columns = 1] = kept.shape;
      made = new Matrix(kept.values, rows!, columns, kept.first);
    } else made = this.#canMake(name) ? this.#make(name) : null;
    this.#made.set(name, made);
    return made;
  }

  #canMake(name: string): boolean {
    const known = this.#makeable.get(name);
    if (known !== undefined) return known;
    const { config, ids } = this;
    const can =
      !isWeight(name) &&
      !isOfWords(parse(name).part) &&
      // What its first number was computed from; the names are the same for all others.
      derive(config, ids, { name, row: 0, column: 0 }).from.every(
        (area) => this.#kept.has(area.name) || this.#canMake(area.name),
      );
    this.#makeable.set(name, can);
    return can;
  }

  #make(name: string): Matrix {
    const { config, ids } = this;
    const [rows, columns] = shapeOf(config, ids.length, name);
    const values = new Float32Array(rows * columns);
    for (let row = 0, i = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++, i++) {
        const derivation = derive(config, ids, { name, row, column });
        const lines = derivation.from.map((area) => this.#line(area));
        values[i] = derivation.how === "dot" ? dot(lines) : evaluate(derivation, config, lines.map(plain));
      }
    }
    return new Matrix(values, rows, columns);
  }

  /** A row, a column, or a single number. */
  #line({ name, rows, columns }: Area): Line {
    const matrix = this.#whole(name)!;
    if (rows && (columns || matrix.columns === 1)) return [matrix.at(rows[0], columns?.[0] ?? 0)];
    if (!columns) return matrix.row(rows![0]);
    let turned = this.#turned.get(name);
    if (!turned) this.#turned.set(name, (turned = turn(matrix)));
    return turned.row(columns[0]);
  }
}

/** Matrices by their names: their numbers are those from `start` on, in this order. */
export function takeNumbers(listed: Listed[], numbers: Float32Array, start = 0): Map<string, Numbers> {
  const found = new Map<string, Numbers>();
  for (const { name, shape, first } of listed) {
    found.set(name, { values: numbers.subarray(start, (start += size(shape))), shape, first });
  }
  return found;
}

type Line = Float32Array | number[];

/** Most of the work by far. */
function dot([left, right, bias]: Line[]): number {
  let sum = bias?.[0] ?? 0;
  for (let i = 0; i < left!.length; i++) sum += left![i]! * right![i]!;
  return sum;
}

function plain(line: Line): number[] {
  return Array.isArray(line) ? line : Array.from(line);
}

function turn({ values, rows, columns }: Matrix): Matrix {
  return new Matrix(exchange({ values, shape: [rows, columns], first: 0 }).values, columns, rows);
}

/** With rows and columns exchanged. */
export function exchange({ values, shape }: Numbers): Numbers {
  const [rows, columns] = shape as [number, number];
  const turned = new Float32Array(values.length);
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++) turned[j * rows + i] = values[i * columns + j]!;
  return { values: turned, shape: [columns, rows], first: 0 };
}

function empty(shape: number[]): Numbers {
  return { values: new Float32Array(size(shape)).fill(NaN), shape, first: 0 };
}

function size(shape: number[]): number {
  return shape.reduce((product, each) => product * each, 1);
}
