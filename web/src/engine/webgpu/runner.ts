/** Decides whether a model runs on a GPU, and returns to WebAssembly if that fails. */

import type { Block } from "../model/block";
import type { Transformer } from "../model/transformer";
import type { GpuDevice } from "./api";
import { type GpuOptions, openDevice } from "./device";
import { type GpuRun, GpuTransformer } from "./forward";
import { MOST_FEATURES } from "./shaders";

/** How many parameters the blocks must have for a GPU to be used. An estimate: it was not measured on any GPU. */
const MIN_PARAMETERS = 20e6;

/** Runs one model on a GPU, from the first run until one fails. */
export class GpuRunner {
  #opened: Promise<GpuTransformer | null> | null = null;
  #closed = false;

  private constructor(
    readonly network: Transformer,
    readonly open: () => Promise<GpuDevice | null>,
  ) {}

  /** Null for a model that is too small, or has larger heads than the shaders support. */
  static create(network: Transformer, options: GpuOptions = {}, open = openDevice): GpuRunner | null {
    const { minParameters = MIN_PARAMETERS } = options;
    const parameters = network.blocks.reduce((sum, block) => sum + countParameters(block), 0);
    const isSupported = network.blocks.length > 0 && network.config.d_head <= MOST_FEATURES;
    return isSupported && parameters >= minParameters ? new GpuRunner(network, () => open(options)) : null;
  }

  /** Null if the browser offers no GPU, or if it failed in this run or in an earlier one. */
  async run(ids: readonly number[]): Promise<GpuRun | null> {
    if (this.#closed) return null;
    try {
      this.#opened ??= this.#upload();
      const model = await this.#opened;
      if (model) return await checked(model.device, () => model.run(ids));
    } catch {
      // The device was lost, or has no memory left.
    }
    this.close();
    return null;
  }

  /** Frees the model's memory on the GPU. */
  close(): void {
    this.#closed = true;
    void this.#opened?.then(
      (model) => model?.device.destroy(),
      () => undefined,
    );
    this.#opened = null;
  }

  async #upload(): Promise<GpuTransformer | null> {
    const device = await this.open();
    if (!device) return null;
    void device.lost.then(() => this.close());
    try {
      return await checked(device, () => GpuTransformer.upload(this.network, device));
    } catch (error) {
      device.destroy();
      throw error;
    }
  }
}

/** Throws the error that the GPU reports for this work, which arrives after the calls return. */
async function checked<T>(device: GpuDevice, work: () => Promise<T>): Promise<T> {
  const filters = ["validation", "out-of-memory", "internal"] as const;
  for (const filter of filters) device.pushErrorScope(filter);
  const result = await work().finally(async () => {
    const errors = await Promise.all(filters.map(() => device.popErrorScope()));
    const error = errors.find((each) => each !== null);
    if (error) throw new Error(error.message);
  });
  return result;
}

function countParameters({ attention, feedforward }: Block): number {
  const { query, key, value, output } = attention;
  const { first, gate, second } = feedforward;
  return [query, key, value, output, first, second, ...(gate ? [gate] : [])].reduce(
    (sum, { weight }) => sum + weight.rows * weight.columns,
    0,
  );
}
