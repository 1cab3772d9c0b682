import { expect, test } from "vitest";
import { areasToPrefetch } from "../../src/state/prefetch";
import type { Config } from "../../src/engine/types";

const CONFIG = {
  n_block: 2,
  n_head: 2,
  n_kv_head: 2,
  causal: true,
  position: "rotary",
  qk_norm: false,
  post_norm: false,
} as unknown as Config;
const AT = { part: "head", block: 1, head: 0, step: 0, site: 0 } as const;

test("of a short text: what the flow shows, what is open and what that was computed from, each once", () => {
  const needs = areasToPrefetch(CONFIG, [5, 6, 7], { ...AT, step: 5 });
  const names = needs.map(({ name }) => name);
  expect(needs[0]).toEqual({ name: "logits", rows: [2, 3] });
  expect(names).toContain("block.1.head.0.weights");
  expect(names).toContain("block.1.head.0.masked"); // the weights' softmax is of these
  expect(new Set(names).size).toBe(names.length);
});

test("weights, and products that only the page makes, are not asked for beforehand", () => {
  const names = areasToPrefetch(CONFIG, [5, 6, 7], AT).map(({ name }) => name);
  expect(names).toContain("block.1.head.0.query_raw");
  expect(names).toContain("block.1.normed");
  expect(names.some((name) => name.includes("W_"))).toBe(false);
  const weighing = areasToPrefetch(CONFIG, [5, 6, 7], { ...AT, step: 6 }).map(({ name }) => name);
  expect(weighing.some((name) => name.endsWith("weighed"))).toBe(false);
});

test("of a long text only its end", () => {
  const ids = Array.from({ length: 100 }, (_, i) => i);
  expect(areasToPrefetch(CONFIG, ids, AT)).toEqual([{ name: "logits", rows: [99, 100] }]);
});
