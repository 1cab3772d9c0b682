/** Names, shapes and cells of sites and weights. */

import type { Config } from "../engine/types";
import type { Matrix } from "./matrix";

/** One number. Vectors have column 0 only. */
export interface Cell {
  name: string;
  row: number;
  column: number;
}

/** A half-open range. */
export type Span = [number, number];

/** A rectangle of cells; all rows or columns by default. */
export interface Area {
  name: string;
  rows?: Span;
  columns?: Span;
}

/** Whether a name is that of a weight rather than a site. */
export function isWeight(name: string): boolean {
  return /(^|\.)(W|[Wb]_\w+|gain|shift)$/.test(name);
}

/** Whether a site or weight has one number per row. */
export function isVector(name: string): boolean {
  return /(\.(mean|scale|gain|shift)|\.b_\w+)$/.test(name);
}

export function areaKey({ name, rows, columns }: Area): string {
  return `${name}[${rows?.join(":") ?? ""},${columns?.join(":") ?? ""}]`;
}

export function areaOf(cell: Cell): Area {
  const area: Area = { name: cell.name, rows: [cell.row, cell.row + 1] };
  return isVector(cell.name) ? area : { ...area, columns: [cell.column, cell.column + 1] };
}

export function contains(area: Area, cell: Cell): boolean {
  const within = (span: Span | undefined, at: number) =>
    span === undefined || (at >= span[0] && at < span[1]);
  return area.name === cell.name && within(area.rows, cell.row) && within(area.columns, cell.column);
}

export function isSameCell(one: Cell | null, other: Cell | null): boolean {
  return one?.name === other?.name && one?.row === other?.row && one?.column === other?.column;
}

/** The cells of an area, row by row. */
export function cellsOf(area: Area, matrix: Matrix): Cell[] {
  return Array.from({ length: matrix.rows * matrix.columns }, (_, i) => ({
    name: area.name,
    row: matrix.firstRow + Math.floor(i / matrix.columns),
    column: matrix.firstColumn + (i % matrix.columns),
  }));
}

/** Whether both rows and columns are tokens. */
export function isSquare(part: string): boolean {
  return ["scores", "scaled", "capped", "masked", "weights"].includes(part);
}

/** Whether the columns of a site are the neurons of a feed-forward network. */
export function isNeuron(part: string): boolean {
  return part.startsWith("hidden");
}

/** Whether the columns are the tokens of the vocabulary. */
export function isOverVocabulary(part: string): boolean {
  return part === "logits_raw" || part === "logits" || part === "probabilities";
}

/** Splits a name: block.3.head.1.query is block 3, head 1, part query. */
export function parseSite(name: string): { block: number | null; head: number | null; part: string } {
  const match = /^(?:block\.(\d+)\.)?(?:(kv_)?head\.(\d+)\.)?(.+)$/.exec(name)!;
  const number = (text: string | undefined) => (text === undefined ? null : Number(text));
  return { block: number(match[1]), head: number(match[3]), part: match[4]! };
}

/** The rows and columns of a site for a text of `length` tokens. */
export function siteShape(config: Config, length: number, name: string): [number, number] {
  const { head, part } = parseSite(name);
  if (isVector(name)) return [length, 1];
  if (head !== null) {
    if (isSquare(part)) return [length, length];
    return [length, part === "output" ? config.d_model : config.d_head];
  }
  if (isOverVocabulary(part)) return [length, config.n_vocab];
  return [length, part.startsWith("hidden") ? config.d_hidden : config.d_model];
}

/** What a number is used for, which determines its color. */
export type Role = "query" | "key" | "value" | "attention" | "residual" | "feedforward";

export function roleOf(part: string): Role {
  if (part.startsWith("query") || part === "W_Q" || part === "b_Q") return "query";
  if (part.startsWith("key") || part === "W_K" || part === "b_K") return "key";
  if (/^(value|weighed|mixed|W_V|b_V)$/.test(part)) return "value";
  if (/^(scores|scaled|capped|masked|weights|attention|W_O|b_O|head output)/.test(part)) return "attention";
  if (/^(hidden|feedforward|W_1|W_2|W_gate|b_)/.test(part)) return "feedforward";
  if (/^(logits|logits_raw|probabilities)$/.test(part)) return "attention";
  return "residual";
}
