/** Attention masks: which positions may attend to which. */

import type { Config } from "../types";
import { range } from "./tensor";

/** With `causal`, a position attends to itself and to what came before; with a `window`, to that many positions at
 * most. Otherwise, every position attends to every other. */
export class AttentionMask {
  constructor(
    readonly causal: boolean,
    readonly window = Infinity,
  ) {}

  /** The half-open range of the S key positions that a query position attends to. */
  visible(position: number, S: number): [number, number] {
    return this.causal ? [Math.max(0, position - this.window + 1), position + 1] : [0, S];
  }
}

/** The attention mask of each block. */
export function makeMasks({ causal, window, local_blocks, n_block }: Config): AttentionMask[] {
  const [everywhere, local] = [new AttentionMask(causal), new AttentionMask(causal, window)];
  return range(n_block).map((i) => (local_blocks.includes(i) ? local : everywhere));
}
