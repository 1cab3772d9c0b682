/** Principal component analysis of a few vectors.
 *
 * Shapes: N vectors, C features.
 */

/** The projections of vectors onto their first two principal components, and the components' shares of variance. */
export interface PrincipalAxes {
  points: number[][]; // N 2
  shares: number[]; // 2
}

const SAME = 1e-5; // vectors whose differences are smaller than this, relative to their size, count as equal
const MAX_SWEEPS = 30;

/** Projects vectors onto their first two principal components; all projections are 0 if the vectors are equal. */
export function principalAxes(vectors: readonly Float32Array[]): PrincipalAxes {
  const [N, C] = [vectors.length, vectors[0]!.length];
  const means = Float64Array.from({ length: C }, (_, c) => mean(vectors.map((vector) => vector[c]!)));
  const centered = vectors.map((vector) => Float64Array.from(vector, (value, c) => value - means[c]!));
  if (norm(centered) <= SAME * norm(vectors)) return { points: vectors.map(() => [0, 0]), shares: [0, 0] };
  // X Xᵀ = U Λ Uᵀ: the projections of X onto its principal components are the columns of U √Λ.
  const gram = centered.map((one) => Float64Array.from(centered, (other) => innerProduct(one, other)));
  const { values, vectors: axes } = eigen(gram);
  const order = Array.from(values.keys()).sort((i, j) => values[j]! - values[i]!);
  const total = values.reduce((sum, value) => sum + value, 0);
  const columns = [0, 1].map((k) => {
    const axis = order[k];
    if (axis === undefined) return { share: 0, coordinates: new Float64Array(N) };
    const variance = Math.max(values[axis]!, 0);
    const size = Math.sqrt(variance);
    return { share: variance / total, coordinates: pointOutward(axes.map((row) => row[axis]! * size)) };
  });
  return {
    points: vectors.map((_, i) => columns.map(({ coordinates }) => coordinates[i]!)),
    shares: columns.map(({ share }) => share),
  };
}

/** Fixes the sign of a component: the vector farthest out (the first of several) is on the positive side. */
function pointOutward(coordinates: number[]): number[] {
  const largest = Math.max(...coordinates.map(Math.abs));
  const furthest = coordinates.find((value) => Math.abs(value) >= (1 - 1e-4) * largest)!;
  return furthest < 0 ? coordinates.map((value) => -value) : coordinates;
}

/** The eigenvalues and eigenvectors (as columns) of a symmetric matrix, by Jacobi's rotations. */
function eigen(matrix: readonly Float64Array[]): { values: number[]; vectors: Float64Array[] } {
  const N = matrix.length;
  const A = matrix.map((row) => row.slice());
  const V = matrix.map((_, i) => Float64Array.from({ length: N }, (_, j) => Number(i === j)));
  const size = norm(A);
  for (let sweep = 0; sweep < MAX_SWEEPS && offDiagonal(A) > 1e-14 * size; sweep++)
    for (let p = 0; p < N; p++) for (let q = p + 1; q < N; q++) rotate(A, V, p, q);
  return { values: A.map((row, i) => row[i]!), vectors: V };
}

/** Makes A[p][q] zero by a rotation in the plane of p and q. */
function rotate(A: Float64Array[], V: Float64Array[], p: number, q: number): void {
  const off = A[p]![q]!;
  if (off === 0) return;
  const theta = (A[q]![q]! - A[p]![p]!) / (2 * off);
  const tangent = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
  const cosine = 1 / Math.sqrt(tangent * tangent + 1);
  const sine = tangent * cosine;
  const turn = (row: Float64Array) => {
    const [x, y] = [row[p]!, row[q]!];
    row[p] = cosine * x - sine * y;
    row[q] = sine * x + cosine * y;
  };
  for (const row of A) turn(row);
  for (const row of V) turn(row);
  const [x, y] = [A[p]!, A[q]!];
  for (let i = 0; i < x.length; i++) {
    const [a, b] = [x[i]!, y[i]!];
    x[i] = cosine * a - sine * b;
    y[i] = sine * a + cosine * b;
  }
}

function offDiagonal(A: readonly Float64Array[]): number {
  let sum = 0;
  A.forEach((row, i) => row.forEach((value, j) => (sum += i === j ? 0 : value * value)));
  return Math.sqrt(sum);
}

function norm(rows: readonly (Float32Array | Float64Array)[]): number {
  return Math.sqrt(rows.reduce((sum, row) => sum + innerProduct(row, row), 0));
}

function innerProduct(x: Float32Array | Float64Array, y: Float32Array | Float64Array): number {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i]! * y[i]!;
  return sum;
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
