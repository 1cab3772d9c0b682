import { expect, test } from "vitest";
import { type SplitBehavior, splitPiece } from "../../../src/engine/tokenizer/splitting";

const split = (behavior: SplitBehavior, invert = false) =>
  splitPiece({ text: "the-final--countdown", first: true }, /-/gu, behavior, invert).map(({ text }) => text);

test("matches are isolated, removed, or joined to their neighbors", () => {
  expect(split("Isolated")).toEqual(["the", "-", "final", "-", "-", "countdown"]);
  expect(split("Removed")).toEqual(["the", "final", "countdown"]);
  expect(split("Removed", true)).toEqual(["-", "-", "-"]);
  expect(split("Contiguous")).toEqual(["the", "-", "final", "--", "countdown"]);
  expect(split("MergedWithPrevious")).toEqual(["the-", "final-", "-", "countdown"]);
  expect(split("MergedWithNext")).toEqual(["the", "-final", "-", "-countdown"]);
});

test("only the start of the text is first", () => {
  const first = (text: string, whole: boolean) =>
    splitPiece({ text, first: whole }, / /gu, "Removed").map((piece) => piece.first);
  expect(first("a b", true)).toEqual([true, false]);
  expect(first("a b", false)).toEqual([false, false]);
  expect(first(" a b", true)).toEqual([false, false]);
});
