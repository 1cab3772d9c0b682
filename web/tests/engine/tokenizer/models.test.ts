import { expect, test } from "vitest";
import type { BpeFile } from "../../../src/engine/tokenizer/file";
import { makeModel } from "../../../src/engine/tokenizer/models";

const ids = (...tokens: string[]) => Object.fromEntries(tokens.map((token, i) => [token, i]));
const bpe = (file: Partial<BpeFile>) =>
  makeModel({ type: "BPE", vocab: ids("a", "b", "c", "ab", "bc", "abc", "<unk>"), merges: [], ...file });

test("merges are applied by rank, the leftmost first", () => {
  const merges: [string, string][] = [
    ["b", "c"],
    ["a", "b"],
    ["ab", "c"],
    ["a", "bc"],
  ];
  expect(bpe({ merges }).tokenize("abcab")).toEqual([5, 3]);
  expect(bpe({ merges: merges.slice(0, 3) }).tokenize("abcab")).toEqual([0, 4, 3]);
  expect(bpe({ merges: ["a b", "b c"] }).tokenize("abcbc")).toEqual([3, 2, 4]);
});

test("a piece in the vocabulary may be used whole", () => {
  expect(bpe({ ignore_merges: true }).tokenize("abc")).toEqual([5]);
  expect(bpe({ ignore_merges: true }).tokenize("abcc")).toEqual([0, 1, 2, 2]);
});

test("unknown characters are dropped, or become the unknown token or bytes", () => {
  expect(bpe({}).tokenize("axyb")).toEqual([0, 1]);
  expect(bpe({ unk_token: "<unk>" }).tokenize("axyb")).toEqual([0, 6, 6, 1]);
  expect(bpe({ unk_token: "<unk>", fuse_unk: true }).tokenize("axyb")).toEqual([0, 6, 1]);
  expect(() => bpe({ unk_token: "<none>" }).tokenize("x")).toThrow('no token "<none>"');
  const vocab = ids("a", "<unk>", "<0xC3>", "<0xA9>");
  expect(bpe({ vocab, unk_token: "<unk>", byte_fallback: true }).tokenize("aéx")).toEqual([0, 2, 3, 1]);
});

test("BPE that cannot run here is refused, and damaged merges are noticed", () => {
  expect(() => bpe({ dropout: 0.1 })).toThrow("BPE with dropout");
  expect(() => bpe({ continuing_subword_prefix: "##" })).toThrow("continuing_subword_prefix");
  expect(() => bpe({ end_of_word_suffix: "</w>" })).toThrow("end_of_word_suffix");
  expect(() => bpe({ merges: ["a c"] })).toThrow('"ac", which is not in the vocabulary');
});

const VOCABULARY: [string, number][] = [
  ["<unk>", 0],
  ["a", -1],
  ["b", -1],
  ["ab", -1.5],
  ["bab", -3],
  ["😀", -2],
];

test("a unigram model takes the most likely segmentation", () => {
  const model = makeModel({ type: "Unigram", vocab: VOCABULARY, unk_id: 0 });
  expect(model.tokenize("abab")).toEqual([3, 3]);
  expect(model.tokenize("bab")).toEqual([2, 3]);
  expect(model.tokenize("axyb😀é")).toEqual([1, 0, 2, 5, 0]);
  expect(() => makeModel({ type: "Unigram", vocab: VOCABULARY, unk_id: null }).tokenize("x")).toThrow(
    "no token for unknown characters",
  );
});

test("a word that is not in the vocabulary needs the unknown token", () => {
  const model = (unknown: string) =>
    makeModel({ type: "WordLevel", vocab: ids("a", "?"), unk_token: unknown });
  expect(model("?").tokenize("b")).toEqual([1]);
  expect(() => model("").tokenize("b")).toThrow("no token for unknown words");
});

test("other models are refused by name", () => {
  expect(() => makeModel({ type: "WordPiece" } as never)).toThrow("a model of type WordPiece");
});
