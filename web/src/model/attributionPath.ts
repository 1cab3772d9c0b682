/** The attribution of a logit to heads and tokens, and the path of hops back through the blocks. */

import { parseSite } from "./sites";
import type { Attribution, Hop, Schemas } from "../engine/types";

/** What a head contributes to a logit from one token. */
export interface Contribution extends Hop {
  value: number;
}

/** The largest contributions by absolute value. */
export function topContributions(attribution: Attribution, count: number): Contribution[] {
  return attribution.heads
    .flatMap(({ block, head, values }) =>
      values.map((value, source) => ({ block, head, source, value: value ?? 0 })),
    )
    .filter(({ value }) => value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
    .slice(0, count);
}

type Part = Schemas["Part"];

export const FEW_PARTS = 8; // parts in a list, unless more are needed

/** How many parts to list, largest first, so that no bar is longer than that of the largest part: few, or as many
 * as it takes until the sum of the others is no larger. */
export function countListed(parts: readonly Part[], few = FEW_PARTS): number {
  const largest = Math.abs(parts[0]?.value ?? 0);
  let count = Math.min(few, parts.length);
  while (count < parts.length && Math.abs(sumOf(parts.slice(count))) > largest) count++;
  return count;
}

export function sumOf(parts: readonly Part[]): number {
  return parts.reduce((sum, { value }) => sum + (value ?? NaN), 0);
}

/** The width of a curve or the diameter of a circle, relative to that of the largest amount. */
export function relativeSize(value: number, largest: number): number {
  return Math.sqrt(Math.abs(value) / largest);
}

/** The block and head of a site such as block.20.head.3.output, or null. */
export function parseHeadSite(name: string): { block: number; head: number } | null {
  const { block, head } = parseSite(name);
  return block === null || head === null ? null : { block, head };
}

/** The block of a feed-forward site, or null. */
export function feedforwardBlock(name: string): number | null {
  const { block, head, part } = parseSite(name);
  return head === null && part === "feedforward" ? block : null;
}

export function formatPath(path: Hop[]): string {
  return path.map(({ block, head, source }) => `${block}.${head}.${source}`).join("-");
}

/** Parses a path. Invalid text gives an empty one: each hop must lead to an earlier block. */
export function parsePath(text: string | null): Hop[] {
  if (text === null || !/^\d{1,6}\.\d{1,6}\.\d{1,6}(-\d{1,6}\.\d{1,6}\.\d{1,6})*$/.test(text)) return [];
  const hops = text.split("-").map((hop) => {
    const [block, head, source] = hop.split(".").map(Number);
    return { block: block!, head: head!, source: source! };
  });
  return hops.every(({ block }, i) => i === 0 || block < hops[i - 1]!.block) ? hops : [];
}
