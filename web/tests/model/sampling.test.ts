import { expect, test } from "vitest";
import { cutoffRule, tokenProbabilities, sampleToken, DEFAULT_SAMPLING } from "../../src/model/sampling";

const LOGITS = Float32Array.of(2, 1, 0, -1);

function near(given: Float64Array, expected: number[]): void {
  expected.forEach((value, i) => expect(given[i]).toBeCloseTo(value, 6));
}

test("divides logits by the temperature before the softmax", () => {
  const total = Math.exp(2) + Math.exp(1) + 1 + Math.exp(-1);
  near(tokenProbabilities(LOGITS, DEFAULT_SAMPLING), [
    Math.exp(2) / total,
    Math.exp(1) / total,
    1 / total,
    Math.exp(-1) / total,
  ]);
  const half = Math.exp(4) + Math.exp(2) + 1 + Math.exp(-2);
  near(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, temperature: 0.5 }), [
    Math.exp(4) / half,
    Math.exp(2) / half,
  ]);
  near(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, temperature: 0 }), [1, 0, 0, 0]);
});

test("keeps the top k tokens and those tied with the last of them", () => {
  const two = Math.exp(2) + Math.exp(1);
  near(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, topK: 2 }), [
    Math.exp(2) / two,
    Math.exp(1) / two,
    0,
    0,
  ]);
  near(tokenProbabilities(Float32Array.of(1, 1, 1, 0), { ...DEFAULT_SAMPLING, topK: 1 }), [
    1 / 3,
    1 / 3,
    1 / 3,
    0,
  ]);
  near(
    tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, topK: 9 }),
    Array.from(tokenProbabilities(LOGITS, DEFAULT_SAMPLING)),
  );
});

test("keeps the likeliest tokens whose total reaches top-p, and at least one", () => {
  const plain = tokenProbabilities(LOGITS, DEFAULT_SAMPLING); // 0.64, 0.24, 0.09, 0.03
  expect(Array.from(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, topP: 0.01 }))).toEqual([1, 0, 0, 0]);
  const two = plain[0]! + plain[1]!;
  near(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, topP: 0.7 }), [
    plain[0]! / two,
    plain[1]! / two,
    0,
    0,
  ]);
});

test("keeps tokens with at least min-p times the highest probability", () => {
  const two = Math.exp(2) + Math.exp(1);
  near(tokenProbabilities(LOGITS, { ...DEFAULT_SAMPLING, minP: 0.3 }), [
    Math.exp(2) / two,
    Math.exp(1) / two,
    0,
    0,
  ]);
});

test("never samples an excluded token", () => {
  const probabilities = Float64Array.of(0, 0.25, 0, 0.75, 0);
  expect(sampleToken(probabilities, 0)).toBe(1);
  expect(sampleToken(probabilities, 0.2499)).toBe(1);
  expect(sampleToken(probabilities, 0.25)).toBe(3);
  expect(sampleToken(probabilities, 0.99999999)).toBe(3);
});

test("finds the first rule that excludes a token", () => {
  const logits = new Float32Array([3, 2, 1, 0]);
  const rule = (more: object, id: number) => cutoffRule(logits, { ...DEFAULT_SAMPLING, ...more })(id);
  expect(rule({}, 3)).toBeNull();
  expect(rule({ topK: 2, topP: 0.5 }, 3)).toBe("topK");
  expect(rule({ topK: 2, topP: 0.5 }, 1)).toBe("topP");
  expect(rule({ minP: 0.3 }, 2)).toBe("minP");
  expect(rule({ temperature: 0 }, 1)).toBe("temperature");
});
