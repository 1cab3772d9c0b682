import { expect, test } from "vitest";
import { fitting, inTurns, setWeight, tell } from "../src/changing";
import { difference, inGroup, side } from "../src/comparing";
import { derive, lightUp } from "../src/derivation";
import { broughtMost, feedforwardOf, headOf, readPath, writePath } from "../src/following";
import { Matrix } from "../src/matrix";
import type { Attribution, Config } from "../src/server";
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

test("a difference is the other less the one, where they belong together", () => {
  const one = new Matrix(new Float32Array([1, 2, 3, 4]), 2, 2);
  const other = new Matrix(new Float32Array([10, 20, 30, 40, 50, 60]), 3, 2);
  const pairs: [number, number][] = [
    [0, 0],
    [1, 2],
  ];
  expect([...difference("block.0.input", one, other, pairs).values]).toEqual([9, 18, 47, 56]);
  expect([...side("block.0.input", one, other, pairs, 1).values]).toEqual([10, 20, 50, 60]);
});

test("of a head's matrix rows and columns are paired, and what neither sees does not differ", () => {
  const one = new Matrix(new Float32Array([1, -Infinity, 2, 3]), 2, 2);
  const other = new Matrix(new Float32Array([5, -Infinity, 7, 9]), 2, 2);
  const pairs: [number, number][] = [
    [0, 0],
    [1, 1],
  ];
  expect([...difference("block.0.head.0.masked", one, other, pairs).values]).toEqual([4, 0, 5, 6]);
});

test("sites belong to groups", () => {
  expect(inGroup("block.1.head.2.output", "heads")).toBe(true);
  expect(inGroup("block.1.output", "heads")).toBe(false);
  expect(inGroup("block.1.output", "stream")).toBe(true);
  expect(inGroup("block.1.hidden", "feedforward")).toBe(true);
});

test("a weight makes room among the others, and all sum to 1", () => {
  const row = setWeight([0.5, 0.25, 0.25, 0], 0, 0.2);
  expect(row[0]).toBe(0.2);
  expect(row[1]).toBeCloseTo(0.4);
  expect(row[3]).toBe(0);
  expect(setWeight([1, 0, 0], 0, 0.4).reduce((sum, each) => sum + each)).toBeCloseTo(0.4); // nothing else is seen
});

test("a change is told by what it does", () => {
  expect(tell({ site: "block.3.head.1.output", value: 0 })).toMatchObject({ what: "head", how: "silenced" });
  expect(tell({ site: "block.3.input", text: "a", at: [2] })).toMatchObject({ what: "stream", how: "taken" });
  expect(tell({ site: "block.3.hidden", scale: 2, columns: [7] })).toMatchObject({
    what: "neuron",
    how: "scaled",
    amount: 2,
  });
  expect(tell({ site: "block.0.head.0.weights", value: [[1]], at: [0] })).toMatchObject({
    what: "weight",
    how: "set",
  });
});

test("the way back is in the address, and what is none is none", () => {
  const path = [
    { block: 9, head: 1, source: 4 },
    { block: 3, head: 0, source: 0 },
  ];
  expect(readPath(writePath(path))).toEqual(path);
  for (const wrong of ["", "1.2", "1.2.3-4.5.6", "a.b.c", "1.1.1-", null])
    expect(readPath(wrong)).toEqual([]);
});

test("what heads brought from tokens, most first", () => {
  const found = {
    heads: [
      { block: 1, head: 0, values: [0.5, -2] },
      { block: 0, head: 3, values: [1, null] },
    ],
  } as unknown as Attribution;
  expect(broughtMost(found, 2)).toEqual([
    { block: 1, head: 0, source: 1, value: -2 },
    { block: 0, head: 3, source: 0, value: 1 },
  ]);
  expect(headOf("block.12.head.3.output")).toEqual({ block: 12, head: 3 });
  expect(headOf("block.12.feedforward")).toBeNull();
  expect(feedforwardOf("block.12.feedforward")).toBe(12);
});

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

test("where what a number was made of is not on screen, what that goes back to lights up", () => {
  const ids = [1, 2, 3];
  const name = (part: string) => `block.0.head.1.${part}`;
  const seen = (each: string) => [name("query"), name("key")].includes(each);
  const { from } = derive(CONFIG, ids, { name: name("weights"), row: 1, column: 0 });
  const lit = lightUp(CONFIG, ids, from, seen);
  expect(lit.map((area) => `${area.name} ${area.rows}`)).toEqual([
    `${name("masked")} 1,2`,
    `${name("query")} 1,2`,
    `${name("key")} 0,1`,
    `${name("key")} 1,2`,
  ]);
  expect(lightUp(CONFIG, ids, from, (each) => each === name("masked"))).toEqual(from);
});

test("effects are asked for from the last block on, as much work at a time, each block once", () => {
  expect(inTurns(1)).toEqual([[0, 1]]);
  expect(inTurns(4)).toEqual([
    [2, 4], // 1 + 2 blocks to run
    [1, 2],
    [0, 1],
  ]);
  const turns = inTurns(30);
  expect(
    turns
      .flatMap(([first, last]) => Array.from({ length: last - first }, (_, i) => first + i))
      .sort((a, b) => a - b),
  ).toEqual(Array.from({ length: 30 }, (_, i) => i));
  expect(turns.length).toBeLessThan(25);
});

test("changes that do not fit another text are left out, weights grow with it", () => {
  const config = { n_block: 2, n_head: 2, causal: true };
  const head = { site: "block.1.head.0.output", value: 0 };
  const stream = { site: "block.0.input", at: [3], value: 0 };
  const last = { site: "block.0.input", at: [-1], value: 0 };
  const weights = { site: "block.0.head.1.weights", at: [1], value: [[0.5, 0.5]] };
  expect(fitting([head, stream, last, weights], config, 3)).toEqual([
    head,
    last,
    { ...weights, value: [[0.5, 0.5, 0]] },
  ]);
  expect(fitting([weights], { ...config, causal: false }, 3)).toEqual([]);
  expect(fitting([weights], config, 1)).toEqual([]);
  expect(fitting([{ site: "block.2.input", value: 0 }], config, 9)).toEqual([]);
});
