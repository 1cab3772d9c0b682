/** The chain rule in TeX: how the gradient of a number follows from those of the numbers that are computed from it. */

import type { Config, Schemas } from "../engine/types";
import { localizeDecimal } from "../messages/format.svelte";
import { number } from "./formula";
import { withIndices } from "./notation";
import { parseSite } from "./sites";

export type Chain = Schemas["ChainResponse"];
type Term = Schemas["ChainTermValue"];
export type NumberPlace = Schemas["NumberPlace"];

const MAX_TERMS = 3; // in the formula

/** `symbols` ends with the equals sign before the result; `numbers` is empty if there is nothing to add up. */
export interface ChainFormula {
  symbols: string;
  numbers: string;
}

/** The derivative of the loss with respect to a number. */
export function partial(place: NumberPlace, config: Config): string {
  return `\\frac{\\partial L}{\\partial ${placeSymbol(place, config)}}`;
}

export function placeSymbol({ name, row, column }: NumberPlace, config: Config): string {
  return withIndices(name, config, row, column ?? undefined);
}

/** The formula of a gradient, with symbols and with numbers. */
export function writeChain(
  chain: Chain,
  config: Config,
  targets: number,
  more: (count: number) => string,
): ChainFormula {
  const own = `\\displaystyle ${partial(chain, config)} =`;
  if (chain.kind === "loss") return writeLoss(chain, own, targets);
  const shown = chain.terms.slice(0, MAX_TERMS);
  const hidden = chain.terms.length + chain.n_others - shown.length;
  const rest = hidden > 0 ? [`\\text{${more(hidden)}}`] : [];
  const symbols = shown.map((term) => {
    const derivative = derivativeSymbol(chain, term, config);
    return `{${partial(term, config)}${derivative === "" ? "" : ` ${derivative}`}}`;
  });
  const numbers = shown.map((term) => {
    const gradient = factor(term.gradient ?? NaN);
    return derivativeSymbol(chain, term, config) === ""
      ? gradient
      : `{${gradient} \\cdot ${factor(term.derivative ?? NaN)}}`;
  });
  if (shown.length === 0) return { symbols: own, numbers: "" };
  return {
    symbols: `${own} ${[...symbols, ...rest].join(" + ")} =`,
    numbers: `\\displaystyle {}= ${[...numbers, ...rest].join(" + ")}`,
  };
}

/** Cross-entropy and softmax together: p − y, as a mean over the targets. */
function writeLoss(chain: Chain, own: string, targets: number): ChainFormula {
  const { name, row, column, probability, is_target } = chain;
  const at = `{${row},${column}}`;
  if (name === "logits")
    return {
      symbols: `${own} \\frac{P_${at} - y_${at}}{N} =`,
      numbers: `\\displaystyle {}= \\frac{${number(probability ?? NaN)} - ${is_target ? 1 : 0}}{${targets}}`,
    };
  if (!is_target) return { symbols: own, numbers: "" };
  return {
    symbols: `${own} -\\frac{1}{N P_${at}} =`,
    numbers: `\\displaystyle {}= -\\frac{1}{${targets} \\cdot ${number(probability ?? NaN)}}`,
  };
}

/** The derivative of a term's number with respect to the explained one; empty if it is 1. */
export function derivativeSymbol(chain: Chain, term: Term, config: Config): string {
  if (term.factor !== null) return placeSymbol(term.factor, config);
  const own = placeSymbol(chain, config);
  const { part } = parseSite(term.name);
  const t = term.row;
  const [mean, scale] = [config.norm === "layer" ? ` - \\mu_{${t}}` : "", `\\sigma_{${t}}`];
  switch (chain.kind) {
    case "same":
    case "sum":
    case "shared":
      return "";
    case "residual":
    case "norm":
      if (part.endsWith(".mean")) return "\\frac{1}{d}";
      if (part.endsWith(".scale")) return `\\frac{${own}${mean}}{d\\,${scale}}`;
      return isNormed(part) && (chain.kind === "norm" || part !== "output")
        ? `\\frac{\\gamma_{${term.column}}}{${scale}}`
        : "";
    case "mean":
      return `\\Bigl(-\\frac{\\gamma_{${term.column}}}{${scale}}\\Bigr)`;
    case "scale":
      return `\\Bigl(-\\frac{\\gamma_{${term.column}} (x_{${t},${term.column}}${mean})}{${scale}^{2}}\\Bigr)`;
    case "activation":
      return `f'(${own})`;
    case "divide":
      return "\\frac{1}{\\sqrt{d_k}}";
    case "cap": {
      const limit = parseSite(chain.name).head === null ? config.logit_cap : config.score_cap;
      return `\\Bigl(1 - \\frac{{${placeSymbol(term, config)}}^{2}}{${number(limit!, localizeDecimal(limit!))}^{2}}\\Bigr)`;
    }
    case "mask":
      return term.derivative === 1 ? "" : "\\cdot 0";
    case "softmax": {
      const alpha = (column: number | null) => placeSymbol({ ...term, column }, config);
      if (term.column === chain.column) return `${alpha(term.column)} (1 - ${alpha(term.column)})`;
      return `(-${alpha(term.column)} ${alpha(chain.column)})`;
    }
    case "rotate":
      if (term.column === chain.column) return "\\cos\\theta";
      return (term.column ?? 0) > (chain.column ?? 0) ? "\\sin\\theta" : "(-\\sin\\theta)";
    case "weight":
      if (/\.gain$/.test(chain.name)) return `\\frac{x_{${t},${chain.row}}${mean}}{${scale}}`;
      if (term.derivative === 1) return "";
      break;
  }
  return `\\frac{\\partial ${placeSymbol(term, config)}}{\\partial ${own}}`;
}

/** Whether a site is the result of a norm. */
function isNormed(part: string): boolean {
  return /^(normed2?|attention_normed|feedforward_normed|final)$/.test(part);
}

/** A number as a factor or a further term: a negative one in parentheses. */
function factor(x: number): string {
  return x < 0 ? `(${number(x)})` : number(x);
}
