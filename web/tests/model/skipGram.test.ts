import { expect, test } from "vitest";
import {
  cosine,
  countPairs,
  lossAndGradient,
  makeSkipGram,
  pairsOf,
  train,
  vocabularyOf,
} from "../../src/model/skipGram";

const FOX = "the quick brown fox jumps over the lazy dog".split(" ");
const PETS = [
  "I have to make sure that the cat gets fed",
  "I forgot to make sure that the dog gets fed",
  "she bought a car and a house",
].map((sentence) => sentence.split(" "));
const VOCABULARY = vocabularyOf(PETS);
const COUNTS = countPairs(PETS, VOCABULARY, 2);

test("makes the lecture's pairs", () => {
  const pairs = pairsOf(FOX, 2).map((pair) => pair.join(" "));
  expect(pairs.slice(0, 13)).toEqual([
    ...["the quick", "the brown"],
    ...["quick the", "quick brown", "quick fox"],
    ...["brown the", "brown quick", "brown fox", "brown jumps"],
    ...["fox quick", "fox brown", "fox jumps", "fox over"],
  ]);
  expect(pairs).toHaveLength(30);
});

test("counts pairs within sentences only", () => {
  const at = (center: string, neighbor: string) =>
    COUNTS[VOCABULARY.indexOf(center) * VOCABULARY.length + VOCABULARY.indexOf(neighbor)];
  expect(at("make", "sure")).toBe(2);
  expect(at("cat", "the")).toBe(1);
  expect(at("fed", "I")).toBe(0);
  expect(COUNTS.reduce((a, b) => a + b, 0)).toBe(PETS.flatMap((words) => pairsOf(words, 2)).length);
  expect(countPairs([["make", "unknown", "sure"]], ["make", "sure"], 2)).toEqual(Float64Array.of(0, 1, 1, 0));
});

test("the gradient matches finite differences", () => {
  const model = makeSkipGram(VOCABULARY.length, 3, 5);
  const gradient = lossAndGradient(model, COUNTS);
  const step = 1e-5;
  for (const table of ["inputs", "outputs"] as const)
    for (let i = 0; i < model[table].length; i++) {
      const lossAt = (shift: number) => {
        const moved = { ...model, [table]: model[table].with(i, model[table][i]! + shift) };
        return lossAndGradient(moved, COUNTS).loss;
      };
      expect(gradient[table][i]).toBeCloseTo((lossAt(step) - lossAt(-step)) / (2 * step), 8);
    }
});

test("the loss of equal scores is that of uniform guessing", () => {
  const model = { width: 2, inputs: new Float64Array(2 * 5), outputs: new Float64Array(2 * 5) };
  expect(lossAndGradient(model, new Float64Array(25).fill(1)).loss).toBeCloseTo(Math.log(5), 12);
});

test("training is reproducible, lowers the loss, and makes cat and dog neighbors", () => {
  const [model, again] = [makeSkipGram(VOCABULARY.length, 8, 1), makeSkipGram(VOCABULARY.length, 8, 1)];
  const before = lossAndGradient(model, COUNTS).loss;
  train(model, COUNTS, 100);
  train(again, COUNTS, 100);
  expect(again).toEqual(model);
  expect(lossAndGradient(model, COUNTS).loss).toBeLessThan(before / 1.5);
  const [cat, dog] = ["cat", "dog"].map((word) => VOCABULARY.indexOf(word));
  const others = VOCABULARY.map((_, i) => i).filter((i) => i !== cat);
  const cosines = others.map((i) => cosine(model, cat!, i));
  expect(others[cosines.indexOf(Math.max(...cosines))]).toBe(dog);
  expect(cosine(model, cat!, cat!)).toBeCloseTo(1, 12);
});
