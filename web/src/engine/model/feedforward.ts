/** The feed-forward network of a block: a nonlinearity between two matrices, at each position separately. */

import { erf } from "../../model/erf";
import { Matrix } from "../../model/matrix";
import type { Config } from "../types";
import { type Linear, type Parameters, makeLinear } from "./parameters";

type Nonlinearity = (x: number) => number;

const NONLINEARITIES: Record<Config["feedforward"], Nonlinearity> = {
  relu: (x) => (x < 0 ? 0 : x),
  gelu: (x) => 0.5 * x * (1 + erf(x * Math.SQRT1_2)),
  gelu_tanh: geluTanh,
  swiglu: (x) => x / (1 + Math.exp(-x)),
  geglu: geluTanh,
};

/** f(x W_1) W_2; gated: (f(x W_gate) ∘ x W_1) W_2. */
export class FeedForward {
  readonly first: Linear;
  readonly gate: Linear | null;
  readonly second: Linear;
  readonly #nonlinearity: Nonlinearity;

  constructor(config: Config, parameters: Parameters, name: string) {
    this.#nonlinearity = NONLINEARITIES[config.feedforward];
    this.first = makeLinear(parameters, `${name}.first`, config.feedforward_bias);
    this.gate = isGated(config) ? makeLinear(parameters, `${name}.gate`, config.feedforward_bias) : null;
    this.second = makeLinear(parameters, `${name}.second`, config.feedforward_bias);
  }

  forward(x: Matrix): Matrix {
    const first = this.first.forward(x);
    return this.second.forward(this.gate ? this.multiply(this.gate.forward(x), first) : this.activate(first));
  }

  /** f(x), number by number. */
  activate(x: Matrix): Matrix {
    return new Matrix(x.values.map(this.#nonlinearity), x.rows, x.columns);
  }

  /** f(gate) ∘ up. */
  multiply(gate: Matrix, up: Matrix): Matrix {
    const f = this.#nonlinearity;
    const product = gate.values.map((value, i) => f(value) * up.values[i]!);
    return new Matrix(product, gate.rows, gate.columns);
  }
}

export function isGated({ feedforward }: Config): boolean {
  return feedforward === "swiglu" || feedforward === "geglu";
}

function geluTanh(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
}
