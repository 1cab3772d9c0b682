import { expect, test } from "vitest";
import { decidingToken, leaveOut } from "../../src/engine/leaveOut";
import type { ModelInput } from "../../src/engine/types";
import { Matrix } from "../../src/model/matrix";

/** Predicts token 1 only if the text contains token 7. */
const api = {
  read: ({ text }: ModelInput) => {
    const logits = (text as number[]).includes(7) ? [0, Math.log(3)] : [Math.log(3), 0];
    return Promise.resolve([new Matrix(Float32Array.from(logits), 1, 2)]);
  },
};

test("each token is left out in turn", async () => {
  const counts: number[] = [];
  const input = { model: "m", text: "a b c", edits: [] };
  const { signal } = new AbortController();
  const found = await leaveOut(api, input, [5, 7, 9], 1, signal, (done) => counts.push(done));
  expect(Math.exp(found.before)).toBeCloseTo(0.75);
  expect(found.after.map((value) => Math.exp(value).toFixed(2))).toEqual(["0.75", "0.25", "0.75"]);
  expect(counts).toEqual([1, 2, 3]);
  expect(decidingToken(found)).toBe(1);
});

test("the last token is not named, because without it another token is predicted", () => {
  expect(decidingToken({ before: -1, after: [-1.5, -1.2, -9] })).toBe(0);
  expect(decidingToken({ before: -1, after: [-1.5, 0.5, -9] })).toBe(1);
});
