/** The lectures' tiny attention head, with two-dimensional vectors and editable matrices. */

export type Rows = number[][];

export function matmul(x: Rows, W: Rows): Rows {
  return x.map((row) => W[0]!.map((_, j) => row.reduce((sum, value, i) => sum + value * W[i]![j]!, 0)));
}

export interface TinyHead {
  x: Rows; // one row per token
  W_Q: Rows;
  W_K: Rows;
  W_V: Rows;
  W_O?: Rows; // the identity by default
  divided: boolean; // by √d_k
  causal: boolean;
  base3?: boolean; // the softmax uses powers of 3 instead of e
}

export interface TinySteps {
  query: Rows;
  key: Rows;
  value: Rows;
  scores: Rows;
  scaled: Rows;
  masked: Rows;
  weights: Rows;
  mixed: Rows;
  output: Rows;
}

/** Project, compare, divide, mask, softmax, weigh and sum, write. */
export function runTinyHead(head: TinyHead): TinySteps {
  const { x, W_Q, W_K, W_V, W_O, divided, causal, base3 = false } = head;
  const [query, key, value] = [matmul(x, W_Q), matmul(x, W_K), matmul(x, W_V)];
  const scores = query.map((q) => key.map((k) => q.reduce((sum, each, i) => sum + each * k[i]!, 0)));
  const root = divided ? Math.sqrt(W_Q[0]!.length) : 1;
  const scaled = scores.map((row) => row.map((score) => score / root));
  const masked = scaled.map((row, i) => row.map((score, j) => (causal && j > i ? -Infinity : score)));
  const weights = masked.map((row) => softmax(row, base3 ? 3 : Math.E));
  const mixed = matmul(weights, value);
  const output = W_O ? matmul(mixed, W_O) : mixed;
  return { query, key, value, scores, scaled, masked, weights, mixed, output };
}

export function softmax(row: number[], base = Math.E): number[] {
  const top = Math.max(...row);
  const exponentials = row.map((score) => base ** (score - top));
  const total = exponentials.reduce((sum, value) => sum + value, 0);
  return exponentials.map((value) => value / total);
}

/** The lectures' embedding: 0 is [1, 0] and 1 is [0, 1]. Other characters are left out. */
export function embed(sequence: string): Rows {
  return [...sequence]
    .filter((digit) => digit === "0" || digit === "1")
    .map((digit) => (digit === "0" ? [1, 0] : [0, 1]));
}

export const IDENTITY: Rows = [
  [1, 0],
  [0, 1],
];

/** A head and its input digits. */
export type TinyExample = Omit<TinyHead, "x"> & { sequence: string };

/** Parses the example in an address; null if it is invalid. */
export function parseExample(json: unknown): TinyExample | null {
  const example = json as Partial<TinyExample> | null;
  const isMatrix = (matrix: unknown) =>
    Array.isArray(matrix) &&
    matrix.length === 2 &&
    matrix.every((row) => Array.isArray(row) && row.length === 2 && row.every(Number.isFinite));
  if (typeof example?.sequence !== "string" || ![example.W_Q, example.W_K, example.W_V].every(isMatrix))
    return null;
  const { sequence, W_Q, W_K, W_V, W_O, divided, causal, base3 } = example as TinyExample;
  return {
    ...{ sequence, W_Q, W_K, W_V, divided: divided === true, causal: causal === true },
    ...(isMatrix(W_O) && { W_O: W_O! }),
    ...(base3 === true && { base3 }),
  };
}

/** The lectures' example with this input: all tokens look for the same digit, and keys are scaled by `boost`. */
export function makeExample(sequence: string, query: "0" | "1", boost: number): TinyExample {
  const target = query === "1" ? [0, 1] : [1, 0];
  return {
    ...EXAMPLES.plain,
    sequence,
    W_Q: [target, target],
    W_K: IDENTITY.map((row) => row.map((x) => x * boost)),
  };
}

/** The lectures' examples. */
export const EXAMPLES: Record<"boosted" | "plain" | "own", TinyExample> = {
  boosted: {
    sequence: "0010",
    W_Q: [
      [0, 1],
      [0, 1],
    ],
    W_K: [
      [10, 0],
      [0, 10],
    ],
    W_V: IDENTITY,
    divided: false,
    causal: false,
  },
  plain: {
    sequence: "0010",
    W_Q: [
      [0, 1],
      [0, 1],
    ],
    W_K: IDENTITY,
    W_V: IDENTITY,
    divided: false,
    causal: false,
  },
  own: {
    sequence: "01",
    W_Q: IDENTITY,
    W_K: [
      [10, 0],
      [0, 10],
    ],
    W_V: IDENTITY,
    divided: false,
    causal: false,
  },
};
