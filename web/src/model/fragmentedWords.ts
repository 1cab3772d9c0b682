/** The words of a text and the tokens that they consist of. */

const MIN_TOKENS = 4; // a word of fewer tokens is not reported as split
const MAX_CHARACTERS = 1.6; // per token, on average

/** Whether the tokens of a text are single characters or bytes. */
export function areCharacters(tokens: readonly string[]): boolean {
  return tokens.length > 1 && tokens.every((token) => [...token].length <= 1);
}

/** The words that the tokenizer takes apart almost letter by letter, each once. */
export function fragmentedWords(tokens: readonly string[]): string[] {
  const words: string[][] = [];
  for (const token of tokens) {
    const continues = /^[\p{L}\p{M}]/u.test(token) && /[\p{L}\p{M}]$/u.test(words.at(-1)?.at(-1) ?? "");
    if (continues) words.at(-1)!.push(token);
    else words.push([token]);
  }
  const isSplit = (pieces: string[]) =>
    pieces.length >= MIN_TOKENS && pieces.join("").trim().length / pieces.length <= MAX_CHARACTERS;
  return [...new Set(words.filter(isSplit).map((pieces) => pieces.join("").trim()))];
}
