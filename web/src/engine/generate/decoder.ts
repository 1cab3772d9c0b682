/** The decoder of one prompt: the network with its KV cache. */

import { KVCache } from "../model/kvCache";
import type { Transformer } from "../model/transformer";
import { takeRows } from "../model/tensor";

/** `prefill` processes the prompt and `decodeOne` each new token; both return the logits of the next token.
 *
 * Once the context is full, the window slides: every new token costs a forward pass over the last `n_context` tokens,
 * because their positions change.
 */
export class TransformerDecoder {
  readonly ids: number[] = [];
  readonly #cache: KVCache;

  constructor(
    readonly network: Transformer,
    maxLength = Infinity,
  ) {
    this.#cache = new KVCache(network.config, Math.min(network.config.n_context, maxLength));
  }

  prefill(ids: readonly number[]): Float32Array {
    const { network } = this;
    this.ids.push(...ids);
    const isFull = this.ids.length > network.config.n_context;
    const hidden = isFull
      ? network.hiddenStates(this.ids.slice(-network.config.n_context))
      : network.hiddenStates(ids, this.#cache);
    return network.unembedding.forward(takeRows(hidden, [hidden.rows - 1])).values;
  }

  decodeOne(id: number): Float32Array {
    return this.prefill([id]);
  }
}
