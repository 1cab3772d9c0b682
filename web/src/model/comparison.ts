/** Two texts side by side: aligned tokens and the difference between their matrices. */

import { isSquare, parseSite, type Span } from "./sites";
import { addsPositions } from "../engine/inspect/sites";
import { hasCap } from "../engine/model/attentionSteps";
import { isGated } from "../engine/model/feedforward";
import { Matrix } from "./matrix";
import type { Config } from "../engine/types";

export type TokenPairs = [number, number][]; // positions in the first and the second text

/** The second matrix minus the first, at the paired positions. Two equal infinities differ by 0. */
export function difference(name: string, one: Matrix, other: Matrix, pairs: TokenPairs): Matrix {
  return combine(name, one, other, pairs, (a, b) => (a === b ? 0 : b - a));
}

/** One of the two matrices, at the paired positions. */
export function selectPairs(
  name: string,
  one: Matrix,
  other: Matrix,
  pairs: TokenPairs,
  which: 0 | 1,
): Matrix {
  return combine(name, one, other, pairs, (a, b) => (which === 0 ? a : b));
}

function combine(
  name: string,
  one: Matrix,
  other: Matrix,
  pairs: TokenPairs,
  operation: (a: number, b: number) => number,
): Matrix {
  const square = isSquare(parseSite(name).part);
  const first = square ? 0 : one.firstColumn;
  const columns: TokenPairs = square
    ? pairs
    : Array.from({ length: one.columns }, (_, j) => [first + j, first + j] as [number, number]);
  const values = new Float32Array(pairs.length * columns.length);
  pairs.forEach(([a, b], i) =>
    columns.forEach(([c, d], j) => {
      values[i * columns.length + j] = operation(one.at(a, c), other.at(b, d));
    }),
  );
  return new Matrix(values, pairs.length, columns.length, 0, first);
}

/** The columns to read for a range of columns of the comparison; undefined for all. */
export function columnsToRead(name: string, columns: Span, all: number): Span | undefined {
  return isSquare(parseSite(name).part) || (columns[0] === 0 && columns[1] === all) ? undefined : columns;
}

/** Whether two models have the same sites with the same shapes. */
export function haveSameShape(one: Config, other: Config): boolean {
  const shape = (config: Config) => {
    const { n_block, n_head, n_kv_head, d_model, d_head, d_hidden, n_vocab } = config;
    const { norm, qk_norm, parallel, post_norm } = config;
    const sizes = [n_block, n_head, n_kv_head, d_model, d_head, d_hidden, n_vocab];
    const caps = [hasCap(config.score_cap), hasCap(config.logit_cap)];
    const places = addsPositions(config);
    return [...sizes, norm, qk_norm, parallel, post_norm, places, isGated(config), ...caps].join();
  };
  return shape(one) === shape(other);
}

export interface Distance {
  site: string;
  distance: number;
}

/** Keeps only the first of the sites that share a name, because they hold the same numbers. */
export function listOnce(distances: Distance[], nameOf: (site: string) => string): Distance[] {
  const names = new Set<string>();
  return distances.filter(({ site }) => {
    const before = names.size;
    return names.add(nameOf(site)).size > before;
  });
}

export const GROUPS = ["all", "attention", "heads", "stream", "feedforward"] as const;
export type Group = (typeof GROUPS)[number];

/** Whether a site belongs to a group. */
export function inGroup(site: string, group: Group): boolean {
  const { head, part } = parseSite(site);
  switch (group) {
    case "all":
      return true;
    case "attention":
      return part === "weights";
    case "heads":
      return head !== null && part === "output";
    case "stream":
      return head === null && ["input", "middle", "output", "embedding", "final"].includes(part);
    case "feedforward":
      return part.startsWith("hidden") || part.startsWith("feedforward");
  }
}
