/** The kinds of heads: scores, sorting and search. */

import type { HeadScores } from "../engine/types";

export const HEAD_KINDS = ["previous", "first", "repeated", "induction", "antecedent"] as const;
export type HeadKind = (typeof HEAD_KINDS)[number];
export const HEAD_ORDERS = ["block", ...HEAD_KINDS] as const;
export type HeadOrder = (typeof HEAD_ORDERS)[number];

export interface HeadIndex {
  block: number;
  head: number;
}

function scoreOf(scores: HeadScores, kind: HeadKind, { block, head }: HeadIndex): number {
  return scores.kinds[kind]?.[block]?.[head] ?? 0;
}

export const CLEAR_SCORE = 0.2; // the least mean attention weight at which a head clearly shows a pattern,
const MIN_RATIO = 2; // if it is also this many times the score of uniform attention, which is high in short texts

/** Whether a head puts much of its attention where the pattern says, clearly more than by chance. */
function isClear(scores: HeadScores, kind: HeadKind, index: HeadIndex): boolean {
  const score = scoreOf(scores, kind, index);
  return score >= CLEAR_SCORE && score >= MIN_RATIO * (scores.chance[kind] ?? 0);
}

/** The kind with the highest score, or null if no score is clearly above chance. */
export function dominantKind(scores: HeadScores, index: HeadIndex): { kind: HeadKind; score: number } | null {
  return HEAD_KINDS.filter((kind) => isClear(scores, kind, index))
    .map((kind) => ({ kind, score: scoreOf(scores, kind, index) }))
    .reduce<{ kind: HeadKind; score: number } | null>(
      (best, other) => (best === null || other.score > best.score ? other : best),
      null,
    );
}

/** Sorts by score, highest first. Ties keep the order of the model. */
export function sortHeads<T extends HeadIndex>(
  heads: T[],
  order: HeadOrder,
  scores: HeadScores | undefined,
): T[] {
  if (order === "block" || scores === undefined) return heads;
  return heads.toSorted((one, other) => scoreOf(scores, order, other) - scoreOf(scores, order, one));
}

/** The heads that show this pattern clearly, whatever else they do. */
export function filterHeads<T extends HeadIndex>(heads: T[], kind: HeadKind, scores: HeadScores): T[] {
  return heads.filter((head) => isClear(scores, kind, head));
}

const MIN_PREFIX = 3; // characters

/** The order whose name, in English or as displayed, starts with the text; null if there is not exactly one. */
export function parseOrder(text: string, names: Record<HeadOrder, string>): HeadOrder | null {
  const prefix = text.trim().toLowerCase();
  if (prefix.length < MIN_PREFIX) return null;
  const matches = HEAD_ORDERS.filter((order) =>
    [order, names[order]].some((name) => name.toLowerCase().startsWith(prefix)),
  );
  return matches.length === 1 ? matches[0]! : null;
}

/** "13.8", "13 8" or "b13 h8" is head 8 of block 13; "13" is head 0. Null if there is no such head. */
export function parseHead(text: string, blocks: number, heads: number): HeadIndex | null {
  const match = /^\D*(\d+)(?:\D+(\d+))?\D*$/.exec(text);
  if (match === null) return null;
  const [block, head] = [Number(match[1]), Number(match[2] ?? 0)];
  return block < blocks && head < heads ? { block, head } : null;
}
