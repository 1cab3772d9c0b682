/** The models of tokenizers: pieces of text to ids. */

import { UserError } from "../userError";
import { Bpe } from "./bpe";
import { type TokenizerFile, type WordLevelFile, unsupported } from "./file";
import { Unigram } from "./unigram";
import { TokenVocabulary } from "./vocabulary";

export interface TokenModel {
  readonly vocabulary: TokenVocabulary;
  /** The ids of a piece, which is not empty. */
  tokenize(piece: string): number[];
}

export function makeModel(file: TokenizerFile["model"]): TokenModel {
  switch (file.type) {
    case undefined: // old files
    case "BPE":
      return new Bpe(file);
    case "Unigram":
      return new Unigram(file);
    case "WordLevel":
      return new WordLevel(file);
    default:
      return unsupported(`a model of type ${(file as { type: string }).type}`);
  }
}

/** A token for each piece that is in the vocabulary, and the unknown token for all others. */
export class WordLevel implements TokenModel {
  readonly vocabulary: TokenVocabulary;
  readonly #unknown: string;

  constructor(file: WordLevelFile) {
    this.vocabulary = TokenVocabulary.read(file.vocab);
    this.#unknown = file.unk_token;
  }

  tokenize(piece: string): number[] {
    const { ids } = this.vocabulary;
    const id = ids.get(piece) ?? ids.get(this.#unknown);
    if (id !== undefined) return [id];
    throw new UserError(
      "the text has a word that is not in the vocabulary, which has no token for unknown words",
    );
  }
}
