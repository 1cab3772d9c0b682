/** The forward pass of a transformer, stored as its residual stream; every other site is recomputed on demand.
 *
 * Shapes: T positions, C features, V tokens in the vocabulary.
 */

import type { Matrix } from "../../model/matrix";
import { hasCap, softmax } from "../model/attentionSteps";
import { KVCache } from "../model/kvCache";
import type { Rotation } from "../model/position";
import type { RunBlock, Transformer } from "../model/transformer";
import { add, concatRows, firstRows, takeColumns, takeRows } from "../model/tensor";
import type { Config } from "../types";
import { BlockSteps } from "./blockSteps";
import { Edits } from "./edits";
import { checkIndex, checkIndices } from "./indexing";
import { Memo } from "./memo";
import { MATRICES, type Site, addsPositions, makeSite, parseSite } from "./sites";

const BY_ROW = [...MATRICES, "mixed"]; // computed only for the requested rows

/** The residual stream at the input and middle of each block, and after the last block: T C each. */
export interface ResidualStream {
  inputs: Matrix[];
  middles: Matrix[];
  last: Matrix;
}

/** What a trace need not compute: the stream before block `first`, and the keys and values of the whole run. */
interface Known {
  stream: ResidualStream;
  first: number;
  cache?: KVCache;
}

export class Trace {
  readonly config: Config;
  readonly positions: number[];
  readonly rotations: (Rotation | null)[];
  readonly stream: ResidualStream;
  readonly #memo = new Memo();
  #cache: KVCache | undefined; // of a causal model's run without edits
  #lastSteps: BlockSteps | null = null;

  /** Runs the model, or only block `first` and those after it if the stream before them is known. */
  constructor(
    readonly network: Transformer,
    readonly ids: readonly number[],
    readonly edits = new Edits(),
    known?: Known,
  ) {
    this.config = network.config;
    this.positions = network.positions(ids);
    this.rotations = network.rotations(this.positions);
    this.#cache = known?.cache;
    this.stream = this.#run(known);
  }

  /** The trace of a text that shares its first `same` tokens with this one; they are not recomputed.
   *
   * Requires a causal model, where later tokens do not affect earlier ones, and a trace without edits.
   */
  after(ids: readonly number[], same: number): Trace {
    const { network, config } = this;
    const cache = this.#cache!.resized(config, ids.length, same);
    const added = ids.slice(same);
    const positions = network.positions(added, cache);
    const stream: ResidualStream = { inputs: [], middles: [], last: this.stream.last };
    const join = (before: Matrix, rows: Matrix) => concatRows(firstRows(before, same), rows);
    const x = network.runBlocks(
      network.embed(added, positions),
      network.rotations(positions),
      cache,
      0,
      (i, block, x, mask, rotation, blockCache) => {
        stream.inputs.push(join(this.stream.inputs[i]!, x));
        return block.forward(x, mask, rotation, blockCache, (middle) =>
          stream.middles.push(join(this.stream.middles[i]!, middle)),
        );
      },
    );
    stream.last = join(this.stream.last, x);
    cache.length = ids.length;
    return new Trace(network, ids, new Edits(), { stream, first: config.n_block, cache });
  }

  /** Whether `after` can continue this trace. */
  get continues(): boolean {
    return this.#cache !== undefined;
  }

  /** A new trace with these edits; blocks before the first edit are not recomputed. */
  withEdits(more: Edits): Trace {
    const first = more.firstBlock(this.config.n_block);
    return new Trace(this.network, this.ids, this.edits.concat(more), { stream: this.stream, first });
  }

  get length(): number {
    return this.ids.length;
  }

  checkPosition(position: number): number {
    return checkIndex(position, this.length, "position");
  }

  /** Reads a site by name. `rows` are (query) positions; `columns` are features or key positions. */
  read(name: string, rows?: readonly number[], columns?: readonly number[]): Matrix {
    const site = parseSite(name, this.config);
    const value = this.#read(site, rows && checkIndices(rows, this.length, "row"));
    return columns ? takeColumns(value, checkIndices(columns, value.columns, "column")) : value;
  }

  /** The steps of a block, each computed on first access. Those of the last block asked for are kept. */
  steps(block: number): BlockSteps {
    if (this.#lastSteps?.number !== block) this.#lastSteps = this.#makeSteps(block);
    return this.#lastSteps;
  }

  /** The logits for these rows of the stream after the last block: T C → T V. */
  unembed(stream: Matrix): Matrix {
    return this.#edited("logits", this.network.capLogits(this.#rawLogits(stream)));
  }

  /** The logits before the cap; without a cap, the logits before an edit of them. */
  #rawLogits(stream: Matrix): Matrix {
    const logits = this.network.unembedding.forward(this.#final(stream));
    return hasCap(this.config.logit_cap) ? this.#edited("logits_raw", logits) : logits;
  }

  /** The logit lens: the logits at a position if the model stopped after each block. N V for N blocks. */
  lens(position: number): Matrix {
    const { inputs, last } = this.stream;
    const streams = [...inputs.slice(1), last];
    if (!this.#isEdited(null))
      return this.unembed(streams.map((stream) => takeRows(stream, [position])).reduce(concatRows));
    // Edits select positions of the whole text.
    return streams
      .map((stream, block) => this.#memo.get(`lens ${block}`, () => this.unembed(stream)))
      .map((logits) => takeRows(logits, [position]))
      .reduce(concatRows);
  }

  #run(known?: Known): ResidualStream {
    const { network, edits } = this;
    const first = known?.first ?? 0;
    const inputs = known?.stream.inputs.slice(0, first) ?? [];
    const middles = known?.stream.middles.slice(0, first) ?? [];
    let x = known?.stream.inputs[first] ?? known?.stream.last;
    if (!x || first === 0) x = this.#firstInput();
    if (!known && this.config.causal && edits.made.length === 0)
      this.#cache = new KVCache(this.config, this.length);
    const runBlock: RunBlock = (i, block, x, mask, rotation, cache) => {
      inputs.push(x);
      const ofBlock = edits.of(i);
      if (ofBlock.made.length === 0)
        return block.forward(x, mask, rotation, cache, (middle) => middles.push(middle));
      const steps = new BlockSteps(block, i, x, mask, rotation, ofBlock);
      middles.push(steps.middle);
      return steps.output;
    };
    const cache = known ? undefined : this.#cache;
    const last = network.runBlocks(x, this.rotations, cache, first, runBlock);
    if (cache) cache.length = this.length;
    return { inputs, middles, last };
  }

  #firstInput(): Matrix {
    const x = this.#end("embedding");
    return addsPositions(this.config) ? add(x, this.#end("position")) : x;
  }

  #read(site: Site, rows?: number[]): Matrix {
    if (site.block === null) return this.#readEnd(site.name, rows);
    const take = (value: Matrix) => (rows ? takeRows(value, rows) : value);
    if (site.head === null && site.kvHead === null) {
      if (site.name === "output") return take(this.stream.inputs[site.block + 1] ?? this.stream.last);
      if (rows && rows.length < this.length && this.#staysInRows(site))
        return this.#stepsOfRows(site.block, rows).read(site);
      return take(this.steps(site.block).read(site));
    }
    const { n_head, n_kv_head } = this.config;
    const head = site.head ?? site.kvHead! * (n_head / n_kv_head);
    const early = BY_ROW.includes(site.name) && !this.#isEdited(site.block) ? rows : undefined;
    const value = this.steps(site.block).head(head, early).read(site.name);
    return early ? value : take(value);
  }

  #isEdited(block: number | null): boolean {
    return this.edits.of(block).made.length > 0;
  }

  /** Whether each row of a site depends only on the same row of the stream, so reading a few is cheap. */
  #staysInRows({ name, block }: Site): boolean {
    return !name.startsWith("attention") && !this.#isEdited(block);
  }

  #makeSteps(block: number): BlockSteps {
    const { network, stream, rotations } = this;
    const edits = this.edits.of(block);
    const middle = edits.made.length > 0 ? null : stream.middles[block]!;
    const [module, x, mask] = [network.blocks[block]!, stream.inputs[block]!, network.masks[block]!];
    return new BlockSteps(module, block, x, mask, rotations[block]!, edits, middle);
  }

  #stepsOfRows(block: number, rows: number[]): BlockSteps {
    const { network, stream } = this;
    const [x, middle] = [stream.inputs[block]!, stream.middles[block]!].map((each) => takeRows(each, rows));
    const [module, mask] = [network.blocks[block]!, network.masks[block]!];
    return new BlockSteps(module, block, x!, mask, null, new Edits(), middle!);
  }

  #readEnd(name: string, rows?: number[]): Matrix {
    if (!rows) return this.#end(name);
    if (this.#isEdited(null) || name === "embedding" || name === "position")
      return takeRows(this.#end(name), rows);
    // With a large vocabulary, a few rows cost far less than all of them.
    return this.#endOf(name, takeRows(this.stream.last, rows));
  }

  /** A site outside the blocks: T …. */
  #end(name: string): Matrix {
    return this.#memo.get(name, () => {
      if (name === "embedding") return this.#edited(name, this.network.tokenVectors(this.ids));
      if (name === "position") return this.#edited(name, this.network.positionVectors(this.positions)!);
      return this.#endOf(name, this.stream.last);
    });
  }

  /** A site after the last block, given the stream there. */
  #endOf(name: string, last: Matrix): Matrix {
    const norm = this.network.finalNorm;
    switch (name) {
      case "final.mean":
        return this.#edited(name, norm.mean(last));
      case "final.scale":
        return this.#edited(name, norm.scale(last));
      case "final":
        return this.#final(last);
      case "probabilities":
        return this.#edited(name, softmax(this.unembed(last)));
      case "logits_raw":
        return this.#rawLogits(last);
      default:
        return this.unembed(last);
    }
  }

  #final(last: Matrix): Matrix {
    const norm = this.network.finalNorm;
    if (!this.#isEdited(null)) return norm.forward(last);
    const mean = norm.shift ? this.#edited("final.mean", norm.mean(last)) : null;
    const scale = this.#edited("final.scale", norm.scale(last));
    return this.#edited("final", norm.apply(last, mean, scale));
  }

  #edited(name: string, value: Matrix): Matrix {
    return this.edits.apply(makeSite(name), value);
  }
}
