/** The symbols of sites and weights in formulas, in TeX, as in the lectures. */

import { type Area, type Cell, isVector, parseSite, type Span } from "./sites";
import { hasRawQueries, WEIGHED } from "./derivation";
import type { Config } from "../engine/types";

/** What the symbols depend on. */
export type NotationConfig = Pick<Config, "position" | "unrotated_blocks" | "qk_norm">;

const SYMBOLS: Record<string, string> = {
  embedding: "e",
  position: "p",
  input: "x",
  normed: "t^{1}",
  attention: "t^{2}",
  attention_normed: "\\hat{t}^{2}",
  middle: "t^{3}",
  normed2: "t^{4}",
  feedforward: "t^{5}",
  feedforward_normed: "\\hat{t}^{5}",
  output: "h",
  hidden_raw: "u",
  hidden_gate: "g",
  hidden_up: "u",
  hidden: "n",
  final: "f",
  logits_raw: "\\tilde{\\ell}",
  logits: "\\ell",
  probabilities: "P",
  "embedding.W": "W^{E}",
  "position.W": "W^{P}",
  "unembedding.W": "W^{U}",
};

const HEAD_SYMBOLS: Record<string, string> = {
  query_raw: "q",
  key_raw: "k",
  query_normed: "\\hat{q}",
  key_normed: "\\hat{k}",
  query: "q",
  key: "k",
  value: "v",
  scores: "s",
  scaled: "s'",
  capped: "s''",
  masked: "m",
  weights: "\\alpha",
  weighed: "(\\alpha v)",
  mixed: "a",
};

/** A number; for a weighted value, with the position of the token that attends. */
export type NamedCell = Cell & { query?: number };

/** Symbols before QK-norm and rotation. Without either, the raw vectors are the ones compared. */
const RAW: Record<string, string> = { query_raw: "\\tilde{q}", key_raw: "\\tilde{k}" };

const GREEK: Record<string, string> = { mean: "\\mu", scale: "\\sigma", gain: "\\gamma", shift: "\\beta" };

/** The symbol of a site or weight without its indices. */
export function symbolOf(name: string, config: NotationConfig): string {
  const { block, head, part } = parseSite(name);
  const greek = GREEK[part.split(".").at(-1)!];
  if (greek !== undefined) return greek;
  const weight = /^([Wb])_(\w+)$/.exec(part);
  if (weight) return `${weight[1]}^{${weight[2] === "gate" ? "g" : weight[2]}}`;
  if (head === null) return SYMBOLS[part] ?? `\\text{${part}}`;
  if (part === "output") return `o^{${head}}`; // with the head's number, since several heads' outputs may be shown side by side
  return (
    (hasRawQueries(config, block ?? 0) ? RAW[part] : undefined) ?? HEAD_SYMBOLS[part] ?? `\\text{${part}}`
  );
}

/** The symbol of one number, such as q_{5,0}. */
export function cellSymbol({ name, row, column, query }: NamedCell, config: NotationConfig): string {
  // A weighted value, which only the page computes, has no symbol of its own: write it as a product.
  if (parseSite(name).part === WEIGHED && query !== undefined)
    return `\\alpha_{${query},${row}} v_{${row},${column}}`;
  return withIndices(name, config, row, column);
}

/** The symbol of an area: one number, a row q_{5}, or a column W_{:,0}. */
export function areaSymbol({ name, rows, columns }: Area, config: NotationConfig): string {
  if (rows === undefined && columns === undefined) return symbolOf(name, config);
  return withIndices(name, config, rows === undefined ? "{:}" : only(rows), columns && only(columns));
}

/** The symbol with the given indices. Vectors have only one. */
export function withIndices(
  name: string,
  config: NotationConfig,
  row: number | string,
  column?: number | string,
): string {
  const indices = column === undefined || isVector(name) ? `${row}` : `${row},${column}`;
  return `${symbolOf(name, config)}_{${indices}}`;
}

function only([first, end]: Span): number | string {
  return end === first + 1 ? first : `${first}{:}${end}`;
}
