/** A matrix of the model's numbers, or a slice of one that knows where it was cut out. */
export class Matrix {
  constructor(
    readonly values: Float32Array,
    readonly rows: number,
    readonly columns: number,
    readonly firstRow = 0,
    readonly firstColumn = 0,
  ) {
    if (values.length !== rows * columns)
      throw new Error(`${values.length} numbers are not ${rows} × ${columns}`);
  }

  /** The number at a place of the whole matrix; NaN where the slice does not reach. */
  at(row: number, column: number): number {
    const [i, j] = [row - this.firstRow, column - this.firstColumn];
    if (i < 0 || j < 0 || i >= this.rows || j >= this.columns) return NaN;
    return this.values[i * this.columns + j]!;
  }

  /** A row of the slice, by its number in the whole matrix. */
  row(row: number): Float32Array {
    const i = row - this.firstRow;
    return this.values.subarray(i * this.columns, (i + 1) * this.columns);
  }

  /** Some of its rows and columns, by their numbers in the whole matrix; all where none are named. */
  slice(rows?: [number, number], columns?: [number, number]): Matrix {
    const [top, bottom] = rows ?? [this.firstRow, this.firstRow + this.rows];
    const [left, right] = columns ?? [this.firstColumn, this.firstColumn + this.columns];
    const values = new Float32Array((bottom - top) * (right - left));
    for (let row = top; row < bottom; row++) {
      const line = this.row(row).subarray(left - this.firstColumn, right - this.firstColumn);
      values.set(line, (row - top) * (right - left));
    }
    return new Matrix(values, bottom - top, right - left, top, left);
  }

  /** The largest size of any finite number: what the strongest color stands for. */
  get peak(): number {
    return (this.#peak ??= findPeak(this.values));
  }

  /** What few exceed: one giant does not pale all others. */
  get robustPeak(): number {
    return (this.#robustPeak ??= findRobustPeak(this.values));
  }

  #peak: number | undefined;
  #robustPeak: number | undefined;
}

export function findPeak(values: Iterable<number>): number {
  let peak = 0;
  for (const value of values) if (Number.isFinite(value)) peak = Math.max(peak, Math.abs(value));
  return peak;
}

const COMMON = 0.985; // of all numbers have a color of their own; the rest share the strongest
const FEW = 100; // of fewer numbers each has a color of its own
const SAMPLED = 20_000; // numbers are enough to know

export function findRobustPeak(values: ArrayLike<number>): number {
  const step = Math.max(1, Math.floor(values.length / SAMPLED));
  const sizes = new Float64Array(Math.ceil(values.length / step));
  let count = 0;
  for (let i = 0; i < values.length; i += step)
    if (Number.isFinite(values[i])) sizes[count++] = Math.abs(values[i]!);
  const sorted = sizes.subarray(0, count).sort();
  const common = count < FEW ? undefined : sorted[Math.floor(COMMON * (count - 1))];
  return common || findPeak(Array.from(values));
}

/** Several matrices as they come over the wire: one after the other, their shapes in a header. */
export function decodeMatrices(
  body: ArrayBuffer,
  shapes: string,
): { values: Float32Array; shape: number[] }[] {
  const all = new Float32Array(body); // little-endian, as every browser's machine is
  let start = 0;
  const parts = shapes.split(";").map((text) => {
    const shape = text.split(",").map(Number);
    const count = shape.reduce((product, size) => product * size, 1);
    const values = all.subarray(start, start + count);
    start += count;
    return { values, shape };
  });
  if (start !== all.length) throw new Error(`${all.length} numbers came, ${start} were announced`);
  return parts;
}

/** Of each row the columns that may be seen: from a first to, and without, a last. */
export type VisibleColumns = (row: number) => [number, number];

export const ALL_VISIBLE: VisibleColumns = () => [0, Infinity];

/** The isSameCell, with what may not be seen at −∞. */
export function applyMask(matrix: Matrix, seen: VisibleColumns): Matrix {
  if (seen === ALL_VISIBLE) return matrix;
  const values = matrix.values.slice();
  const within = (column: number) => Math.max(0, Math.min(matrix.columns, column - matrix.firstColumn));
  for (let i = 0; i < matrix.rows; i++) {
    const [first, last] = seen(matrix.firstRow + i).map(within) as [number, number];
    const start = i * matrix.columns;
    values.fill(-Infinity, start, start + first);
    values.fill(-Infinity, start + last, start + matrix.columns);
  }
  return new Matrix(values, matrix.rows, matrix.columns, matrix.firstRow, matrix.firstColumn);
}

/** A smaller matrix: of each square of cells the number that is largest in size, so that none is lost. */
export function downsample(matrix: Matrix, side: number): Matrix {
  if (side === 1) return matrix;
  const [rows, columns] = [Math.ceil(matrix.rows / side), Math.ceil(matrix.columns / side)];
  const values = new Float32Array(rows * columns).fill(-Infinity);
  for (let i = 0, at = 0; i < matrix.rows; i++) {
    let cell = Math.floor(i / side) * columns;
    for (let j = 0; j < matrix.columns; cell++) {
      let best = values[cell]!;
      let most = best === -Infinity ? -1 : Math.abs(best);
      for (const end = Math.min(matrix.columns, j + side); j < end; j++, at++) {
        const size = Math.abs(matrix.values[at]!);
        if (size > most && size < Infinity) [best, most] = [matrix.values[at]!, size];
      }
      values[cell] = best;
    }
  }
  return new Matrix(values, rows, columns);
}

/** Fewer numbers that stand for many: of each stretch the one that is largest in size, so that none is lost. */
export function poolLargest(values: Float32Array, count: number): Float32Array {
  if (values.length <= count) return values;
  const pooled = new Float32Array(count);
  for (let cell = 0, i = 0; cell < count; cell++) {
    const end = ((cell + 1) * values.length) / count;
    let best = 0;
    for (; i < end; i++) if (Math.abs(values[i]!) > Math.abs(best)) best = values[i]!;
    pooled[cell] = best;
  }
  return pooled;
}
