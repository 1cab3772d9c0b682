/** The lecture's steps of one block, each computed on first access from the previous ones, with edits applied.
 *
 * Shapes: T positions, C features of the stream.
 */

import type { Matrix } from "../../model/matrix";
import { project } from "../model/attentionSteps";
import type { Block } from "../model/block";
import type { AttentionMask } from "../model/mask";
import type { Norm } from "../model/norm";
import type { Rotation } from "../model/position";
import { add, dot, range, zeros } from "../model/tensor";
import { Edits } from "./edits";
import { type HeadContext, HeadSteps, type ProjectionName } from "./headSteps";
import { Memo } from "./memo";
import { type Site, makeSite } from "./sites";

/** The names under which a norm's mean and scale are sites. */
type NormName = "normed" | "normed2" | "attention_normed" | "feedforward_normed";

/** `middle` is the value the model computed, passed if nothing before it in this block is edited. */
export class BlockSteps {
  readonly #memo = new Memo();
  #lastHead: HeadSteps | null = null;

  constructor(
    readonly block: Block,
    readonly number: number,
    readonly x: Matrix,
    readonly mask: AttentionMask,
    readonly rotation: Rotation | null,
    readonly edits = new Edits(),
    readonly knownMiddle: Matrix | null = null,
  ) {}

  get input(): Matrix {
    return this.#step("input", () => this.x);
  }

  get normed(): Matrix {
    return this.#step("normed", () => this.#norm("normed"));
  }

  /** The steps of one head; `rows` limits the scores and the steps after them to these query positions. */
  head(head: number, rows?: readonly number[]): HeadSteps {
    if (!rows && this.#lastHead?.head === head) return this.#lastHead;
    const steps = new HeadSteps(this.#inputsOfHeads, head, rows ?? range(this.x.rows));
    // Only one head is kept: its T×T matrices are large.
    if (!rows) this.#lastHead = steps;
    return steps;
  }

  get #inputsOfHeads(): HeadContext {
    const { block, number, mask, rotation, edits } = this;
    return {
      block,
      number,
      projected: (role) => this.#project(role),
      jointScale: (role) => this.jointScale(role),
      mask,
      rotation,
      edits,
    };
  }

  get attention(): Matrix {
    return this.#step("attention", () => {
      if (this.#editsHeads) return this.#sumHeads();
      return this.block.attention.forward(this.normed, this.mask, this.rotation);
    });
  }

  get attentionNormed(): Matrix {
    return this.#step("attention_normed", () => this.#norm("attention_normed"));
  }

  get middle(): Matrix {
    if (this.knownMiddle) return this.knownMiddle;
    const added = () => (this.block.attentionNorm ? this.attentionNormed : this.attention);
    return this.#step("middle", () => add(added(), this.input));
  }

  get normed2(): Matrix {
    return this.#step("normed2", () => this.#norm("normed2"));
  }

  get hiddenRaw(): Matrix {
    return this.#step("hidden_raw", () => this.block.feedforward.first.forward(this.normed2));
  }

  get hiddenUp(): Matrix {
    return this.#step("hidden_up", () => this.block.feedforward.first.forward(this.normed2));
  }

  get hiddenGate(): Matrix {
    return this.#step("hidden_gate", () => this.block.feedforward.gate!.forward(this.normed2));
  }

  get hidden(): Matrix {
    const { feedforward } = this.block;
    return this.#step("hidden", () =>
      feedforward.gate
        ? feedforward.multiply(this.hiddenGate, this.hiddenUp)
        : feedforward.activate(this.hiddenRaw),
    );
  }

  get feedforward(): Matrix {
    return this.#step("feedforward", () => this.block.feedforward.second.forward(this.hidden));
  }

  get feedforwardNormed(): Matrix {
    return this.#step("feedforward_normed", () => this.#norm("feedforward_normed"));
  }

  get output(): Matrix {
    const added = () => (this.block.feedforwardNorm ? this.feedforwardNormed : this.feedforward);
    return this.#step("output", () => add(added(), this.middle));
  }

  /** The mean of the vectors that a norm receives: T × 1. */
  mean(name: NormName): Matrix {
    return this.#step(`${name}.mean`, () => this.#normOf(name).mean(this.#inputOf(name)));
  }

  /** The divisor of the vectors that a norm receives: T × 1. */
  scale(name: NormName): Matrix {
    return this.#step(`${name}.scale`, () => this.#normOf(name).scale(this.#inputOf(name)));
  }

  /** A site of this block outside its heads. */
  read({ name }: Site): Matrix {
    const [norm, part] = name.split(".") as [NormName, string?];
    if (part) return part === "mean" ? this.mean(norm) : this.scale(norm);
    return this[name.replace(/_(\w)/, (_, letter: string) => letter.toUpperCase()) as "input"];
  }

  #step(name: string, compute: () => Matrix): Matrix {
    return this.#memo.get(name, () => this.edits.apply(makeSite(name, this.number), compute()));
  }

  #normOf(name: NormName): Norm {
    const { norm, norm2, attentionNorm, feedforwardNorm } = this.block;
    const norms = {
      normed: norm!,
      normed2: norm2!,
      attention_normed: attentionNorm!,
      feedforward_normed: feedforwardNorm!,
    };
    return norms[name];
  }

  #inputOf(name: NormName): Matrix {
    switch (name) {
      case "normed":
        return this.input;
      case "normed2":
        return this.block.config.parallel ? this.input : this.middle;
      case "attention_normed":
        return this.attention;
      case "feedforward_normed":
        return this.feedforward;
    }
  }

  /** Applies the model's norm, or its formula if the mean or scale is edited. */
  #norm(name: NormName): Matrix {
    const [norm, x] = [this.#normOf(name) as Norm | null, this.#inputOf(name)];
    if (!norm) return x;
    if (!this.edits.touchName(`${name}.mean`, `${name}.scale`)) return norm.forward(x);
    return norm.apply(x, norm.shift ? this.mean(name) : null, this.scale(name));
  }

  get #editsHeads(): boolean {
    return this.edits.made.some(({ site }) => site.head !== null || site.kvHead !== null);
  }

  /** The queries, keys or values of all heads, before any edit: T H·D. */
  #project(role: ProjectionName): Matrix {
    return this.#memo.get(`projected ${role}`, () => project(this.normed, this.block.attention[role]));
  }

  /** The divisor of a QK-norm over all heads together: T × 1.
   *
   * Keys that several heads share are counted once per head: this changes nothing, unless they are edited in one
   * head only.
   */
  jointScale(role: "query" | "key"): Matrix {
    return this.#memo.get(`joint ${role}`, () => {
      const { n_head, d_head, norm_epsilon } = this.block.config;
      const scale = zeros(this.x.rows, 1);
      for (const head of range(n_head)) {
        const raw = new HeadSteps(this.#inputsOfHeads, head, []).read(`${role}_raw`);
        for (let i = 0; i < raw.rows; i++) scale.values[i] = scale.values[i]! + dot(raw.row(i), raw.row(i));
      }
      scale.values.forEach((squares, i) => {
        scale.values[i] = Math.sqrt(squares / (n_head * d_head) + norm_epsilon);
      });
      return scale;
    });
  }

  /** The sum of what the heads write, in one product except for heads whose output is edited. */
  #sumHeads(): Matrix {
    const { n_head, d_head } = this.block.config;
    const mixed = zeros(this.x.rows, n_head * d_head);
    const edited: Matrix[] = [];
    for (let head = 0; head < n_head; head++) {
      const steps = this.head(head);
      if (this.edits.touch(makeSite("output", this.number, { head }))) edited.push(steps.output);
      else for (let i = 0; i < mixed.rows; i++) mixed.row(i).set(steps.mixed.row(i), head * d_head);
    }
    return edited.reduce(add, this.block.attention.output.forward(mixed));
  }
}
