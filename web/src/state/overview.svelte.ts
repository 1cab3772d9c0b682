/** All of a model at a glance: a small picture of every head, and how long every stream is. */

import type { Matrix } from "../model/matrix";
import type { Config, Question, Server } from "../engine/client";

const CELLS = 24; // a side of a head's small picture
const MOST_WEIGHTS = 2 ** 23; // of the blocks that are asked about together

export class Overview {
  patterns = $state.raw<Matrix[][]>([]); // by block and head
  streams = $state.raw<Matrix[]>([]);

  constructor(readonly server: Server) {}

  /** Some blocks at a time. */
  async read(question: Question, config: Config, length: number, signal: AbortSignal): Promise<void> {
    const streams = this.server.streams(question, signal).then((found) => (this.streams = found));
    const together = Math.max(1, Math.floor(MOST_WEIGHTS / config.n_head / length ** 2));
    const patterns: Matrix[][] = [];
    const read = async () => {
      for (let first = 0; first < config.n_block; first += together) {
        const last = Math.min(config.n_block, first + together);
        patterns.push(...(await this.server.patterns(question, [first, last], CELLS, signal)));
        this.patterns = [...patterns];
      }
    };
    await Promise.all([streams, read()]);
  }
}
