import { expect, test } from "vitest";
import { feedForward, IDENTITY_3, layerNorm, runTinyBlock } from "../../src/model/tinyBlock";

test("layer norm is the z-score, then gain and shift", () => {
  const { mean, deviation, scores, output } = layerNorm([2, 4, 6], [1, 2, 1], [0, 1, -1]);
  expect([mean, deviation]).toEqual([4, Math.sqrt(8 / 3)]);
  expect(scores[2]).toBeCloseTo(Math.sqrt(1.5), 12);
  expect(output).toEqual([scores[0], 1, scores[2]! - 1]);
  expect(layerNorm([3, 3, 3], [1, 1, 1], [0, 0, 0]).scores).toEqual([0, 0, 0]);
});

test("the feed-forward network drops negative numbers only with ReLU", () => {
  expect(feedForward([[1, -2, 3]], IDENTITY_3, IDENTITY_3, true)).toEqual([[1, 0, 3]]);
  expect(feedForward([[1, -2, 3]], IDENTITY_3, IDENTITY_3, false)).toEqual([[1, -2, 3]]);
});

test("a block adds attention and feed-forward to its input", () => {
  const x = [
    [1, 0, 2],
    [3, 1, -1],
  ];
  const [gain, shift] = [
    [1, 1, 1],
    [0, 0, 0],
  ];
  const { t1, t2, t3, t5, h } = runTinyBlock({
    x,
    gain,
    shift,
    W_1: IDENTITY_3,
    W_2: IDENTITY_3,
    relu: true,
  });
  expect(t2[0]).toEqual(t1[0]); // the first token sees only itself
  t3.forEach((row, i) => row.forEach((value, j) => expect(value).toBeCloseTo(t2[i]![j]! + x[i]![j]!, 12)));
  h.forEach((row, i) => row.forEach((value, j) => expect(value).toBeCloseTo(t5[i]![j]! + t3[i]![j]!, 12)));
});
