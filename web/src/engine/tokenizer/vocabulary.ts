/** Tokens and their ids. */
export class TokenVocabulary {
  readonly ids = new Map<string, number>();
  readonly tokens: (string | undefined)[] = []; // by id

  add(token: string, id: number): void {
    this.ids.set(token, id);
    this.tokens[id] = token;
  }

  /** The vocabulary in a file: an object with the id of each token. */
  static read(ids: Record<string, number>): TokenVocabulary {
    const vocabulary = new TokenVocabulary();
    // Object.entries would take twice as long.
    for (const token in ids) vocabulary.add(token, ids[token]!);
    return vocabulary;
  }
}
