import { expect, test } from "vitest";
import { embedWords, FEATURES, runEightWords, SENTENCE } from "../../src/model/eightWords";
import { matmul } from "../../src/model/tinyHead";
import { dot } from "../../src/model/workedNumbers";

const INPUTS = { sentence: SENTENCE, causal: true, divided: false, d_v: 8 };
const shape = (rows: number[][]) => [rows.length, rows[0]!.length];

test("has the lecture's shapes", () => {
  const head = runEightWords(INPUTS);
  expect([head.query, head.key, head.scores, head.weights, head.value, head.mixed].map(shape)).toEqual([
    [8, FEATURES],
    [8, FEATURES],
    [8, 8],
    [8, 8],
    [8, 8],
    [8, 8],
  ]);
});

test("looks up rows by a product with one-hot vectors", () => {
  const { words, vocabulary, table, oneHot } = embedWords(SENTENCE);
  expect(vocabulary).toHaveLength(7);
  const x = matmul(oneHot, table);
  words.forEach((word, i) => expect(x[i]).toEqual(table[vocabulary.indexOf(word)]));
  expect(x[0]).toEqual(x[6]); // both are "the"
  expect(embedWords("one two three four five six seven eight nine").words).toHaveLength(8);
});

test("every score is a dot product, and rows of weights sum to 1 over the past", () => {
  const { query, key, scores, weights, value, mixed } = runEightWords(INPUTS);
  scores.forEach((row, i) =>
    row.forEach((score, j) => expect(score).toBeCloseTo(dot(query[i]!, key[j]!), 12)),
  );
  weights.forEach((row, i) => {
    expect(row.reduce((a, b) => a + b)).toBeCloseTo(1, 12);
    expect(row.slice(i + 1).every((weight) => weight === 0)).toBe(true);
  });
  const [first, second] = weights[1]!;
  mixed[1]!.forEach((a, d) => expect(a).toBeCloseTo(first! * value[0]![d]! + second! * value[1]![d]!, 12));
});

test("a wider value matrix keeps the weights and the first features", () => {
  const [narrow, wide] = [runEightWords({ ...INPUTS, d_v: 3 }), runEightWords({ ...INPUTS, d_v: 10 })];
  expect(wide.weights).toEqual(narrow.weights);
  expect(wide.mixed.map((row) => row.slice(0, 3))).toEqual(narrow.mixed);
});
