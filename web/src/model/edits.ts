/** Edits of what a model computes. */

import { parseSite } from "./sites";
import type { Config, Edit } from "../engine/types";

/** Sets one weight of a row and rescales the others, so that they still sum to 1. */
export function setWeight(row: ArrayLike<number>, column: number, weight: number): number[] {
  const rest = 1 - row[column]!;
  const others = Array.from(row).filter((value, i) => value > 0 && i !== column).length;
  return Array.from(row, (value, i) => {
    if (i === column) return weight;
    if (rest > 1e-6) return (value * (1 - weight)) / rest;
    return value > 0 ? (1 - weight) / Math.max(1, others) : 0;
  });
}

export interface EditDescription {
  target: "head" | "neuron" | "stream" | "weight" | "site";
  action: "ablated" | "scaled" | "patched" | "set";
  site: string;
  block: number | null;
  head: number | null;
  columns: number[];
  at: number[]; // positions; empty for all
  amount: number;
}

/** What an edit does, in terms that every language can phrase. */
export function describeEdit(edit: Edit): EditDescription {
  const { block, head, part } = parseSite(edit.site);
  const columns = edit.columns ?? [];
  const value = typeof edit.value === "number" ? edit.value : null;
  const target =
    part === "weights"
      ? "weight"
      : head !== null && part === "output"
        ? "head"
        : part === "hidden" && columns.length > 0
          ? "neuron"
          : head === null && part === "input"
            ? "stream"
            : "site";
  const action =
    edit.text != null ? "patched" : edit.scale != null ? "scaled" : value === 0 ? "ablated" : "set";
  return {
    target,
    action,
    site: edit.site,
    block,
    head,
    columns,
    at: edit.at ?? [],
    amount: edit.scale ?? value ?? NaN,
  };
}

/** The edits that apply to a text of this length. Rows of attention weights are extended to the length. */
export function applicableEdits(
  edits: Edit[],
  config: Pick<Config, "n_block" | "n_head" | "causal">,
  length: number,
): Edit[] {
  return edits.flatMap((edit) => {
    const { block, head, part } = parseSite(edit.site);
    if ((block ?? 0) >= config.n_block || (head ?? 0) >= config.n_head) return [];
    if (edit.at?.some((row) => row >= length || row < -length)) return [];
    if (part !== "weights" || !Array.isArray(edit.value)) return [edit];
    const rows = edit.value as number[][];
    // The mask hides tokens that were appended later.
    const extended = rows.map((row) => [...row, ...Array<number>(Math.max(0, length - row.length)).fill(0)]);
    return config.causal && extended.every((row) => row.length === length)
      ? [{ ...edit, value: extended }]
      : [];
  });
}

/** Splits the blocks into ranges of similar cost: an edit reruns the model from its block on. */
export function balancedBlockRanges(blocks: number): [number, number][] {
  const ranges: [number, number][] = [];
  for (let last = blocks; last > 0;) {
    let first = last;
    for (let work = 0; first > 0 && (first === last || work + blocks - first + 1 <= blocks); first--)
      work += blocks - first + 1;
    ranges.push([first, last]);
    last = first;
  }
  return ranges;
}
