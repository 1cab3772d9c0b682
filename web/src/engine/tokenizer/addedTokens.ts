/** Tokens that are split off before the model sees the text: special ones, and others that the user added. */

import type { AddedToken } from "./file";
import { Trie } from "./trie";
import type { TokenVocabulary } from "./vocabulary";

const STARTS_WITH_WORD = /^[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]/u;
const ENDS_WITH_WORD = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]$/u;
const SPACE = /\p{White_Space}/u;

/** Part of a text: an added token with its id, or text between them. */
export interface TextPart {
  text: string;
  start: number;
  id: number | null;
}

export class AddedTokens {
  readonly byId = new Map<number, AddedToken>();
  readonly ids = new Map<string, number>();
  readonly #normalized = new Map<number, string>(); // as found in a normalized text
  readonly #specials = new Set<string>();
  readonly #inText = new Trie();
  readonly #inNormalizedText = new Trie();

  /** A token in the model's vocabulary keeps its id; the ids of the others follow. */
  constructor(tokens: AddedToken[], vocabulary: TokenVocabulary, normalize: (text: string) => string) {
    let next = vocabulary.ids.size;
    for (const token of tokens) {
      if (!token.content) continue;
      const id = this.ids.get(token.content) ?? vocabulary.ids.get(token.content) ?? next++;
      this.ids.set(token.content, id);
      this.byId.set(id, token);
      if (token.special) this.#specials.add(token.content);
      if (token.normalized) this.#normalized.set(id, normalize(token.content));
      else this.#normalized.delete(id);
    }
    for (const [id, { content, normalized }] of this.byId)
      if (normalized) this.#inNormalizedText.add(this.#normalized.get(id)!, id);
      else this.#inText.add(content, id);
  }

  /** The token with this id as the decoder sees it. */
  spelling(id: number): string | undefined {
    return this.#normalized.get(id) ?? this.byId.get(id)?.content;
  }

  isSpecial(token: string): boolean {
    return this.#specials.has(token);
  }

  splitText(text: string): TextPart[] {
    return this.#split(text, this.#inText);
  }

  splitNormalized(text: string): TextPart[] {
    return this.#split(text, this.#inNormalizedText);
  }

  /** Splits a text at the leftmost, longest tokens. Special tokens are found, but remain plain text. */
  #split(text: string, trie: Trie): TextPart[] {
    const parts: TextPart[] = [];
    let done = 0;
    const add = (start: number, stop: number, id: number | null) => {
      if (start < stop) parts.push({ text: text.slice(start, stop), start, id });
    };
    let stop = 0;
    let id: number;
    const take = (end: number, value: number) => ([stop, id] = [end, value]);
    for (let at = 0; at < text.length && !trie.isEmpty;) {
      const start = at++;
      id = -1;
      trie.search(text, start, take);
      if (id < 0) continue;
      at = stop;
      const token = this.byId.get(id)!;
      if (this.#specials.has(token.content)) continue;
      if (token.single_word && !isSingleWord(text, start, stop)) continue;
      const first = token.lstrip ? Math.max(done, skipSpaceBefore(text, start)) : start;
      const last = token.rstrip ? skipSpaceAfter(text, stop) : stop;
      add(done, first, null);
      add(first, last, id);
      done = last;
    }
    add(done, text.length, null);
    return parts;
  }
}

function isSingleWord(text: string, start: number, stop: number): boolean {
  const before = text.slice(Math.max(0, start - 2), start); // a character has at most two code units
  return !ENDS_WITH_WORD.test(before) && !STARTS_WITH_WORD.test(text.slice(stop, stop + 2));
}

function skipSpaceBefore(text: string, start: number): number {
  while (start > 0 && SPACE.test(text[start - 1]!)) start--;
  return start;
}

function skipSpaceAfter(text: string, stop: number): number {
  while (stop < text.length && SPACE.test(text[stop]!)) stop++;
  return stop;
}
