/** Tokenizers: text to ids and back, as `clearhead.text.tokenizer` does it, from the same files. */

import { UserError } from "../userError";
import { AddedTokens } from "./addedTokens";
import { decodeEscaped, encodeUtf8, fromByteCharacters } from "./bytes";
import { type Decoder, makeDecoder } from "./decoders";
import type { TokenizerFile } from "./file";
import { type TokenizerKind, kindOf } from "./kinds";
import { type TokenModel, makeModel } from "./models";
import { type Normalizer, makeNormalizer } from "./normalizers";
import { makePostProcessor } from "./postProcessors";
import { type PreTokenizer, makePreTokenizer } from "./preTokenizers";

/** The contents of tokenizer_config.json: special tokens by their roles. */
export type TokenizerConfig = Record<string, unknown>;

/** A tokenizer with its end-of-document token; adds nothing to plain text.
 *
 * `ends` are further tokens that end a text, such as the end of a turn in a conversation.
 */
export class Tokenizer {
  readonly nVocab: number;
  readonly kind: TokenizerKind;
  readonly endId: number;
  readonly endIds: number[];
  readonly maskId: number | null; // the mask token, if there is one
  readonly startIds: number[]; // what the model expects before a text

  readonly #config: TokenizerConfig;
  readonly #normalize: Normalizer;
  readonly #preTokenize: PreTokenizer;
  readonly #model: TokenModel;
  readonly #decode: Decoder;
  readonly #added: AddedTokens;
  readonly #tokens: (string | undefined)[]; // by id, as the decoder sees them
  readonly #inBytes: boolean;

  constructor(file: TokenizerFile, config: TokenizerConfig, ends: number[] = []) {
    this.#config = config;
    this.#normalize = makeNormalizer(file.normalizer);
    this.#preTokenize = makePreTokenizer(file.pre_tokenizer);
    this.#model = makeModel(file.model);
    this.#decode = makeDecoder(file.decoder);
    this.#inBytes = file.decoder?.type === "ByteLevel";
    this.#added = new AddedTokens(file.added_tokens ?? [], this.#model.vocabulary, this.#normalize);
    this.#tokens = this.#model.vocabulary.tokens.slice();
    for (const id of this.#added.byId.keys()) this.#tokens[id] = this.#added.spelling(id)!;
    this.nVocab = this.#tokens.length;
    this.kind = kindOf(file, this.#model, (token) => this.#find(token) !== undefined);
    this.endId = this.#findEnd();
    // Files may name end tokens that their tokenizer lacks, such as those of a larger vocabulary.
    this.endIds = [...new Set([this.endId, ...ends.filter((id) => id >= 0 && id < this.nVocab)])];
    this.maskId = this.#find(this.special("mask_token")) ?? null;
    this.startIds = this.#findStart(file);
  }

  /** The tokenizer in the text of a tokenizer.json. */
  static parse(text: string, config: TokenizerConfig, ends: number[] = []): Tokenizer {
    return explain(() => new Tokenizer(JSON.parse(text) as TokenizerFile, config, ends));
  }

  /** The tokenizer in a parsed tokenizer.json, which may be damaged. */
  static read(file: unknown, config: TokenizerConfig, ends: number[] = []): Tokenizer {
    return explain(() => new Tokenizer(file as TokenizerFile, config, ends));
  }

  /** A special token by its role, such as bos_token, if there is one. */
  special(role: string): string | null {
    const token = this.#config[role];
    const content = token && typeof token === "object" ? (token as { content?: unknown }).content : token;
    return typeof content === "string" ? content : null;
  }

  /** Every token by its id, as spelled in the vocabulary; an id without a token is shown as its number. */
  get tokens(): string[] {
    return Array.from(this.#tokens, (token, id) => token || `<${id}>`);
  }

  /** The special tokens, as they are spelled. */
  get specials(): string[] {
    const special = [...this.#added.byId].filter(([, token]) => token.special);
    return special.sort(([a], [b]) => a - b).map(([, token]) => token.content);
  }

  /** Throws an error if this text cannot be encoded. */
  check(text: string): void {
    const lone = /[\ud800-\udfff]/u.exec(text);
    if (lone) {
      const code = lone[0].charCodeAt(0).toString(16);
      const at = [...text.slice(0, lone.index)].length;
      throw new UserError(`'\\u${code}' at character ${at} is a lone surrogate, which is not a character`);
    }
    if (this.kind !== "char") return;
    const known = this.#model.vocabulary.ids;
    let at = 0;
    for (const character of text) {
      if (!known.has(character)) refuseCharacter(character, at, known.size);
      at++;
    }
  }

  /** The ids of this text and nothing else; "<|endoftext|>" in it is thirteen ordinary characters. */
  encode(text: string): number[] {
    this.check(text);
    const ids: number[] = [];
    for (const part of this.#added.splitText(text)) {
      if (part.id !== null) ids.push(part.id);
      else this.#encodePart(part.text, part.start === 0, ids);
    }
    return ids;
  }

  #encodePart(text: string, first: boolean, ids: number[]): void {
    for (const part of this.#added.splitNormalized(this.#normalize(text))) {
      if (part.id !== null) ids.push(part.id);
      else
        for (const piece of this.#preTokenize({ text: part.text, first: first && part.start === 0 }))
          for (const id of this.#model.tokenize(piece.text)) ids.push(id);
    }
  }

  /** The text of these ids. Special tokens are skipped; invalid UTF-8 becomes U+FFFD. */
  decode(ids: number[]): string {
    const tokens = ids.map((id) => this.#tokens[id]);
    const shown = tokens.filter((token) => token !== undefined && !this.#added.isSpecial(token)) as string[];
    return this.#decode(shown).join("");
  }

  /** The text to display for each id; part of a character is shown as an escape such as "\xe2". */
  pieces(ids: number[]): string[] {
    return ids.map((id) => {
      const token = this.#tokens[id];
      if (token === undefined) return `<${id}>`;
      return this.#added.byId.get(id)?.content ?? decodeEscaped(this.#spell(token));
    });
  }

  /** The bytes that an id adds to the text before it; they can end within a character. */
  spell(id: number): number[] {
    const token = this.#tokens[id];
    return token === undefined || this.#added.byId.get(id)?.special ? [] : this.#spell(token);
  }

  #spell(token: string): number[] {
    const bytes = this.#inBytes ? fromByteCharacters(token) : null;
    if (bytes) return bytes;
    if (this.kind !== "other" || this.#inBytes) return [...encodeUtf8(token)];
    const byte = /^<0x([0-9A-F]{2})>$/.exec(token);
    return byte ? [parseInt(byte[1]!, 16)] : [...encodeUtf8(token.replaceAll("▁", " "))];
  }

  /** Whether `decode` shows this id at all. */
  hasText(id: number): boolean {
    return this.#tokens[id] !== undefined && !this.#added.byId.get(id)?.special;
  }

  /** A token of plain letters or digits, if there is one. */
  get letter(): number | null {
    this.#letter ??= this.#tokens.findIndex(
      (token, id) => !this.#added.byId.has(id) && /^▁?[A-Za-z0-9]+$/.test(token ?? ""),
    );
    return this.#letter < 0 ? null : this.#letter;
  }

  #letter: number | undefined;

  /** The id of a token by its text, or of a special token by its name. */
  find(token: string): number {
    const special = this.#added.ids.get(token);
    if (special !== undefined && this.#added.byId.get(special)?.special) return special;
    const ids = this.encode(token);
    if (ids.length === 1) return ids[0]!;
    const shown = this.pieces(ids).slice(0, 9).map(quote).join(", ");
    throw new UserError(`${quote(token)} is ${ids.length} tokens ([${shown}]): expected a single token`);
  }

  #find(token: string | null): number | undefined {
    return this.#added.ids.get(token ?? "") ?? this.#model.vocabulary.ids.get(token ?? "");
  }

  #findEnd(): number {
    const token = this.special("eos_token");
    const id = token === null ? undefined : this.#find(token);
    if (id !== undefined) return id;
    const found = token === null ? "no eos_token" : `eos_token ${quote(token)}`;
    throw new UserError(`tokenizer_config.json has ${found}: expected a token in the vocabulary`);
  }

  /** The token that starts a text, if the tokenizer's post-processor adds one. */
  #findStart(file: TokenizerFile): number[] {
    const start = this.#find(this.special("bos_token"));
    if (start === undefined) return [];
    if (!file.post_processor) return this.#config.add_bos_token === true ? [start] : [];
    return makePostProcessor(file.post_processor)([])[0] === start ? [start] : [];
  }
}

/** Turns whatever a damaged file causes into one clear error. */
function explain(make: () => Tokenizer): Tokenizer {
  try {
    return make();
  } catch (error) {
    if (error instanceof UserError) throw error;
    const reason = String((error as Error).message)
      .replace(/\s+/g, " ")
      .slice(0, 300);
    throw new UserError(`tokenizer.json is not a tokenizer (${reason}); copy it again from its source`);
  }
}

function refuseCharacter(character: string, at: number, count: number): never {
  const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
  throw new UserError(
    `${quote(character)} (U+${code}) at character ${at} is not among the ${count} characters of this model's ` +
      "tokenizer: remove it, or train with the byte or bpe tokenizer, which can encode any character",
    "character_unknown",
    { character },
  );
}

/** A text in quotes, with escapes for what cannot be printed. */
function quote(text: string): string {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return `'${escaped.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (each) => `\\u{${each.codePointAt(0)!.toString(16)}}`)}'`;
}
