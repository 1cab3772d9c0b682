/** The lecture's tiny head: vectors of two numbers, and three matrices that can be changed by hand. */

export type Rows = number[][];

/** x W: every row of the one with every column of the other. */
export function matmul(x: Rows, W: Rows): Rows {
  return x.map((row) => W[0]!.map((_, j) => row.reduce((sum, value, i) => sum + value * W[i]![j]!, 0)));
}

export interface TinyHead {
  x: Rows; // a row a token
  W_Q: Rows;
  W_K: Rows;
  W_V: Rows;
  divided: boolean; // by √d_k
  causal: boolean;
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
}

/** Project, compare, divide, mask, softmax, weigh and sum. */
export function runTinyHead({ x, W_Q, W_K, W_V, divided, causal }: TinyHead): TinySteps {
  const [query, key, value] = [matmul(x, W_Q), matmul(x, W_K), matmul(x, W_V)];
  const scores = query.map((q) => key.map((k) => q.reduce((sum, each, i) => sum + each * k[i]!, 0)));
  const root = divided ? Math.sqrt(W_Q[0]!.length) : 1;
  const scaled = scores.map((row) => row.map((score) => score / root));
  const masked = scaled.map((row, i) => row.map((score, j) => (causal && j > i ? -Infinity : score)));
  const weights = masked.map(softmax);
  return { query, key, value, scores, scaled, masked, weights, mixed: matmul(weights, value) };
}

export function softmax(row: number[]): number[] {
  const top = Math.max(...row);
  const grown = row.map((score) => Math.exp(score - top));
  const total = grown.reduce((sum, each) => sum + each, 0);
  return grown.map((each) => each / total);
}

/** "0010" as the lecture embeds it: 0 is [1, 0], 1 is [0, 1]. What is neither is left out. */
export function embed(sequence: string): Rows {
  return [...sequence]
    .filter((each) => each === "0" || each === "1")
    .map((each) => (each === "0" ? [1, 0] : [0, 1]));
}

const IDENTITY: Rows = [
  [1, 0],
  [0, 1],
];

/** A head, and the digits that it reads. */
export type TinyExample = Omit<TinyHead, "x"> & { sequence: string };

/** What an address says; nothing where it is none. */
export function parseExample(found: unknown): TinyExample | null {
  const given = found as Partial<TinyExample> | null;
  const isMatrix = (matrix: unknown) =>
    Array.isArray(matrix) &&
    matrix.length === 2 &&
    matrix.every((row) => Array.isArray(row) && row.length === 2 && row.every(Number.isFinite));
  if (typeof given?.sequence !== "string" || ![given.W_Q, given.W_K, given.W_V].every(isMatrix)) return null;
  const { sequence, W_Q, W_K, W_V, divided, causal } = given as TinyExample;
  return { sequence, W_Q, W_K, W_V, divided: divided === true, causal: causal === true };
}

/** The lecture's example with these digits: all look for the one, and keys are so long. */
export function makeExample(sequence: string, query: "0" | "1", boost: number): TinyExample {
  const sought = query === "1" ? [0, 1] : [1, 0];
  return {
    ...EXAMPLES.plain,
    sequence,
    W_Q: [sought, sought],
    W_K: IDENTITY.map((row) => row.map((x) => x * boost)),
  };
}

/** The lecture's examples. */
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
