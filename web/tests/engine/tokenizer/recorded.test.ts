/** Encodes and decodes texts with tokenizers of many kinds, and compares the results with what Python recorded. */

import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { UserError } from "../../../src/engine/userError";
import { TextStream } from "../../../src/engine/tokenizer/textStream";
import { Tokenizer, type TokenizerConfig } from "../../../src/engine/tokenizer/tokenizer";

interface Recorded {
  json: string;
  config: TokenizerConfig;
  facts: Record<string, unknown>;
  texts: [text: string, ids: number[] | null, decoded: string, pieces: string[]][]; // null: cannot be encoded
  ids: [ids: number[], decoded: string, streamed: string, continued: string][];
  tokens: [piece: string, spelled: number[], hasText: boolean][];
}

const path = process.env.CLEARHEAD_RECORDED;
const recorded: Record<string, Recorded> = path ? JSON.parse(readFileSync(path, "utf8")) : {};

function stream(tokenizer: Tokenizer, ids: number[], continues: boolean): string {
  const streamed = new TextStream(tokenizer, continues);
  return ids.map((id) => streamed.push(id)).join("") + streamed.close();
}

describe.skipIf(!path)("with tokenizers recorded by the Python tests (CLEARHEAD_RECORDED)", () => {
  test.each(Object.keys(recorded))("%s", (kind) => {
    const { json, config, facts, texts, ids: sequences, tokens } = recorded[kind]!;
    const tokenizer = Tokenizer.parse(json, config);
    const { nVocab, endId, endIds, maskId, startIds, letter, specials } = tokenizer;
    expect({ nVocab, kind: tokenizer.kind, endId, endIds, maskId, startIds, letter, specials }).toEqual(
      facts,
    );
    for (const [text, ids, decoded, pieces] of texts) {
      const name = JSON.stringify(text);
      if (ids === null) {
        expect(() => tokenizer.encode(text), name).toThrow(UserError);
        continue;
      }
      expect(tokenizer.encode(text), name).toEqual(ids);
      expect(tokenizer.decode(ids), name).toBe(decoded);
      expect(tokenizer.pieces(ids), name).toEqual(pieces);
    }
    for (const [ids, decoded, streamed, continued] of sequences) {
      expect(tokenizer.decode(ids), String(ids)).toBe(decoded);
      expect(stream(tokenizer, ids, false), String(ids)).toBe(streamed);
      expect(stream(tokenizer, ids, true), String(ids)).toBe(continued);
    }
    tokens.forEach(([piece, spelled, hasText], id) => {
      expect(tokenizer.pieces([id]), `${id}`).toEqual([piece]);
      expect(tokenizer.spell(id), `${id}`).toEqual(spelled);
      expect(tokenizer.hasText(id), `${id}`).toBe(hasText);
    });
  });
});
