/** A unigram language model over tokens: the most likely way to divide a piece, by the Viterbi algorithm. */

import { UserError } from "../userError";
import { byteToken, encodeUtf8 } from "./bytes";
import type { UnigramFile } from "./file";
import type { TokenModel } from "./models";
import { Trie } from "./trie";
import { TokenVocabulary } from "./vocabulary";

const UNKNOWN_PENALTY = 10; // how much less likely an unknown character is than the least likely token

export class Unigram implements TokenModel {
  readonly vocabulary = new TokenVocabulary();
  readonly #file: UnigramFile;
  readonly #trie = new Trie();
  readonly #scores: Float64Array;
  readonly #unknownScore: number;

  constructor(file: UnigramFile) {
    this.#file = file;
    file.vocab.forEach(([token], id) => this.vocabulary.add(token, id));
    this.#scores = Float64Array.from(file.vocab, ([, score]) => score);
    this.#unknownScore =
      this.#scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;
    for (const [token, id] of this.vocabulary.ids) this.#trie.add(token, id);
  }

  tokenize(piece: string): number[] {
    return this.#divide(piece).flatMap((token) => this.#idsOf(token));
  }

  #idsOf(token: string): number | number[] {
    const id = this.vocabulary.ids.get(token);
    if (id !== undefined) return id;
    if (this.#file.byte_fallback) {
      const ids = Array.from(encodeUtf8(token), (byte) => this.vocabulary.ids.get(byteToken(byte)));
      if (ids.every((each) => each !== undefined)) return ids;
    }
    return this.#unknown();
  }

  #unknown(): number {
    if (this.#file.unk_id !== null && this.#file.unk_id !== undefined) return this.#file.unk_id;
    throw new UserError(
      "the text has a character that is not in the vocabulary, which has no token for unknown characters",
    );
  }

  /** The tokens of the most likely division; neighboring unknown characters are one token. */
  #divide(piece: string): string[] {
    const starts = new Int32Array(piece.length + 1).fill(-1); // of the best token that ends at each position
    const best = new Float64Array(piece.length + 1); // log-probability of the best division up to each position
    const unknown = new Uint8Array(piece.length + 1);
    let [start, size, hasCharacter] = [0, 1, false];
    const consider = (stop: number, score: number, id: number | null) => {
      const total = score + best[start]!;
      if (starts[stop]! >= 0 && total <= best[stop]!) return;
      [starts[stop], best[stop]] = [start, total];
      unknown[stop] = Number((id ?? this.#unknown()) === this.#file.unk_id);
    };
    const found = (stop: number, id: number) => {
      consider(stop, this.#scores[id]!, id);
      hasCharacter ||= stop - start === size;
    };
    for (; start < piece.length; start += size) {
      size = piece.codePointAt(start)! > 0xffff ? 2 : 1;
      hasCharacter = false;
      this.#trie.search(piece, start, found);
      if (!hasCharacter) consider(start + size, this.#unknownScore, null);
    }

    const tokens: string[] = [];
    for (let stop = piece.length; stop > 0;) {
      let first = starts[stop]!;
      while (unknown[stop] && first > 0 && unknown[first]) first = starts[first]!;
      tokens.push(piece.slice(first, stop));
      stop = first;
    }
    return tokens.reverse();
  }
}
