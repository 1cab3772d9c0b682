/** Positions of words in a tokenized text, where a word may span several tokens. */

const WORD = String.raw`[\p{L}\p{N}_]`;

/** The position of the last token of each occurrence of a word.
 *
 * Matches whole words only: "it" does not match inside "with".
 */
export function findWord(word: string, pieces: readonly string[]): number[] {
  if (!word) return [];
  const before = /^[\p{L}\p{N}]/u.test(word) ? `(?<!${WORD})` : "";
  const after = /[\p{L}\p{N}]$/u.test(word) ? `(?!${WORD})` : "";
  const pattern = new RegExp(before + escapePattern(word) + after, "gu");
  let end = 0;
  const ends = pieces.map((piece) => (end += piece.length));
  return Array.from(pieces.join("").matchAll(pattern), (match) => {
    const last = match.index + match[0].length;
    return ends.findIndex((end) => end >= last);
  });
}

function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}
