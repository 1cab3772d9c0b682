/** Following a word's logit back through the blocks: what is drawn of it, and its way in the address. */

import { parseSite } from "./sites";
import type { Attribution, Hop } from "../engine/types";

/** What a head brought from one token. */
export interface Contribution extends Hop {
  value: number;
}

/** The pieces of a logit that came from one token through one head, those that matter most first. */
export function topContributions(found: Attribution, count: number): Contribution[] {
  return found.heads
    .flatMap(({ block, head, values }) =>
      values.map((value, source) => ({ block, head, source, value: value ?? 0 })),
    )
    .filter(({ value }) => value !== 0)
    .sort((a, b) => Math.abs(b.value) - Math.abs(a.value))
    .slice(0, count);
}

/** block.20.head.3.output is block 20, head 3; other parts are none. */
export function parseHeadSite(name: string): { block: number; head: number } | null {
  const { block, head } = parseSite(name);
  return block === null || head === null ? null : { block, head };
}

/** The block of a feed-forward, or nothing. */
export function feedforwardBlock(name: string): number | null {
  const { block, head, part } = parseSite(name);
  return head === null && part === "feedforward" ? block : null;
}

export function formatPath(path: Hop[]): string {
  return path.map(({ block, head, source }) => `${block}.${head}.${source}`).join("-");
}

/** What is no way back is none: each goes to an earlier block than the one before. */
export function parsePath(text: string | null): Hop[] {
  if (text === null || !/^\d{1,6}\.\d{1,6}\.\d{1,6}(-\d{1,6}\.\d{1,6}\.\d{1,6})*$/.test(text)) return [];
  const hops = text.split("-").map((hop) => {
    const [block, head, source] = hop.split(".").map(Number);
    return { block: block!, head: head!, source: source! };
  });
  return hops.every(({ block }, i) => i === 0 || block < hops[i - 1]!.block) ? hops : [];
}
