/** How each number was computed: for every site, the cells it depends on and the operation that combines them. */

import { type Area, areaKey, type Cell, isSquare, isVector, isWeight, parseSite, siteShape } from "./sites";
import { addsPositions } from "../engine/inspect/sites";
import { hasCap } from "../engine/model/attentionSteps";
import { isGated } from "../engine/model/feedforward";
import { isRotated, yarnRange } from "../engine/model/position";
import type { Config } from "../engine/types";

export type Operation =
  | "dot"
  | "divide"
  | "cap"
  | "mask"
  | "softmax"
  | "sum"
  | "norm"
  | "head norm"
  | "mean"
  | "scale"
  | "activate"
  | "gate"
  | "rotate"
  | "multiply"
  | "look up"
  | "sinusoid"
  | "copy"
  | "trained";

/** `inputs` are in the order in which `evaluate` takes their values. */
export interface Derivation {
  operation: Operation;
  inputs: Area[];
  constants: Record<string, number>;
}

/** A site that only the page has: attention weight times value, shown between softmax and sum. */
export const WEIGHED = "weighed";

export function derive(config: Config, ids: readonly number[], cell: Cell): Derivation {
  const { block, head, part } = parseSite(cell.name);
  const { row, column } = cell;
  if (isWeight(cell.name)) return derived("trained");
  if (block === null) return deriveEnd(config, ids, cell);
  const at = (name: string) => `block.${block}.${name}`;
  if (head !== null) {
    const shared = cell.name.includes("kv_head");
    const number = shared ? head * (config.n_head / config.n_kv_head) : head;
    return deriveHead(config, block, number, part, row, column);
  }
  const first = at("normed");
  const second = at("normed2");
  const added = (name: string) => at(config.post_norm ? `${name}_normed` : name);
  const one = (name: string) => cellArea(name, row, column);
  switch (part) {
    case "input":
      if (block > 0) return derived("copy", [cellArea(`block.${block - 1}.output`, row, column)]);
      return addsPositions(config)
        ? derived("sum", [one("embedding"), one("position")])
        : derived("copy", [one("embedding")]);
    case "normed":
      if (!config.pre_norm) return derived("copy", [one(at("input"))]);
      return deriveNorm(config, first, at("input"), cell);
    case "normed.mean":
    case "normed.scale":
      return deriveNorm(config, first, at("input"), cell);
    case "attention": {
      const heads = Array.from({ length: config.n_head }, (_, j) =>
        cellArea(at(`head.${j}.output`), row, column),
      );
      return derived("sum", config.output_bias ? [...heads, entryArea(at("b_O"), column)] : heads);
    }
    case "attention_normed":
    case "attention_normed.mean":
    case "attention_normed.scale":
      return deriveNorm(config, at("attention_normed"), at("attention"), cell);
    case "middle":
      return derived("sum", [one(at("input")), one(added("attention"))]);
    case "normed2":
      if (!config.pre_norm) return derived("copy", [one(at(config.parallel ? "input" : "middle"))]);
      return deriveNorm(config, second, at(config.parallel ? "input" : "middle"), cell);
    case "normed2.mean":
    case "normed2.scale":
      return deriveNorm(config, second, at(config.parallel ? "input" : "middle"), cell);
    case "hidden_raw":
    case "hidden_up":
      return dot(rowArea(second, row), column, at("W_1"), config.feedforward_bias ? at("b_1") : null);
    case "hidden_gate":
      return dot(rowArea(second, row), column, at("W_gate"), config.feedforward_bias ? at("b_gate") : null);
    case "hidden":
      return isGated(config)
        ? derived("gate", [one(at("hidden_gate")), one(at("hidden_up"))])
        : derived("activate", [one(at("hidden_raw"))]);
    case "feedforward":
      return dot(rowArea(at("hidden"), row), column, at("W_2"), config.feedforward_bias ? at("b_2") : null);
    case "feedforward_normed":
    case "feedforward_normed.mean":
    case "feedforward_normed.scale":
      return deriveNorm(config, at("feedforward_normed"), at("feedforward"), cell);
    case "output":
      return config.parallel
        ? derived("sum", [one(at("input")), one(added("attention")), one(added("feedforward"))])
        : derived("sum", [one(at("middle")), one(added("feedforward"))]);
    default:
      throw new Error(`no derivation of ${cell.name}`);
  }
}

function deriveHead(
  config: Config,
  block: number,
  head: number,
  part: string,
  row: number,
  column: number,
): Derivation {
  const at = (name: string) => `block.${block}.head.${head}.${name}`;
  const projected = (letter: string) =>
    dot(
      rowArea(`block.${block}.normed`, row),
      column,
      at(`W_${letter}`),
      config.qkv_bias ? at(`b_${letter}`) : null,
    );
  switch (part) {
    case "query_raw":
      return projected("Q");
    case "key_raw":
      return projected("K");
    case "value":
      return projected("V");
    case "query_normed":
    case "key_normed": {
      const role = part.slice(0, -"_normed".length);
      const norm = `block.${block}.${role}_norm`;
      if (config.qk_norm_joint) return deriveJointNorm(config, block, head, role, row, column);
      const shift = config.norm === "layer" ? [entryArea(`${norm}.shift`, column)] : [];
      const parts = [rowArea(at(`${role}_raw`), row), entryArea(`${norm}.gain`, column), ...shift];
      return derived("head norm", parts, { at: column, epsilon: config.norm_epsilon });
    }
    case "query":
    case "key":
      if (!hasRawQueries(config, block)) return projected(part === "query" ? "Q" : "K");
      return deriveRotated(config, block, at(config.qk_norm ? `${part}_normed` : `${part}_raw`), row, column);
    case "scores":
      return derived("dot", [rowArea(at("query"), row), rowArea(at("key"), column)]);
    case "scaled":
      return derived("divide", [cellArea(at("scores"), row, column)], { d_k: config.d_k });
    case "capped":
      return derived("cap", [cellArea(at("scaled"), row, column)], { limit: config.score_cap! });
    case "masked":
      return derived("mask", [cellArea(at(hasCap(config.score_cap) ? "capped" : "scaled"), row, column)], {
        visible: Number(isVisible(config, block, row, column)),
      });
    case "weights":
      return derived("softmax", [rowArea(at("masked"), row)], { at: column });
    case "mixed": {
      const [first, last] = visiblePositions(config, block, row);
      return derived("dot", [rowArea(at("weights"), row), columnArea(at("value"), column)], { first, last });
    }
    case "output":
      return derived("dot", [rowArea(at("mixed"), row), columnArea(at("W_O"), column)]);
    default:
      throw new Error(`no derivation of ${part} of a head`);
  }
}

/** A QK-norm over all heads together: the raw vectors of the other heads come after the gain. */
function deriveJointNorm(
  config: Config,
  block: number,
  head: number,
  role: string,
  row: number,
  column: number,
): Derivation {
  const step = role === "query" ? 1 : config.n_head / config.n_kv_head; // heads that share a key have the same gains
  const number = Math.floor(head / step);
  const raw = (j: number) => rowArea(`block.${block}.head.${j}.${role}_raw`, row);
  const others = Array.from({ length: config.n_head / step }, (_, j) => j).filter((j) => j !== number);
  const gain = entryArea(`block.${block}.${role}_norm.gain`, number * config.d_head + column);
  return derived("head norm", [raw(head), gain, ...others.map((j) => raw(j * step))], {
    at: column,
    epsilon: config.norm_epsilon,
  });
}

/** The order of the terms of a long sum: the largest contributions first, without masked tokens. */
export function orderTerms(
  { operation, constants: { at, first = 0, last = Infinity } }: Derivation,
  [numbers = [], others = []]: readonly number[][],
): number[] {
  const contribution: Partial<Record<Operation, (i: number) => number>> = {
    dot: (i) => Math.abs(numbers[i]! * others[i]!),
    softmax: (i) => (i === at ? Infinity : numbers[i]!),
    mean: (i) => Math.abs(numbers[i]!),
    scale: (i) => Math.abs(numbers[i]! - (others[0] ?? 0)),
    "head norm": (i) => (i === at ? Infinity : Math.abs(numbers[i]!)),
  };
  const sizeOf = contribution[operation];
  // An edit can give weight to a masked token.
  const terms = [...numbers.keys()].filter((i) => (i >= first && i < last) || numbers[i] !== 0);
  return sizeOf ? terms.sort((a, b) => sizeOf(b) - sizeOf(a)) : terms;
}

/** The derivation of a weighted value: the attention weight from `query` to `row`, times the value's entry. */
export function deriveWeighed(
  block: number,
  head: number,
  query: number,
  row: number,
  column: number,
): Derivation {
  const at = (name: string) => `block.${block}.head.${head}.${name}`;
  return derived("multiply", [cellArea(at("weights"), query, row), cellArea(at("value"), row, column)]);
}

function deriveEnd(config: Config, ids: readonly number[], { name, row, column }: Cell): Derivation {
  switch (name) {
    case "embedding":
      return derived("look up", [cellArea("embedding.W", ids[row]!, column)], {
        scale: config.embedding_scale,
      });
    case "position": {
      if (config.position === "learned")
        return derived("look up", [cellArea("position.W", row, column)], { scale: 1 });
      const frequency = 10_000 ** (-(column - (column % 2)) / config.d_model);
      return derived("sinusoid", [], { position: row, frequency, cosine: column % 2 });
    }
    case "final":
    case "final.mean":
    case "final.scale":
      return deriveNorm(config, "final", `block.${config.n_block - 1}.output`, { name, row, column });
    case "logits":
    case "logits_raw":
      if (name === "logits" && hasCap(config.logit_cap))
        return derived("cap", [cellArea("logits_raw", row, column)], { limit: config.logit_cap });
      return derived("dot", [rowArea("final", row), columnArea("unembedding.W", column)]);
    case "probabilities":
      return derived("softmax", [rowArea("logits", row)], { at: column });
    default:
      throw new Error(`no derivation of ${name}`);
  }
}

function deriveNorm(config: Config, norm: string, source: string, { name, row, column }: Cell): Derivation {
  const constants = { epsilon: config.norm_epsilon };
  if (name.endsWith(".mean")) return derived("mean", [rowArea(source, row)]);
  if (name.endsWith(".scale")) {
    return config.norm === "layer"
      ? derived("scale", [rowArea(source, row), entryArea(`${norm}.mean`, row)], constants)
      : derived("scale", [rowArea(source, row)], constants);
  }
  const parts = [
    cellArea(source, row, column),
    entryArea(`${norm}.scale`, row),
    entryArea(`${norm}.gain`, column),
  ];
  if (config.norm === "layer") parts.push(entryArea(`${norm}.mean`, row), entryArea(`${norm}.shift`, column));
  return derived("norm", parts);
}

function deriveRotated(
  config: Config,
  block: number,
  source: string,
  row: number,
  column: number,
): Derivation {
  const half = config.rotary_dim / 2;
  if (!isRotated(config, block) || column >= 2 * half)
    return derived("copy", [cellArea(source, row, column)]);
  const pair = column % half;
  const [other, sign] = column < half ? [column + half, -1] : [column - half, 1];
  return derived("rotate", [cellArea(source, row, column), cellArea(source, row, other)], {
    angle: row * frequency(config, block, pair),
    sign,
    factor: scalingOf(config, block)?.attention_factor ?? 1,
  });
}

/** How the positions of a block are scaled. */
function scalingOf(config: Config, block: number): Config["rope_scaling"] {
  return config.local_rotary_base !== 0 && config.local_blocks.includes(block) ? null : config.rope_scaling;
}

/** The angle by which a pair of features is rotated per position, in radians. */
function frequency(config: Config, block: number, pair: number): number {
  const local = config.local_rotary_base !== 0 && config.local_blocks.includes(block);
  const base = local ? config.local_rotary_base : config.rotary_base;
  const unscaled = base ** ((-2 * pair) / config.rotary_dim);
  const scaling = scalingOf(config, block);
  if (scaling === null) return unscaled;
  const scaled = unscaled / scaling.factor;
  if (scaling.kind === "linear") return scaled;
  const { kind, original_context, low_freq_factor: low, high_freq_factor: high } = scaling;
  const rotations = (original_context * unscaled) / (2 * Math.PI);
  const [first, last] = yarnRange(scaling, base, config.rotary_dim / 2);
  const share = kind === "yarn" ? 1 - (pair - first) / (last - first) : (rotations - low) / (high - low);
  return scaled + Math.min(1, Math.max(0, share)) * (unscaled - scaled);
}

/** The half-open range of positions that the attention mask of a block lets a query attend to. */
export function visiblePositions(config: Config, block: number, query: number): [number, number] {
  if (!config.causal) return [0, Infinity];
  const first = config.local_blocks.includes(block) ? Math.max(0, query - config.window + 1) : 0;
  return [first, query + 1];
}

/** The columns shown in a key's row of a query's weighted values: none if the query cannot attend to it. */
export function visibleWeighed(config: Config, block: number, query: number, key: number): [number, number] {
  return isVisible(config, block, query, key) ? [0, Infinity] : [0, 0];
}

export function isVisible(config: Config, block: number, query: number, key: number): boolean {
  const [first, last] = visiblePositions(config, block, query);
  return first <= key && key < last;
}

/** Whether queries and keys of a block are normalized or rotated before they are compared. */
export function hasRawQueries(
  config: Pick<Config, "position" | "unrotated_blocks" | "qk_norm">,
  block: number,
): boolean {
  return isRotated(config, block) || config.qk_norm;
}

// Sums of everything written before: tracing them back would single out the one head on screen.
const SUMS = new Set(["attention", "attention_normed", "middle", "output"]);
const MAX_DEPTH = 4; // how many derivations to trace back
const MAX_CELLS = 64; // how many cells of an area to derive

/** The areas to highlight. If none of them is on screen, also their nearest inputs that are, except through sums. */
export function findHighlights(
  config: Config,
  ids: readonly number[],
  areas: Area[],
  isOnScreen: (name: string) => boolean,
): Area[] {
  let sources = areas;
  const isHidden = () => sources.length > 0 && !sources.some(({ name }) => isOnScreen(name));
  for (let depth = 0; depth < MAX_DEPTH && isHidden(); depth++) {
    const inputs = sources
      .filter(({ name }) => !isSum(name))
      .flatMap((area) => cellsIn(config, ids.length, area))
      .flatMap((cell) => derive(config, ids, cell).inputs);
    sources = [...new Map(inputs.map((area) => [areaKey(area), area])).values()];
  }
  return sources === areas ? areas : [...areas, ...sources.filter(({ name }) => isOnScreen(name))];
}

function isSum(name: string): boolean {
  const { block, part } = parseSite(name);
  return SUMS.has(part) || (part === "input" && block !== 0);
}

/** The cells of an area that are not masked. */
function cellsIn(config: Config, length: number, { name, rows, columns }: Area): Cell[] {
  if (isWeight(name)) return [];
  const [height, width] = siteShape(config, length, name);
  const [top, bottom] = rows ?? [0, height];
  const [left, right] = columns ?? [0, width];
  const { block, part } = parseSite(name);
  const cells: Cell[] = [];
  for (let row = top; row < bottom; row++)
    for (let column = left; column < right && cells.length < MAX_CELLS; column++)
      if (!isSquare(part) || isVisible(config, block!, row, column)) cells.push({ name, row, column });
  return cells;
}

function derived(
  operation: Operation,
  inputs: Area[] = [],
  constants: Record<string, number> = {},
): Derivation {
  return { operation, inputs, constants };
}

function dot(left: Area, column: number, weight: string, bias: string | null): Derivation {
  const parts = [left, columnArea(weight, column)];
  return derived("dot", bias === null ? parts : [...parts, entryArea(bias, column)]);
}

function cellArea(name: string, row: number, column: number): Area {
  return isVector(name)
    ? entryArea(name, row)
    : { name, rows: [row, row + 1], columns: [column, column + 1] };
}

function entryArea(name: string, row: number): Area {
  return { name, rows: [row, row + 1] };
}

function rowArea(name: string, row: number): Area {
  return { name, rows: [row, row + 1] };
}

function columnArea(name: string, column: number): Area {
  return { name, columns: [column, column + 1] };
}
