import { expect, test } from "vitest";
import { makeRandom, seedOf, uniform } from "../../src/model/random";

test("gives the numbers of Mulberry32", () => {
  const random = makeRandom(1);
  const numbers = [random(), random(), random()];
  // Computed by an implementation in Python.
  expect(numbers.map((each) => each * 2 ** 32)).toEqual([2693262067, 11749833, 2265367787]);
});

test("gives the same numbers for the same seed, within their range", () => {
  const numbers = uniform(1000, 0.3, 7);
  expect(uniform(1000, 0.3, 7)).toEqual(numbers);
  expect(uniform(1000, 0.3, 8)).not.toEqual(numbers);
  expect(Math.max(...numbers.map(Math.abs))).toBeLessThanOrEqual(0.3);
  expect(numbers.reduce((a, b) => a + b, 0) / 1000).toBeCloseTo(0, 1);
});

test("hashes words by FNV-1a", () => {
  expect(seedOf("")).toBe(0x811c9dc5);
  expect(seedOf("a")).toBe(0xe40c292c);
  expect(seedOf("foobar")).toBe(0xbf9cf968);
});
