/** The sites and weights whose gradients can be shown, by the part of the model they belong to. */

import { blockNames, endNames, headNames } from "../engine/inspect/sites";
import type { Config } from "../engine/types";
import { isGated } from "../engine/model/feedforward";
import { type Cell, isVector, isWeight, parseSite, siteShape } from "./sites";

/** A block, a head of a block, or what is outside the blocks. */
export interface ModelPart {
  block: number | null;
  head: number | null;
}

/** Outside the blocks, then each block followed by its heads. */
export function modelParts({ n_block, n_head }: Pick<Config, "n_block" | "n_head">): ModelPart[] {
  const inside = Array.from({ length: n_block }, (_, block) =>
    Array.from({ length: n_head + 1 }, (_, i) => ({ block, head: i === 0 ? null : i - 1 })),
  );
  return [{ block: null, head: null }, ...inside.flat()];
}

/** The names of the sites of a part in the order of the forward pass, then those of its weights. */
export function namesIn(config: Config, { block, head }: ModelPart): string[] {
  const place = block === null ? "" : head === null ? `block.${block}.` : `block.${block}.head.${head}.`;
  const sites = block === null ? endNames(config) : head === null ? blockNames(config) : headNames(config);
  const weights =
    block === null ? endWeights(config) : head === null ? blockWeights(config) : headWeights(config);
  return [...sites, ...weights].map((name) => place + name);
}

export function hasGradient(config: Config, name: string): boolean {
  if (name === "") return false;
  const { block, head } = parseSite(name);
  const isInside = (block ?? 0) < config.n_block && (head ?? 0) < config.n_head;
  return isInside && namesIn(config, { block, head }).includes(name);
}

/** Whether a number of a site or weight exists, for a text of `length` tokens. */
export function isGradient(config: Config, length: number, { name, row, column }: Cell): boolean {
  if (!hasGradient(config, name)) return false;
  const [rows, columns] = gradientShape(config, length, name);
  return row < rows && column < columns;
}

/** The rows and columns of a gradient for a text of `length` tokens. */
export function gradientShape(config: Config, length: number, name: string): [number, number] {
  if (!isWeight(name)) return siteShape(config, length, name);
  const { d_model, d_head, d_hidden, n_vocab, n_context } = config;
  const { part } = parseSite(name);
  const shapes: Record<string, [number, number]> = {
    "embedding.W": [n_vocab, d_model],
    "unembedding.W": [d_model, n_vocab],
    "position.W": [n_context, d_model],
    W_Q: [d_model, d_head],
    W_K: [d_model, d_head],
    W_V: [d_model, d_head],
    W_O: [d_head, d_model],
    W_1: [d_model, d_hidden],
    W_gate: [d_model, d_hidden],
    W_2: [d_hidden, d_model],
    b_Q: [d_head, 1],
    b_K: [d_head, 1],
    b_V: [d_head, 1],
    b_1: [d_hidden, 1],
    b_gate: [d_hidden, 1],
  };
  return shapes[part] ?? [/^(query|key)_norm/.test(part) ? d_head : d_model, 1];
}

/** The column of a number in a request: vectors have none. */
export function columnOf(name: string, column: number): number | null {
  return isVector(name) ? null : column;
}

function endWeights(config: Config): string[] {
  const position = config.position === "learned" ? ["position.W"] : [];
  return ["embedding.W", ...position, ...ofNorm("final", config), "unembedding.W"];
}

function blockWeights(config: Config): string[] {
  const gate = isGated(config) ? ["W_gate"] : [];
  const biases = config.feedforward_bias ? ["b_1", "b_2", ...(isGated(config) ? ["b_gate"] : [])] : [];
  const norms = [
    ...(config.pre_norm ? ["normed", "normed2"] : []),
    ...(config.post_norm ? ["attention_normed", "feedforward_normed"] : []),
    ...(config.qk_norm ? ["query_norm", "key_norm"] : []),
  ].flatMap((name) => ofNorm(name, config));
  return ["W_1", ...gate, "W_2", ...biases, ...(config.output_bias ? ["b_O"] : []), ...norms];
}

function headWeights({ qkv_bias }: Config): string[] {
  return ["W_Q", "W_K", "W_V", "W_O", ...(qkv_bias ? ["b_Q", "b_K", "b_V"] : [])];
}

function ofNorm(name: string, { norm }: Config): string[] {
  return norm === "layer" ? [`${name}.gain`, `${name}.shift`] : [`${name}.gain`];
}
