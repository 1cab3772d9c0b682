/** The block: attention, then feed-forward, each added to the residual stream. */

import type { Matrix } from "../../model/matrix";
import type { Config } from "../types";
import { Attention } from "./attention";
import { FeedForward } from "./feedforward";
import type { BlockKVCache } from "./kvCache";
import type { AttentionMask } from "./mask";
import type { Norm } from "./norm";
import { type Parameters, makeNorm } from "./parameters";
import type { Rotation } from "./position";
import { add } from "./tensor";

/** The lecture's block: t1 = LN(x), t2 = MHA(t1), t3 = t2 + x, t4 = LN(t3), t5 = FFN(t4), h = t5 + t3.
 *
 * A parallel block computes t4 = LN(x). With post-norm, t2 and t5 are normalized before they are added;
 * without pre-norm, t1 = x and t4 = t3.
 */
export class Block {
  readonly norm: Norm | null;
  readonly attention: Attention;
  readonly norm2: Norm | null;
  readonly feedforward: FeedForward;
  readonly attentionNorm: Norm | null;
  readonly feedforwardNorm: Norm | null;

  constructor(
    readonly config: Config,
    parameters: Parameters,
    name: string,
  ) {
    const norm = (part: string) => makeNorm(parameters, `${name}.${part}`, config);
    this.norm = config.pre_norm ? norm("norm") : null;
    this.attention = new Attention(config, parameters, `${name}.attention`);
    this.norm2 = config.pre_norm ? norm("norm2") : null;
    this.feedforward = new FeedForward(config, parameters, `${name}.feedforward`);
    this.attentionNorm = config.post_norm ? norm("attention_norm") : null;
    this.feedforwardNorm = config.post_norm ? norm("feedforward_norm") : null;
  }

  /** x → h, T C. `onMiddle` receives t3, the residual stream between the two halves. */
  forward(
    x: Matrix,
    mask: AttentionMask,
    rotation: Rotation | null,
    cache?: BlockKVCache,
    onMiddle?: (t3: Matrix) => void,
  ): Matrix {
    const t1 = normalize(this.norm, x);
    const t2 = normalize(this.attentionNorm, this.attention.forward(t1, mask, rotation, cache));
    const t3 = add(t2, x);
    const t4 = normalize(this.norm2, this.config.parallel ? x : t3);
    const t5 = normalize(this.feedforwardNorm, this.feedforward.forward(t4));
    const h = add(t5, t3);
    onMiddle?.(t3);
    return h;
  }
}

function normalize(norm: Norm | null, x: Matrix): Matrix {
  return norm ? norm.forward(x) : x;
}
