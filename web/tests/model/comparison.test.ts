import { expect, test } from "vitest";
import { difference, inGroup, haveSameShape, listOnce, selectPairs } from "../../src/model/comparison";
import { Matrix } from "../../src/model/matrix";
import type { Config } from "../../src/engine/types";

const config = {
  n_block: 2,
  n_head: 2,
  n_kv_head: 2,
  d_model: 8,
  norm: "layer",
  position: "learned",
} as Config;

test("compares the shapes of models, whatever their weights and context", () => {
  expect(haveSameShape(config, { ...config, n_context: 99 })).toBe(true);
  expect(haveSameShape(config, { ...config, d_model: 16 })).toBe(false);
  expect(haveSameShape(config, { ...config, n_kv_head: 1 })).toBe(false);
  expect(haveSameShape(config, { ...config, position: "rotary" })).toBe(false);
  expect(haveSameShape(config, { ...config, score_cap: 50 })).toBe(false);
  expect(haveSameShape({ ...config, score_cap: 30 }, { ...config, score_cap: 50 })).toBe(true);
});

test("subtracts paired rows", () => {
  const one = new Matrix(new Float32Array([1, 2, 3, 4]), 2, 2);
  const other = new Matrix(new Float32Array([10, 20, 30, 40, 50, 60]), 3, 2);
  const pairs: [number, number][] = [
    [0, 0],
    [1, 2],
  ];
  expect([...difference("block.0.input", one, other, pairs).values]).toEqual([9, 18, 47, 56]);
  expect([...selectPairs("block.0.input", one, other, pairs, 1).values]).toEqual([10, 20, 50, 60]);
});

test("pairs both rows and columns of attention matrices, and masked cells do not differ", () => {
  const one = new Matrix(new Float32Array([1, -Infinity, 2, 3]), 2, 2);
  const other = new Matrix(new Float32Array([5, -Infinity, 7, 9]), 2, 2);
  const pairs: [number, number][] = [
    [0, 0],
    [1, 1],
  ];
  expect([...difference("block.0.head.0.masked", one, other, pairs).values]).toEqual([4, 0, 5, 6]);
});

test("assigns sites to groups", () => {
  expect(inGroup("block.1.head.2.output", "heads")).toBe(true);
  expect(inGroup("block.1.output", "heads")).toBe(false);
  expect(inGroup("block.1.output", "stream")).toBe(true);
  expect(inGroup("block.1.hidden", "feedforward")).toBe(true);
});

test("lists sites that share a name once, still in the order of their distances", () => {
  const distances = [
    { site: "a", distance: 0.9 },
    { site: "b", distance: 0.8 },
    { site: "a again", distance: 0.7 },
    { site: "c", distance: 0.6 },
  ];
  const nameOf = (site: string) => site.split(" ")[0]!;
  expect(listOnce(distances, nameOf).map(({ distance }) => distance)).toEqual([0.9, 0.8, 0.6]);
});
