import { expect, test } from "vitest";
import { targetLabel, targetPosition } from "../../src/state/learning.svelte";

const target = (text: string, loss: number) => ({ id: 0, text, probability: Math.exp(-loss), loss });
const LESSON = {
  tokens: ["the", " cat", ".", " It", " sat", "."],
  targets: [target(" cat", 2), target(".", 0.1), target(" It", 3), target(" sat", 1), target(".", 0), null],
};

test("without a target, the prediction of the token before is shown", () => {
  expect([0, 4, 5, 9].map((row) => targetPosition(LESSON, row))).toEqual([0, 4, 4, 4]);
});

test("a target that is a token of the text gets that token's number", () => {
  expect(LESSON.targets.slice(0, -1).map((_, i) => targetLabel(LESSON, i))).toEqual([
    "␣cat",
    ".₂",
    "␣It",
    "␣sat",
    ".₅",
  ]);
  expect(targetLabel({ ...LESSON, targets: [target(" dog", 1)] }, 0)).toBe("␣dog"); // of a masked token
});
