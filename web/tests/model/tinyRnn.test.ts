import { expect, test } from "vitest";
import {
  addGradient,
  attendedTo,
  makeRnn,
  probeAccuracies,
  probeAttention,
  probeRnn,
  stateDifferences,
  statesOf,
  trainRnn,
} from "../../src/model/tinyRnn";

test("the gradient is the slope of the loss", () => {
  const rnn = Float64Array.from(makeRnn(3));
  const digits = [0.9, 0.1, -0.2, 0.3];
  for (const answer of [0, 1]) {
    const gradient = new Float64Array(rnn.length);
    addGradient(rnn, digits, answer, gradient);
    const loss = (i: number, step: number) => {
      const moved = rnn.with(i, rnn[i]! + step);
      return addGradient(moved, digits, answer, new Float64Array(rnn.length));
    };
    for (let i = 0; i < rnn.length; i++)
      expect(gradient[i], String(i)).toBeCloseTo((loss(i, 1e-5) - loss(i, -1e-5)) / 2e-5, 7);
  }
});

test("a state depends on the digits up to it", () => {
  const [one, other] = [
    [1, 0, 0],
    [1, 0, 1],
  ].map((digits) => statesOf(makeRnn(1), digits));
  expect(one!.slice(0, 2)).toEqual(other!.slice(0, 2));
  expect(one![2]).not.toEqual(other![2]);
});

test("attention mixes the digits up to a position", () => {
  const [first, second] = attendedTo([1, 0], 1);
  expect(first![0]).toBe(1);
  expect(second![0]).toBeCloseTo(Math.E / (Math.E + 1), 12);
});

test("a probe finds what a vector holds, and nothing in noise", () => {
  const vectors = Array.from({ length: 100 }, (_, k) => [
    Float64Array.of(3 + (k % 2), k % 7),
    Float64Array.of(k % 5, k % 3),
  ]);
  const [held, noise] = probeAccuracies(vectors);
  expect(held).toBe(1);
  expect(noise).toBeLessThan(0.7);
});

test("the mean states after a 1 and after a 0 differ as long as a probe tells them apart", () => {
  const size = (state: Float64Array) => Math.hypot(...state);
  const [lost, carried] = [trainRnn(2, 200), trainRnn(7, 200)].map((rnn) =>
    stateDifferences(rnn, 50).map(size),
  );
  expect(lost![50]).toBeLessThan(0.3 * lost![0]!);
  expect(carried![50]).toBeGreaterThan(0.9 * carried![0]!);
});

test("the information fades or is carried on, and attention finds it", () => {
  for (const seed of [1, 2, 3]) {
    const untrained = probeRnn(trainRnn(seed, 0), 20);
    expect(untrained[0]).toBe(1);
    expect(untrained[20]).toBeLessThan(0.75);
  }
  const fading = probeRnn(trainRnn(4, 100), 200);
  expect(fading[5]).toBeGreaterThan(0.9);
  expect(fading[200]).toBeLessThan(0.8);
  expect(probeRnn(trainRnn(7, 200), 200)[200]).toBeGreaterThan(0.95);
  expect(probeRnn(trainRnn(2, 200), 200)[10]).toBeLessThan(0.65);
  expect(Math.min(...probeAttention(10, 200))).toBeGreaterThan(0.95);
});
