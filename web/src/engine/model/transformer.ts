/** The transformer: token and position vectors, a stack of blocks, and the logits of the next token.
 *
 * Shapes: T positions, S positions including cached ones, C features, V tokens in the vocabulary.
 */

import { Matrix } from "../../model/matrix";
import type { Weight } from "../kernels/kernels";
import type { Config } from "../types";
import { UserError } from "../userError";
import { cap, hasCap } from "./attentionSteps";
import { Block } from "./block";
import type { BlockKVCache, KVCache } from "./kvCache";
import { type AttentionMask, makeMasks } from "./mask";
import type { Norm } from "./norm";
import { Linear, type Parameters, makeNorm } from "./parameters";
import { type Rotation, makeRotations, sinusoids } from "./position";
import { add, range, zeros } from "./tensor";

/** Runs block i: (i, block, x, mask, rotation, cache) → h. */
export type RunBlock = (
  i: number,
  block: Block,
  x: Matrix,
  mask: AttentionMask,
  rotation: Rotation | null,
  cache?: BlockKVCache,
) => Matrix;

const callBlock: RunBlock = (_, block, x, mask, rotation, cache) => block.forward(x, mask, rotation, cache);

/** Token ids in, logits out; the forward pass stores nothing. */
export class Transformer {
  readonly embedding: Weight;
  readonly position: Weight | null;
  readonly blocks: readonly Block[];
  readonly finalNorm: Norm;
  readonly unembedding: Linear;
  readonly masks: readonly AttentionMask[];

  constructor(
    readonly config: Config,
    parameters: Parameters,
  ) {
    this.embedding = parameters.weight("embedding.weight");
    this.position = config.position === "learned" ? parameters.weight("position.weight") : null;
    this.blocks = range(config.n_block).map((i) => new Block(config, parameters, `blocks.${i}`));
    this.finalNorm = makeNorm(parameters, "final_norm", config);
    const unembedding = config.tied ? this.embedding : parameters.weight("unembedding.weight");
    this.unembedding = new Linear(parameters.kernels, unembedding);
    this.masks = makeMasks(config);
  }

  /** T ids to T V logits. */
  forward(ids: readonly number[], cache?: KVCache): Matrix {
    return this.capLogits(this.unembedding.forward(this.hiddenStates(ids, cache)));
  }

  /** Soft-caps the logits if the config has a cap: T V. */
  capLogits(logits: Matrix): Matrix {
    const { logit_cap } = this.config;
    return hasCap(logit_cap) ? cap(logits, logit_cap) : logits;
  }

  /** The output of the final norm, T C, for callers that do not need logits at every position. */
  hiddenStates(ids: readonly number[], cache?: KVCache): Matrix {
    const positions = this.positions(ids, cache);
    const x = this.runBlocks(this.embed(ids, positions), this.rotations(positions), cache);
    if (cache) cache.length += ids.length;
    return this.finalNorm.forward(x);
  }

  /** The residual stream after the last block, given the one entering block `first`: T C → T C.
   *
   * `runBlock` replaces the plain call of each block: traces record or edit what happens inside.
   */
  runBlocks(
    x: Matrix,
    rotations: readonly (Rotation | null)[],
    cache?: KVCache,
    first = 0,
    runBlock = callBlock,
  ): Matrix {
    for (let i = first; i < this.blocks.length; i++)
      x = runBlock(i, this.blocks[i]!, x, this.masks[i]!, rotations[i]!, cache?.blocks[i]);
    return x;
  }

  /** The position of each token. */
  positions(ids: readonly number[], cache?: KVCache): number[] {
    const start = cache?.length ?? 0;
    const limit = Math.min(this.config.n_context, cache?.size ?? Infinity);
    if (start + ids.length > limit)
      throw new UserError(`${start + ids.length} tokens exceed the context of ${limit}: pass fewer`);
    return range(start + ids.length, start);
  }

  /** The RoPE rotation of each block; null without rotary positions. */
  rotations(positions: readonly number[]): (Rotation | null)[] {
    if (this.config.position === "rotary") return makeRotations(positions, this.config);
    return this.blocks.map(() => null);
  }

  /** The residual stream entering the first block: T C. */
  embed(ids: readonly number[], positions: readonly number[]): Matrix {
    const [x, position] = [this.tokenVectors(ids), this.positionVectors(positions)];
    return position ? add(x, position) : x;
  }

  tokenVectors(ids: readonly number[]): Matrix {
    const { embedding_scale } = this.config;
    const x = lookUp(this.embedding, ids);
    if (embedding_scale === 1) return x;
    const scale = Math.fround(embedding_scale);
    return new Matrix(
      x.values.map((value) => value * scale),
      x.rows,
      x.columns,
    );
  }

  /** The position vectors added to the token vectors; null if positions enter elsewhere (RoPE). */
  positionVectors(positions: readonly number[]): Matrix | null {
    if (this.position) return lookUp(this.position, positions);
    return this.config.position === "sinusoidal" ? sinusoids(positions, this.config.d_model) : null;
  }
}

function lookUp(weight: Weight, rows: readonly number[]): Matrix {
  const vectors = zeros(rows.length, weight.columns);
  rows.forEach((row, i) => vectors.values.set(weight.row(row), i * weight.columns));
  return vectors;
}
