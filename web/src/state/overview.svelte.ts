/** The whole model at a glance: the attention pattern of every head, and the norms of the residual stream. */

import type { ApiClient } from "../engine/client";
import type { Config, ModelInput } from "../engine/types";
import type { Matrix } from "../model/matrix";

const PATTERN_SIZE = 24; // cells per side
const MAX_WEIGHTS = 2 ** 23; // attention weights per request, before downsampling

export class Overview {
  patterns = $state.raw<Matrix[][]>([]); // by block and head
  streams = $state.raw<Matrix[]>([]);
  #patternsOf: ModelInput | null = null;

  constructor(readonly api: ApiClient) {}

  async loadStreams(input: ModelInput, signal: AbortSignal): Promise<void> {
    this.streams = await this.api.streams(input, signal);
  }

  /** Drops the patterns of any other text. */
  keepPatternsOf(input: ModelInput | null): void {
    if (this.#patternsOf !== input) this.patterns = [];
  }

  /** Loads the patterns a few blocks at a time, unless they are already loaded. */
  async loadPatterns(input: ModelInput, config: Config, length: number, signal: AbortSignal): Promise<void> {
    if (this.#patternsOf === input) return;
    const blocksPerRequest = Math.max(1, Math.floor(MAX_WEIGHTS / config.n_head / length ** 2));
    const patterns: Matrix[][] = [];
    for (let first = 0; first < config.n_block; first += blocksPerRequest) {
      const last = Math.min(config.n_block, first + blocksPerRequest);
      patterns.push(...(await this.api.patterns(input, [first, last], PATTERN_SIZE, signal)));
      this.patterns = [...patterns];
    }
    this.#patternsOf = input;
  }
}
