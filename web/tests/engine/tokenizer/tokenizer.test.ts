import { expect, test } from "vitest";
import { BYTE_OF } from "../../../src/engine/tokenizer/bytes";
import type { TokenizerPart, TokenizerFile } from "../../../src/engine/tokenizer/file";
import { TextStream } from "../../../src/engine/tokenizer/textStream";
import { Tokenizer } from "../../../src/engine/tokenizer/tokenizer";
import { UserError } from "../../../src/engine/userError";

const END = "<|endoftext|>";
const CONFIG = { eos_token: END, bos_token: END };
const PLAIN = { single_word: false, lstrip: false, rstrip: false, normalized: false };
const added = (content: string, special = true) => ({ ...PLAIN, content, special });
const byteLevel = { type: "ByteLevel", add_prefix_space: false, use_regex: true };

const bytes = (
  parts: Partial<TokenizerFile> = {},
  config: Record<string, unknown> = CONFIG,
  ends: number[] = [],
) =>
  new Tokenizer(
    {
      added_tokens: [added(END)],
      pre_tokenizer: { ...byteLevel, use_regex: false },
      decoder: byteLevel,
      model: { type: "BPE", vocab: Object.fromEntries(BYTE_OF), merges: [] },
      ...parts,
    },
    config,
    ends,
  );
const characters = (text: string) =>
  bytes({
    pre_tokenizer: null,
    decoder: { type: "Fuse" },
    model: {
      vocab: Object.fromEntries([...text].map((character, i) => [character, i])),
      merges: [],
      unk_token: "<unk>",
    },
  });

test("bytes are tokens, and parts of a character are shown as escapes", () => {
  const tokenizer = bytes();
  expect(tokenizer.encode("a €")).toEqual([0x61, 0x20, 0xe2, 0x82, 0xac]);
  expect(tokenizer.pieces([0x61, 0x20, 0xe2, 256, 300])).toEqual(["a", " ", "\\xe2", END, "<300>"]);
  expect(tokenizer.decode([0xe2, 0x82, 0xac, 256, 0xe2, 300])).toBe("€�");
  expect([tokenizer.kind, tokenizer.nVocab, tokenizer.endId, tokenizer.maskId]).toEqual([
    "byte",
    257,
    256,
    null,
  ]);
  expect(tokenizer.encode("")).toEqual([]);
});

test("a special token in a text is plain text", () => {
  expect(bytes().encode(END)).toEqual([...END].map((character) => character.charCodeAt(0)));
});

test("other added tokens are found, the longest first", () => {
  const tokenizer = bytes({ added_tokens: [added("ab", false), added("abc", false), added(END)] });
  expect(tokenizer.encode("abcabx")).toEqual([257, 256, 0x78]);
  expect(tokenizer.endId).toBe(258);
});

test("an unknown character is named", () => {
  const tokenizer = characters("ab🐔");
  expect(tokenizer.kind).toBe("char");
  expect(tokenizer.encode("b🐔a")).toEqual([1, 2, 0]);
  const error = (() => {
    try {
      tokenizer.encode("🐔é");
    } catch (reason) {
      return reason as UserError;
    }
    return null;
  })();
  expect(error).toBeInstanceOf(UserError);
  expect(error?.message).toMatch(/^'é' \(U\+00E9\) at character 1 is not among the 3 characters/);
  expect([error?.code, error?.values]).toEqual(["character_unknown", { character: "é" }]);
  expect(() => tokenizer.encode("\x07")).toThrow(String.raw`'\u0007' (U+0007)`);
});

test("a lone surrogate is rejected", () => {
  expect(() => bytes().encode("🐔\ud800")).toThrow(String.raw`'\ud800' at character 1 is a lone surrogate`);
});

test("the start of a text comes from the post-processor or the config", () => {
  const template = {
    type: "TemplateProcessing",
    single: [{ SpecialToken: { id: END, type_id: 0 } }, { Sequence: { id: "A", type_id: 0 } }],
    special_tokens: { [END]: { id: END, ids: [256], tokens: [END] } },
  };
  expect(bytes().startIds).toEqual([]);
  expect(bytes({}, { ...CONFIG, add_bos_token: true }).startIds).toEqual([256]);
  expect(bytes({ post_processor: template }).startIds).toEqual([256]);
  expect(bytes({ post_processor: template }, { eos_token: END }).startIds).toEqual([]);
  expect(bytes({ post_processor: { type: "Sequence", processors: [byteLevel, template] } }).startIds).toEqual(
    [256],
  );
});

test("a token is found by its text", () => {
  expect(bytes().find("a")).toBe(0x61);
  expect(bytes().find(END)).toBe(256);
  expect(() => bytes().find("ab")).toThrow("'ab' is 2 tokens (['a', 'b']): expected a single token");
});

test("further tokens may end a text", () => {
  expect(bytes({}, CONFIG, [10, 256, 10, 257, -1, 3]).endIds).toEqual([256, 10, 3]);
});

test("a stream shows characters as soon as they are complete", () => {
  const stream = new TextStream(bytes());
  const pieces = bytes()
    .encode("a€🐔b")
    .map((id) => stream.push(id));
  expect(pieces).toEqual(["a", "", "", "€", "", "", "", "🐔", "b"]);
  expect([stream.push(0xe2), stream.push(0x82), stream.close()]).toEqual(["", "", "�"]);
  expect([stream.push(0x63), stream.close()]).toEqual(["c", ""]);
});

test.each<[keyof TokenizerFile, TokenizerPart, string]>([
  ["normalizer", { type: "Precompiled" }, "the normalizer Precompiled"],
  ["normalizer", { type: "Sequence", normalizers: [{ type: "Nmt" }] }, "the normalizer Nmt"],
  ["pre_tokenizer", { type: "UnicodeScripts" }, "the pre-tokenizer UnicodeScripts"],
  ["post_processor", { type: "Other" }, "the post-processor Other"],
  ["decoder", { type: "CTC" }, "the decoder CTC"],
])("%s %j is refused by name", (part, settings, name) => {
  expect(() => bytes({ [part]: settings })).toThrow(`tokenizer.json has ${name}, which is not supported`);
});

test("a damaged file causes one clear error", () => {
  expect(() => Tokenizer.parse("{", CONFIG)).toThrow(
    /^tokenizer.json is not a tokenizer \(.*\); copy it again/,
  );
  expect(() => Tokenizer.parse("{}", CONFIG)).toThrow(UserError);
  expect(() => Tokenizer.read(null, CONFIG)).toThrow(UserError);
  expect(() => Tokenizer.parse('{"model": {"type": "BPE", "vocab": {}}}', CONFIG)).toThrow(UserError);
  expect(() => bytes({}, { eos_token: "</s>" })).toThrow(
    "has eos_token '</s>': expected a token in the vocabulary",
  );
  expect(() => bytes({}, {})).toThrow("has no eos_token");
});
