/** The lecture's steps of one head, each computed on first access from the previous ones, with edits applied.
 *
 * Shapes: T positions, D features per head, C features of the stream.
 */

import type { Matrix } from "../../model/matrix";
import { cap, compare, divide, hasCap, mask, mix, softmax, write } from "../model/attentionSteps";
import type { Block } from "../model/block";
import type { AttentionMask } from "../model/mask";
import type { Norm } from "../model/norm";
import { type Rotation, rotate } from "../model/position";
import { takeHead, takeRows } from "../model/tensor";
import type { Edits } from "./edits";
import { Memo } from "./memo";
import { makeSite } from "./sites";

/** What the heads of a block share: among other things, the queries, keys and values of all of them, T H·D. */
export interface HeadContext {
  block: Block;
  number: number;
  projected: (role: ProjectionName) => Matrix;
  jointScale: (role: "query" | "key") => Matrix; // the divisor of a QK-norm over all heads together
  mask: AttentionMask;
  rotation: Rotation | null;
  edits: Edits;
}

export type ProjectionName = "query" | "key" | "value";
type HeadSiteName =
  ProjectionName | "scores" | "scaled" | "capped" | "masked" | "weights" | "mixed" | "output";

/** `rows` (query positions) limits the scores and the steps after them. */
export class HeadSteps {
  readonly #memo = new Memo();
  readonly #kvHead: number;

  constructor(
    readonly inputs: HeadContext,
    readonly head: number,
    readonly rows: readonly number[],
  ) {
    const { n_head, n_kv_head } = inputs.block.config;
    this.#kvHead = Math.floor(head / (n_head / n_kv_head));
  }

  get queryRaw(): Matrix {
    return this.#step("query_raw", () => this.#project("query", this.head));
  }

  get keyRaw(): Matrix {
    return this.#step("key_raw", () => this.#project("key", this.#kvHead));
  }

  get value(): Matrix {
    return this.#step("value", () => this.#project("value", this.#kvHead));
  }

  get queryNormed(): Matrix {
    return this.#normed("query", this.head, this.inputs.block.attention.queryNorm, () => this.queryRaw);
  }

  get keyNormed(): Matrix {
    return this.#normed("key", this.#kvHead, this.inputs.block.attention.keyNorm, () => this.keyRaw);
  }

  get query(): Matrix {
    return this.#step("query", () => this.#rotate(this.queryNormed));
  }

  get key(): Matrix {
    return this.#step("key", () => this.#rotate(this.keyNormed));
  }

  get scores(): Matrix {
    return this.#step("scores", () => compare(takeRows(this.query, this.rows), this.key));
  }

  get scaled(): Matrix {
    return this.#step("scaled", () => divide(this.scores, this.#config.d_k));
  }

  get capped(): Matrix {
    const { score_cap } = this.#config;
    return hasCap(score_cap) ? this.#step("capped", () => cap(this.scaled, score_cap)) : this.scaled;
  }

  get masked(): Matrix {
    return this.#step("masked", () => mask(this.capped, this.inputs.mask, this.rows));
  }

  get weights(): Matrix {
    return this.#step("weights", () => softmax(this.masked));
  }

  get mixed(): Matrix {
    return this.#step("mixed", () => mix(this.weights, this.value));
  }

  get output(): Matrix {
    return this.#step("output", () =>
      write(this.mixed, this.inputs.block.attention.output.weight, this.head),
    );
  }

  /** A site of this head by its name. */
  read(name: string): Matrix {
    switch (name) {
      case "query_raw":
        return this.queryRaw;
      case "key_raw":
        return this.keyRaw;
      case "query_normed":
        return this.queryNormed;
      case "key_normed":
        return this.keyNormed;
      default:
        return this[name as HeadSiteName];
    }
  }

  get #config() {
    return this.inputs.block.config;
  }

  /** An edit of a shared key-value head affects its whole group. */
  #step(name: string, compute: () => Matrix): Matrix {
    return this.#memo.get(name, () => {
      const { number, edits } = this.inputs;
      const shared = edits.apply(makeSite(name, number, { kvHead: this.#kvHead }), compute());
      return edits.apply(makeSite(name, number, { head: this.head }), shared);
    });
  }

  #project(role: ProjectionName, head: number): Matrix {
    return takeHead(this.inputs.projected(role), head, this.#config.d_head);
  }

  #normed(role: "query" | "key", head: number, norm: Norm | null, raw: () => Matrix): Matrix {
    if (!norm) return raw();
    const { d_head, qk_norm_joint } = this.#config;
    return this.#step(`${role}_normed`, () =>
      qk_norm_joint
        ? norm.ofFeatures(head * d_head, d_head).apply(raw(), null, this.inputs.jointScale(role))
        : norm.forward(raw()),
    );
  }

  #rotate(x: Matrix): Matrix {
    const { rotation } = this.inputs;
    return rotation ? rotate(x, rotation, this.#config.d_head) : x;
  }
}
