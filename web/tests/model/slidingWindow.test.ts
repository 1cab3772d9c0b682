import { expect, test } from "vitest";
import { firstOutOfReach, slideWindow } from "../../src/model/slidingWindow";

const TEXT = "a b c d a b e a b c".split(" ");

test("the window slides by one word at a time", () => {
  const steps = slideWindow(TEXT, ["a", "b"], 2, 3);
  expect(steps.map(({ first }) => first)).toEqual([1, 2, 3]);
  expect(steps.map(({ window }) => window.join(" "))).toEqual(["a b", "b c", "c d"]);
  expect(steps.map(({ next }) => next)).toEqual(["c", "d", "a"]);
  expect(steps[0]).toMatchObject({ matched: 2, count: 2, total: 3 });
});

test("uses the longest part of the window that the text contains", () => {
  const [longer] = slideWindow(TEXT, ["d", "a", "b"], 3, 1);
  expect(longer).toMatchObject({ matched: 3, next: "e", count: 1, total: 1 });
  const [unseen] = slideWindow(TEXT, ["x", "a", "b"], 3, 1);
  expect(unseen).toMatchObject({ matched: 2, next: "c" });
  const [nothing] = slideWindow(TEXT, ["x"], 3, 1);
  expect(nothing).toMatchObject({ matched: 0, next: "a", count: 3, total: 10 });
});

test("finds the first word out of reach", () => {
  expect(firstOutOfReach(1, 8)).toBe(10); // w2 … w9 predict w10
  expect(firstOutOfReach(5, 1)).toBe(7);
});
