import { expect, test } from "vitest";
import { sameShape } from "../src/comparing";
import type { Config } from "../src/server";

const config = {
  n_block: 2,
  n_head: 2,
  n_kv_head: 2,
  d_model: 8,
  norm: "layer",
  position: "learned",
} as Config;

test("models are of one shape where their sites are, whatever their weights and context", () => {
  expect(sameShape(config, { ...config, n_context: 99 })).toBe(true);
  expect(sameShape(config, { ...config, d_model: 16 })).toBe(false);
  expect(sameShape(config, { ...config, n_kv_head: 1 })).toBe(false);
  expect(sameShape(config, { ...config, position: "rotary" })).toBe(false);
});
