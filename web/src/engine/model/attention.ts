/** Multi-head attention: project to queries, keys and values, attend, and project back through W^O.
 *
 * Shapes: T positions, H heads side by side, D features per head, C features of the residual stream.
 */

import type { Matrix } from "../../model/matrix";
import type { Config } from "../types";
import { attendFused } from "./attendFused";
import { project } from "./attentionSteps";
import type { BlockKVCache } from "./kvCache";
import type { AttentionMask } from "./mask";
import type { Norm } from "./norm";
import { type Linear, type Parameters, makeLinear, makeNorm } from "./parameters";
import { type Rotation, rotate } from "./position";
import { reshape } from "./tensor";

/** All heads of a block side by side. Groups of heads may share keys and values (GQA). */
export class Attention {
  readonly query: Linear;
  readonly key: Linear;
  readonly value: Linear;
  readonly output: Linear;
  readonly queryNorm: Norm | null;
  readonly keyNorm: Norm | null;

  constructor(
    readonly config: Config,
    parameters: Parameters,
    name: string,
  ) {
    this.query = makeLinear(parameters, `${name}.query`, config.qkv_bias);
    this.key = makeLinear(parameters, `${name}.key`, config.qkv_bias);
    this.value = makeLinear(parameters, `${name}.value`, config.qkv_bias);
    this.output = makeLinear(parameters, `${name}.output`, config.output_bias);
    this.queryNorm = config.qk_norm ? makeNorm(parameters, `${name}.query_norm`, config) : null;
    this.keyNorm = config.qk_norm ? makeNorm(parameters, `${name}.key_norm`, config) : null;
  }

  forward(x: Matrix, mask: AttentionMask, rotation: Rotation | null, cache?: BlockKVCache): Matrix {
    const [query, newKey, newValue] = this.projectHeads(x, rotation);
    const [key, value] = cache ? cache.append(newKey, newValue) : [newKey, newValue];
    const mixed = attendFused(query, key, value, mask, this.config, this.output.kernels);
    return this.output.forward(mixed);
  }

  /** Queries, keys and values: T H·D; queries and keys after QK-norm and RoPE. */
  projectHeads(x: Matrix, rotation: Rotation | null): [Matrix, Matrix, Matrix] {
    const query = this.#place(project(x, this.query), this.queryNorm, rotation);
    const key = this.#place(project(x, this.key), this.keyNorm, rotation);
    return [query, key, project(x, this.value)];
  }

  #place(x: Matrix, norm: Norm | null, rotation: Rotation | null): Matrix {
    // QK-norm: of each head alone, or of all heads together.
    const normed = norm ? reshape(norm.forward(reshape(x, norm.gain.length)), x.columns) : x;
    return rotation ? rotate(normed, rotation, this.config.d_head) : normed;
  }
}
