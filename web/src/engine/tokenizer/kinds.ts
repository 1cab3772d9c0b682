/** The kinds of tokenizer that Clearhead trains, and how to recognize them. */

import { Bpe } from "./bpe";
import { BYTE_OF } from "./bytes";
import type { TokenizerFile } from "./file";
import type { TokenModel } from "./models";

export type TokenizerKind = "char" | "byte" | "bpe" | "word" | "other";

const END = "<|endoftext|>";

/** The kind of a tokenizer, or "other" for one made elsewhere. */
export function kindOf(
  file: TokenizerFile,
  model: TokenModel,
  hasToken: (token: string) => boolean,
): TokenizerKind {
  const { pre_tokenizer: before, decoder: after } = file;
  if (!(model instanceof Bpe) || file.normalizer || !hasToken(END)) return "other";
  const { ids } = model.vocabulary;
  if (!before && after?.type === "Fuse") return [...ids.keys()].every(isCharacter) ? "char" : "other";
  if (before?.type !== "ByteLevel" || after?.type !== "ByteLevel") return "other";
  if (before.use_regex !== false) return model.ignoresMerges ? "word" : "bpe";
  const isBytes = ids.size === BYTE_OF.size && [...BYTE_OF].every(([token, byte]) => ids.get(token) === byte);
  return isBytes ? "byte" : "other";
}

function isCharacter(text: string): boolean {
  return text !== "" && text.length === String.fromCodePoint(text.codePointAt(0)!).length;
}
