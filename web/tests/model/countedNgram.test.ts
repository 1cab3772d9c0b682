import { expect, test } from "vitest";
import { bareWords, countSentence } from "../../src/model/countedNgram";

const TEXT = "the chicken was tired\nThe road was wide\n\nthe chicken crossed the road";
const product = (sentence: string, order: number) => countSentence(TEXT, sentence, order).at(-1)!.product;

test("counts a bigram", () => {
  const counted = countSentence(TEXT, "the chicken was wide", 2);
  expect(counted.map(({ count, total }) => [count, total])).toEqual([
    [3, 3],
    [2, 4],
    [1, 2],
    [1, 2],
  ]);
  expect(counted.map(({ past }) => past)).toEqual([[], ["the"], ["chicken"], ["was"]]);
  expect(counted.map(({ product }) => product)).toEqual([1, 0.5, 0.25, 0.125]);
});

test("an n-gram forgets what the whole context shows", () => {
  expect(product("the road was tired", 2)).toBe(0.25);
  expect(product("the chicken was wide", 3)).toBe(0);
  expect(product("the chicken was wide", Infinity)).toBe(0);
  expect(product("the chicken was tired", Infinity)).toBeCloseTo(1 / 3, 12);
  expect(countSentence(TEXT, "the chicken was", Infinity)[2]!.past).toEqual(["the", "chicken"]);
});

test("a unigram has no context", () => {
  const [the] = countSentence(TEXT, "the", 1);
  expect([the!.count, the!.total, the!.past]).toEqual([4, 13, []]);
});

test("an unseen context gives probability 0", () => {
  expect(countSentence("", "the", 2)[0]).toMatchObject({ count: 0, total: 0, probability: 0 });
});

test("splits a sentence into words without punctuation", () => {
  expect(bareWords("Damian's child, a girl…  Émile!")).toEqual(["damian's", "child", "a", "girl", "émile"]);
  expect(bareWords(" . ")).toEqual([]);
});
