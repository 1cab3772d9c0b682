/** What heads do: their scores, their order by these, and how one is found by its name. */

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

const CLEARLY = 2; // times what looking everywhere alike would give

/** What a head does most, and how much of its weight goes there; nothing where it does none of these clearly. */
export function dominantKind(scores: HeadScores, name: HeadIndex): { kind: HeadKind; score: number } | null {
  return HEAD_KINDS.map((kind) => ({ kind, score: scoreOf(scores, kind, name) }))
    .filter(({ kind, score }) => score > 0 && score >= CLEARLY * (scores.chance[kind] ?? 0))
    .reduce<{ kind: HeadKind; score: number } | null>(
      (best, other) => (best === null || other.score > best.score ? other : best),
      null,
    );
}

/** Those that do most of it first; equal ones, and all where nothing is known, as they stand in the model. */
export function sortHeads<T extends HeadIndex>(
  heads: T[],
  order: HeadOrder,
  scores: HeadScores | undefined,
): T[] {
  if (order === "block" || scores === undefined) return heads;
  return heads.toSorted((one, other) => scoreOf(scores, order, other) - scoreOf(scores, order, one));
}

/** Only those that do this more than anything else. */
export function filterHeads<T extends HeadIndex>(heads: T[], kind: HeadKind, scores: HeadScores): T[] {
  return heads.filter((each) => dominantKind(scores, each)?.kind === kind);
}

const TOLD = 3; // letters of a name are enough

/** The one order whose name, here or in the locale's language, begins like this. */
export function parseOrder(text: string, names: Record<HeadOrder, string>): HeadOrder | null {
  const sought = text.trim().toLowerCase();
  if (sought.length < TOLD) return null;
  const found = HEAD_ORDERS.filter((each) =>
    [each, names[each]].some((name) => name.toLowerCase().startsWith(sought)),
  );
  return found.length === 1 ? found[0]! : null;
}

/** "13.8", "13 8" or "b13 h8" is block 13, head 8; "13" is the block's first. Nothing where there is none. */
export function parseHead(text: string, blocks: number, heads: number): HeadIndex | null {
  const found = /^\D*(\d+)(?:\D+(\d+))?\D*$/.exec(text);
  if (found === null) return null;
  const [block, head] = [Number(found[1]), Number(found[2] ?? 0)];
  return block < blocks && head < heads ? { block, head } : null;
}
