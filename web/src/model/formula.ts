/** The formula of a number in TeX: once with symbols, once with the numbers that it was computed from. */

import type { Config } from "../engine/types";
import { fixed, localizeDecimal, precise, short } from "../messages/format.svelte";
import type { Derivation } from "./derivation";
import { average, rootMeanSquare } from "./evaluation";
import { areaSymbol, cellSymbol, symbolOf, withIndices } from "./notation";
import type { Cell } from "./sites";

/** What a formula is about. */
export interface Explained {
  cell: Cell;
  value: number;
  derivation: Derivation;
  numbers: readonly number[][]; // of each input
  config: Config;
  order: readonly number[]; // of the terms of a long sum
  more: (count: number) => string; // in words, for terms that are left out
  smaller: (count: number) => string; // the same where the largest terms are shown
}

/**
 * `symbols` ends with the equals sign before the result. `rounded` is the result as its cell shows it, if that has
 * fewer digits. `numbers` is null if it would only repeat the result.
 */
export interface Formula {
  symbols: string;
  result: string;
  rounded: string | null;
  numbers: string | null;
}

const MAX_TERMS = 4; // of a long sum
const MAX_WIDE_TERMS = 3; // of a sum whose terms are wide, or that cannot be wrapped
const MAX_SUMMANDS = 6; // of a short sum, each with a symbol of its own

export function writeFormula(explained: Explained): Formula {
  const { cell, value, derivation, config } = explained;
  const { operation } = derivation;
  const isTrained = operation === "trained"; // no cell shows a weight
  const own = cellSymbol(cell, config);
  const right = symbolsOf(explained);
  const numbers = numbersOf(explained);
  return {
    // A product that only the page computes has no symbol of its own.
    symbols: `\\displaystyle ${operation === "multiply" ? right : right === "" ? own : `${own} = ${right}`} =`,
    result: number(value, isTrained ? fixed(value, 4) : precise(value)),
    rounded:
      isTrained || isSameNumber(precise(value), short(value))
        ? null
        : `\\approx ${number(value, short(value))}`,
    numbers: numbers === null ? null : `\\displaystyle {}= \\nobreak ${numbers}`,
  };
}

/** Whether two numbers, as written, differ at most in trailing zeros: −0.010 and −0.01. */
function isSameNumber(one: string, other: string): boolean {
  return one === other || (one.startsWith(other) && /^0+$/.test(one.slice(other.length)));
}

/** The right side of the formula, or an empty string if there is none. */
function symbolsOf({ cell, derivation: { operation, inputs, constants: c }, config }: Explained): string {
  const { row, column } = cell;
  const input = (i: number) => areaSymbol(inputs[i]!, config);
  const entry = (i: number, index: number | string) => withIndices(inputs[i]!.name, config, row, index);
  const plus = (i: number) => (inputs[i] ? ` + ${input(i)}` : "");
  switch (operation) {
    case "dot":
      return `${input(0)} \\cdot ${input(1)}${plus(2)}`;
    case "divide":
      return `\\frac{${input(0)}}{\\sqrt{d_k}}`;
    case "cap":
      return `${limitOf(c)} \\tanh\\frac{${input(0)}}{${limitOf(c)}}`;
    case "mask":
      return c.visible ? input(0) : "";
    case "softmax":
      return `\\frac{e^{${entry(0, column)}}}{\\sum_{j} e^{${entry(0, "j")}}}`;
    case "sum": {
      const terms = inputs.slice(0, MAX_SUMMANDS).map((_, i) => input(i));
      return [...terms, ...(inputs.length > MAX_SUMMANDS ? ["\\cdots"] : [])].join(" + ");
    }
    case "norm": {
      const centered = inputs[3] ? `${input(0)} - ${input(3)}` : input(0);
      return `${input(2)} \\cdot \\frac{${centered}}{${input(1)}}${plus(4)}`;
    }
    case "head norm": {
      const mean = config.norm === "layer" ? ` - ${MEAN}(${input(0)})` : "";
      const square =
        mean === "" ? `${symbolOf(inputs[0]!.name, config)}_{${row}}^{2}` : `(${input(0)}${mean})^{2}`;
      const meanOf = config.qk_norm_joint ? `${MEAN}_{h}` : MEAN; // over all heads
      const shift = config.norm === "layer" ? plus(2) : "";
      return `${input(1)} \\cdot \\frac{${entry(0, column)}${mean}}{\\sqrt{${meanOf}(${square}) + \\varepsilon}}${shift}`;
    }
    case "mean":
      return `\\frac{1}{d} \\sum_{c} ${entry(0, "c")}`;
    case "scale":
      return `\\sqrt{\\frac{1}{d} \\sum_{c} (${entry(0, "c")}${inputs[1] ? ` - ${input(1)}` : ""})^{2} + \\varepsilon}`;
    case "activate":
      return `${nonlinearity(config)}(${input(0)})`;
    case "gate":
      return `${nonlinearity(config)}(${input(0)}) \\cdot ${input(1)}`;
    case "rotate":
      return stretched(
        c.factor!,
        `{${input(0)} \\cos\\theta} ${c.sign! < 0 ? "-" : "+"} {${input(1)} \\sin\\theta}`,
      );
    case "multiply":
      return `${input(0)} \\cdot ${input(1)}`;
    case "look up":
      return c.scale === 1 ? input(0) : `${number(c.scale!)} \\cdot ${input(0)}`;
    case "sinusoid": {
      const exponent = `-${column - (column % 2)}/${config.d_model}`;
      return `\\${c.cosine ? "cos" : "sin"}(${c.position} \\cdot 10000^{${exponent}})`;
    }
    case "copy":
      return input(0);
    case "trained":
      return "";
  }
}

/** The same with numbers, or null if they are the result itself. */
function numbersOf(explained: Explained): string | null {
  const {
    derivation: { operation, constants: c },
    numbers,
    config,
    order,
    more,
    smaller,
  } = explained;
  const [first = [], second = []] = numbers;
  const at = (i: number, k = 0) => numbers[i]?.[k] ?? NaN;
  const plus = (i: number) => (numbers[i] ? ` + ${factor(at(i))}` : "");
  const sum = (count: number, terms: readonly number[], term: (k: number) => string, rest = smaller) => {
    const hidden = Math.max(0, terms.length - count);
    const shown = terms.slice(0, count).map(term);
    return [...shown, ...(hidden > 0 ? [`\\text{${rest(hidden)}}`] : [])].join(" + ");
  };
  switch (operation) {
    case "dot": {
      const product = (k: number) => `{${factor(first[k]!)} \\cdot ${factor(second[k] ?? NaN)}}`;
      return `${sum(MAX_TERMS, order, product)}${plus(2)}`;
    }
    case "divide":
      return `\\frac{${number(at(0))}}{\\sqrt{${c.d_k}}}`;
    case "cap":
      return `${limitOf(c)} \\tanh\\frac{${number(at(0))}}{${limitOf(c)}}`;
    case "softmax": {
      const power = (k: number) => `e^{${number(first[k] ?? NaN)}}`;
      const terms = order.filter((k) => k === c.at || first[k] !== -Infinity); // without masked tokens
      const isLargest = first[c.at!]! >= (first[terms[MAX_WIDE_TERMS] ?? c.at!] ?? NaN);
      return `\\frac{${power(c.at!)}}{${sum(MAX_WIDE_TERMS, terms, power, isLargest ? smaller : more)}}`;
    }
    case "sum":
      return sum(MAX_SUMMANDS, [...numbers.keys()], (k) => factor(at(k)), more);
    case "norm": {
      const centered = numbers[3] ? `${number(at(0))} - ${factor(at(3))}` : number(at(0));
      return `${factor(at(2))} \\cdot \\frac{${centered}}{${number(at(1))}}${plus(4)}`;
    }
    case "head norm": {
      const center = config.norm === "layer" ? average(first) : 0;
      const centered = `${number(at(0, c.at))}${center === 0 ? "" : ` - ${factor(center)}`}`;
      const others = config.qk_norm_joint ? numbers.slice(2).flat() : [];
      const scale = rootMeanSquare([...first, ...others], center, c.epsilon!);
      const shift = config.norm === "layer" ? plus(2) : "";
      return `${factor(second[0] ?? NaN)} \\cdot \\frac{${centered}}{${number(scale)}}${shift}`;
    }
    case "mean":
      return `\\frac{1}{${first.length}} (${sum(MAX_TERMS, order, (k) => factor(first[k]!))})`;
    case "scale": {
      const center = numbers[1] ? ` - ${factor(at(1))}` : "";
      const variance = number(average(first.map((x) => (x - (second[0] ?? 0)) ** 2)));
      const squares = sum(MAX_WIDE_TERMS, order, (k) => `{(${number(first[k]!)}${center})^{2}}`);
      const mean = `{${variance} = \\tfrac{1}{${first.length}}} (${squares})`;
      return `\\sqrt{${variance} + ${number(c.epsilon!)}},\\; \\allowbreak ${mean}`;
    }
    case "activate":
      return `${nonlinearity(config)}(${number(at(0))})`;
    case "gate":
      return `${nonlinearity(config)}(${number(at(0))}) \\cdot ${factor(at(1))}`;
    case "rotate": {
      const angle = number(c.angle!, fixed(c.angle!, 3));
      const sign = c.sign! < 0 ? "-" : "+";
      return stretched(
        c.factor!,
        `{${factor(at(0))} \\cos ${angle}} ${sign} {${factor(at(1))} \\sin ${angle}}`,
      );
    }
    case "multiply":
      return `${factor(at(0))} \\cdot ${factor(at(1))}`;
    case "look up":
      return c.scale === 1 ? null : `${number(c.scale!)} \\cdot ${factor(at(0))}`;
    case "sinusoid":
      return `\\${c.cosine ? "cos" : "sin"}(${c.position} \\cdot ${number(c.frequency!, fixed(c.frequency!, 5))})`;
    case "mask":
    case "copy":
    case "trained":
      return null;
  }
}

/** A rotation, which YaRN multiplies by a factor. */
function stretched(by: number, rotation: string): string {
  return by === 1 ? rotation : `${number(by)} \\cdot (${rotation})`;
}

/** The bound of a soft cap, as short as it is in the config. */
function limitOf({ limit }: Derivation["constants"]): string {
  return number(limit!, localizeDecimal(limit!));
}

const MEAN = "\\operatorname{mean}";

function nonlinearity({ feedforward }: Config): string {
  const names = { relu: "ReLU", gelu: "GELU", gelu_tanh: "GELU", swiglu: "SiLU", geglu: "GELU" };
  return `\\operatorname{${names[feedforward]}}`;
}

/** A number, rounded as `text` shows it. */
export function number(x: number, text: string = precise(x)): string {
  const [digits, power] = text.replace(",", "{,}").replaceAll("−", "-").split("e");
  if (!Number.isFinite(x)) return Number.isNaN(x) ? "\\text{–}" : x > 0 ? "\\infty" : "-\\infty";
  return power === undefined ? digits! : `${digits} \\times 10^{${power}}`;
}

/** A number as a factor or a further term: a negative one in parentheses. */
function factor(x: number): string {
  return x < 0 ? `(${number(x)})` : number(x);
}
