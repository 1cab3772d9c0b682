/** A matrix, or a slice of one that knows its offset. */
export class Matrix {
  constructor(
    readonly values: Float32Array,
    readonly rows: number,
    readonly columns: number,
    readonly firstRow = 0,
    readonly firstColumn = 0,
  ) {
    if (values.length !== rows * columns)
      throw new Error(`${values.length} numbers do not fill ${rows} × ${columns}`);
  }

  /** The number at an index of the whole matrix; NaN outside the slice. */
  at(row: number, column: number): number {
    const [i, j] = [row - this.firstRow, column - this.firstColumn];
    if (i < 0 || j < 0 || i >= this.rows || j >= this.columns) return NaN;
    return this.values[i * this.columns + j]!;
  }

  /** A row, by its index in the whole matrix; NaN outside the slice. */
  row(row: number): Float32Array {
    const i = row - this.firstRow;
    if (i < 0 || i >= this.rows) return new Float32Array(this.columns).fill(NaN);
    return this.values.subarray(i * this.columns, (i + 1) * this.columns);
  }

  /** Some rows and columns, by their indices in the whole matrix; all by default. */
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

  /** The largest absolute value among the finite numbers. */
  get peak(): number {
    return (this.#peak ??= findPeak(this.values));
  }

  /** A high percentile of the absolute values, so that a single outlier does not make all other colors pale. */
  get robustPeak(): number {
    return (this.#robustPeak ??= findRobustPeak(this.values));
  }

  #peak: number | undefined;
  #robustPeak: number | undefined;
}

/** Values times the attention weights of one query. */
export function weigh(weights: Matrix, values: Matrix, query: number): Matrix {
  const products = values.values.map(
    (value, i) => value * weights.at(query, values.firstRow + Math.floor(i / values.columns)),
  );
  return new Matrix(products, values.rows, values.columns, values.firstRow, values.firstColumn);
}

export function findPeak(values: Iterable<number>): number {
  let peak = 0;
  for (const value of values) if (Number.isFinite(value)) peak = Math.max(peak, Math.abs(value));
  return peak;
}

const ROBUST_QUANTILE = 0.985; // quantile of the absolute values
const MIN_SAMPLE = 100; // with fewer numbers, use the largest
const MAX_SAMPLE = 20_000; // numbers to estimate the quantile from

export function findRobustPeak(values: ArrayLike<number>): number {
  const step = Math.max(1, Math.floor(values.length / MAX_SAMPLE));
  const sizes = new Float64Array(Math.ceil(values.length / step));
  let count = 0;
  for (let i = 0; i < values.length; i += step)
    if (Number.isFinite(values[i])) sizes[count++] = Math.abs(values[i]!);
  const sorted = sizes.subarray(0, count).sort();
  const quantile = count < MIN_SAMPLE ? undefined : sorted[Math.floor(ROBUST_QUANTILE * (count - 1))];
  return quantile || findPeak(Array.from(values));
}

/** Decodes consecutive float32 matrices; a header lists their shapes. */
export function decodeMatrices(
  body: ArrayBuffer,
  shapes: string,
): { values: Float32Array; shape: number[] }[] {
  const all = new Float32Array(body); // little-endian, like every platform that has a browser
  let start = 0;
  const parts = shapes.split(";").map((text) => {
    const shape = text.split(",").map(Number);
    const count = shape.reduce((product, size) => product * size, 1);
    const values = all.subarray(start, start + count);
    start += count;
    return { values, shape };
  });
  if (start !== all.length) throw new Error(`received ${all.length} numbers, expected ${start}`);
  return parts;
}

/** For each row, the half-open range of columns that are not masked. */
export type VisibleColumns = (row: number) => [number, number];

export const ALL_VISIBLE: VisibleColumns = () => [0, Infinity];

/** Sets masked cells to −∞. */
export function applyMask(matrix: Matrix, visible: VisibleColumns): Matrix {
  if (visible === ALL_VISIBLE) return matrix;
  const values = matrix.values.slice();
  const within = (column: number) => Math.max(0, Math.min(matrix.columns, column - matrix.firstColumn));
  for (let i = 0; i < matrix.rows; i++) {
    const [first, last] = visible(matrix.firstRow + i).map(within) as [number, number];
    const start = i * matrix.columns;
    values.fill(-Infinity, start, start + first);
    values.fill(-Infinity, start + last, start + matrix.columns);
  }
  return new Matrix(values, matrix.rows, matrix.columns, matrix.firstRow, matrix.firstColumn);
}

/** Reduces each square of cells to its number with the largest absolute value. */
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

/** Reduces the values to `count` segments, each to its number with the largest absolute value. */
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

/** The index of the number that `poolLargest` keeps of a segment. */
export function largestInSegment(values: Float32Array, segment: number, count: number): number {
  if (values.length <= count) return segment;
  const first = Math.ceil((segment * values.length) / count);
  const last = Math.ceil(((segment + 1) * values.length) / count);
  let best = first;
  for (let i = first; i < last; i++) if (Math.abs(values[i]!) > Math.abs(values[best]!)) best = i;
  return best;
}

/** The columns of a row from the largest number to the smallest; columns without a number come last. */
export function sortColumns(row: ArrayLike<number>): number[] {
  const size = (column: number) => (Number.isNaN(row[column]!) ? -Infinity : row[column]!);
  return Array.from({ length: row.length }, (_, column) => column).sort((a, b) => size(b) - size(a) || a - b);
}

/** These columns side by side. The first of them is numbered `firstColumn`. */
export function pickColumns(matrix: Matrix, columns: number[], firstColumn: number): Matrix {
  const values = new Float32Array(matrix.rows * columns.length);
  for (let i = 0, at = 0; i < matrix.rows; i++)
    for (const column of columns) values[at++] = matrix.at(matrix.firstRow + i, column);
  return new Matrix(values, matrix.rows, columns.length, matrix.firstRow, firstColumn);
}

/** The position of the largest value; 0 if there are none. */
export function indexOfLargest(values: Float32Array = new Float32Array()): number {
  return values.reduce((best, value, i) => (value > values[best]! ? i : best), 0);
}

/** The position of the second-largest value within a half-open range, other than `largest`; null if there is none. */
export function runnerUp(
  values: Float32Array,
  largest: number,
  [first, end]: [number, number],
): number | null {
  let best: number | null = null;
  for (let i = Math.max(0, first); i < Math.min(values.length, end); i++)
    if (i !== largest && (best === null || values[i]! > values[best]!)) best = i;
  return best;
}
