import { expect, test } from "vitest";
import {
  columnOf,
  gradientShape,
  hasGradient,
  isGradient,
  modelParts,
  namesIn,
} from "../../src/model/gradientSites";
import { CONFIG as SIZES } from "../config";

const CONFIG = { ...SIZES, n_vocab: 30, n_context: 16 };

test("every part lists sites and weights with a shape", () => {
  const parts = modelParts(CONFIG);
  expect(parts).toHaveLength(1 + CONFIG.n_block * (1 + CONFIG.n_head));
  for (const part of parts)
    for (const name of namesIn(CONFIG, part)) {
      expect(hasGradient(CONFIG, name)).toBe(true);
      expect(gradientShape(CONFIG, 5, name).every((size) => size > 0)).toBe(true);
    }
});

test("unknown names have no gradient", () => {
  for (const name of ["", "block.99.input", "block.0.nothing"]) expect(hasGradient(CONFIG, name)).toBe(false);
});

test("numbers beyond the text or the weight do not exist", () => {
  expect(isGradient(CONFIG, 5, { name: "block.0.input", row: 4, column: 0 })).toBe(true);
  expect(isGradient(CONFIG, 5, { name: "block.0.input", row: 5, column: 0 })).toBe(false);
  expect(isGradient(CONFIG, 5, { name: "final.gain", row: 0, column: 1 })).toBe(false);
  expect(isGradient(CONFIG, 5, { name: "nothing", row: 0, column: 0 })).toBe(false);
});

test("vectors have no column", () => {
  expect(columnOf("final.scale", 3)).toBe(null);
  expect(columnOf("block.0.head.0.W_Q", 3)).toBe(3);
  expect(gradientShape(CONFIG, 5, "final.gain")).toEqual([CONFIG.d_model, 1]);
});
