import { expect, test } from "vitest";
import { drawScores, measureSharpness, softmaxSlope } from "../../src/model/scaledScores";

test("scores spread with the square root of the width", () => {
  for (const d_k of [16, 64, 256]) {
    const scores = drawScores(d_k, 1);
    expect(measureSharpness(scores, 1).deviation / Math.sqrt(d_k)).toBeCloseTo(1, 0);
    expect(measureSharpness(scores, Math.sqrt(d_k)).largest).toBeLessThan(
      measureSharpness(scores, 1).largest,
    );
  }
});

test("the same seed draws the same numbers", () => {
  expect(drawScores(4, 2)).toEqual(drawScores(4, 2));
  expect(drawScores(4, 2)).not.toEqual(drawScores(4, 3));
});

test("the slope of a weight vanishes at both ends", () => {
  expect([0, 0.5, 1].map(softmaxSlope)).toEqual([0, 0.25, 0]);
});
