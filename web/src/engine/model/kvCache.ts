/** The KV cache: keys and values of past positions, kept so that only a new token's row must be computed. */

import type { Matrix } from "../../model/matrix";
import type { Config } from "../types";
import { firstRows, range, zeros } from "./tensor";

/** Storage for `size` positions in every block. The first `length` are filled. */
export class KVCache {
  length = 0;
  readonly blocks: BlockKVCache[];

  constructor(
    config: Config,
    readonly size: number = config.n_context,
  ) {
    const columns = config.n_kv_head * config.d_head;
    this.blocks = range(config.n_block).map(
      () => new BlockKVCache(this, zeros(size, columns), zeros(size, columns)),
    );
  }

  /** A cache of a different size with the same first positions. */
  resized(config: Config, size: number, length = this.length): KVCache {
    const copy = new KVCache(config, size);
    this.blocks.forEach(({ key, value }, i) => {
      copy.blocks[i]!.key.values.set(firstRows(key, length).values);
      copy.blocks[i]!.value.values.set(firstRows(value, length).values);
    });
    copy.length = length;
    return copy;
  }
}

/** The keys and values of one block: size × all key-value heads side by side. */
export class BlockKVCache {
  constructor(
    readonly cache: KVCache,
    readonly key: Matrix,
    readonly value: Matrix,
  ) {}

  /** Appends T new keys and values and returns all S of them. */
  append(key: Matrix, value: Matrix): [Matrix, Matrix] {
    const start = this.cache.length * key.columns;
    this.key.values.set(key.values, start);
    this.value.values.set(value.values, start);
    const S = this.cache.length + key.rows;
    return [firstRows(this.key, S), firstRows(this.value, S)];
  }
}
