/** Byte-pair encoding: the characters of a piece, merged in the order in which the merges were learned. */

import { UserError } from "../userError";
import { byteToken, encodeUtf8 } from "./bytes";
import { type BpeFile, unsupported } from "./file";
import { MinHeap } from "./heap";
import type { TokenModel } from "./models";
import { TokenVocabulary } from "./vocabulary";

const LARGEST_CACHE = 2 ** 16; // pieces
const LONGEST_CACHED = 256; // UTF-16 code units
const POSITIONS = 2 ** 31; // a queue entry is rank * POSITIONS + position

export class Bpe implements TokenModel {
  readonly vocabulary: TokenVocabulary;
  readonly ignoresMerges: boolean;
  readonly #file: BpeFile;
  readonly #nIds: number;
  readonly #ranks = new Map<number, number>(); // left id * nIds + right id → rank
  readonly #merged: Int32Array; // the id that the merge of each rank makes
  readonly #cache = new Map<string, number[]>();

  constructor(file: BpeFile) {
    if (file.dropout) unsupported("BPE with dropout");
    if (file.continuing_subword_prefix) unsupported("BPE with a continuing_subword_prefix");
    if (file.end_of_word_suffix) unsupported("BPE with an end_of_word_suffix");
    this.#file = file;
    this.ignoresMerges = file.ignore_merges ?? false;
    this.vocabulary = TokenVocabulary.read(file.vocab);
    this.#nIds = this.vocabulary.tokens.length;
    this.#merged = new Int32Array(file.merges.length);
    let id = -1;
    file.merges.forEach((merge, rank) => {
      const [left, right] = (typeof merge === "string" ? merge.split(" ") : merge) as [string, string];
      id = this.#findMerged(left, right, id + 1);
      this.#merged[rank] = id;
      this.#ranks.set(this.#find(left) * this.#nIds + this.#find(right), rank);
    });
  }

  #find(token: string): number {
    const id = this.vocabulary.ids.get(token);
    if (id === undefined)
      throw new Error(`a merge has ${JSON.stringify(token)}, which is not in the vocabulary`);
    return id;
  }

  /** The id of two tokens joined. Most vocabularies list them in the order of the merges, so looking at the
   * `expected` id is faster than looking up the text. */
  #findMerged(left: string, right: string, expected: number): number {
    const token = this.vocabulary.tokens[expected];
    const isExpected =
      token?.length === left.length + right.length && token.startsWith(left) && token.endsWith(right);
    return isExpected ? expected : this.#find(left + right);
  }

  tokenize(piece: string): number[] {
    if (this.ignoresMerges) {
      const id = this.vocabulary.ids.get(piece);
      if (id !== undefined) return [id];
    }
    let ids = this.#cache.get(piece);
    if (!ids) {
      ids = this.#merge(this.#split(piece));
      if (piece.length <= LONGEST_CACHED && this.#cache.size < LARGEST_CACHE) this.#cache.set(piece, ids);
    }
    return ids;
  }

  /** The ids of the characters, or of the bytes of characters that are not in the vocabulary. */
  #split(piece: string): number[] {
    const ids: number[] = [];
    let unknown: number | null = null; // not yet listed, since unknown characters that follow may be joined to it
    for (const character of piece) {
      const id = this.vocabulary.ids.get(character);
      if (id !== undefined) {
        if (unknown !== null) ids.push(unknown);
        unknown = null;
        ids.push(id);
        continue;
      }
      const bytes = this.#file.byte_fallback ? this.#spellBytes(character) : null;
      if (bytes) {
        ids.push(...bytes);
      } else if (typeof this.#file.unk_token === "string") {
        if (unknown !== null && !this.#file.fuse_unk) ids.push(unknown);
        unknown = this.#unknown(this.#file.unk_token);
      }
    }
    if (unknown !== null) ids.push(unknown);
    return ids;
  }

  #spellBytes(character: string): number[] | null {
    const ids = Array.from(encodeUtf8(character), (byte) => this.vocabulary.ids.get(byteToken(byte)));
    return ids.every((id) => id !== undefined) ? ids : null;
  }

  #unknown(token: string): number {
    const id = this.vocabulary.ids.get(token);
    if (id !== undefined) return id;
    throw new UserError(
      `the text has a character that is not in the vocabulary, which has no token ${JSON.stringify(token)}`,
    );
  }

  /** Repeatedly merges the pair of the lowest rank (the leftmost of several) until there is none. */
  #merge(ids: number[]): number[] {
    const n = ids.length;
    if (n < 2 || !this.#ranks.size) return ids;
    const next = Int32Array.from(ids, (_, i) => (i + 1 < n ? i + 1 : -1));
    const previous = Int32Array.from(ids, (_, i) => i - 1);
    const queue = new MinHeap(2 * n);
    for (let i = 0; i + 1 < n; i++) this.#enqueue(queue, ids, i, i + 1);

    const removed = -1;
    while (queue.size) {
      const entry = queue.pop();
      const [rank, left] = [Math.floor(entry / POSITIONS), entry % POSITIONS];
      const right = next[left]!;
      // The pair may have been merged with a neighbor since.
      if (ids[left] === removed || right < 0 || this.#rank(ids[left]!, ids[right]!) !== rank) continue;
      ids[left] = this.#merged[rank]!;
      ids[right] = removed;
      const after = (next[left] = next[right]!);
      if (after >= 0) {
        previous[after] = left;
        this.#enqueue(queue, ids, left, after);
      }
      if (previous[left]! >= 0) this.#enqueue(queue, ids, previous[left]!, left);
    }
    return ids.filter((id) => id !== removed);
  }

  #rank(left: number, right: number): number | undefined {
    return this.#ranks.get(left * this.#nIds + right);
  }

  #enqueue(queue: MinHeap, ids: number[], left: number, right: number): void {
    const rank = this.#rank(ids[left]!, ids[right]!);
    if (rank !== undefined) queue.push(rank * POSITIONS + left);
  }
}
