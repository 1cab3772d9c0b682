/** The steps of a forward pass on a GPU: each a shader with its constants and its trained numbers.
 *
 * An operation encodes one dispatch into a compute pass. It takes the buffers of its inputs, then that of its result.
 */

import type { Weight } from "../kernels/kernels";
import type { AttentionMask } from "../model/mask";
import type { Norm } from "../model/norm";
import type { Linear } from "../model/parameters";
import type { Config } from "../types";
import {
  type Constants,
  type GpuBuffer,
  type GpuComputePass,
  type GpuDevice,
  type GpuPipeline,
  STORAGE,
} from "./api";
import { ADD, ATTEND, activate, matmul, multiplyGate, NORM, ROTATE, THREADS, TILE } from "./shaders";

const EVERYWHERE = 2 ** 31; // a window larger than any context

/** Encodes an operation on T rows. */
export type GpuOperation = (pass: GpuComputePass, T: number, ...buffers: GpuBuffer[]) => void;

/** Makes the operations of one model. */
export class Operations {
  readonly #pipelines = new Map<string, Promise<GpuPipeline>>();
  readonly #constants = new Map<string, GpuBuffer>();

  constructor(
    readonly device: GpuDevice,
    readonly config: Config,
  ) {}

  /** x → x Wᵀ + b. */
  async linear({ weight, bias }: Linear): Promise<GpuOperation> {
    const [n, m] = [weight.columns, weight.rows];
    const pipeline = await this.#pipeline(matmul(weight.type), { n, m });
    const own = [
      this.#uploadWeight(weight),
      weight.type === "int8" ? this.#upload(weight.scales) : this.#repeat(1, m),
      bias ? this.#upload(bias) : this.#repeat(0, m),
    ];
    return (pass, T, x, y) =>
      this.#dispatch(pass, pipeline, [x!, ...own, y!], Math.ceil(m / TILE), Math.ceil(T / TILE));
  }

  /** x → the norm of each of the `groups` vectors that a row of x consists of. */
  async norm({ gain, shift, epsilon }: Norm, groups = 1): Promise<GpuOperation> {
    const width = gain.length;
    const centered = Number(shift !== null);
    const pipeline = await this.#pipeline(NORM, { width, groups, epsilon, centered });
    const own = [this.#upload(gain), shift ? this.#upload(shift) : this.#repeat(0, width)];
    return (pass, T, x, y) => this.#dispatch(pass, pipeline, [x!, ...own, y!], groups, T);
  }

  /** cosines, sines → x, in place. */
  async rotate(H: number): Promise<GpuOperation> {
    const [D, pairs] = [this.config.d_head, Math.ceil(this.config.rotary_dim / 2)];
    const pipeline = await this.#pipeline(ROTATE, { H, D, pairs });
    return (pass, T, ...buffers) =>
      this.#dispatch(pass, pipeline, buffers, Math.ceil((H * pairs) / THREADS), T);
  }

  /** queries, keys, values → mixed values. */
  async attend({ causal, window }: AttentionMask): Promise<GpuOperation> {
    const { n_head: H, n_kv_head: kvHeads, d_head: D, d_k, score_cap } = this.config;
    const pipeline = await this.#pipeline(ATTEND, {
      H,
      kvHeads,
      D,
      divisor: Math.sqrt(d_k),
      cap: score_cap ?? 0,
      causal: Number(causal),
      window: Math.min(window, EVERYWHERE),
    });
    return (pass, T, ...buffers) => this.#dispatch(pass, pipeline, buffers, H, T);
  }

  /** x → f(x), in place. */
  activate(): Promise<GpuOperation> {
    return this.#elementwise(activate(this.config.feedforward), this.config.d_hidden);
  }

  /** gate → f(gate) ∘ x, which overwrites x. */
  multiplyGate(): Promise<GpuOperation> {
    return this.#elementwise(multiplyGate(this.config.feedforward), this.config.d_hidden);
  }

  /** a, b → a + b. */
  add(): Promise<GpuOperation> {
    return this.#elementwise(ADD, this.config.d_model);
  }

  async #elementwise(code: string, width: number): Promise<GpuOperation> {
    const pipeline = await this.#pipeline(code, { width });
    return (pass, T, ...buffers) => this.#dispatch(pass, pipeline, buffers, Math.ceil(width / THREADS), T);
  }

  /** Blocks share pipelines. */
  #pipeline(code: string, constants: Constants): Promise<GpuPipeline> {
    const key = JSON.stringify([code, constants]);
    let pipeline = this.#pipelines.get(key);
    if (!pipeline) {
      const module = this.device.createShaderModule({ code });
      pipeline = this.device.createComputePipelineAsync({ layout: "auto", compute: { module, constants } });
      this.#pipelines.set(key, pipeline);
    }
    return pipeline;
  }

  #dispatch(pass: GpuComputePass, pipeline: GpuPipeline, buffers: GpuBuffer[], x: number, y: number): void {
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const layout = pipeline.getBindGroupLayout(0);
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, this.device.createBindGroup({ layout, entries }));
    pass.dispatchWorkgroups(x, y);
  }

  /** The numbers of a trained matrix, in the type in which they are stored. */
  #uploadWeight(weight: Weight): GpuBuffer {
    const row = weight.bytes(0).length;
    return this.#fill(weight.rows * row, (memory) => {
      for (let i = 0; i < weight.rows; i++) memory.set(weight.bytes(i), i * row);
    });
  }

  #upload(numbers: Float32Array): GpuBuffer {
    return this.#fill(numbers.byteLength, (memory) => new Float32Array(memory.buffer).set(numbers));
  }

  /** A vector of one number. */
  #repeat(value: number, length: number): GpuBuffer {
    const key = `${value} ${length}`;
    const buffer = this.#constants.get(key) ?? this.#upload(new Float32Array(length).fill(value));
    this.#constants.set(key, buffer);
    return buffer;
  }

  /** A new buffer that `write` fills. Throws if the GPU does not have enough memory. */
  #fill(bytes: number, write: (memory: Uint8Array<ArrayBuffer>) => void): GpuBuffer {
    const size = 4 * Math.ceil(bytes / 4);
    if (size > this.device.limits.maxStorageBufferBindingSize)
      throw new RangeError(`a matrix of ${bytes} bytes is too large for this GPU`);
    const buffer = this.device.createBuffer({ size, usage: STORAGE, mappedAtCreation: true });
    write(new Uint8Array(buffer.getMappedRange()));
    buffer.unmap();
    return buffer;
  }
}
