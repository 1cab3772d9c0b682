/** The forward pass on a GPU. It returns the residual stream, from which everything else is recomputed.
 *
 * Shapes: T positions, C features, H heads, D features per head.
 */

import { Matrix } from "../../model/matrix";
import type { ResidualStream } from "../inspect/trace";
import type { Block } from "../model/block";
import { isGated } from "../model/feedforward";
import { KVCache } from "../model/kvCache";
import type { AttentionMask } from "../model/mask";
import type { Norm } from "../model/norm";
import { isRotated, type Rotation } from "../model/position";
import type { Transformer } from "../model/transformer";
import type { Config } from "../types";
import {
  COPY_DST,
  COPY_SRC,
  type GpuBuffer,
  type GpuCommandEncoder,
  type GpuDevice,
  MAP_READ,
  MAP_READ_MODE,
  STORAGE,
} from "./api";
import { type GpuOperation, Operations } from "./operations";

/** What a run of the model over a text computes; the keys and values only if the model is causal. */
export interface GpuRun {
  stream: ResidualStream;
  cache: KVCache | undefined;
}

/** A model's blocks on a GPU. Token and position vectors are looked up on the CPU. */
export class GpuTransformer {
  private constructor(
    readonly network: Transformer,
    readonly device: GpuDevice,
    readonly blocks: readonly GpuBlock[],
  ) {}

  /** Uploads the trained numbers of all blocks. Throws if the GPU has no room for them. */
  static async upload(network: Transformer, device: GpuDevice): Promise<GpuTransformer> {
    const operations = new Operations(device, network.config);
    const blocks: GpuBlock[] = [];
    for (const [i, block] of network.blocks.entries())
      blocks.push(await GpuBlock.upload(block, network.masks[i]!, isRotated(network.config, i), operations));
    return new GpuTransformer(network, device, blocks);
  }

  async run(ids: readonly number[]): Promise<GpuRun> {
    const { network, device, blocks } = this;
    const { config } = network;
    const positions = network.positions(ids);
    const rotations = network.rotations(positions);
    const memory = new Scratch(device, config, ids.length);
    try {
      let x = network.embed(ids, positions);
      memory.write(memory.x, x);
      // Each block is submitted on its own: browsers stop programs that keep a GPU busy for seconds.
      const results = blocks.map((block, i) => {
        memory.setRotation(rotations[i]!);
        const encoder = device.createCommandEncoder();
        block.encode(encoder, memory);
        return memory.submit(encoder);
      });
      const cache = config.causal ? new KVCache(config, ids.length) : undefined;
      const stream: ResidualStream = { inputs: [], middles: [], last: x };
      for (const [i, [middle, output, key, value]] of (await Promise.all(results)).entries()) {
        stream.inputs.push(x);
        stream.middles.push(middle);
        cache?.blocks[i]!.append(key, value);
        stream.last = x = output;
      }
      if (cache) cache.length = ids.length;
      return { stream, cache };
    } finally {
      memory.destroy();
    }
  }
}

/** A block of the model; see `model/block.ts`. */
class GpuBlock {
  private constructor(
    readonly config: Config,
    readonly steps: Awaited<ReturnType<typeof uploadSteps>>,
  ) {}

  static async upload(
    block: Block,
    mask: AttentionMask,
    rotated: boolean,
    operations: Operations,
  ): Promise<GpuBlock> {
    return new GpuBlock(block.config, await uploadSteps(block, mask, rotated, operations));
  }

  /** x → h, which overwrites x. */
  encode(encoder: GpuCommandEncoder, memory: Scratch): void {
    const { steps, config } = this;
    const { T, x, middle, normed, projected, query, key, value, mixed, hidden, gate, cos, sin } = memory;
    const pass = encoder.beginComputePass();
    const run = (step: GpuOperation, ...buffers: GpuBuffer[]) => step(pass, T, ...buffers);

    const normalize = (norm: GpuOperation | null, from: GpuBuffer) => {
      if (norm) run(norm, from, normed);
      return norm ? normed : from;
    };
    const t1 = normalize(steps.norm, x);
    const place = (
      project: GpuOperation,
      norm: GpuOperation | null,
      rotate: GpuOperation | null,
      to: GpuBuffer,
    ) => {
      run(project, t1, norm ? projected : to);
      if (norm) run(norm, projected, to);
      if (rotate) run(rotate, cos!, sin!, to);
    };
    place(steps.query, steps.queryNorm, steps.rotateQuery, query);
    place(steps.key, steps.keyNorm, steps.rotateKey, key);
    run(steps.value, t1, value);
    run(steps.attend, query, key, value, mixed);

    /** What is added to the stream: t2 or t5, normalized with post-norm. */
    const write = (project: GpuOperation, from: GpuBuffer, norm: GpuOperation | null) => {
      run(project, from, projected);
      return normalize(norm, projected);
    };
    run(steps.add, write(steps.output, mixed, steps.attentionNorm), x, middle); // t3
    const t4 = normalize(steps.norm2, config.parallel ? x : middle);
    run(steps.first, t4, hidden);
    if (steps.gate) {
      run(steps.gate, t4, gate!);
      run(steps.activate, gate!, hidden);
    } else run(steps.activate, hidden);
    run(steps.add, write(steps.second, hidden, steps.feedforwardNorm), middle, x); // h
    pass.end();
  }
}

async function uploadSteps(block: Block, mask: AttentionMask, rotated: boolean, operations: Operations) {
  const { config, attention, feedforward } = block;
  // QK-norm normalizes each head alone, or all heads together.
  const [n_head, n_kv_head] = [config.n_head, config.n_kv_head];
  const [groups, kvGroups] = config.qk_norm_joint ? [1, 1] : [n_head, n_kv_head];
  const optional = (norm: Norm | null, groups = 1) => (norm ? operations.norm(norm, groups) : null);
  const rotate = (H: number) => (rotated ? operations.rotate(H) : null);
  return {
    norm: await optional(block.norm),
    query: await operations.linear(attention.query),
    key: await operations.linear(attention.key),
    value: await operations.linear(attention.value),
    queryNorm: await optional(attention.queryNorm, groups),
    keyNorm: await optional(attention.keyNorm, kvGroups),
    rotateQuery: await rotate(n_head),
    rotateKey: await rotate(n_kv_head),
    attend: await operations.attend(mask),
    output: await operations.linear(attention.output),
    attentionNorm: await optional(block.attentionNorm),
    norm2: await optional(block.norm2),
    first: await operations.linear(feedforward.first),
    gate: feedforward.gate && (await operations.linear(feedforward.gate)),
    activate: await (feedforward.gate ? operations.multiplyGate() : operations.activate()),
    second: await operations.linear(feedforward.second),
    feedforwardNorm: await optional(block.feedforwardNorm),
    add: await operations.add(),
  };
}

/** Buffers for what a block computes, which the next block overwrites. */
class Scratch {
  readonly #buffers: GpuBuffer[] = [];
  #rotation: Rotation | null = null;
  readonly x: GpuBuffer; // the residual stream
  readonly middle: GpuBuffer;
  readonly normed: GpuBuffer;
  readonly projected: GpuBuffer; // has room for queries, or for what is added to the stream
  readonly query: GpuBuffer;
  readonly key: GpuBuffer;
  readonly value: GpuBuffer;
  readonly mixed: GpuBuffer;
  readonly hidden: GpuBuffer;
  readonly gate: GpuBuffer | null;
  readonly cos: GpuBuffer | null;
  readonly sin: GpuBuffer | null;

  constructor(
    readonly device: GpuDevice,
    readonly config: Config,
    readonly T: number,
  ) {
    const { d_model: C, n_head, n_kv_head, d_head: D, d_hidden, rotary_dim } = config;
    const make = (columns: number) => this.#allocate(4 * T * columns, STORAGE | COPY_SRC | COPY_DST);
    this.x = make(C);
    this.middle = make(C);
    this.normed = make(C);
    this.projected = make(Math.max(C, n_head * D));
    this.query = make(n_head * D);
    this.key = make(n_kv_head * D);
    this.value = make(n_kv_head * D);
    this.mixed = make(n_head * D);
    this.hidden = make(d_hidden);
    this.gate = isGated(config) ? make(d_hidden) : null;
    const pairs = Math.ceil(rotary_dim / 2);
    [this.cos, this.sin] = config.position === "rotary" ? [make(pairs), make(pairs)] : [null, null];
  }

  write(buffer: GpuBuffer, { values }: Matrix): void {
    this.device.queue.writeBuffer(buffer, 0, values);
  }

  /** Sets the angles for the blocks that are submitted from now on. */
  setRotation(rotation: Rotation | null): void {
    if (!rotation || rotation === this.#rotation) return;
    this.#rotation = rotation;
    this.write(this.cos!, rotation.cos);
    this.write(this.sin!, rotation.sin);
  }

  /** Submits the work on a block and reads what it computed: t3, h, keys and values. */
  async submit(encoder: GpuCommandEncoder): Promise<[Matrix, Matrix, Matrix, Matrix]> {
    const { device, T, middle, x, key, value } = this;
    const parts = [middle, x, key, value];
    const copy = this.#allocate(
      parts.reduce((sum, { size }) => sum + size, 0),
      MAP_READ | COPY_DST,
    );
    let end = 0;
    const starts = parts.map((part) => {
      encoder.copyBufferToBuffer(part, 0, copy, end, part.size);
      end += part.size;
      return end - part.size;
    });
    device.queue.submit([encoder.finish()]);
    await copy.mapAsync(MAP_READ_MODE);
    const bytes = copy.getMappedRange();
    const matrices = parts.map(({ size }, i) => {
      const numbers = new Float32Array(bytes.slice(starts[i]!, starts[i]! + size));
      return new Matrix(numbers, T, numbers.length / T);
    });
    copy.destroy();
    return matrices as [Matrix, Matrix, Matrix, Matrix];
  }

  #allocate(size: number, usage: number): GpuBuffer {
    if (size > this.device.limits.maxStorageBufferBindingSize)
      throw new RangeError(`${size} bytes are too many for one buffer of this GPU`);
    const buffer = this.device.createBuffer({ size, usage });
    this.#buffers.push(buffer);
    return buffer;
  }

  destroy(): void {
    for (const buffer of this.#buffers) buffer.destroy();
  }
}
