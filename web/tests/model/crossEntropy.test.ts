import { expect, test } from "vitest";
import { descend, lossCurve, nextWordLoss } from "../../src/model/crossEntropy";

test("the loss is -ln p of the next word, and its gradient that of central differences", () => {
  const logits = [0, 1, -0.5, 2];
  const { p, y, loss, gradient } = nextWordLoss(logits, 2);
  const total = logits.reduce((sum, z) => sum + Math.exp(z), 0);
  logits.forEach((z, i) => expect(p[i]).toBeCloseTo(Math.exp(z) / total, 12));
  expect(y).toEqual([0, 0, 1, 0]);
  expect(loss).toBeCloseTo(-Math.log(p[2]!), 12);
  const d = 1e-5;
  logits.forEach((z, i) => {
    const [up, down] = [z + d, z - d].map((moved) => nextWordLoss(logits.with(i, moved), 2).loss);
    expect(gradient[i]).toBeCloseTo((up! - down!) / (2 * d), 8);
  });
});

test("the loss stays finite where p rounds to 0", () => {
  expect(nextWordLoss([1000, -1000], 1).loss).toBe(2000);
});

test("each step lowers the loss, and a step of size 0 changes nothing", () => {
  const curve = lossCurve([0, 1, 0, 0], 0, 1, 10);
  expect(curve).toHaveLength(11);
  expect(curve).toEqual(curve.toSorted((a, b) => b - a));
  const { gradient } = nextWordLoss([0, 1, 0, 0], 0);
  expect(descend([0, 1, 0, 0], gradient, 0)).toEqual([0, 1, 0, 0]);
  expect(lossCurve([0, 1, 0, 0], 0, 0, 2)).toEqual([curve[0], curve[0], curve[0]]);
});
