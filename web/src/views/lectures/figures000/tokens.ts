/** Which tokens the figures of lecture 000 show. */

import type { RoleKind } from "../../../lectures/lecture000";

const MAX_TOKENS = 14;
const [NARROWEST, WIDEST] = [2.8, 6]; // column widths in em: room for a percentage and for a long token

/** The width of a token's column, in em. */
export function columnWidth(label: string): number {
  return Math.min(WIDEST, Math.max(NARROWEST, 0.4 + 0.52 * label.length));
}

/** The tokens that fit into `room`, from the first if `row` is then among them, else up to `row`. */
export function tokensThatFit(widths: readonly number[], row: number, room: number): [number, number] {
  const fits = (from: number, to: number) =>
    to - from <= MAX_TOKENS && widths.slice(from, to).reduce((sum, width) => sum + width, 0) <= room;
  let first = row;
  while (first > 0 && fits(first - 1, row + 1)) first--;
  let end = row + 1;
  while (end < widths.length && fits(first, end + 1)) end++;
  return [first, end];
}

const PRONOUNS = ["it", "he", "she", "they", "him", "her", "them", "its", "his"];

/** The last token at which a head of this kind has something to do; -1 if there is none. */
export function tellingRow(kind: RoleKind, tokens: readonly string[]): number {
  const words = tokens.map((token) => token.trim().toLowerCase());
  const isRepeated = (word: string, i: number) => /\p{L}/u.test(word) && words.indexOf(word) < i;
  const isTelling = (word: string, i: number) =>
    kind === "previous" || (kind === "antecedent" ? PRONOUNS.includes(word) : isRepeated(word, i));
  return words.findLastIndex(isTelling);
}
