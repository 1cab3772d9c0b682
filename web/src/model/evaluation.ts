/** Recomputes a number from its derivation. */

import type { Derivation } from "./derivation";
import type { Config } from "../engine/types";
import { exactErf } from "./erf";

/** The page shows the model's own numbers; this explains them, and fills in those that a saved file lacks. */
export function evaluate(
  { operation, constants }: Derivation,
  config: Config,
  numbers: readonly number[][],
): number {
  const [first = [], second = [], third = []] = numbers;
  const x = first[0] ?? NaN;
  const c = (name: string) => constants[name]!;
  switch (operation) {
    case "dot":
      return first.reduce((sum, value, i) => sum + value * second[i]!, third[0] ?? 0);
    case "divide":
      return x / Math.sqrt(c("d_k"));
    case "cap":
      return c("limit") * Math.tanh(x / c("limit"));
    case "mask":
      return c("visible") ? x : -Infinity;
    case "softmax": {
      const top = Math.max(...first);
      const total = first.reduce((sum, value) => sum + Math.exp(value - top), 0);
      return Math.exp(first[c("at")]! - top) / total;
    }
    case "sum":
      return numbers.reduce((sum, [value]) => sum + value!, 0);
    case "norm": {
      const [, scale, gain, mean, shift] = numbers.map(([value]) => value!);
      return (gain! * (x - (mean ?? 0))) / scale! + (shift ?? 0);
    }
    case "head norm": {
      const center = config.norm === "layer" ? average(first) : 0;
      const others = config.qk_norm_joint ? numbers.slice(2).flat() : [];
      const scale = rootMeanSquare([...first, ...others], center, c("epsilon"));
      const shift = config.norm === "layer" ? third[0]! : 0;
      return (second[0]! * (first[c("at")]! - center)) / scale + shift;
    }
    case "mean":
      return average(first);
    case "scale":
      return rootMeanSquare(first, second[0] ?? 0, c("epsilon"));
    case "activate":
      return activate(config, x);
    case "gate":
      return activate(config, x) * second[0]!;
    case "rotate":
      return c("factor") * (x * Math.cos(c("angle")) + c("sign") * second[0]! * Math.sin(c("angle")));
    case "multiply":
      return x * second[0]!;
    case "look up":
      return x * c("scale");
    case "sinusoid":
      return (c("cosine") ? Math.cos : Math.sin)(c("position") * c("frequency"));
    case "copy":
      return x;
    case "trained":
      return NaN;
  }
}

/** The feed-forward network's activation function. */
function activate(config: Config, x: number): number {
  switch (config.feedforward) {
    case "relu":
      return Math.max(0, x);
    case "gelu":
      return 0.5 * x * (1 + exactErf(x / Math.SQRT2));
    case "swiglu":
      return x / (1 + Math.exp(-x));
    default:
      return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
  }
}

export function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

export function rootMeanSquare(values: readonly number[], center: number, epsilon: number): number {
  return Math.sqrt(average(values.map((value) => (value - center) ** 2)) + epsilon);
}
