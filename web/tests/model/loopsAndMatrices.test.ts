import { expect, test } from "vitest";
import {
  countLoopMultiplications,
  fiveProducts,
  headByLoops,
  headByMatrices,
  makeFlatHead,
  timeRun,
} from "../../src/model/loopsAndMatrices";
import { type Rows, runTinyHead } from "../../src/model/tinyHead";

const rows = (flat: Float64Array, columns: number): Rows =>
  Array.from({ length: flat.length / columns }, (_, i) => [...flat.slice(i * columns, (i + 1) * columns)]);

test("loops and matrices compute the same head", () => {
  const head = makeFlatHead(9, 6, 4, 3, 2);
  const { mixed } = runTinyHead({
    x: rows(head.x, 6),
    W_Q: rows(head.W_Q, 4),
    W_K: rows(head.W_K, 4),
    W_V: rows(head.W_V, 3),
    divided: false,
    causal: true,
  });
  for (const output of [headByLoops(head, false), headByLoops(head, true), headByMatrices(head)])
    rows(output, 3).forEach((row, i) =>
      row.forEach((value, d) => expect(value).toBeCloseTo(mixed[i]![d]!, 12)),
    );
});

test("counts multiplications", () => {
  const counts = fiveProducts(8, 32, 32, 8).map(({ multiplications }) => multiplications);
  expect(counts).toEqual([8192, 8192, 2048, 2048, 512]);
  const head = makeFlatHead(2, 3, 5, 4, 1);
  // Two queries; the key and the value of the first word twice and of the second once; three pairs of words.
  expect(countLoopMultiplications(head, false)).toBe(2 * 15 + 3 * (15 + 12) + 3 * (5 + 4));
  expect(countLoopMultiplications(head, true)).toBe(2 * 15 + 2 * (15 + 12) + 3 * (5 + 4));
});

test("times as many runs as a coarse clock needs", () => {
  let [runs, clock] = [0, 0];
  const compute = () => {
    runs++;
    clock += 3;
  };
  expect(timeRun(compute, () => clock)).toBe(3);
  expect(runs).toBe(1 + 1 + 2 + 4 + 8 + 16 + 32); // 16 runs take 48 ms
});
