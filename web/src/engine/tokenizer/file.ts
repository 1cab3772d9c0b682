/** The contents of tokenizer.json, the file format of the `tokenizers` library. */

import { UserError } from "../userError";

/** A normalizer, a pre-tokenizer, a post-processor or a decoder, with its settings. */
export interface TokenizerPart {
  type: string;
  [setting: string]: unknown;
}

export interface AddedToken {
  content: string;
  special: boolean;
  normalized: boolean; // matched in the normalized text
  single_word: boolean;
  lstrip: boolean;
  rstrip: boolean;
}

export interface BpeFile {
  type?: "BPE"; // absent in old files
  vocab: Record<string, number>;
  merges: [string, string][] | string[];
  unk_token?: string | null;
  fuse_unk?: boolean | null;
  byte_fallback?: boolean | null;
  ignore_merges?: boolean | null;
  dropout?: number | null;
  continuing_subword_prefix?: string | null;
  end_of_word_suffix?: string | null;
}

export interface UnigramFile {
  type: "Unigram";
  vocab: [string, number][]; // tokens with their log-probabilities
  unk_id: number | null;
  byte_fallback?: boolean;
}

export interface WordLevelFile {
  type: "WordLevel";
  vocab: Record<string, number>;
  unk_token: string;
}

export interface TokenizerFile {
  added_tokens?: AddedToken[];
  normalizer?: TokenizerPart | null;
  pre_tokenizer?: TokenizerPart | null;
  post_processor?: TokenizerPart | null;
  decoder?: TokenizerPart | null;
  model: BpeFile | UnigramFile | WordLevelFile;
}

/** Refuses a part of the file that is not implemented. */
export function unsupported(part: string): never {
  throw new UserError(
    `this tokenizer cannot run in the browser: tokenizer.json has ${part}, which is not supported`,
  );
}
