/** Edits to what a model computes. */

import { type Cell, parseSite } from "./sites";
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

/** What an edit does, independent of the page's language. */
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

/** Whether an edit sets what a head writes at a position to zero. */
export function isSilenced(edits: Edit[], head: string, row: number): boolean {
  return edits.some(
    ({ site, value, at, columns }) =>
      site === `${head}.output` && value === 0 && (columns ?? []).length === 0 && (at?.includes(row) ?? true),
  );
}

/** Whether an edit changes this site, or a site within this head or block. */
export function isEdited(edits: Pick<Edit, "site">[], place: string): boolean {
  return edits.some(({ site }) => site === place || site.startsWith(`${place}.`));
}

/** Whether an edit sets this number. Without positions or columns, it applies to all of them. */
export function isEditedCell(
  edits: Pick<Edit, "site" | "at" | "columns">[],
  { name, row, column }: Cell,
  length: number,
): boolean {
  return edits.some(
    ({ site, at, columns }) =>
      site === name &&
      (!at?.length || at.some((position) => (position + length) % length === row)) &&
      (!columns?.length || columns.includes(column)),
  );
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
    // Tokens appended later are masked, so their weights are 0.
    const extended = rows.map((row) => [...row, ...Array<number>(Math.max(0, length - row.length)).fill(0)]);
    return config.causal && extended.every((row) => row.length === length)
      ? [{ ...edit, value: extended }]
      : [];
  });
}

/** Splits the blocks into ranges of similar cost: an edit reruns the model from its block onward. */
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
