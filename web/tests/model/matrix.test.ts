import { describe, expect, test } from "vitest";
import {
  applyMask,
  decodeMatrices,
  downsample,
  largestInSegment,
  Matrix,
  pickColumns,
  poolLargest,
  runnerUp,
  sortColumns,
} from "../../src/model/matrix";

describe("Matrix", () => {
  const slice = new Matrix(Float32Array.of(1, 2, 3, -4, 5, -Infinity), 2, 3, 10, 20);

  test("knows its offset", () => {
    expect(slice.at(10, 20)).toBe(1);
    expect(slice.at(11, 21)).toBe(5);
    expect(Array.from(slice.row(11))).toEqual([-4, 5, -Infinity]);
    expect(slice.at(9, 20)).toBeNaN();
    expect(slice.at(10, 23)).toBeNaN();
    expect(Array.from(slice.row(9))).toEqual([NaN, NaN, NaN]);
  });

  test("finds its largest finite absolute value", () => expect(slice.peak).toBe(5));

  test("rejects a wrong number of values", () => {
    expect(() => new Matrix(new Float32Array(5), 2, 3)).toThrow("5 numbers do not fill 2 × 3");
  });
});

test("decodes consecutive matrices", () => {
  const body = Float32Array.of(1, 2, 3, 4, 5, 6, 7).buffer;
  const [one, other] = decodeMatrices(body, "2,3;1");
  expect(one).toEqual({ values: Float32Array.of(1, 2, 3, 4, 5, 6), shape: [2, 3] });
  expect(other).toEqual({ values: Float32Array.of(7), shape: [1] });
  expect(() => decodeMatrices(body, "2,3")).toThrow("received 7 numbers, expected 6");
});

test("keeps the largest absolute value when pooling", () => {
  expect(Array.from(poolLargest(Float32Array.of(1, -3, 2, 0, 0, 0.5), 3))).toEqual([-3, 2, 0.5]);
  expect(Array.from(poolLargest(Float32Array.of(1, 2), 3))).toEqual([1, 2]);
});

test("keeps the largest absolute value when downsampling, even at the edge", () => {
  const small = downsample(new Matrix(Float32Array.of(1, -9, 3, 4, 5, 6, -Infinity, 0.5, 0.25), 3, 3), 2);
  expect([small.rows, small.columns]).toEqual([2, 2]);
  expect(Array.from(small.values)).toEqual([-9, 6, 0.5, 0.25]);
});

test("keeps a downsampled cell masked if all of its cells are", () => {
  const whole = new Matrix(
    Float32Array.from({ length: 16 }, (_, i) => i),
    4,
    4,
  );
  const masked = applyMask(whole, (row) => [0, row + 1]);
  expect(Array.from(masked.row(1))).toEqual([4, 5, -Infinity, -Infinity]);
  expect(Array.from(downsample(masked, 2).values)).toEqual([5, -Infinity, 13, 15]);
  expect(whole.at(0, 3)).toBe(3);
});

test("sorts columns from the largest number down, with those that have none last", () => {
  expect(sortColumns(Float32Array.of(1, 3, NaN, -Infinity, 3, 2))).toEqual([1, 4, 5, 0, 2, 3]);
});

test("picks columns in any order", () => {
  const matrix = new Matrix(Float32Array.of(1, 2, 3, 4, 5, 6), 2, 3, 7);
  const picked = pickColumns(matrix, [2, 0], 64);
  expect([picked.at(7, 64), picked.at(7, 65), picked.at(8, 64), picked.at(8, 65)]).toEqual([3, 1, 6, 4]);
});

test("finds the runner-up among the visible positions", () => {
  const weights = Float32Array.of(0.1, 0.6, 0.2, 0.1, 0.9);
  expect(runnerUp(weights, 1, [0, 4])).toBe(2);
  expect(runnerUp(weights, 2, [2, 4])).toBe(3);
  expect(runnerUp(weights, 0, [0, 1])).toBeNull();
  expect(runnerUp(weights, 4, [0, Infinity])).toBe(1);
});

test("finds the number that a pooled segment shows", () => {
  const values = Float32Array.of(1, -5, 2, 3, -1, 0, 4, 2);
  const pooled = poolLargest(values, 3);
  expect([0, 1, 2].map((segment) => values[largestInSegment(values, segment, 3)])).toEqual([...pooled]);
  expect(largestInSegment(values, 5, 8)).toBe(5);
});
