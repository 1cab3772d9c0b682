import katex from "katex";
import { expect, test } from "vitest";
import { type Chain, derivativeSymbol, partial, writeChain } from "../../src/model/chain";
import { CONFIG } from "../config";

const more = (count: number) => `… ${count} more`;

function chainOf(chain: Partial<Chain>): Chain {
  return {
    name: "block.0.input",
    row: 2,
    column: 3,
    value: 0.5,
    gradient: 0.25,
    kind: "same",
    terms: [],
    n_others: 0,
    others: 0,
    probability: null,
    is_target: false,
    ...chain,
  };
}

function termOf(name: string, row: number, column: number | null, more: object = {}): Chain["terms"][number] {
  return { name, row, column, gradient: 0.5, derivative: 0.5, value: 0.25, factor: null, ...more };
}

test("the gradient of a number", () => {
  expect(partial({ name: "logits", row: 2, column: 7 }, CONFIG)).toBe(
    "\\frac{\\partial L}{\\partial \\ell_{2,7}}",
  );
  expect(partial({ name: "block.0.normed.mean", row: 2, column: null }, CONFIG)).toBe(
    "\\frac{\\partial L}{\\partial \\mu_{2}}",
  );
});

test("a logit: p − y, divided by the number of targets", () => {
  const chain = chainOf({ name: "logits", kind: "loss", probability: 0.2, is_target: true, gradient: -0.1 });
  const { symbols, numbers } = writeChain(chain, CONFIG, 8, more);
  expect(symbols).toContain("\\frac{P_{2,3} - y_{2,3}}{N} =");
  expect(numbers).toContain("\\frac{0.20 - 1}{8}");
});

test("the probability of a token that is not the target has no formula", () => {
  const chain = chainOf({ name: "probabilities", kind: "loss", probability: 0.2, gradient: 0 });
  expect(writeChain(chain, CONFIG, 8, more).numbers).toBe("");
});

test("a sum names its factors and counts what it leaves out", () => {
  const factor = { name: "unembedding.W", row: 3, column: 7 };
  const terms = [7, 8, 9, 10].map((column) => termOf("logits", 2, column, { factor: { ...factor, column } }));
  const chain = chainOf({ name: "final", kind: "linear", terms, n_others: 5 });
  const { symbols, numbers } = writeChain(chain, CONFIG, 8, more);
  expect(symbols).toContain("{\\frac{\\partial L}{\\partial \\ell_{2,7}} W^{U}_{3,7}}");
  expect(symbols).toContain("\\text{… 6 more}");
  expect(numbers).toBe(
    "\\displaystyle {}= {0.50 \\cdot 0.50} + {0.50 \\cdot 0.50} + {0.50 \\cdot 0.50} + \\text{… 6 more}",
  );
});

test.each([
  ["sum", "block.0.middle", ""],
  ["residual", "block.0.middle", ""],
  ["residual", "block.0.output", ""],
  ["residual", "block.0.normed", "\\frac{\\gamma_{3}}{\\sigma_{2}}"],
  ["residual", "block.0.normed.mean", "\\frac{1}{d}"],
  ["norm", "final", "\\frac{\\gamma_{3}}{\\sigma_{2}}"],
  ["divide", "block.0.head.0.scaled", "\\frac{1}{\\sqrt{d_k}}"],
  ["softmax", "block.0.head.0.weights", "\\alpha_{2,3} (1 - \\alpha_{2,3})"],
  ["rotate", "block.0.head.0.query", "\\cos\\theta"],
])("the derivative in a %s of %s", (kind, name, expected) => {
  expect(derivativeSymbol(chainOf({ kind }), termOf(name, 2, 3), CONFIG)).toBe(expected);
});

test("the derivative of a cap", () => {
  const capped = { ...CONFIG, score_cap: 50, logit_cap: 30 };
  const score = chainOf({ name: "block.0.head.0.scaled", kind: "cap" });
  expect(derivativeSymbol(score, termOf("block.0.head.0.capped", 2, 3), capped)).toBe(
    "\\Bigl(1 - \\frac{{s''_{2,3}}^{2}}{50^{2}}\\Bigr)",
  );
  const logit = chainOf({ name: "logits_raw", kind: "cap" });
  const tex = derivativeSymbol(logit, termOf("logits", 2, 3), capped);
  expect(tex).toBe("\\Bigl(1 - \\frac{{\\ell_{2,3}}^{2}}{30^{2}}\\Bigr)");
  for (const each of [tex, "{s''_{2,3}}^{2}"])
    katex.renderToString(each, { throwOnError: true, strict: "error" });
});

test("the derivative of an operation without a rule is written as one", () => {
  const found = derivativeSymbol(chainOf({ kind: "other" }), termOf("block.0.hidden", 2, 3), CONFIG);
  expect(found).toBe("\\frac{\\partial n_{2,3}}{\\partial x_{2,3}}");
});
