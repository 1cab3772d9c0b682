import { expect, test } from "vitest";
import { areCharacters, fragmentedWords } from "../../src/model/fragmentedWords";

test("finds the words that are read almost letter by letter", () => {
  const dragon = [" ", "d", "r", "a", "g", "on"];
  const tokens = ["The", ...dragon, " saw", " a", " d", "uck", ".", ...dragon];
  expect(fragmentedWords(tokens)).toEqual(["dragon"]);
  expect(fragmentedWords(["The", " chick", "en", " didn", "'", "t"])).toEqual([]);
  expect(fragmentedWords([])).toEqual([]);
});

test("does not join words and punctuation", () => {
  expect(fragmentedWords(["a", ".", "b", ".", "c", ".", "d"])).toEqual([]);
});

test("tells characters from words", () => {
  expect(areCharacters(["T", "h", "e", " ", "é"])).toBe(true);
  expect(areCharacters(["T", "he", " ", "d"])).toBe(false);
  expect(areCharacters(["A"])).toBe(false);
});
