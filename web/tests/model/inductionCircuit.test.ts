import { expect, test } from "vitest";
import { runInduction } from "../../src/model/inductionCircuit";

test("predicts the letter that followed the previous occurrence", () => {
  expect(runInduction("ABCA", { previous: true, induction: true }).prediction[1]).toBeGreaterThan(0.99);
  expect(runInduction("DCBDC", { previous: true, induction: true }).prediction[1]).toBeGreaterThan(0.99);
});

test("needs both heads", () => {
  const first = runInduction("ABCA", { previous: false, induction: true });
  expect(first.inductionWeights.at(-1)).toEqual([0.2, 0.2, 0.2, 0.2, 0.2]);
  expect(first.prediction[1]).toBeLessThan(0.2);
  const second = runInduction("ABCA", { previous: true, induction: false });
  expect(second.prediction).toEqual([0.25, 0.25, 0.25, 0.25]);
});
