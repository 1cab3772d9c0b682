/** Paths of a token's logit, traced back through heads to the positions they attend to, down to the embedding.
 *
 * With the scales of the norms and the attention weights treated as constants, a logit is a linear function of any
 * earlier residual stream, given by a direction; so is the difference between two logits. Going back through a head
 * transforms that direction.
 *
 * Shapes: T positions, H heads, C features of the stream, D features per head.
 */

import type { Matrix } from "../../model/matrix";
import type { Block } from "../model/block";
import type { Norm } from "../model/norm";
import { dot, range, zeros } from "../model/tensor";
import type { Hop } from "../types";
import { UserError } from "../userError";
import { EDITS, type LogitAttribution, logitDirection, readLogit, written } from "./attribution";
import { checkIndex } from "./indexing";
import { makeSite } from "./sites";
import type { Trace } from "./trace";

/** A linear function of the residual stream at one position before a block: a direction and constants. */
export class LinearReadout {
  constructor(
    readonly trace: Trace,
    readonly position: number,
    readonly until: number, // the block before which the stream is read
    readonly direction: Float32Array, // C
    readonly rest: ReadonlyMap<string, number>, // constant contributions of biases and shifts along the path
    readonly total: number, // the exact sum of all parts
  ) {}

  static ofLogit(trace: Trace, token: number, position: number, against: number | null): LinearReadout {
    const norm = trace.network.finalNorm;
    const direction = logitDirection(trace, token, against);
    const scale = trace.read("final.scale", [position]).values[0]!;
    const rest = new Map<string, number>();
    if (norm.shift) rest.set("final.shift", dot(norm.shift, direction));
    const total = readLogit(trace, token, position, against);
    const before = beforeNorm(norm, direction, scale);
    return new LinearReadout(trace, position, trace.config.n_block, before, rest, total);
  }

  /** The part that a head moves here from a source position, as a readout of the stream there. */
  through(hop: Hop): LinearReadout {
    const { trace } = this;
    const { n_block, n_head, n_kv_head, d_head: D, d_model } = trace.config;
    const block = checkIndex(hop.block, n_block, "block");
    const head = checkIndex(hop.head, n_head, "head");
    const source = trace.checkPosition(hop.source);
    if (block >= this.until)
      throw new UserError(`block ${block} is not before this readout: expected 0 to ${this.until - 1}`);
    const name = `block.${block}.head.${head}`;
    const weight = trace.read(`${name}.weights`, [this.position], [source]).values[0]!;
    const writtenAlong = this.#alongHeads(block)
      .row(head)
      .map((value) => value * weight); // D
    const { attention, norm } = this.#module(block);
    const first = D * Math.floor(head / (n_head / n_kv_head));
    const direction = new Float32Array(d_model);
    for (let d = 0; d < D; d++) addScaled(direction, attention.value.weight.row(first + d), writtenAlong[d]!);
    const rest = new Map<string, number>();
    const { bias } = attention.value;
    if (bias) rest.set("bias", dot(writtenAlong, bias, 0, first, D));
    const total = dot(trace.read(`${name}.value`, [source]).values, writtenAlong);
    if (!norm) return new LinearReadout(trace, source, block, direction, rest, total);
    if (norm.shift) rest.set("shift", dot(norm.shift, direction));
    const scale = trace.read(`block.${block}.normed.scale`, [source]).values[0]!;
    const before = beforeNorm(norm, direction, scale);
    return new LinearReadout(trace, source, block, before, rest, total);
  }

  /** Decomposes the readout by everything written into the stream that it reads. */
  attribution(): LogitAttribution {
    const { names, rows } = written(this.trace, this.position, this.until);
    const parts = new Map(names.map((name, i) => [name, dot(rows[i]!, this.direction)]));
    for (const [name, value] of this.rest) parts.set(name, value);
    if (this.trace.edits.made.length > 0) {
      const sum = [...parts.values()].reduce((total, value) => total + value, 0);
      parts.set(EDITS, (parts.get(EDITS) ?? 0) + this.total - sum);
    }
    return { names: [...parts.keys()], values: [...parts.values()] };
  }

  /** What each head of an earlier block moves here from each position: H T. */
  byPosition(block: number): Matrix {
    const { n_head } = this.trace.config;
    const along = this.#alongHeads(block);
    const moved = zeros(n_head, this.trace.length);
    for (const head of range(n_head)) {
      const { weights, value } = this.#head(block, head);
      const row = weights.row(this.#isEdited(block) ? this.position : 0);
      moved.row(head).set(row.map((weight, t) => weight * dot(value.row(t), along.row(head))));
    }
    return moved;
  }

  /** The steps of a head at this position; an edited block is computed at all positions. */
  #head(block: number, head: number) {
    const steps = this.trace.steps(block);
    return this.#isEdited(block) ? steps.head(head) : steps.head(head, [this.position]);
  }

  #isEdited(block: number): boolean {
    return this.trace.edits.of(block).made.length > 0;
  }

  /** The fraction of what a head gathers here that it writes, 1 unless it is edited.
   *
   * A head whose output is replaced by something else writes nothing of what it gathered.
   */
  #passed(block: number, head: number): number {
    const { trace } = this;
    if (!trace.edits.touch(makeSite("mixed", block, { head }), makeSite("output", block, { head }))) return 1;
    const { weights, value, output } = trace.steps(block).head(head);
    const D = trace.config.d_head;
    const mixed = new Float32Array(D);
    weights.row(this.position).forEach((weight, t) => addScaled(mixed, value.row(t), weight));
    const W = this.#module(block).attention.output.weight;
    const gathered = Float32Array.from({ length: W.rows }, (_, c) => dot(mixed, W.row(c), 0, D * head, D));
    const actual = output.row(this.position);
    const scale = dot(actual, gathered) / dot(gathered, gathered);
    const isScaled = actual.every((number, c) => {
      const expected = scale * gathered[c]!;
      return Math.abs(number - expected) <= 1e-6 + 1e-4 * Math.abs(expected);
    });
    return isScaled ? scale : 0;
  }

  /** The direction in the space of each head's mixed values: H D. */
  #alongHeads(block: number): Matrix {
    const { n_head, d_head: D } = this.trace.config;
    const { attention, attentionNorm } = this.#module(block);
    let { direction } = this;
    if (attentionNorm) {
      const name = `block.${block}.attention_normed.scale`;
      direction = beforeNorm(attentionNorm, direction, this.trace.read(name, [this.position]).values[0]!);
    }
    const along = zeros(n_head, D);
    direction.forEach((value, c) => addScaled(along.values, attention.output.weight.row(c), value));
    if (this.#isEdited(block))
      for (const head of range(n_head)) {
        const passed = this.#passed(block, head);
        along.row(head).set(along.row(head).map((value) => value * passed));
      }
    return along;
  }

  #module(block: number): Block {
    return this.trace.network.blocks[block]!;
  }
}

/** Follows a token's logit at a position, minus that of `against` if given, back through these hops. */
export function followPath(
  trace: Trace,
  token: number,
  position: number,
  hops: readonly Hop[],
  against: number | null = null,
): LinearReadout {
  const readout = LinearReadout.ofLogit(trace, token, position, against);
  return hops.reduce((before, hop) => before.through(hop), readout);
}

/** The direction before a norm (its scale fixed) that is equivalent to this direction after it. */
function beforeNorm({ gain, shift }: Norm, direction: Float32Array, scale: number): Float32Array {
  const scaled = direction.map((value, j) => (gain[j]! * value) / scale);
  if (!shift) return scaled;
  const mean = scaled.reduce((sum, value) => sum + value, 0) / scaled.length;
  return scaled.map((value) => value - mean);
}

function addScaled(target: Float32Array, row: Float32Array, factor: number): void {
  for (let j = 0; j < row.length; j++) target[j] = target[j]! + factor * row[j]!;
}
