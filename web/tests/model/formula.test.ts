import katex from "katex";
import { afterEach, describe, expect, test } from "vitest";
import { de } from "../../src/messages/de";
import { en } from "../../src/messages/en";
import { locale } from "../../src/messages/format.svelte";
import { type Derivation, derive, deriveWeighed } from "../../src/model/derivation";
import { type Explained, number, writeFormula } from "../../src/model/formula";
import { areaSymbol, cellSymbol } from "../../src/model/notation";
import type { Config } from "../../src/engine/types";
import { CONFIG } from "../config";

const PLAIN = {
  ...CONFIG,
  position: "learned",
  norm: "layer",
  feedforward: "gelu",
  norm_epsilon: 1e-5,
  embedding_scale: 1,
  qkv_bias: true,
  output_bias: true,
} as Config;
const IDS = [7, 8, 9, 10, 11, 12];

/** The formula of a cell with these numbers, with its terms in their own order. */
function write(
  config: Config,
  cell: string,
  numbers: number[][],
  value = 0.5,
  change: Partial<Explained> = {},
) {
  const [name = "", row, column = 0] = cell.split(" ");
  const at = { name, row: Number(row), column: Number(column) };
  const derivation = change.derivation ?? derive(config, IDS, at);
  const order = [...(numbers[0] ?? []).keys()];
  const formula = writeFormula({
    cell: at,
    value,
    derivation,
    numbers,
    config,
    order,
    more: en.cell.more,
    smaller: en.cell.smaller,
    ...change,
  });
  for (const tex of [formula.symbols, formula.result, formula.rounded ?? "", formula.numbers ?? ""])
    expectTypeset(tex);
  return { ...formula, symbols: strip(formula.symbols), numbers: formula.numbers && strip(formula.numbers) };
}

const strip = (tex: string) => tex.replace("\\displaystyle ", "");

/** Checks that KaTeX accepts the formula without complaint. */
function expectTypeset(tex: string): void {
  const html = katex.renderToString(tex, { throwOnError: true, strict: "error", output: "htmlAndMathml" });
  expect(html).not.toContain("katex-error");
}

afterEach(() => {
  locale.language = "en";
});

describe("each operation, with symbols and with numbers", () => {
  const check = (
    config: Config,
    cell: string,
    numbers: number[][],
    symbols: string,
    written: string | null,
  ) => {
    const formula = write(config, cell, numbers);
    expect(formula.symbols).toBe(`${symbols} =`);
    expect(formula.numbers).toBe(written === null ? null : `{}= \\nobreak ${written}`);
    expect(formula.result).toBe("0.50");
  };

  test("dot: a projection with its bias", () => {
    check(
      PLAIN,
      "block.1.head.2.query_raw 5 0",
      [[1, -2], [0.25, 4], [-0.125]],
      "q_{5,0} = t^{1}_{5} \\cdot W^{Q}_{{:},0} + b^{Q}_{0}",
      "{1.00 \\cdot 0.25} + {(-2.00) \\cdot 4.00} + (-0.13)",
    );
  });
  test("dot: query and key", () => {
    check(
      PLAIN,
      "block.1.head.2.scores 5 3",
      [
        [1, 2],
        [3, 4],
      ],
      "s_{5,3} = q_{5} \\cdot k_{3}",
      "{1.00 \\cdot 3.00} + {2.00 \\cdot 4.00}",
    );
  });
  test("dot: many terms, the largest first", () => {
    const formula = write(
      PLAIN,
      "block.1.head.2.mixed 5 3",
      [
        [1, 2, 3, 4, 5, 6],
        [1, 1, 1, 1, 1, 1],
      ],
      21,
      { order: [5, 4, 3, 2, 1, 0] },
    );
    expect(formula.symbols).toBe("a_{5,3} = \\alpha_{5} \\cdot v_{{:},3} =");
    expect(formula.numbers).toBe(
      "{}= \\nobreak {6.00 \\cdot 1.00} + {5.00 \\cdot 1.00} + {4.00 \\cdot 1.00} + {3.00 \\cdot 1.00} + \\text{… 2 smaller}",
    );
    expect(formula.result).toBe("21.0");
  });
  test("divide", () => {
    check(
      PLAIN,
      "block.0.head.0.scaled 5 3",
      [[-1.5]],
      "s'_{5,3} = \\frac{s_{5,3}}{\\sqrt{d_k}}",
      "\\frac{-1.50}{\\sqrt{2}}",
    );
  });
  test("cap: scores and logits", () => {
    const capped = { ...PLAIN, score_cap: 50, logit_cap: 0.5 };
    check(
      capped,
      "block.0.head.0.capped 5 3",
      [[-1.5]],
      "s''_{5,3} = 50 \\tanh\\frac{s'_{5,3}}{50}",
      "50 \\tanh\\frac{-1.50}{50}",
    );
    check(
      capped,
      "logits 5 3",
      [[2]],
      "\\ell_{5,3} = 0.5 \\tanh\\frac{\\tilde{\\ell}_{5,3}}{0.5}",
      "0.5 \\tanh\\frac{2.00}{0.5}",
    );
    locale.language = "de";
    expect(write(capped, "logits 5 3", [[2]]).numbers).toContain("0{,}5 \\tanh");
    expect(write(capped, "block.0.head.0.masked 5 3", [[0.5]]).symbols).toBe("m_{5,3} = s''_{5,3} =");
  });
  test("mask: visible and masked", () => {
    check(PLAIN, "block.0.head.0.masked 5 3", [[0.5]], "m_{5,3} = s'_{5,3}", null);
    const masked = write(PLAIN, "block.0.head.0.masked 3 5", [[0.5]], -Infinity);
    expect(masked).toEqual({ symbols: "m_{3,5} =", result: "-\\infty", rounded: null, numbers: null });
  });
  test("softmax: masked tokens are not counted", () => {
    const scores = [0.5, -1, -2, -3, -4, -Infinity];
    const { numbers } = write(PLAIN, "block.0.head.0.weights 4 0", [scores]);
    expect(numbers).toContain("{e^{0.50} + e^{-1.00} + e^{-2.00} + \\text{… 2 smaller}}");
    const small = write(PLAIN, "block.0.head.0.weights 4 4", [scores], 0, { order: [4, 0, 1, 2, 3, 5] });
    expect(small.numbers).toContain("{e^{-4.00} + e^{0.50} + e^{-1.00} + \\text{… 2 more}}");
    const masked = write(PLAIN, "block.0.head.0.weights 1 2", [[0.5, -1, -Infinity]], 0, {
      order: [2, 0, 1],
    });
    expect(masked.numbers).toContain("{e^{-\\infty} + e^{0.50} + e^{-1.00}}");
  });
  test("softmax", () => {
    check(
      PLAIN,
      "block.0.head.0.weights 1 0",
      [[0.5, -1, -Infinity]],
      "\\alpha_{1,0} = \\frac{e^{m_{1,0}}}{\\sum_{j} e^{m_{1,j}}}",
      "\\frac{e^{0.50}}{e^{0.50} + e^{-1.00}}",
    );
  });
  test("sum: the heads have numbers, so that no two symbols are alike", () => {
    check(
      PLAIN,
      "block.1.attention 5 3",
      [[1], [2], [-3], [4], [0.5]],
      "t^{2}_{5,3} = o^{0}_{5,3} + o^{1}_{5,3} + o^{2}_{5,3} + o^{3}_{5,3} + b^{O}_{3}",
      "1.00 + 2.00 + (-3.00) + 4.00 + 0.50",
    );
    const many = write({ ...PLAIN, n_head: 8 }, "block.1.attention 5 3", [
      [1],
      [2],
      [3],
      [4],
      [5],
      [6],
      [7],
      [8],
      [9],
    ]);
    expect(many.symbols).toContain("o^{5}_{5,3} + \\cdots =");
    expect(many.numbers).toContain("6.00 + \\text{… 3 more}");
  });
  test("norm: layer norm and RMS norm", () => {
    check(
      PLAIN,
      "block.1.normed2 5 3",
      [[1], [2], [3], [-4], [5]],
      "t^{4}_{5,3} = \\gamma_{3} \\cdot \\frac{t^{3}_{5,3} - \\mu_{5}}{\\sigma_{5}} + \\beta_{3}",
      "3.00 \\cdot \\frac{1.00 - (-4.00)}{2.00} + 5.00",
    );
    check(
      CONFIG,
      "final 5 3",
      [[-1], [2], [3]],
      "f_{5,3} = \\gamma_{3} \\cdot \\frac{h_{5,3}}{\\sigma_{5}}",
      "3.00 \\cdot \\frac{-1.00}{2.00}",
    );
  });
  test("head norm: its scale is computed from the whole row", () => {
    const config = { ...CONFIG, qk_norm: true, norm_epsilon: 0 } as Config;
    check(
      config,
      "block.0.head.0.query_normed 5 1",
      [[3, -4], [2]],
      "\\hat{q}_{5,1} = \\gamma_{1} \\cdot \\frac{\\tilde{q}_{5,1}}{\\sqrt{\\operatorname{mean}(\\tilde{q}_{5}^{2}) + \\varepsilon}}",
      "2.00 \\cdot \\frac{-4.00}{3.54}", // the root of 25 / 2
    );
    check(
      { ...config, norm: "layer" },
      "block.0.head.0.key_normed 5 0",
      [[3, -1], [2], [7]],
      "\\hat{k}_{5,0} = \\gamma_{0} \\cdot \\frac{\\tilde{k}_{5,0} - \\operatorname{mean}(\\tilde{k}_{5})}" +
        "{\\sqrt{\\operatorname{mean}((\\tilde{k}_{5} - \\operatorname{mean}(\\tilde{k}_{5}))^{2}) + \\varepsilon}} + \\beta_{0}",
      "2.00 \\cdot \\frac{3.00 - 1.00}{2.00} + 7.00",
    );
  });
  test("mean", () => {
    check(
      PLAIN,
      "block.1.normed.mean 5",
      [[1, -2]],
      "\\mu_{5} = \\frac{1}{d} \\sum_{c} x_{5,c}",
      "\\frac{1}{2} (1.00 + (-2.00))",
    );
  });
  test("scale: with and without a mean", () => {
    check(
      PLAIN,
      "block.1.normed2.scale 5",
      [[1, -2, 3], [0.25]],
      "\\sigma_{5} = \\sqrt{\\frac{1}{d} \\sum_{c} (t^{3}_{5,c} - \\mu_{5})^{2} + \\varepsilon}",
      "\\sqrt{4.40 + 1.0 \\times 10^{-5}},\\; \\allowbreak " +
        "{4.40 = \\tfrac{1}{3}} ({(1.00 - 0.25)^{2}} + {(-2.00 - 0.25)^{2}} + {(3.00 - 0.25)^{2}})",
    );
    check(
      { ...CONFIG, norm_epsilon: 1e-6 },
      "final.scale 5",
      [[1, -2]],
      "\\sigma_{5} = \\sqrt{\\frac{1}{d} \\sum_{c} (h_{5,c})^{2} + \\varepsilon}",
      "\\sqrt{2.50 + 1.0 \\times 10^{-6}},\\; \\allowbreak {2.50 = \\tfrac{1}{2}} ({(1.00)^{2}} + {(-2.00)^{2}})",
    );
  });
  test("activate and gate", () => {
    check(
      PLAIN,
      "block.1.hidden 5 9",
      [[-2]],
      "n_{5,9} = \\operatorname{GELU}(u_{5,9})",
      "\\operatorname{GELU}(-2.00)",
    );
    check(
      CONFIG,
      "block.1.hidden 5 9",
      [[-2], [-3]],
      "n_{5,9} = \\operatorname{SiLU}(g_{5,9}) \\cdot u_{5,9}",
      "\\operatorname{SiLU}(-2.00) \\cdot (-3.00)",
    );
  });
  test("rotate", () => {
    check(
      CONFIG,
      "block.0.head.0.query 5 0",
      [[1], [-2]],
      "q_{5,0} = {\\tilde{q}_{5,0} \\cos\\theta} - {\\tilde{q}_{5,1} \\sin\\theta}",
      "{1.00 \\cos 5.000} - {(-2.00) \\sin 5.000}",
    );
  });
  test("multiply: a product that only the page has", () => {
    const derivation: Derivation = deriveWeighed(0, 0, 5, 3, 1);
    const formula = write(PLAIN, "block.0.head.0.weighed 3 1", [[0.5], [-1]], -0.5, { derivation });
    expect(formula.symbols).toBe("\\alpha_{5,3} \\cdot v_{3,1} =");
    expect(formula.numbers).toBe("{}= \\nobreak 0.50 \\cdot (-1.00)");
    expect(formula.result).toBe("-0.50");
  });
  test("look up: with and without a scale", () => {
    check(PLAIN, "embedding 5 3", [[0.5]], "e_{5,3} = W^{E}_{12,3}", null);
    check(
      { ...PLAIN, embedding_scale: 8 },
      "embedding 5 3",
      [[-0.5]],
      "e_{5,3} = 8.00 \\cdot W^{E}_{12,3}",
      "8.00 \\cdot (-0.50)",
    );
  });
  test("sinusoid", () => {
    check(
      { ...PLAIN, position: "sinusoidal" },
      "position 5 3",
      [],
      "p_{5,3} = \\cos(5 \\cdot 10000^{-2/8})",
      "\\cos(5 \\cdot 0.10000)",
    );
  });
  test("a small result is also rounded as in its cell", () => {
    const small = write(PLAIN, "block.1.input 5 3", [[-0.0098]], -0.0098);
    expect([small.result, small.rounded]).toEqual(["-0.0098", "\\approx -0.01"]);
    const tiny = write(PLAIN, "block.1.input 5 3", [[0.0000123]], 0.0000123);
    expect([tiny.result, tiny.rounded]).toEqual(["1.2 \\times 10^{-5}", "\\approx 0.00"]);
    const large = write(PLAIN, "block.1.input 5 3", [[19.731]], 19.731);
    expect([large.result, large.rounded]).toEqual(["19.7", null]);
    const same = write(PLAIN, "block.0.attention 0 0", [[1]], -0.0101);
    expect([same.result, same.rounded]).toEqual(["-0.010", null]);
  });
  test("copy", () => {
    check(PLAIN, "block.1.input 5 3", [[0.5]], "x_{5,3} = h_{5,3}", null);
  });
  test("trained weights have four decimals", () => {
    const formula = write(PLAIN, "block.0.head.0.W_Q 3 1", [], -0.12345);
    expect(formula).toEqual({ symbols: "W^{Q}_{3,1} =", result: "-0.1235", rounded: null, numbers: null });
  });
});

test("numbers keep their digits, minus sign and power of ten", () => {
  expect(number(-0.000012)).toBe("-1.2 \\times 10^{-5}");
  expect(number(NaN)).toBe("\\text{–}");
  expectTypeset(number(NaN));
  locale.language = "de";
  expect(number(1.5)).toBe("1{,}50");
  expect(number(0.000012)).toBe("1{,}2 \\times 10^{-5}");
});

test("German sums are typeset too", () => {
  locale.language = "de";
  const numbers = [
    [1, 2, 3, 4, 5, 6],
    [1, 1, 1, 1, 1, 1],
  ];
  const { numbers: written } = write(PLAIN, "block.0.head.0.mixed 1 0", numbers, 0.5, {
    smaller: de.cell.smaller,
  });
  expect(written).toContain("1{,}00");
});

test("symbols of rows, columns, entries and vectors", () => {
  const area = (name: string, rows?: [number, number], columns?: [number, number]) =>
    areaSymbol({ name, ...(rows && { rows }), ...(columns && { columns }) }, PLAIN);
  expect(area("block.0.head.1.W_O", undefined, [3, 4])).toBe("W^{O}_{{:},3}");
  expect(area("block.0.head.1.value", [5, 6])).toBe("v_{5}");
  expect(area("block.0.head.1.value")).toBe("v");
  expect(area("block.0.normed.gain", [3, 4])).toBe("\\gamma_{3}");
  expect(area("block.0.W_gate", undefined, [3, 4])).toBe("W^{g}_{{:},3}");
  expect(cellSymbol({ name: "block.0.b_1", row: 3, column: 0 }, PLAIN)).toBe("b^{1}_{3}");
});
