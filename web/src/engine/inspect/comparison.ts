/** The comparison of two traces: aligned tokens, and the distance at every site. */

import type { Matrix } from "../../model/matrix";
import { takeColumns, takeRows } from "../model/tensor";
import { UserError } from "../userError";
import { MATRICES, type Site, allSites, siteName } from "./sites";
import type { Trace } from "./trace";

export type Pair = [number, number];

/** Two traces; each of the `pairs` is a position in `one` and the aligned position in `other`. */
export class Comparison {
  readonly #sites: Site[];

  constructor(
    readonly one: Trace,
    readonly other: Trace,
    readonly pairs: readonly Pair[],
  ) {
    this.#sites = allSites(one.config);
  }

  /** Aligns the tokens of two traces. Both models must have the same sites. */
  static of(one: Trace, other: Trace, tokens: readonly string[], otherTokens: readonly string[]): Comparison {
    if (siteNames(one) !== siteNames(other))
      throw new UserError(
        "the two models have different sites: compare models of the same shape",
        "different_sites",
      );
    const pairs = align(tokens, otherTokens);
    if (pairs.length === 0)
      throw new UserError(
        "the two texts have no token in common: nothing can be compared",
        "nothing_in_common",
      );
    return new Comparison(one, other, pairs);
  }

  /** The distance at every site of a block (null: outside the blocks), in the order of `allSites`. */
  distances(block: number | null): { site: string; distance: number }[] {
    return this.#sites
      .filter((site) => site.block === block)
      .map((site) => ({ site: siteName(site), distance: this.distance(site) }));
  }

  /** ‖difference‖/‖value‖ at a site. */
  distance(site: Site): number {
    const [first, second] = [this.one, this.other].map((trace, i) => this.#aligned(trace, site, i));
    return distanceBetween(first!.values, second!.values);
  }

  #aligned(trace: Trace, site: Site, side: number): Matrix {
    const positions = this.pairs.map((pair) => pair[side]!);
    const rows = takeRows(trace.read(siteName(site)), positions);
    return MATRICES.includes(site.name) ? takeColumns(rows, positions) : rows;
  }
}

function siteNames({ config }: Trace): string {
  return allSites(config).map(siteName).join();
}

function distanceBetween(first: Float32Array, second: Float32Array): number {
  let [difference, size] = [0, 0];
  first.forEach((value, i) => {
    if (Number.isFinite(value)) size += value * value;
    if (value !== second[i]) difference += (second[i]! - value) ** 2;
  });
  return Math.sqrt(difference) / Math.max(Math.sqrt(size), 1e-30);
}

/** Pairs the positions of equal tokens, and of replaced tokens in runs of equal length. */
export function align(one: readonly string[], other: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  const pairUp = (i: number, j: number, count: number) => {
    for (let k = 0; k < count; k++) pairs.push([i + k, j + k]);
  };
  let [i, j] = [0, 0];
  const runs = matchingRuns(one, other, [0, one.length], [0, other.length]);
  for (const run of [...runs, { i: one.length, j: other.length, count: 0 }]) {
    if (run.i - i === run.j - j) pairUp(i, j, run.i - i);
    pairUp(run.i, run.j, run.count);
    [i, j] = [run.i + run.count, run.j + run.count];
  }
  return pairs;
}

interface MatchingRun {
  i: number;
  j: number;
  count: number;
}

type Bounds = [number, number];

/** The longest run of equal tokens, and those before and after it, found the same way (Ratcliff and Obershelp). */
function matchingRuns(one: readonly string[], other: readonly string[], a: Bounds, b: Bounds): MatchingRun[] {
  const { i, j, count } = longestRun(one, other, a, b);
  if (count === 0) return [];
  return [
    ...matchingRuns(one, other, [a[0], i], [b[0], j]),
    { i, j, count },
    ...matchingRuns(one, other, [i + count, a[1]], [j + count, b[1]]),
  ];
}

/** The earliest of the longest runs. */
function longestRun(one: readonly string[], other: readonly string[], a: Bounds, b: Bounds): MatchingRun {
  let best: MatchingRun = { i: a[0], j: b[0], count: 0 };
  let ending = new Map<number, number>(); // lengths of the runs that end at the previous token and at j
  for (let i = a[0]; i < a[1]; i++) {
    const next = new Map<number, number>();
    for (let j = b[0]; j < b[1]; j++) {
      if (one[i] !== other[j]) continue;
      const count = (ending.get(j - 1) ?? 0) + 1;
      next.set(j, count);
      if (count > best.count) best = { i: i - count + 1, j: j - count + 1, count };
    }
    ending = next;
  }
  return best;
}
