import { expect, test } from "vitest";
import type { Config } from "../src/server";
import { placeOf } from "../src/steps";

const CONFIG = {
  n_block: 3,
  n_head: 4,
  n_kv_head: 2,
  d_model: 8,
  d_head: 2,
  d_hidden: 16,
  d_k: 2,
  causal: true,
  position: "rotary",
  qk_norm: false,
  norm: "rms",
  feedforward: "swiglu",
  local_blocks: [] as number[],
  rotary_dim: 2,
  rotary_base: 10_000,
  rotary_stretch: null,
  local_rotary_base: 0,
} as unknown as Config;

test("every site that is shown has its place", () => {
  expect(placeOf("block.2.head.3.weights", CONFIG)).toEqual({
    part: "head",
    block: 2,
    head: 3,
    step: 5,
    site: 0,
  });
  expect(placeOf("block.1.kv_head.1.value", CONFIG)).toMatchObject({
    part: "head",
    block: 1,
    head: 2,
    site: 2,
  });
  expect(placeOf("block.2.input", CONFIG)).toMatchObject({ part: "add2", block: 1 });
  expect(placeOf("final.scale", CONFIG)).toMatchObject({ part: "final" });
  expect(placeOf("nothing", CONFIG)).toBeNull();
});
