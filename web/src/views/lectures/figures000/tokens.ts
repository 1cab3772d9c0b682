/** Which tokens the figures of lecture 000 show. */

import type { RoleKind } from "../../../lectures/lecture000";

export const TOKENS_SHOWN = 14; // as many as fit on the screen

const PRONOUNS = ["it", "he", "she", "they", "him", "her", "them", "its", "his"];

/** The last token at which a head of this kind has something to do; the last token if there is none. */
export function tellingRow(kind: RoleKind, tokens: readonly string[]): number {
  const words = tokens.map((token) => token.trim().toLowerCase());
  const isRepeated = (word: string, i: number) => /\p{L}/u.test(word) && words.indexOf(word) < i;
  const isTelling = (word: string, i: number) =>
    kind === "previous" || (kind === "antecedent" ? PRONOUNS.includes(word) : isRepeated(word, i));
  const row = words.findLastIndex(isTelling);
  return row < 0 ? tokens.length - 1 : row;
}
