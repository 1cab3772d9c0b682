import { expect, test } from "vitest";
import { KINDS_OF_WORDS, queryMatrix, relate, RELATIONSHIPS } from "../../src/model/relationshipHead";

const words = KINDS_OF_WORDS.map(([word]) => word);
const weight = (W_Q: number[][], from: string, to: string) =>
  relate(W_Q)[words.indexOf(from)]![words.indexOf(to)]!;

test("each relationship connects its words", () => {
  expect(weight(RELATIONSHIPS.modifier, "fox", "quick")).toBeCloseTo(0.5, 4);
  expect(weight(RELATIONSHIPS.modifier, "fox", "brown")).toBeCloseTo(0.5, 4);
  expect(weight(RELATIONSHIPS.subject, "jumps", "fox")).toBeCloseTo(1, 3);
  expect(weight(RELATIONSHIPS.governor, "over", "jumps")).toBeCloseTo(1, 3);
});

test("words without a query attend evenly, and none attends to later words", () => {
  expect(relate(RELATIONSHIPS.modifier)[4]).toEqual([0.2, 0.2, 0.2, 0.2, 0.2, 0, 0, 0]);
  expect(weight(queryMatrix("determiner", "noun"), "The", "fox")).toBe(0);
  expect(weight(queryMatrix("determiner", "noun"), "the", "fox")).toBeCloseTo(1, 3);
});
