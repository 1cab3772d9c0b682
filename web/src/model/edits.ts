/** Changes to what a model computes: how they are made, and what they are called. */

import { parseSite } from "./sites";
import type { Config, Edit } from "../engine/types";

/** One weight of a row set to a number, the others making room for it, so that they still sum to 1. */
export function setWeight(row: ArrayLike<number>, column: number, weight: number): number[] {
  const rest = 1 - row[column]!;
  const seen = Array.from(row).filter((value, i) => value > 0 && i !== column).length;
  return Array.from(row, (value, i) => {
    if (i === column) return weight;
    if (rest > 1e-6) return (value * (1 - weight)) / rest;
    return value > 0 ? (1 - weight) / Math.max(1, seen) : 0;
  });
}

export interface EditDescription {
  what: "head" | "neuron" | "stream" | "weight" | "site";
  how: "silenced" | "scaled" | "taken" | "set";
  site: string;
  block: number | null;
  head: number | null;
  columns: number[];
  at: number[]; // positions; none are all
  amount: number;
}

/** What a change does, in parts that every language can put into words. */
export function describeEdit(edit: Edit): EditDescription {
  const { block, head, part } = parseSite(edit.site);
  const columns = edit.columns ?? [];
  const value = typeof edit.value === "number" ? edit.value : null;
  const what =
    part === "weights"
      ? "weight"
      : head !== null && part === "output"
        ? "head"
        : part === "hidden" && columns.length > 0
          ? "neuron"
          : head === null && part === "input"
            ? "stream"
            : "site";
  const how = edit.text != null ? "taken" : edit.scale != null ? "scaled" : value === 0 ? "silenced" : "set";
  return {
    what,
    how,
    site: edit.site,
    block,
    head,
    columns,
    at: edit.at ?? [],
    amount: edit.scale ?? value ?? NaN,
  };
}

/** Those that can be made in a text of this length through this model; what they set is as long as the text. */
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
    // What has come since cannot be seen from there.
    const grown = rows.map((row) => [...row, ...Array<number>(Math.max(0, length - row.length)).fill(0)]);
    return config.causal && grown.every((row) => row.length === length) ? [{ ...edit, value: grown }] : [];
  });
}

/** Blocks to be asked for one after the other, as much work each: a change runs the model from its block on. */
export function balancedBlockRanges(blocks: number): [number, number][] {
  const turns: [number, number][] = [];
  for (let last = blocks; last > 0;) {
    let first = last;
    for (let work = 0; first > 0 && (first === last || work + blocks - first + 1 <= blocks); first--)
      work += blocks - first + 1;
    turns.push([first, last]);
    last = first;
  }
  return turns;
}
