/** Where a number comes from: for every site one declared record of the cells it was computed from, and how. */

import { type Area, areaKey, type Cell, isSquare, isVector, isWeight, parse } from "./sites";
import type { Config } from "../engine/client";
import { shapeOf } from "./shapes";

export type How =
  | "dot"
  | "divide"
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
  | "wave"
  | "copy"
  | "trained";

/** `from` lists areas in the order in which `evaluate` takes their numbers; `constants` are the rest. */
export interface Derivation {
  how: How;
  from: Area[];
  constants: Record<string, number>;
}

/** The product of a weight and a value, which the page shows between softmax and sum. */
export const WEIGHED = "weighed";

export function derive(config: Config, ids: readonly number[], cell: Cell): Derivation {
  const { block, head, part } = parse(cell.name);
  const { row, column } = cell;
  if (isWeight(cell.name)) return from("trained");
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
  const one = (name: string) => point(name, row, column);
  switch (part) {
    case "input":
      if (block > 0) return from("copy", [point(`block.${block - 1}.output`, row, column)]);
      return hasPositions(config)
        ? from("sum", [one("embedding"), one("position")])
        : from("copy", [one("embedding")]);
    case "normed":
    case "normed.mean":
    case "normed.scale":
      return deriveNorm(config, first, at("input"), cell);
    case "attention": {
      const heads = Array.from({ length: config.n_head }, (_, j) =>
        point(at(`head.${j}.output`), row, column),
      );
      return from("sum", config.output_bias ? [...heads, entry(at("b_O"), column)] : heads);
    }
    case "attention_normed":
    case "attention_normed.mean":
    case "attention_normed.scale":
      return deriveNorm(config, at("attention_normed"), at("attention"), cell);
    case "middle":
      return from("sum", [one(at("input")), one(added("attention"))]);
    case "normed2":
    case "normed2.mean":
    case "normed2.scale":
      return deriveNorm(config, second, at(config.parallel ? "input" : "middle"), cell);
    case "hidden_raw":
    case "hidden_up":
      return dot(line(second, row), column, at("W_1"), config.feedforward_bias ? at("b_1") : null);
    case "hidden_gate":
      return dot(line(second, row), column, at("W_gate"), config.feedforward_bias ? at("b_gate") : null);
    case "hidden":
      return isGated(config)
        ? from("gate", [one(at("hidden_gate")), one(at("hidden_up"))])
        : from("activate", [one(at("hidden_raw"))]);
    case "feedforward":
      return dot(line(at("hidden"), row), column, at("W_2"), config.feedforward_bias ? at("b_2") : null);
    case "feedforward_normed":
    case "feedforward_normed.mean":
    case "feedforward_normed.scale":
      return deriveNorm(config, at("feedforward_normed"), at("feedforward"), cell);
    case "output":
      return config.parallel
        ? from("sum", [one(at("input")), one(added("attention")), one(added("feedforward"))])
        : from("sum", [one(at("middle")), one(added("feedforward"))]);
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
      line(`block.${block}.normed`, row),
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
      const shift = config.norm === "layer" ? [entry(`${norm}.shift`, column)] : [];
      const parts = [line(at(`${role}_raw`), row), entry(`${norm}.gain`, column), ...shift];
      return from("head norm", parts, { at: column, epsilon: config.norm_epsilon });
    }
    case "query":
    case "key":
      return deriveTurned(config, block, at(config.qk_norm ? `${part}_normed` : `${part}_raw`), row, column);
    case "scores":
      return from("dot", [line(at("query"), row), line(at("key"), column)]);
    case "scaled":
      return from("divide", [point(at("scores"), row, column)], { d_k: config.d_k });
    case "masked":
      return from("mask", [point(at("scaled"), row, column)], {
        visible: Number(sees(config, block, row, column)),
      });
    case "weights":
      return from("softmax", [line(at("masked"), row)], { at: column });
    case "mixed":
      return from("dot", [line(at("weights"), row), down(at("value"), column)]);
    case "output":
      return from("dot", [line(at("mixed"), row), down(at("W_O"), column)]);
    default:
      throw new Error(`no derivation of ${part} of a head`);
  }
}

/** What the row `looking` takes from each value: a weight times a number of the value. */
export function deriveWeighed(
  block: number,
  head: number,
  looking: number,
  row: number,
  column: number,
): Derivation {
  const at = (name: string) => `block.${block}.head.${head}.${name}`;
  return from("multiply", [point(at("weights"), looking, row), point(at("value"), row, column)]);
}

function deriveEnd(config: Config, ids: readonly number[], { name, row, column }: Cell): Derivation {
  switch (name) {
    case "embedding":
      return from("look up", [point("embedding.W", ids[row]!, column)], { scale: config.embedding_scale });
    case "position": {
      if (config.position === "learned")
        return from("look up", [point("position.W", row, column)], { scale: 1 });
      const frequency = 10_000 ** (-(column - (column % 2)) / config.d_model);
      return from("wave", [], { position: row, frequency, cosine: column % 2 });
    }
    case "final":
    case "final.mean":
    case "final.scale":
      return deriveNorm(config, "final", `block.${config.n_block - 1}.output`, { name, row, column });
    case "logits":
      return from("dot", [line("final", row), down("unembedding.W", column)]);
    case "probabilities":
      return from("softmax", [line("logits", row)], { at: column });
    default:
      throw new Error(`no derivation of ${name}`);
  }
}

function deriveNorm(config: Config, norm: string, source: string, { name, row, column }: Cell): Derivation {
  const constants = { epsilon: config.norm_epsilon };
  if (name.endsWith(".mean")) return from("mean", [line(source, row)]);
  if (name.endsWith(".scale")) {
    return config.norm === "layer"
      ? from("scale", [line(source, row), entry(`${norm}.mean`, row)], constants)
      : from("scale", [line(source, row)], constants);
  }
  const parts = [point(source, row, column), entry(`${norm}.scale`, row), entry(`${norm}.gain`, column)];
  if (config.norm === "layer") parts.push(entry(`${norm}.mean`, row), entry(`${norm}.shift`, column));
  return from("norm", parts);
}

function deriveTurned(
  config: Config,
  block: number,
  source: string,
  row: number,
  column: number,
): Derivation {
  const half = config.rotary_dim / 2;
  if (config.position !== "rotary" || column >= 2 * half) return from("copy", [point(source, row, column)]);
  const pair = column % half;
  const [other, sign] = column < half ? [column + half, -1] : [column - half, 1];
  return from("rotate", [point(source, row, column), point(source, row, other)], {
    angle: row * frequency(config, block, pair),
    sign,
  });
}

/** How far a pair of features is turned from one position to the next. */
function frequency(config: Config, block: number, pair: number): number {
  const local = config.local_rotary_base !== 0 && config.local_blocks.includes(block);
  const base = local ? config.local_rotary_base : config.rotary_base;
  const plain = base ** ((-2 * pair) / config.rotary_dim);
  const scaling = local ? null : config.rope_scaling;
  if (scaling === null) return plain;
  const slower = plain / scaling.factor;
  if (scaling.kind === "linear") return slower;
  const rounds = (scaling.original_context * plain) / (2 * Math.PI);
  const kept = Math.min(
    1,
    Math.max(0, (rounds - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)),
  );
  return slower + kept * (plain - slower);
}

/** The positions that may be seen from one: from a first to, and without, a last. */
export function seenFrom(config: Config, block: number, looking: number): [number, number] {
  if (!config.causal) return [0, Infinity];
  const first = config.local_blocks.includes(block) ? Math.max(0, looking - config.window + 1) : 0;
  return [first, looking + 1];
}

/** Whether a position may be seen from another one. */
export function sees(config: Config, block: number, looking: number, looked: number): boolean {
  const [first, last] = seenFrom(config, block, looking);
  return first <= looked && looked < last;
}

export function isGated(config: Config): boolean {
  return config.feedforward === "swiglu" || config.feedforward === "geglu";
}

export function hasPositions(config: Config): boolean {
  return config.position === "learned" || config.position === "sinusoidal";
}

const DEPTH = 4; // steps back
const CELLS = 64; // of an area that is gone back from

/** These areas and, where none of them is seen, what they go back to that is. */
export function lightUp(
  config: Config,
  ids: readonly number[],
  areas: Area[],
  isSeen: (name: string) => boolean,
): Area[] {
  let back = areas;
  for (let depth = 0; depth < DEPTH && back.length > 0 && !back.some(({ name }) => isSeen(name)); depth++) {
    const found = back
      .flatMap((area) => cellsIn(config, ids.length, area))
      .flatMap((cell) => derive(config, ids, cell).from);
    back = [...new Map(found.map((area) => [areaKey(area), area])).values()];
  }
  return back === areas ? areas : [...areas, ...back.filter(({ name }) => isSeen(name))];
}

/** The cells of an area, as far as they may be seen. */
function cellsIn(config: Config, length: number, { name, rows, columns }: Area): Cell[] {
  if (isWeight(name)) return [];
  const [height, width] = shapeOf(config, length, name);
  const [top, bottom] = rows ?? [0, height];
  const [left, right] = columns ?? [0, width];
  const { block, part } = parse(name);
  const cells: Cell[] = [];
  for (let row = top; row < bottom; row++)
    for (let column = left; column < right && cells.length < CELLS; column++)
      if (!isSquare(part) || sees(config, block!, row, column)) cells.push({ name, row, column });
  return cells;
}

function from(how: How, areas: Area[] = [], constants: Record<string, number> = {}): Derivation {
  return { how, from: areas, constants };
}

function dot(left: Area, column: number, weight: string, bias: string | null): Derivation {
  const parts = [left, down(weight, column)];
  return from("dot", bias === null ? parts : [...parts, entry(bias, column)]);
}

function point(name: string, row: number, column: number): Area {
  return isVector(name) ? entry(name, row) : { name, rows: [row, row + 1], columns: [column, column + 1] };
}

function entry(name: string, row: number): Area {
  return { name, rows: [row, row + 1] };
}

function line(name: string, row: number): Area {
  return { name, rows: [row, row + 1] };
}

function down(name: string, column: number): Area {
  return { name, columns: [column, column + 1] };
}
