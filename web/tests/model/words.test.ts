import { expect, test } from "vitest";
import { splitWords } from "../../src/model/words";

test("finds the words that are read almost letter by letter", () => {
  const dragon = [" ", "d", "r", "a", "g", "on"];
  const tokens = ["The", ...dragon, " saw", " a", " d", "uck", ".", ...dragon];
  expect(splitWords(tokens)).toEqual(["dragon"]);
  expect(splitWords(["The", " chick", "en", " didn", "'", "t"])).toEqual([]);
  expect(splitWords([])).toEqual([]);
});

test("does not join words and punctuation", () => {
  expect(splitWords(["a", ".", "b", ".", "c", ".", "d"])).toEqual([]);
});
