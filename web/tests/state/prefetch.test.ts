import { expect, test } from "vitest";
import { areasToPrefetch } from "../../src/state/prefetch";
import type { Config } from "../../src/engine/types";

const CONFIG = {
  n_block: 2,
  n_head: 2,
  n_kv_head: 2,
  causal: true,
  position: "rotary",
  unrotated_blocks: [] as number[],
  qk_norm: false,
  pre_norm: true,
  post_norm: false,
} as unknown as Config;
const AT = { part: "head", block: 1, head: 0, step: 0, site: 0 } as const;

test("for a short text, prefetches the sites of the flow, the open site and its inputs, each once", () => {
  const needs = areasToPrefetch(CONFIG, [5, 6, 7], { ...AT, step: 5 });
  const names = needs.map(({ name }) => name);
  expect(needs[0]).toEqual({ name: "logits", rows: [2, 3] });
  expect(names).toContain("block.1.head.0.weights");
  expect(names).toContain("block.1.head.0.masked"); // the input of the softmax
  expect(new Set(names).size).toBe(names.length);
});

test("does not prefetch weights, or the product that only the page computes", () => {
  const names = areasToPrefetch(CONFIG, [5, 6, 7], AT).map(({ name }) => name);
  expect(names).toContain("block.1.head.0.query_raw");
  expect(names).toContain("block.1.normed");
  expect(names.some((name) => name.includes("W_"))).toBe(false);
  const weighing = areasToPrefetch(CONFIG, [5, 6, 7], { ...AT, step: 6 }).map(({ name }) => name);
  expect(weighing.some((name) => name.endsWith("weighed"))).toBe(false);
});

test("prefetches only the last logits of a long text", () => {
  const ids = Array.from({ length: 100 }, (_, i) => i);
  expect(areasToPrefetch(CONFIG, ids, AT)).toEqual([{ name: "logits", rows: [99, 100] }]);
});
