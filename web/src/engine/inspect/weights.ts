/** Weights by name in the lecture's notation: row vectors, x W, one head at a time. */

import type { Matrix } from "../../model/matrix";
import type { Weight } from "../kernels/kernels";
import type { Block } from "../model/block";
import { isGated } from "../model/feedforward";
import type { Norm } from "../model/norm";
import type { Linear } from "../model/parameters";
import { dot, range, vector, zeros } from "../model/tensor";
import type { Transformer } from "../model/transformer";
import type { Config } from "../types";
import { UserError } from "../userError";

/** A weight's shape, and a function that reads some of its rows and columns. */
export interface NamedWeight {
  shape: [number] | [number, number];
  read: Read;
}

type Read = (rows?: readonly number[], columns?: readonly number[]) => Matrix;

const ROLES = { Q: "query", K: "key", V: "value" } as const;

/** All names that `weight` accepts. */
export function weightNames(config: Config): string[] {
  const ofNorm = (name: string) => [`${name}.gain`, ...(config.norm === "layer" ? [`${name}.shift`] : [])];
  const inBlock = ["W_1", "W_2"];
  if (config.pre_norm) inBlock.push(...ofNorm("normed"), ...ofNorm("normed2"));
  if (config.post_norm) inBlock.push(...ofNorm("attention_normed"), ...ofNorm("feedforward_normed"));
  if (isGated(config)) inBlock.push("W_gate");
  if (config.output_bias) inBlock.push("b_O");
  if (config.feedforward_bias) inBlock.push("b_1", "b_2");
  if (config.feedforward_bias && isGated(config)) inBlock.push("b_gate");
  if (config.qk_norm) inBlock.push(...ofNorm("query_norm"), ...ofNorm("key_norm"));
  const inHead = ["W_Q", "W_K", "W_V", "W_O", "QK", "OV", ...(config.qkv_bias ? ["b_Q", "b_K", "b_V"] : [])];
  const inside = range(config.n_block).flatMap((i) => [
    ...inBlock.map((name) => `block.${i}.${name}`),
    ...range(config.n_head).flatMap((j) => inHead.map((name) => `block.${i}.head.${j}.${name}`)),
  ]);
  const position = config.position === "learned" ? ["position.W"] : [];
  return ["embedding.W", "unembedding.W", ...ofNorm("final"), ...position, ...inside];
}

/** A matrix, bias, gain or shift, or a product QK = W_Q W_Kᵀ or OV = W_V W_O of a head. */
export function weight(network: Transformer, name: string): NamedWeight {
  if (!weightNames(network.config).includes(name)) {
    const known = weightNames(network.config).filter((each) => !/\.[1-9]/.test(each));
    throw new UserError(`weight '${name}' does not exist: expected one of ${known.join(", ")}, …`);
  }
  const match = /^(?:block\.(\d+)\.)?(?:head\.(\d+)\.)?(.+)$/.exec(name)!;
  if (match[1] === undefined) return endWeight(network, name);
  const block = network.blocks[Number(match[1])]!;
  return match[2] === undefined
    ? blockWeight(block, match[3]!)
    : headWeight(block, Number(match[2]), match[3]!);
}

function endWeight(network: Transformer, name: string): NamedWeight {
  if (name === "embedding.W") return asStored(network.embedding);
  if (name === "position.W") return asStored(network.position!);
  if (name === "unembedding.W") return transposed(network.unembedding.weight);
  return normWeight(network.finalNorm, name.split(".")[1]!);
}

function blockWeight(block: Block, name: string): NamedWeight {
  const { attention, feedforward } = block;
  const [norm, part] = name.split(".");
  if (part) {
    const norms: Record<string, Norm | null> = {
      normed: block.norm,
      normed2: block.norm2,
      attention_normed: block.attentionNorm,
      feedforward_normed: block.feedforwardNorm,
      query_norm: attention.queryNorm,
      key_norm: attention.keyNorm,
    };
    return normWeight(norms[norm!]!, part);
  }
  const [kind, which] = name.split("_");
  const linears: Record<string, Linear | null> = {
    1: feedforward.first,
    2: feedforward.second,
    gate: feedforward.gate,
    O: attention.output,
  };
  const linear = linears[which!]!;
  return kind === "W" ? transposed(linear.weight) : vectorWeight(linear.bias!);
}

function headWeight(block: Block, head: number, name: string): NamedWeight {
  if (name === "QK" || name === "OV") return product(block, head, name);
  const { attention, config } = block;
  const D = config.d_head;
  const first = D * headOf(config, head, name);
  if (name === "W_O") return transposed(attention.output.weight, { first: D * head, count: D });
  const linear = attention[ROLES[name.slice(2) as keyof typeof ROLES]];
  if (name.startsWith("b_")) return vectorWeight(linear.bias!.subarray(first, first + D));
  return transposed(linear.weight, undefined, { first, count: D });
}

/** The head whose weights a head uses: its own queries, but shared keys and values. */
function headOf({ n_head, n_kv_head }: Config, head: number, name: string): number {
  return name.endsWith("_Q") ? head : Math.floor(head / (n_head / n_kv_head));
}

/** QK = Σ_d q_d k_dᵀ over the head's features d, or OV = Σ_d v_d o_dᵀ. */
function product(block: Block, head: number, name: "QK" | "OV"): NamedWeight {
  const { d_model, d_head } = block.config;
  const read: Read = (rows = range(d_model), columns = range(d_model)) => {
    const part = (name: string) => headWeight(block, head, name);
    const isQK = name === "QK";
    const left = part(isQK ? "W_Q" : "W_V").read(rows);
    const right = isQK ? part("W_K").read(columns) : part("W_O").read(undefined, columns);
    const values = zeros(rows.length, columns.length);
    const column = new Float32Array(d_head);
    columns.forEach((_, j) => {
      for (let d = 0; d < d_head; d++)
        column[d] = isQK ? right.values[j * d_head + d]! : right.values[d * columns.length + j]!;
      rows.forEach((_, i) => (values.values[i * columns.length + j] = dot(left.row(i), column)));
    });
    return values;
  };
  return { shape: [d_model, d_model], read };
}

interface RowRange {
  first: number;
  count: number;
}

/** A matrix as PyTorch stores it: the rows of an embedding. */
function asStored(stored: Weight): NamedWeight {
  const read: Read = (rows = range(stored.rows), columns) => {
    const values = zeros(rows.length, columns?.length ?? stored.columns);
    rows.forEach((row, i) => {
      const numbers = stored.row(row);
      values.row(i).set(columns ? columns.map((column) => numbers[column]!) : numbers);
    });
    return values;
  };
  return { shape: [stored.rows, stored.columns], read };
}

/** The transpose of a matrix of nn.Linear, or some of its inputs (rows here) or outputs (columns here). */
function transposed(
  stored: Weight,
  inputs: RowRange = { first: 0, count: stored.columns },
  outputs: RowRange = { first: 0, count: stored.rows },
): NamedWeight {
  const read: Read = (rows = range(inputs.count), columns = range(outputs.count)) => {
    const values = zeros(rows.length, columns.length);
    columns.forEach((column, j) => {
      const numbers = stored.row(outputs.first + column);
      rows.forEach((row, i) => (values.values[i * columns.length + j] = numbers[inputs.first + row]!));
    });
    return values;
  };
  return { shape: [inputs.count, outputs.count], read };
}

function normWeight(norm: Norm, part: string): NamedWeight {
  return vectorWeight(part === "gain" ? norm.gain : norm.shift!);
}

function vectorWeight(values: Float32Array): NamedWeight {
  const read: Read = (rows) => vector(rows ? Float32Array.from(rows, (row) => values[row]!) : values);
  return { shape: [values.length], read };
}
