import { expect, test } from "vitest";
import { effectsOf, predictNext, probabilityOf } from "../../src/model/leaveOneOut";

const TEXT = "a girl sings to her\na girl runs to her\na boy sings to him\n\nalone";

test("matches counts made by hand", () => {
  // Two lines end in "her", both with "girl"; one ends in "him", without it.
  const [her, him] = [2 * (3 / 4), 1 * (1 / 3)];
  const candidates = predictNext(TEXT, ["girl"]);
  expect(candidates.map(({ word }) => word)).toEqual(["her", "him"]);
  expect(candidates[0]!.probability).toBeCloseTo(her / (her + him), 12);
  expect(candidates[1]!.probability).toBeCloseTo(him / (her + him), 12);
  expect(probabilityOf("it", candidates)).toBe(0);
});

test("ignores words that the text does not contain, and has no prediction without lines", () => {
  expect(predictNext(TEXT, ["girl", "unseen"])).toEqual(predictNext(TEXT, ["girl"]));
  expect(predictNext("", ["girl"])).toEqual([]);
});

test("leaves out one word at a time", () => {
  const without = (past: string[]) => probabilityOf("her", predictNext(TEXT, past));
  const effects = effectsOf(TEXT, ["girl", "sings"], "her");
  expect(effects).toEqual([
    without(["girl", "sings"]) - without(["sings"]),
    without(["girl", "sings"]) - without(["girl"]),
  ]);
  expect(effects[0]).toBeGreaterThan(0);
  expect(effects[1]).toBeLessThan(0); // "sings" favors "him"
});
