/** Where a model's parameters come from, and the linear layers made of them. */

import type { Matrix } from "../../model/matrix";
import type { Kernels, Weight } from "../kernels/kernels";
import type { Config } from "../types";
import { Norm } from "./norm";

/** The parameters by their names in PyTorch's `state_dict`, such as `blocks.0.attention.query.weight`. */
export interface Parameters {
  kernels: Kernels;
  /** A matrix. */
  weight(name: string): Weight;
  /** A bias, gain or shift. */
  vector(name: string): Float32Array;
}

/** x Wᵀ + bias, as in PyTorch's nn.Linear. */
export class Linear {
  constructor(
    readonly kernels: Kernels,
    readonly weight: Weight,
    readonly bias?: Float32Array,
  ) {}

  forward(x: Matrix): Matrix {
    return this.kernels.matmul(x, this.weight, this.bias);
  }
}

export function makeLinear(parameters: Parameters, name: string, bias: boolean): Linear {
  const weight = parameters.weight(`${name}.weight`);
  return bias
    ? new Linear(parameters.kernels, weight, parameters.vector(`${name}.bias`))
    : new Linear(parameters.kernels, weight);
}

export function makeNorm(parameters: Parameters, name: string, config: Config): Norm {
  const shift = config.norm === "layer" ? parameters.vector(`${name}.shift`) : null;
  return new Norm(parameters.vector(`${name}.gain`), shift, config.norm_epsilon);
}
